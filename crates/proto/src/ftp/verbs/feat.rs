//! FEAT: "FTP implementations which support FEAT MUST include in the response to the FEAT command all
//! properly documented FTP extensions beyond those commands and mechanisms described in RFC959" (RFC 2389,
//! section 3.2).

use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};

/// The features without settings, one per line with their parameters (RFC 2389).
const FEATURES: [&str; 9] =
    ["EPRT", "EPSV", "MDTM", "MFMT", "REST STREAM", "SIZE", "SITE UTIME", "TVFS", "UTF8"];

/// The features of TLS (RFC 4217, section 6).
const TLS_FEATURES: [&str; 3] = ["AUTH TLS", "PBSZ", "PROT"];

pub(super) fn execute(c: &Conversation<'_>) -> CommandResult {
    let set = [c.state.digest.feature(), c.state.facts.feature()];
    let tls = c.shared.settings.tls.iter().flat_map(|_| TLS_FEATURES);
    let all = tls.chain(FEATURES).map(str::to_owned).chain(set);
    Ok(Reply::lines(211, "Beyond RFC 959 there are:", all.map(String::into_bytes).collect(), "End"))
}
