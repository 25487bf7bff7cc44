//! Bounds of the API, by name, with the unit last.
//!
//! Bounds of heads and bodies are not here but in `proto`, those of paths in the store. Invariant: every
//! resource that a request holds in memory must have a bound here or there.

use std::time::Duration;

/// Bytes of a JSON body.
pub const JSON_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a JSON body of an unauthenticated request, which has a name and a password.
pub const STRANGERS_JSON_BYTES_MAX: usize = 4 * 1024;
/// Bytes of the names of the entries that an archive shall have.
pub const ARCHIVE_NAMES_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of an XML body.
pub const XML_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a file whose digest is computed before its first byte is sent: a few milliseconds.
pub const DIGEST_BEFORE_BODY_BYTES_MAX: u64 = 1024 * 1024;
/// By how much a file system may round a modification time that is confirmed: FAT stores even seconds.
pub const MTIME_ROUNDING_MAX: Duration = Duration::from_secs(2);
/// Bytes that an upload may announce.
pub const UPLOAD_BYTES_MAX: u64 = 1 << 40;
/// Parts of one form: files, and fields that are ignored.
pub const FORM_PARTS_MAX: usize = 1000;
/// Bytes of the page's own files as they are sent, which a first visit loads.
pub const ASSET_BYTES_MAX: usize = 100 * 1024;
/// Bytes of a path and query to which a form leads. A longer one leads to the account's files.
pub const LOCAL_TARGET_BYTES_MAX: usize = 8 * 1024;
/// Names that are tried for a file of a form whose name is taken.
pub const FORM_NAMES_MAX: usize = 100;
/// Bytes of a form of the page.
pub const FORM_BYTES_MAX: usize = 32 * 1024;
/// Entries of a folder on one page.
pub const FOLDER_PAGE_ENTRIES: usize = 200;
/// How long a browser keeps the language that a person has chosen.
pub const LANGUAGE_KEPT_TIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Shares in one response; its `next` leads to more.
pub const SHARES_PER_PAGE_MAX: usize = 1000;
/// Public links in one response; its `next` leads to more.
pub const LINKS_PER_PAGE_MAX: usize = 1000;
/// Bytes of the URL of a public link that gets a QR code.
pub const QR_BYTES_MAX: usize = 300;
/// Bytes of the text that names are searched for.
pub const SEARCH_NAME_BYTES_MAX: usize = 255;
/// Results of one search.
pub const SEARCH_RESULTS_MAX: usize = 1000;
/// Entries that one search visits. A further one continues where it stops.
pub const SEARCH_ENTRIES_MAX: usize = 200_000;
/// How long one search takes at most, besides the listing of a folder.
pub const SEARCH_TIME_MAX: Duration = Duration::from_secs(5);
/// Seconds in Retry-After when the server is overloaded.
pub const RETRY_AFTER_SECONDS: u64 = 2;
