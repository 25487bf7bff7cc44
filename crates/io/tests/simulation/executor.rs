//! The executor, its wakers and its timers, without an engine.

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use plimsoll_io::exec::{Executor, TaskId, Timers, Turn};
use plimsoll_io::{Instant, Notify, Stop};

#[derive(Default)]
struct Rings(AtomicUsize);

impl Notify for Rings {
    fn notify(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Wake for Rings {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Rings {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn executor() -> (Executor, Arc<Rings>) {
    let rings = Arc::new(Rings::default());
    (Executor::new(Arc::<Rings>::clone(&rings)), rings)
}

/// Polls all ready tasks.
fn turn(executor: &Executor) -> Vec<Turn> {
    let mut batch = Vec::new();
    executor.take_ready(&mut batch);
    batch.into_iter().map(|id| executor.poll(id)).collect()
}

/// Spawns a task that waits for ever. Returns it with a cell that holds the waker of its last poll.
fn sleeper(executor: &Executor) -> (TaskId, Rc<RefCell<Option<Waker>>>) {
    let waker = Rc::<RefCell<Option<Waker>>>::default();
    let cell = Rc::clone(&waker);
    let sleeps = poll_fn(move |cx| {
        cell.replace(Some(cx.waker().clone()));
        Poll::Pending
    });
    let id = executor.spawn(Box::pin(sleeps));
    turn(executor);
    (id, waker)
}

#[test]
fn a_spawned_task_is_polled_until_it_ends() {
    let (executor, _) = executor();
    let _entered = executor.enter();
    let id = executor.spawn(Box::pin(async {}));
    assert!(executor.any_ready() && executor.is_live(id));
    assert_eq!(turn(&executor), [Turn::Ended]);
    assert_eq!((executor.live(), executor.is_live(id), executor.poll(id)), (0, false, Turn::Absent));
}

#[test]
fn woken_twice_is_polled_once() {
    let (executor, rings) = executor();
    let _entered = executor.enter();
    let (_, waker) = sleeper(&executor);
    for _ in 0..2 {
        waker.borrow().as_ref().unwrap().wake_by_ref();
    }
    assert_eq!(turn(&executor), [Turn::Waiting]);
    assert!(!executor.any_ready());
    assert_eq!(rings.count(), 0, "a wake from its own thread rang");
}

#[test]
fn a_wake_from_another_thread_goes_through_notify() {
    let (executor, rings) = executor();
    let _entered = executor.enter();
    let (_, waker) = sleeper(&executor);
    let waker = waker.borrow_mut().take().unwrap();
    std::thread::spawn(move || {
        waker.wake_by_ref();
        waker.wake();
    })
    .join()
    .unwrap();
    assert_eq!(rings.count(), 1);
    assert_eq!(turn(&executor), [Turn::Waiting]);
}

#[test]
fn a_wake_while_it_is_polled_comes_in_the_next_batch() {
    let (executor, _) = executor();
    let _entered = executor.enter();
    let busy = poll_fn(|cx| {
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    });
    executor.spawn(Box::pin(busy));
    assert_eq!(turn(&executor), [Turn::Waiting]);
    assert_eq!(turn(&executor), [Turn::Waiting]);
}

#[test]
fn a_waker_may_be_called_after_its_task_has_ended() {
    let (executor, _) = executor();
    let _entered = executor.enter();
    let (_, waker) = sleeper(&executor);
    executor.clear();
    assert_eq!(executor.live(), 0);
    waker.borrow().as_ref().unwrap().wake_by_ref();
    assert_eq!(turn(&executor), [Turn::Absent]);
}

#[test]
fn a_panic_ends_one_task_in_polling_and_in_dropping() {
    struct Explodes;
    impl Drop for Explodes {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let (executor, _) = executor();
    let _entered = executor.enter();
    executor.spawn(Box::pin(async { panic!("polled {}", 1) }));
    executor.spawn(Box::pin(async {}));
    // Owned by the future until it is dropped: values of an ended async block are dropped in the poll.
    let explodes = Explodes;
    executor.spawn(Box::pin(poll_fn(move |_| {
        let _held = &explodes;
        Poll::Ready(())
    })));
    let turns = turn(&executor);
    assert_eq!(turns, [Turn::Panicked("polled 1".into()), Turn::Ended, Turn::Panicked("dropped".into())]);
    assert_eq!(executor.live(), 0);
}

#[test]
fn a_task_may_spawn_and_wake_others() {
    let (executor, _) = executor();
    let executor = Rc::new(executor);
    let _entered = executor.enter();
    let (weak, ran) = (Rc::downgrade(&executor), Rc::new(Cell::new(false)));
    let mark = Rc::clone(&ran);
    executor.spawn(Box::pin(async move {
        weak.upgrade().unwrap().spawn(Box::pin(async move { mark.set(true) }));
    }));
    assert_eq!((turn(&executor), turn(&executor)), (vec![Turn::Ended], vec![Turn::Ended]));
    assert!(ran.get());
}

#[test]
fn wake_all_wakes_every_task() {
    let (executor, _) = executor();
    let _entered = executor.enter();
    for _ in 0..3 {
        executor.spawn(Box::pin(pending()));
    }
    turn(&executor);
    executor.wake_all();
    assert_eq!(turn(&executor).len(), 3);
}

#[test]
fn two_executors_on_one_thread_keep_their_tasks_apart() {
    let ((one, rings), (two, _)) = (executor(), executor());
    let (_, waker) = {
        let _entered = one.enter();
        sleeper(&one)
    };
    let _entered = two.enter();
    waker.borrow().as_ref().unwrap().wake_by_ref();
    assert!(!two.any_ready() && one.any_ready());
    assert_eq!(rings.count(), 1, "woken from outside, but spawned from within");
}

fn at(millis: u64) -> Instant {
    Instant::from_start(Duration::from_millis(millis))
}

#[test]
fn timers_fire_once_when_they_are_due() {
    let (timers, rings) = (Timers::default(), Arc::new(Rings::default()));
    let waker = Waker::from(Arc::clone(&rings));
    timers.add(at(20), &waker);
    timers.add(at(10), &waker);
    assert_eq!((timers.next(), timers.len()), (Some(at(10)), 2));
    for (now, fired) in [(9, 0), (10, 1), (19, 1), (50, 2), (90, 2)] {
        timers.fire(at(now));
        assert_eq!(rings.count(), fired, "at {now} ms");
    }
    assert!(timers.is_empty());
}

#[test]
fn a_cancelled_timer_never_fires_and_a_fired_one_may_be_cancelled() {
    let (timers, rings) = (Timers::default(), Arc::new(Rings::default()));
    let waker = Waker::from(Arc::clone(&rings));
    let (gone, kept) = (timers.add(at(5), &waker), timers.add(at(5), &waker));
    timers.cancel(gone);
    timers.fire(at(5));
    timers.cancel(kept);
    assert_eq!((rings.count(), timers.next()), (1, None));
}

#[test]
fn the_order_to_stop_notifies_waiting_threads_and_late_ones() {
    let (stop, early, late) = (Stop::new(), Arc::new(Rings::default()), Arc::new(Rings::default()));
    let bell = |rings: &Arc<Rings>| -> Arc<dyn Notify> { Arc::<Rings>::clone(rings) };
    stop.register(&bell(&early));
    assert!(!stop.is_ordered());
    stop.clone().order();
    stop.register(&bell(&late));
    assert_eq!((stop.is_ordered(), early.count(), late.count()), (true, 1, 1));
}
