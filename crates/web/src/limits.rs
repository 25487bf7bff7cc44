//! Bounds of what a request to the API may make long, by name, with their unit last.
//!
//! Sizes of heads and bodies are `proto`'s, sizes of paths the store's. What must hold: whatever one request
//! keeps in memory has a number here or there.

/// Bytes of a JSON body.
pub const JSON_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a JSON body of a request that shows no account: a name and a password.
pub const STRANGERS_JSON_BYTES_MAX: usize = 4 * 1024;
/// Receives of fewer bytes are put together before they are written: each takes a whole block of memory,
/// however little is in it.
pub const GATHERED_BYTES: usize = 8 * 1024;
/// Bytes of a file whose digest is computed before its first byte is sent: a few milliseconds.
pub const DIGEST_BEFORE_BODY_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes that an upload may announce.
pub const UPLOAD_BYTES_MAX: u64 = 1 << 40;
/// Parts of one form: files, and fields that are ignored.
pub const FORM_PARTS_MAX: usize = 1000;
/// Shares that one answer lists; its `next` leads to more.
pub const SHARES_PER_PAGE_MAX: usize = 1000;
/// Seconds that a client is asked to wait when too much is going on.
pub const RETRY_AFTER_SECONDS: u64 = 2;
