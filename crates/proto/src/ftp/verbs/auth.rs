//! AUTH, PBSZ, PROT and CCC: "The argument field is a Telnet string identifying a supported mechanism" (RFC
//! 2228, section 3), which is TLS (RFC 4217).
//!
//! The handshake follows the reply to AUTH (`encryption.rs`). Invariant: encryption does not end before the
//! session.

use crate::ftp::conversation::Conversation;
use crate::ftp::encryption::Encryption;
use crate::ftp::reply::{CommandResult, Reply};

const NO_TLS: Reply = Reply::new(502, "This server has no TLS over FTP.");
const AUTH_FIRST: Reply = Reply::new(503, "Say AUTH TLS first.");

pub(super) fn auth(c: &Conversation<'_>, mechanism: &[u8]) -> CommandResult {
    settings(c)?;
    if c.secure.is_some() {
        return Err(Reply::new(503, "This session is encrypted already."));
    }
    if !mechanism.eq_ignore_ascii_case(b"TLS") && !mechanism.eq_ignore_ascii_case(b"TLS-C") {
        return Err(Reply::new(504, "There is TLS and nothing else: say AUTH TLS."));
    }
    Ok(Reply::new(234, "Begin the handshake.").and_encrypt())
}

pub(super) fn pbsz(c: &mut Conversation<'_>, size: &[u8]) -> CommandResult {
    settings(c)?;
    let secure = c.secure.as_mut().ok_or(AUTH_FIRST)?;
    if size.is_empty() || !size.iter().all(u8::is_ascii_digit) {
        return Err(Reply::new(501, "Say PBSZ 0."));
    }
    secure.has_buffer_size = true;
    // TLS has records of its own: "the PBSZ command MUST have a parameter of '0'" (RFC 4217, section 9).
    Ok(Reply::new(200, "PBSZ=0"))
}

pub(super) fn prot(c: &mut Conversation<'_>, level: &[u8]) -> CommandResult {
    let is_required = settings(c)?.is_required;
    let secure = c.secure.as_mut().ok_or(AUTH_FIRST)?;
    if !secure.has_buffer_size {
        return Err(Reply::new(503, "Say PBSZ 0 first."));
    }
    match level.to_ascii_uppercase().as_slice() {
        b"P" => secure.is_data_private = true,
        b"C" if is_required => {
            return Err(Reply::new(534, "Data connections must be encrypted here: say PROT P."));
        }
        b"C" => secure.is_data_private = false,
        b"S" | b"E" => {
            return Err(Reply::new(536, "TLS protects data fully or not at all: PROT P or PROT C."));
        }
        _ => return Err(Reply::new(504, "Say PROT P or PROT C.")),
    }
    Ok(Reply::new(200, if secure.is_data_private { "Data is encrypted." } else { "Data is in clear." }))
}

pub(super) fn ccc(c: &Conversation<'_>) -> CommandResult {
    settings(c)?;
    Err(Reply::new(534, "The control connection stays encrypted to its end."))
}

/// Returns the settings of TLS, if there is TLS.
fn settings<'c>(c: &Conversation<'c>) -> Result<&'c Encryption, Reply> {
    c.shared.settings.tls.as_ref().ok_or(NO_TLS)
}
