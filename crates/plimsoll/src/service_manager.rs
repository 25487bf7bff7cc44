//! Notifications to the service manager that started this process, if any (sd_notify(3)).
//!
//! It is not a log. Invariants: without a service manager, nothing happens. A service manager that does not
//! read delays neither connections nor a second signal.

use sd_notify::NotifyState;

/// Notifies that the server is serving, initially or after a reload.
pub(crate) fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Notifies that a reload has begun; [`ready`] ends it. The protocol requires the monotonic time of this
/// message, by which the manager matches it with its order.
pub(crate) fn reloading() {
    let Ok(now) = NotifyState::monotonic_usec_now() else { return };
    notify(&[NotifyState::Reloading, now]);
}

/// Notifies that the server is draining.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("finishing what was begun")]);
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager could not be notified");
    }
}
