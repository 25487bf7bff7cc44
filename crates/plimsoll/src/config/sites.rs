//! Parses the settings of sites: `PREFIX=DIR`, a folder, `PREFIX=VALUE`, a value of Cache-Control, and
//! origins of other sites' pages.
//!
//! It opens nothing. Invariants: a prefix is a plain path that is not reserved for the server's own API. A
//! value can be sent as a field.

use std::path::PathBuf;
use std::str::FromStr;

use plimsoll_wire::http::origin::parse_origin;

/// A site as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SiteFlag {
    pub(crate) prefix: String,
    pub(crate) folder: PathBuf,
}

impl FromStr for SiteFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<SiteFlag, String> {
        let (prefix, folder) = text.split_once('=').ok_or("write PREFIX=DIR, such as /=./public")?;
        if folder.is_empty() {
            return Err(format!("there is no folder after the equals sign, such as {prefix}=./public"));
        }
        check_prefix(prefix, folder)?;
        Ok(SiteFlag { prefix: prefix.to_owned(), folder: folder.into() })
    }
}

/// A value of Cache-Control, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CacheFlag {
    pub(crate) prefix: String,
    pub(crate) value: String,
}

impl FromStr for CacheFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<CacheFlag, String> {
        let form = "write PREFIX=VALUE, such as /=max-age=60 or /assets=public, max-age=31536000, immutable";
        let (prefix, value) = text.split_once('=').ok_or(form)?;
        let value = value.trim();
        check_prefix(prefix, value)?;
        if value.is_empty() || !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(format!("{value:?} is no value of Cache-Control; {form}"));
        }
        Ok(CacheFlag { prefix: prefix.to_owned(), value: value.to_owned() })
    }
}

/// An origin whose pages may read responses, in the form that browsers send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OriginFlag(pub(crate) String);

impl FromStr for OriginFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<OriginFlag, String> {
        let form = "write SCHEME://HOST or SCHEME://HOST:PORT, such as https://app.example, without a path";
        parse_origin(text).map(OriginFlag).ok_or_else(|| form.to_owned())
    }
}

/// Checks a prefix. `rest` is the text after it, for the example in the error.
fn check_prefix(prefix: &str, rest: &str) -> Result<(), String> {
    if !prefix.starts_with('/') {
        return Err(format!("the prefix {prefix:?} must begin with a slash, such as /={rest}"));
    }
    if prefix.len() > 1 && prefix.split('/').skip(1).any(|part| matches!(part, "" | "." | "..")) {
        return Err(format!("the prefix {prefix:?} must be a plain path without a slash at its end"));
    }
    if plimsoll_proto::http::is_reserved(prefix) {
        return Err(format!("the prefix {prefix:?} belongs to the server's own API; choose another"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_cache_control_has_a_plain_prefix_and_can_be_sent() {
        let read = "/assets=public, max-age=60".parse::<CacheFlag>().unwrap();
        assert_eq!((&*read.prefix, &*read.value), ("/assets", "public, max-age=60"));
        for wrong in
            ["no-store", "=no-store", "a=no-store", "/a/=no-store", "/api=no-store", "/a=", "/a=b\r\nc: d"]
        {
            assert!(wrong.parse::<CacheFlag>().is_err(), "{wrong}");
        }
    }
}
