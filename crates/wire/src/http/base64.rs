//! Base64 in the form of HTTP's fields (RFC 4648, section 4).
//!
//! Not here: the fields. Invariants: no byte is skipped, neither white space nor a byte outside the
//! alphabet. Padding may be missing, since "parsers SHOULD NOT fail when "=" padding is not present" (RFC
//! 9651, section 4.2.7), but may not be wrong.

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const CONFIG: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const ENGINE: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::STANDARD, CONFIG);

/// Buffer size for the longest digest, SHA-512's, and the decoder's own margin.
const DIGEST_ROOM_BYTES: usize = 72;

/// Decodes a text.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    ENGINE.decode(text).ok()
}

/// Decodes a text of exactly `N` bytes, at most 64.
pub(super) fn decode_digest<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let mut room = [0; DIGEST_ROOM_BYTES];
    let len = ENGINE.decode_slice(text, &mut room).ok()?;
    room.get(..len)?.try_into().ok()
}

/// Appends the encoded bytes, padded.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(ENGINE.encode(bytes).as_bytes());
}
