//! The credentials in a request: Authorization (RFC 9110, section 11.6.2) and Cookie (RFC 6265).
//!
//! Not here: their verification. Invariants: a value is parsed in one way or not at all; `Debug` never
//! writes a secret; decoded values are bounded.

use std::fmt;

use super::base64;
use super::status::Status;
use crate::limits::AUTHORIZATION_BYTES_MAX;

/// The credentials in an Authorization field.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials<'a> {
    /// A name and a password (RFC 7617).
    Basic {
        /// The name, without a colon.
        name: String,
        /// The password, as sent.
        password: Vec<u8>,
    },
    /// A token (RFC 6750), as sent.
    Bearer(&'a [u8]),
}

impl fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Basic { name, .. } => write!(f, "Basic({name:?})"),
            Self::Bearer(_) => f.write_str("Bearer"),
        }
    }
}

/// An error in an Authorization field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}", self.detail())]
pub enum BadCredentials {
    /// Neither Basic nor Bearer.
    Scheme,
    /// Basic without valid base64 of a name, a colon and a password.
    Basic,
    /// Bearer without a token.
    Bearer,
    /// Longer than [`AUTHORIZATION_BYTES_MAX`].
    TooLong,
}

impl BadCredentials {
    /// Returns the status of the response, the same as without credentials: 401, which requests them.
    #[must_use]
    pub fn status(&self) -> Status {
        Status::UNAUTHORIZED
    }

    /// Returns the text for the peer: the error and the remedy.
    #[must_use]
    pub fn detail(&self) -> &'static str {
        match self {
            Self::Scheme => "Authorization must be \"Basic\" or \"Bearer\". Send one of them.",
            Self::Basic => {
                "Authorization: Basic must be base64 of NAME:PASSWORD in UTF-8 without control characters."
            }
            Self::Bearer => "Authorization: Bearer must be followed by one token. Log in to get one.",
            Self::TooLong => "The Authorization field is too long. Send a shorter password or token.",
        }
    }
}

/// Parses the value of an Authorization field. "It uses a case-insensitive token to identify the
/// authentication scheme" (RFC 9110, section 11.1).
///
/// # Errors
///
/// [`BadCredentials`]: respond with 401.
pub fn parse_authorization(value: &[u8]) -> Result<Credentials<'_>, BadCredentials> {
    if value.len() > AUTHORIZATION_BYTES_MAX {
        return Err(BadCredentials::TooLong);
    }
    let end = value.iter().position(|&byte| byte == b' ').unwrap_or(value.len());
    let (scheme, rest) = value.split_at(end);
    // "auth-scheme [ 1*SP ( token68 / #auth-param ) ]" (RFC 9110, section 11.4).
    let spaces = rest.iter().take_while(|&&byte| byte == b' ').count();
    let rest = rest.get(spaces..).unwrap_or_default();
    if scheme.eq_ignore_ascii_case(b"Basic") {
        return basic(rest).ok_or(BadCredentials::Basic);
    }
    if scheme.eq_ignore_ascii_case(b"Bearer") {
        return if is_token68(rest) { Ok(Credentials::Bearer(rest)) } else { Err(BadCredentials::Bearer) };
    }
    Err(BadCredentials::Scheme)
}

/// "a user-id containing a colon character is invalid, as the first colon in a user-pass string separates
/// user-id and password from one another" and "The user-id and password MUST NOT contain any control
/// characters" (RFC 7617, section 2).
fn basic(token: &[u8]) -> Option<Credentials<'static>> {
    let decoded = base64::decode(token)?;
    if decoded.iter().any(u8::is_ascii_control) {
        return None;
    }
    let colon = decoded.iter().position(|&byte| byte == b':')?;
    let (name, password) = decoded.split_at(colon);
    let name = std::str::from_utf8(name).ok()?.to_owned();
    Some(Credentials::Basic { name, password: password.get(1..)?.to_vec() })
}

/// `token68 = 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="`
fn is_token68(token: &[u8]) -> bool {
    let body = token.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte));
    let body = body.count();
    body > 0 && token.get(body..).unwrap_or_default().iter().all(|&byte| byte == b'=')
}

/// Returns the value of the cookie `name` in all of a request's Cookie lines, without its quotes.
///
/// Returns None also if the cookie occurs twice: "servers SHOULD NOT rely upon the order in which these
/// cookies appear" (RFC 6265, section 4.2.2), and a neighbouring site can add one to shadow ours.
pub fn cookie<'a>(lines: impl IntoIterator<Item = &'a [u8]>, name: &str) -> Option<&'a [u8]> {
    let mut pairs = lines.into_iter().flat_map(|line| line.split(|&byte| byte == b';'));
    let value = pairs.by_ref().find_map(|pair| value_of(pair, name))?;
    if pairs.any(|pair| value_of(pair, name).is_some()) {
        return None;
    }
    let unquoted = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    let value = unquoted.unwrap_or(value);
    value.iter().all(|&byte| is_cookie_octet(byte)).then_some(value)
}

fn value_of<'a>(pair: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let pair = super::grammar::trim_ows(pair);
    let value = pair.strip_prefix(name.as_bytes())?;
    value.strip_prefix(b"=")
}

/// "US-ASCII characters excluding CTLs, whitespace DQUOTE, comma, semicolon, and backslash".
fn is_cookie_octet(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\",;\\".contains(&byte)
}
