//! The contract of deadlines, timers and offloaded work, from a client's task.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use plimsoll_io::{Either, Elapsed, Work, join, select};
use plimsoll_tests::{Scene, behaviours};

use super::acts::scenario;

const SHORT: Duration = Duration::from_millis(40);
const LONG: Duration = Duration::from_secs(1000);

async fn a_wait_ends_at_its_deadline_and_not_before(scene: Scene) {
    let (deadline, before) = (scene.io.deadline(), scene.io.now());
    deadline.after(SHORT);
    assert_eq!(deadline.within(pending::<()>()).await, Err(Elapsed));
    assert!(scene.io.now() - before >= SHORT);
}

async fn a_future_ready_before_its_deadline_completes(scene: Scene) {
    let deadline = scene.io.deadline();
    deadline.after(LONG);
    assert_eq!(deadline.within(scene.io.sleep(SHORT)).await, Ok(()));
}

async fn a_deadline_that_is_moved_later_while_it_is_armed_holds(scene: Scene) {
    let (deadline, before) = (scene.io.deadline(), scene.io.now());
    deadline.after(SHORT);
    let moving = async {
        scene.io.sleep(SHORT / 2).await;
        deadline.after(SHORT * 3);
    };
    // `moving` is polled first, so that the deadline is moved even if a busy machine lets both times pass.
    assert_eq!(join(moving, deadline.within(pending::<()>())).await.1, Err(Elapsed));
    assert!(scene.io.now() - before >= SHORT * 3);
}

async fn a_deadline_that_is_moved_earlier_by_another_half_of_the_task_is_kept(scene: Scene) {
    let deadline = scene.io.deadline();
    deadline.after(LONG);
    let moving = async {
        scene.io.sleep(SHORT).await;
        deadline.after(SHORT);
    };
    let both = join(deadline.within(pending::<()>()), moving);
    match select(both, scene.io.sleep(LONG / 2)).await {
        Either::Left((elapsed, ())) => assert_eq!(elapsed, Err(Elapsed)),
        Either::Right(()) => panic!("the deadline was missed"),
    }
}

async fn offloaded_work_finishes_though_its_future_is_dropped(scene: Scene) {
    let done = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&done);
    let work = scene.io.offload(Work::Files, move |_| counted.fetch_add(1, Ordering::SeqCst));
    let _dropped = select(work, scene.io.yield_now()).await;
    scene.until(|| done.load(Ordering::SeqCst) == 1).await;
}

async fn work_gives_its_result_to_who_waits(scene: Scene) {
    assert_eq!(scene.io.offload(Work::Files, |_| 6 * 7).await, Ok(42));
}

behaviours!(
    scenario;
    a_wait_ends_at_its_deadline_and_not_before,
    a_future_ready_before_its_deadline_completes,
    a_deadline_that_is_moved_later_while_it_is_armed_holds,
    a_deadline_that_is_moved_earlier_by_another_half_of_the_task_is_kept,
    offloaded_work_finishes_though_its_future_is_dropped,
    work_gives_its_result_to_who_waits,
);
