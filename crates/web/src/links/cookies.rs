//! The cookies of visitors of public links: proofs of a password, and of a counted download.
//!
//! It verifies nothing: the account service does. Invariants: a browser sends a cookie to paths of its own
//! link only. From pages of other sites, it sends it only when a person follows a link. It expires after
//! [`LINK_GRANT_TIME`].

use plimsoll_auth::limits::LINK_GRANT_TIME;
use plimsoll_proto::http::Request;
use plimsoll_wire::http::credentials::cookie;
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::set_cookie::SetCookie;

use crate::page::cookie::is_over_https;

/// The proof that the visitor has entered the password.
const PASSWORD: [&str; 2] = ["plimsoll-link", "__Secure-plimsoll-link"];
/// The proof that the download of a file was counted.
const DOWNLOAD: [&str; 2] = ["plimsoll-download", "__Secure-plimsoll-download"];

fn read<'a>(request: &Request<'a>, [plain, secure]: [&str; 2]) -> Option<&'a str> {
    let name = if request.is_encrypted { secure } else { plain };
    let named = |name| cookie(request.head.all(request.block, Field::Cookie), name);
    // Behind a proxy on a Unix socket, either may be set.
    let other = request.is_admitted_by_socket.then(|| named(secure)).flatten();
    str::from_utf8(named(name).or(other)?).ok()
}

fn write(request: &Request<'_>, [plain, secure]: [&str; 2], path: &str, value: &str) -> String {
    let is_secure = is_over_https(request);
    let name = if is_secure { secure } else { plain };
    SetCookie { name, value, path, max_age: Some(LINK_GRANT_TIME), is_secure }.to_string()
}

/// Returns the proof of the password, if the visitor presents one.
pub(super) fn unlocked<'a>(request: &Request<'a>) -> Option<&'a str> {
    read(request, PASSWORD)
}

/// Returns the field that stores the proof of the password for a link and all that is below it.
pub(super) fn unlock(request: &Request<'_>, link: &str, grant: &str) -> String {
    write(request, PASSWORD, link, grant)
}

/// Returns the proof of a counted download, if the visitor presents one.
pub(super) fn counted<'a>(request: &Request<'a>) -> Option<&'a str> {
    read(request, DOWNLOAD)
}

/// Returns the field that stores the proof of a counted download of the file at an encoded path.
pub(super) fn count(request: &Request<'_>, file: &str, grant: &str) -> String {
    write(request, DOWNLOAD, file, grant)
}
