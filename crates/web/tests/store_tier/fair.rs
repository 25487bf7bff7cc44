//! Fairness of a store to an account that uses several fronts, and to a front that has disconnected.

use std::time::Duration;

use plimsoll_io::sim::Faults;
use plimsoll_io::{Either, Existing, JobOwner, join, select};
use plimsoll_store::{Algorithm, Condition, Depth, End, Error, Quota};

use crate::{Front, path, run_with};

/// Each slice of long work is delayed at random.
fn slow() -> Faults {
    Faults { offload_delay_max: Duration::from_secs(20), ..Faults::none() }
}

/// Requests a digest of `a` for an account.
async fn digest(front: &Front, account: i64) -> Result<(), Error> {
    let io = front.io.for_owner(JobOwner::account(account));
    front.home.location(path("a")).digest(&io, Algorithm::Sha256).await.map(drop)
}

#[test]
fn the_digests_of_an_account_are_counted_over_all_fronts() {
    run_with(5, slow, async |[left, right], _, _| {
        left.put("a", b"hello", Condition::none()).await.unwrap();
        let pair = |front| join(digest(front, 7), digest(front, 7));
        let all = join(join(pair(&left), pair(&right)), join(pair(&left), digest(&left, 8)));
        let (((one, two), (three, four)), ((five, six), other)) = all.await;
        let refused = [one, two, three, four, five, six].into_iter().filter_map(Result::err);
        let refused: Vec<Error> = refused.collect();
        assert!(matches!(refused.as_slice(), [Error::Busy] | [Error::Busy, Error::Busy]), "{refused:?}");
        assert!(other.is_ok(), "another account has slots of its own");
        assert!(digest(&right, 7).await.is_ok(), "their slots are free again");
    });
}

#[test]
fn a_copy_ends_with_the_front_that_asked_for_it() {
    run_with(5, slow, async |[left, right], _, _| {
        left.put("a", b"hello", Condition::none()).await.unwrap();
        left.home.usage(&left.io).await.unwrap();
        let end = |name| End { home: left.home.clone(), path: path(name), quota: Quota::default() };
        // The disk's delays are random: a copy that is done before the pause is over cannot be aborted.
        let mut aborted = None;
        for name in ["copy-1", "copy-2", "copy-3", "copy-4", "copy-5"] {
            let copy = end("a").copy(&left.io, end(name), Existing::Kept, Depth::Infinity);
            let pause = left.io.sleep(Duration::from_millis(100));
            if let Either::Left(()) = select(pause, Box::pin(copy)).await {
                aborted = Some(name);
                break;
            }
        }
        left.io.sleep(Duration::from_secs(100)).await;
        assert!(matches!(right.get(aborted.expect("a slow copy")).await, Err(Error::NotFound)));
        let copy = end("a").copy(&left.io, end("copy"), Existing::Kept, Depth::Infinity);
        assert!(copy.await.unwrap().created);
        assert_eq!(right.get("copy").await.unwrap(), b"hello");
    });
}
