//! Passwords for a server on another machine, without encryption: sent only if the server accepts them, and
//! with a warning.
//!
//! It reads no password. Invariant: the check itself sends no credential and no name.

use std::io::Write as _;

use anyhow::bail;
use plimsoll_client::http::{Request, Response, Url};
use plimsoll_wire::host::is_loopback;
use plimsoll_wire::http::status::Status;

use crate::failure::Refusal;
use crate::{ApiClient, Failure};

/// A resource that needs credentials. A server's refusal names those that it accepts on the connection.
const PROBE: &str = "/api/whoami";

/// Checks whether a password may be sent to the server: a connection that others can read must be one over
/// which the server accepts passwords. Its refusal of the password itself would come too late.
///
/// # Errors
/// The server accepts no password there, or does not respond as servers do.
pub(crate) async fn check_password_channel(server: &ApiClient) -> anyhow::Result<()> {
    let url = &server.url;
    if url.is_https() || url.is_unix() || is_loopback(url.host()) {
        return Ok(());
    }
    let mut probe = server.without_session();
    let response = probe.send(Request::new("GET", PROBE)).await?;
    let redirect = redirect_to_https(&response);
    let https = redirect.clone().unwrap_or_else(|| https_url(url));
    if redirect.is_none() && response.status() != Status::UNAUTHORIZED {
        return Err(Failure::Refused(Refusal::of(response, None).await).into());
    }
    if !accepts_passwords(&response) {
        bail!(
            "The password was not sent: {url} is not encrypted, and the server accepts no password there. \
             Try --server {https}"
        );
    }
    warn_of_plain_password(&url.to_string(), &https);
    Ok(())
}

/// Warns that others can read the password of requests to `url`. `https` is the URL to use instead.
pub fn warn_of_plain_password(url: &str, https: &str) {
    // Standard error may be closed; the command works all the same.
    let _ = writeln!(
        std::io::stderr(),
        "plimsoll: warning: {url} is not encrypted: others on the network can read the password. Try {https}"
    );
}

fn accepts_passwords(response: &Response<'_>) -> bool {
    let is_basic = |value: &[u8]| value.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"Basic"));
    let mut fields = response.fields();
    fields.any(|(name, value)| name.eq_ignore_ascii_case(b"WWW-Authenticate") && is_basic(value))
}

/// Returns the server's URL for HTTPS, if the response is a redirect to it.
fn redirect_to_https(response: &Response<'_>) -> Option<String> {
    let location = response.field("Location")?.strip_suffix(PROBE)?;
    let url: Url = location.parse().ok()?;
    url.is_https().then(|| url.to_string())
}

/// Returns the URL under which a server with HTTPS at its usual port is reached.
fn https_url(url: &Url) -> String {
    let (host, base) = (url.host(), url.base_path());
    if host.contains(':') { format!("https://[{host}]{base}") } else { format!("https://{host}{base}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suggested_url_has_the_host_and_the_base_but_not_the_port_of_http() {
        for (url, https) in [
            ("http://files.example:8080", "https://files.example"),
            ("http://files.example/base", "https://files.example/base"),
            ("http://[2001:db8::1]:8080", "https://[2001:db8::1]"),
        ] {
            assert_eq!(https_url(&url.parse().unwrap()), https);
        }
    }
}
