//! Full queues and broken directories.

use plimsoll_auth::{Error, Settings};

use crate::{PASSWORD, all, guarded, here, join_as, run, secret, settings};

#[test]
fn a_request_beyond_a_full_queue_gets_a_retry_time_and_the_others_finish() {
    run(&settings(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let (password, peer) = (secret(PASSWORD), here());
        let answers = all((0..200).map(|_| auth.log_in(&io, "alice", &password, &peer))).await;
        let done = answers.iter().filter(|answer| answer.is_ok()).count();
        let is_busy = |answer: &&Result<_, Error>| {
            answer
                .as_ref()
                .is_err_and(|error| matches!(error, Error::Busy { .. }) && error.retry_after().is_some())
        };
        assert_eq!(done + answers.iter().filter(is_busy).count(), 200);
        assert!(done >= 32, "{done}");
    });
}

#[test]
fn a_full_queue_is_nobodys_failure() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        // The cache is disabled, so that the password counts as a stranger's.
        auth.set(Settings { remembered_time: std::time::Duration::ZERO, ..guarded() });
        let (password, peer) = (secret("battery staple"), here());
        auth.set_password(&io, "alice", &password).await.unwrap();
        let answers = all((0..200).map(|_| auth.log_in(&io, "alice", &password, &peer))).await;
        assert!(answers.iter().any(|answer| matches!(answer, Err(Error::Busy { .. }))));
        assert!(answers.iter().all(|answer| matches!(answer, Ok(_) | Err(Error::Busy { .. }))));
        let again = auth.log_in(&io, "alice", &password, &peer).await;
        assert!(again.is_ok(), "{again:?}");
    });
}
