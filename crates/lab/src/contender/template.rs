//! Placeholders in a contender's command and configuration: `{root}`, `{port}` and others.
//!
//! It is not a template language: it only replaces names. Invariants: braces of the configuration itself
//! are preserved; an unknown name is an error before anything is started.

use std::path::Path;

use anyhow::{Result, bail};

/// The values of the placeholders.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// The folder that is served.
    pub root: &'a Path,
    /// The port on 127.0.0.1.
    pub port: u16,
    /// A folder of the contender's own, for the files that it writes.
    pub dir: &'a Path,
    /// The plimsoll program under measurement.
    pub plimsoll: &'a Path,
    /// The contender's configuration of its request log; it may contain the other placeholders.
    pub logs: &'a str,
}

const NAMES: [&str; 7] = ["root", "host", "port", "dir", "plimsoll", "logs", "config"];

impl Places<'_> {
    /// Returns `text` with every placeholder replaced.
    pub fn fill(&self, text: &str) -> String {
        let text = text.replace("{logs}", self.logs);
        let config = self.config();
        let values = [
            ("{root}", self.root.display().to_string()),
            ("{host}", "127.0.0.1".to_owned()),
            ("{port}", self.port.to_string()),
            ("{dir}", self.dir.display().to_string()),
            ("{plimsoll}", self.plimsoll.display().to_string()),
            ("{config}", config.display().to_string()),
        ];
        values.iter().fold(text, |text, (name, value)| text.replace(name, value))
    }

    /// Returns the path of the contender's configuration file.
    pub fn config(&self) -> std::path::PathBuf {
        self.dir.join("config")
    }
}

/// Refuses an unknown word in braces; braces around any other text belong to the configuration.
pub(super) fn check(text: &str) -> Result<()> {
    for (at, _) in text.match_indices('{') {
        let rest = &text[at + 1..];
        let Some(end) = rest.find('}') else { continue };
        let word = &rest[..end];
        let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
        if is_word && !NAMES.contains(&word) {
            bail!(
                "{{{word}}} stands for nothing; there are {}",
                NAMES.map(|name| format!("{{{name}}}")).join(" ")
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_and_the_configurations_own_braces_stay() {
        let places = Places {
            root: Path::new("/a/files"),
            port: 8101,
            dir: Path::new("/a/own"),
            plimsoll: Path::new("/b/plimsoll"),
            logs: "access_log {dir}/access.log;",
        };
        let text = "http { {logs} server { listen 127.0.0.1:{port}; root {root}; } } # {config}";
        let filled = "http { access_log /a/own/access.log; server { listen 127.0.0.1:8101; \
                      root /a/files; } } \
                      # /a/own/config";
        assert_eq!(places.fill(text), filled);
        assert_eq!(places.fill("{plimsoll}"), "/b/plimsoll");
    }

    #[test]
    fn only_a_word_in_braces_is_taken_for_a_name() {
        for text in ["events { worker_connections 8; }", "a {", "{}", "{ host: 1, port: {port} }"] {
            assert!(check(text).is_ok(), "{text}");
        }
        assert!(check("{home}").unwrap_err().to_string().contains("{root}"));
    }
}
