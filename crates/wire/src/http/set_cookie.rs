//! The field Set-Cookie (RFC 6265, section 4.1), for cookies that no script reads and that no page of
//! another site sends with a form.
//!
//! Not here: the meaning of the value. Invariant: name and value are the caller's own text, never a
//! client's.

use std::fmt;
use std::time::Duration;

/// The value of Set-Cookie.
#[derive(Clone, Copy, Debug)]
pub struct SetCookie<'a> {
    /// The name. With the prefix `__Host-`, browsers accept the cookie only over HTTPS, and only from the
    /// host itself.
    pub name: &'a str,
    /// The value.
    pub value: &'a str,
    /// The path below which browsers send it, percent-encoded.
    pub path: &'a str,
    /// The lifetime; `None` until the browser ends. Zero removes the cookie.
    pub max_age: Option<Duration>,
    /// Whether it is sent over HTTPS only.
    pub is_secure: bool,
}

impl fmt::Display for SetCookie<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}; Path={}; HttpOnly; SameSite=Lax", self.name, self.value, self.path)?;
        if self.is_secure {
            f.write_str("; Secure")?;
        }
        match self.max_age {
            Some(age) => write!(f, "; Max-Age={}", age.as_secs()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cookie_is_for_scripts_or_other_sites() {
        let cookie = SetCookie { name: "a", value: "b", path: "/", max_age: None, is_secure: false };
        assert_eq!(cookie.to_string(), "a=b; Path=/; HttpOnly; SameSite=Lax");
        let cookie = SetCookie { max_age: Some(Duration::ZERO), is_secure: true, ..cookie };
        assert_eq!(cookie.to_string(), "a=b; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0");
    }
}
