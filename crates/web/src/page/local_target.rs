//! A path and a query on this server, to which a form leads after it was received.
//!
//! Programs get no redirect from a form. Invariant: a browser stays on this server, for every value of the
//! field.

use crate::limits::LOCAL_TARGET_BYTES_MAX;

/// The pairs of a query that are of a notice: the word, and the entry of the trash that it is about.
const NOTICE: [&str; 2] = ["done=", "trashed="];

/// The target of a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalTarget(String);

impl Default for LocalTarget {
    fn default() -> LocalTarget {
        LocalTarget("/files/".to_owned())
    }
}

impl LocalTarget {
    /// Returns a target as a client sent it, or the account's files if it could lead elsewhere.
    pub(crate) fn of(target: &[u8]) -> LocalTarget {
        let is_local = match target {
            [b'/', b'/' | b'\\', ..] => false,
            [b'/', ..] => target.len() <= LOCAL_TARGET_BYTES_MAX && target.iter().all(u8::is_ascii_graphic),
            _ => false,
        };
        match std::str::from_utf8(target) {
            Ok(text) if is_local => LocalTarget(text.to_owned()),
            _ => LocalTarget::default(),
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }

    /// Adds the word that the page shows as a notice, instead of an earlier one. Further pairs of the query
    /// may follow it.
    pub(crate) fn with_notice(self, word: &str) -> String {
        let (path, query) = self.0.split_once('?').unwrap_or((&self.0, ""));
        let kept = query
            .split('&')
            .filter(|pair| !pair.is_empty() && !NOTICE.iter().any(|name| pair.starts_with(name)));
        let pairs: Vec<&str> = kept.collect();
        let done = format!("done={word}");
        format!("{path}?{}", [&*pairs, &[&*done]].concat().join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_never_leads_to_another_server() {
        for target in
            ["", "files/", "//evil.example", "/\\evil.example", "https://evil.example/", "/a\r\nb: c", "/ü"]
        {
            assert_eq!(LocalTarget::of(target.as_bytes()), LocalTarget::default(), "{target:?}");
        }
        assert_eq!(LocalTarget::of(b"/files/a%20b/?sort=size").into_text(), "/files/a%20b/?sort=size");
        assert_eq!(LocalTarget::of(&[b'/'; 9000]), LocalTarget::default());
    }

    #[test]
    fn a_notice_replaces_an_earlier_one() {
        let noticed = |target: &str| LocalTarget::of(target.as_bytes()).with_notice("made");
        assert_eq!(noticed("/files/"), "/files/?done=made");
        assert_eq!(
            noticed("/files/?sort=size&done=trashed&trashed=0f&from=200"),
            "/files/?sort=size&from=200&done=made"
        );
    }
}
