//! The wait for the client after the end of an upload's data: an upload is committed only if its client is
//! still connected.
//!
//! A killed client ends both of its connections, in any order and some time apart, so the end of the data
//! connection alone does not confirm the upload. "An unexpected close on the control connection will cause
//! the server to take the effective action of an abort" (RFC 959, section 4.1.1). An announced upload needs
//! no wait ([`super::announcement`]).
//!
//! Invariant: nothing is rolled back after the rename. An end that is later than the wait is not noticed.

use std::time::Duration;

use plimsoll_io::{EndProbe, join};
use plimsoll_operations::IncomingUpload;

use super::announcement::Completeness;
use super::conversation::Conversation;
use super::limits::{CONFIRM_TIME, CONFIRM_TIME_MAX};
use super::transfer::{TransferError, serve_control_during};

/// The treatment of an upload whose control connection ends before the upload is confirmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unconfirmed {
    /// It is aborted.
    #[default]
    Abort,
    /// It is kept, for clients that close early.
    Keep,
}

impl Conversation<'_> {
    /// Waits until the client has had the time to abort a received upload: by ABOR, or by the end of the
    /// control connection. Writes and syncs the upload meanwhile. Returns a probe that makes the commit fail
    /// if the client ends later, but before the rename.
    pub(super) async fn confirm(
        &mut self,
        upload: &mut IncomingUpload,
        completeness: Completeness,
    ) -> Result<Option<EndProbe>, TransferError> {
        // An upload that its announcement proves complete is committed even if the control connection ends.
        self.control.end_aborts &= completeness != Completeness::Whole;
        if !self.control.end_aborts {
            return Ok(None);
        }
        let (io, bytes_max) = (&self.shared.io, self.shared.limits().line_bytes_max);
        let received = std::cell::Cell::new(upload.bytes() - upload.start_offset());
        let time = confirm_time(completeness, self.control.stream.round_trip());
        let probe = self.control.stream.end_probe();
        let preparing = async {
            let (prepared, ()) = join(upload.prepare(), io.sleep(time)).await;
            prepared.map_err(TransferError::File)
        };
        let confirmed = serve_control_during(&mut self.control, bytes_max, &received, preparing).await;
        if matches!(confirmed, Err(TransferError::ControlClosed)) {
            let peer = &self.peer;
            tracing::info!(%peer, "a client left before its upload was confirmed; see ftp_unconfirmed");
        }
        confirmed.map(|()| probe)
    }
}

/// Returns how long the client must stay connected after an upload's last byte. The two connections are
/// independent, so that the end of one can be late by a round trip, too.
fn confirm_time(completeness: Completeness, round_trip: Option<Duration>) -> Duration {
    match completeness {
        Completeness::BelowRoom => CONFIRM_TIME_MAX,
        _ => (CONFIRM_TIME + round_trip.unwrap_or_default()).min(CONFIRM_TIME_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_grows_with_the_round_trip_up_to_a_bound() {
        let time = |millis| {
            let round_trip = Duration::from_millis(millis);
            confirm_time(Completeness::Unknown, Some(round_trip)).as_millis()
        };
        assert_eq!([time(0), time(200), time(5_000)], [50, 250, 1_000]);
        assert_eq!(confirm_time(Completeness::Unknown, None), CONFIRM_TIME);
        assert_eq!(confirm_time(Completeness::BelowRoom, None), CONFIRM_TIME_MAX);
    }
}
