//! What is said to the service manager that started us, if one did (sd_notify(3)).
//!
//! It is not a log. What must hold: where there is no service manager, nothing happens; one that does not
//! listen holds up neither connections nor a second signal.

use sd_notify::NotifyState;

/// The server serves, or goes on after a reload.
pub(crate) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The configuration is read again; [`ready`] ends it. "the moment the notification is sent" has to be told
/// too, so that the manager knows which order it answers.
pub(crate) fn reloading() {
    let Ok(now) = NotifyState::monotonic_usec_now() else { return };
    tell(&[NotifyState::Reloading, now]);
}

/// The server ends, when what was begun is done.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("finishing what was begun")]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager could not be told how the server is");
    }
}
