//! The values of Cache-Control for the files of sites, by path.
//!
//! It does not parse the values: caches do. Invariant: of the rules for a path, the one with the longest
//! prefix counts.

use std::sync::Arc;

/// Values of Cache-Control by the prefix of the path.
#[derive(Clone, Debug, Default)]
pub struct CacheRules(Arc<[(Vec<u8>, String)]>);

impl CacheRules {
    /// Creates rules of prefixes, which begin with a slash, and values.
    pub fn new<'a>(rules: impl IntoIterator<Item = (&'a str, &'a str)>) -> CacheRules {
        let prefix = |prefix: &str| prefix.trim_end_matches('/').as_bytes().to_vec();
        let mut rules: Vec<_> =
            rules.into_iter().map(|(path, value)| (prefix(path), value.to_owned())).collect();
        rules.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        CacheRules(rules.into())
    }

    /// Returns the value for a decoded path.
    pub fn find(&self, path: &[u8]) -> Option<&str> {
        let has =
            |prefix: &[u8]| path.strip_prefix(prefix).is_some_and(|rest| matches!(rest, [] | [b'/', ..]));
        self.0.iter().find(|(prefix, _)| has(prefix)).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_of_whole_names_counts() {
        let rules = CacheRules::new([("/", "all"), ("/assets", "assets"), ("/assets/deep", "deep")]);
        for (path, value) in [
            ("/", "all"),
            ("/a", "all"),
            ("/assets2", "all"),
            ("/assets", "assets"),
            ("/assets/a", "assets"),
            ("/assets/deeper", "assets"),
            ("/assets/deep/a", "deep"),
        ] {
            assert_eq!(rules.find(path.as_bytes()), Some(value), "{path}");
        }
        assert_eq!(CacheRules::new([("/a", "a")]).find(b"/b"), None);
        assert_eq!(CacheRules::default().find(b"/"), None);
    }
}
