//! The texts of the page, one file for each language.
//!
//! Errors of the API are English. Invariant: all languages have the same texts with the same placeholders.

use std::collections::HashMap;
use std::sync::LazyLock;

use plimsoll_proto::http::Request;
use plimsoll_wire::http::credentials::cookie;
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::negotiate::choose_language;

/// The cookie with the language that a person has chosen.
pub(crate) const LANGUAGE_COOKIE: &str = "plimsoll-language";

/// The texts in one language.
pub(crate) struct Language {
    /// The primary language tag.
    pub(crate) code: &'static str,
    /// Its own name for itself.
    pub(crate) name: &'static str,
    /// The texts as the scripts read them.
    pub(super) json: &'static str,
    texts: HashMap<String, String>,
}

/// All languages. The first is the default.
pub(crate) static LANGUAGES: LazyLock<[Language; 2]> = LazyLock::new(|| {
    [
        Language::new("en", "English", include_str!("../../assets/texts/en.json")),
        Language::new("de", "Deutsch", include_str!("../../assets/texts/de.json")),
    ]
});

impl Language {
    fn new(code: &'static str, name: &'static str, json: &'static str) -> Language {
        Language { code, name, json, texts: serde_json::from_str(json).unwrap_or_default() }
    }

    /// Returns the language of a request: chosen on the page, or preferred by the browser.
    pub(crate) fn of(request: &Request<'_>) -> &'static Language {
        let chosen = cookie(request.head.all(request.block, Field::Cookie), LANGUAGE_COOKIE);
        let chosen = chosen.and_then(|code| std::str::from_utf8(code).ok()).and_then(Language::by_code);
        let preferred = || {
            let accepted = request.head.named(request.block, "Accept-Language")?;
            let codes = LANGUAGES.each_ref().map(|language| language.code);
            choose_language(accepted, &codes).and_then(Language::by_code)
        };
        chosen.or_else(preferred).unwrap_or(&LANGUAGES[0])
    }

    /// Returns the language with this tag.
    pub(crate) fn by_code(code: &str) -> Option<&'static Language> {
        LANGUAGES.iter().find(|language| language.code == code)
    }

    /// Returns a text, or the key if there is none.
    pub(crate) fn text<'a>(&'a self, key: &'a str) -> &'a str {
        self.texts.get(key).map_or(key, String::as_str)
    }

    /// Returns the text of a key that a query may have forged.
    pub(crate) fn known(&self, key: &str) -> Option<&str> {
        self.texts.get(key).map(String::as_str)
    }

    /// Returns a text with its placeholders replaced.
    pub(crate) fn fill(&self, key: &str, values: &[(&str, &str)]) -> String {
        let text = self.text(key).to_owned();
        values.iter().fold(text, |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placeholders(text: &str) -> Vec<&str> {
        let mut found: Vec<&str> =
            text.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0)).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn every_language_has_every_text_with_its_placeholders() {
        let [first, others @ ..] = &*LANGUAGES;
        assert!(!first.texts.is_empty());
        for language in others {
            assert_eq!(language.texts.len(), first.texts.len(), "{}", language.code);
            for (key, text) in &first.texts {
                let other = language.texts.get(key).unwrap_or_else(|| panic!("{key} in {}", language.code));
                assert_eq!(placeholders(text), placeholders(other), "{key} in {}", language.code);
            }
        }
    }

    #[test]
    fn every_text_that_the_pages_use_exists() {
        let folder = |name| std::fs::read_dir(format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let mut count = 0;
        for file in folder("src/page").chain(folder("assets/js")) {
            let source = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let calls = ["language.text(\"", "language.fill(\"", " text(\"", "(text(\""];
            for used in calls.iter().flat_map(|call| source.split(call).skip(1)) {
                let Some((key, _)) = used.split_once('"') else { continue };
                count += 1;
                assert!(LANGUAGES[0].known(key).is_some(), "{key}");
            }
        }
        assert!(count > 20, "{count}");
    }
}
