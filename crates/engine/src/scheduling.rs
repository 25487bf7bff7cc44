//! What the system's scheduler is asked for, of the thread that asks.
//!
//! Nothing here is needed: where it is refused, things are as fast as the scheduler would have them.

use rustix::thread::set_current_timer_slack;

use crate::limits::TIMER_SLACK_NANOSECONDS;

/// Has this thread woken when it asked to be, and not up to 50 us later: some of what connections wait for is
/// not longer than that.
pub(crate) fn wake_on_time() {
    let _ = set_current_timer_slack(Some(TIMER_SLACK_NANOSECONDS));
}

/// Has this thread wait until others come to the end of their turn before it begins, though it keeps its
/// share of the time. Who hands work over has something left to do, and would lose the core in the middle of
/// it. Uploads of 1 MB by 8 clients, all on one core, were 1.07 times as many.
pub(crate) fn begin_after_others() {
    // Policies of sched(7): "This policy is useful for workloads that are noninteractive".
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is to a value on the stack, which the system reads before the call returns.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const none) };
}
