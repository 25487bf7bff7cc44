//! Limits on the input of the parsers.
//!
//! An operator's limits on a request's head are not here, but in [`crate::http::head::HeadLimits`].
//! Invariant: everything that a peer can make a parser store has a limit here.

use core::time::Duration;

/// Maximum length of a line of classic in bytes, without its LF.
pub const CLASSIC_LINE_BYTES_MAX: usize = 4096;

/// Maximum length of the PROXY protocol's version 1 line in bytes, CRLF included (section 2.1).
pub const PROXY_LINE_BYTES_MAX: usize = 107;
/// Maximum length of an accepted version 2 header in bytes. The format allows 65,551. The addresses take at
/// most 232 of these, and the extensions that proxies send (TLS, cloud load balancers) a few hundred.
pub const PROXY_HEADER_BYTES_MAX: usize = 2048;

/// Maximum length of a line of an FTP reply in bytes: a path of 4 KB with every byte doubled, and some text.
pub const REPLY_LINE_BYTES_MAX: usize = 10 << 10;
/// Maximum size of a multi-line FTP reply in bytes. Each line counts as its text and
/// [`REPLY_LINE_COST_BYTES`]. STAT may list a folder in one.
pub const REPLY_BYTES_MAX: usize = 256 << 10;
/// Approximate memory overhead of a line of an FTP reply, in bytes.
pub const REPLY_LINE_COST_BYTES: usize = 32;

/// Maximum depth of elements in the body of a WebDAV request.
pub const DAV_DEPTH_MAX: usize = 32;
/// Maximum number of conditions in the field If of a WebDAV request.
pub const DAV_IF_CONDITIONS_MAX: usize = 100;
/// Maximum number of properties that a WebDAV request names.
pub const DAV_PROPERTIES_MAX: usize = 100;
/// Maximum length in bytes of the name of a property, and of its namespace. Each entry of a folder may repeat
/// those that it lacks.
pub const DAV_NAME_BYTES_MAX: usize = 255;

/// Earliest date of a modification that distinguishes versions, as time since 1970: the start of 1981. Images
/// and reproducible builds give all files the first day that their format knows, of 1970 or 1980.
pub const MODIFICATION_MIN: Duration = Duration::from_secs(347_155_200);

/// Maximum of [`fields_max`](crate::http::head::HeadLimits::fields_max). The parser keeps a table of this
/// size on the stack.
pub const HEAD_FIELDS_MAX: usize = 100;
/// Maximum of [`bytes_max`](crate::http::head::HeadLimits::bytes_max), since the parser counts in u16.
pub const HEAD_BYTES_MAX: usize = u16::MAX as usize;

/// Maximum number of hexadecimal digits of a chunk size: as many as a u64 has, so that it cannot overflow.
pub const CHUNK_SIZE_DIGITS_MAX: u8 = 16;
/// Maximum length of one chunk's extensions in bytes.
pub const CHUNK_EXT_BYTES_MAX: u16 = 1 << 10;
/// Maximum length of the extensions of all chunks of a body in bytes.
pub const CHUNK_EXT_TOTAL_BYTES_MAX: u16 = 8 << 10;
/// Maximum length of the trailer section in bytes.
pub const TRAILER_BYTES_MAX: u16 = 8 << 10;
/// Maximum number of fields in the trailer section.
pub const TRAILER_FIELDS_MAX: u8 = 64;

/// Maximum number of ranges served per request; a request for more gets the whole representation.
pub const RANGES_MAX: usize = 16;

/// Maximum length of the token of an ACME challenge in bytes. Tokens name files.
pub const CHALLENGE_TOKEN_BYTES_MAX: usize = 128;

/// Maximum length of an Authorization value in bytes.
pub const AUTHORIZATION_BYTES_MAX: usize = 4 << 10;

/// Maximum number of hops in a request's `Forwarded` fields.
pub const FORWARDED_HOPS_MAX: usize = 64;

/// Maximum length of the head of a form's part in bytes.
pub const FORM_PART_HEAD_BYTES_MAX: usize = 8 << 10;
/// Maximum length of a form's boundary in bytes (RFC 2046, section 5.1.1).
pub const FORM_BOUNDARY_BYTES_MAX: usize = 70;
/// Maximum white space after a form's boundary, in bytes.
pub const FORM_PADDING_BYTES_MAX: usize = 64;

/// Maximum number of keys in one Upload-Metadata.
pub const UPLOAD_METADATA_KEYS_MAX: usize = 32;
/// Maximum number of uploads in one Upload-Concat.
pub const UPLOAD_PARTS_MAX: usize = 64;
/// Bytes of the shortest new password.
pub const PASSWORD_BYTES_MIN: usize = 8;
/// Bytes of a password: far more than any that a person uses.
pub const PASSWORD_BYTES_MAX: usize = 1024;
