//! Contenders: servers under measurement, ours and others', each described by a TOML file in `contenders/`.
//!
//! It measures nothing. Invariants: a contender is data, so that a reader can add one; an unknown key is an
//! error; every started process is ended.

mod accounting;
mod limits;
mod pinned;
mod running;
mod template;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

pub(crate) use crate::conditions::find_program;
pub use accounting::{Group, Spent, cores_busy};
pub use pinned::on_core;
pub use running::{Running, Started};
pub use template::Places;

/// The description of a server that can be started and measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contender {
    /// The name in tables and plots.
    pub name: String,
    /// Its distinguishing feature, in one line.
    pub about: String,
    /// Whether it is one of ours; the others are peers.
    #[serde(default)]
    pub ours: bool,
    /// Whether a quick run includes it.
    #[serde(default)]
    pub quick: bool,
    /// The Debian package that provides it.
    pub package: Option<String>,
    /// A command that prints its version on standard output or standard error.
    pub version: Vec<String>,
    /// A command that must succeed; if it fails, the contender is left out.
    #[serde(default)]
    pub requires: Vec<String>,
    /// The command that starts it in the foreground.
    pub command: Vec<String>,
    /// Additions to the inherited environment.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Its configuration file, `{config}` in the command.
    #[serde(default)]
    pub config: String,
    /// The value of `{logs}` if requests are logged.
    #[serde(default)]
    pub logs_on: String,
    /// The value of `{logs}` otherwise.
    #[serde(default)]
    pub logs_off: String,
}

impl Contender {
    /// Parses a contender.
    ///
    /// # Errors
    /// The position and the reason of a parse error.
    pub fn parse(text: &str) -> Result<Contender> {
        let contender: Contender = toml::from_str(text)?;
        ensure!(!contender.command.is_empty(), "`command` is empty: say how to start it");
        let texts = contender.command.iter().chain(contender.environment.values());
        for text in texts.chain([&contender.config, &contender.logs_on, &contender.logs_off]) {
            template::check(text)?;
        }
        Ok(contender)
    }

    /// Returns whether its program is installed.
    pub fn is_installed(&self) -> bool {
        self.command.first().is_some_and(|program| program.contains('{') || find_program(program).is_some())
    }
}

/// Reads all contenders of a folder, ordered by file name, ours first.
///
/// # Errors
/// The unreadable or invalid file, and the reason.
pub fn read_all(folder: &Path) -> Result<Vec<Contender>> {
    let entries = folder.read_dir().with_context(|| format!("{}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    let mut all = files.iter().map(|file| read(file)).collect::<Result<Vec<_>>>()?;
    all.sort_by_key(|contender| !contender.ours);
    match all.iter().enumerate().find(|(at, one)| all[..*at].iter().any(|other| other.name == one.name)) {
        Some((_, twice)) => bail!("two contenders are called {:?}", twice.name),
        None => Ok(all),
    }
}

fn read(file: &Path) -> Result<Contender> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
    Contender::parse(&text).with_context(|| format!("{}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "name = \"a\"\nabout = \"b\"\nversion = [\"a\"]\n";

    #[test]
    fn every_contender_of_the_house_can_be_read() {
        let all = read_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("contenders")).unwrap();
        let ours = all.iter().take_while(|contender| contender.ours).count();
        assert!(ours > 0 && all.iter().skip(ours).all(|peer| !peer.ours && peer.package.is_some()));
        for peer in ["nginx", "lighttpd", "h2o"] {
            for way in ["stock", "tuned"] {
                let name = format!("{peer}-{way}");
                assert!(all.iter().any(|contender| contender.name == name), "{name}");
            }
        }
        for one in &all {
            assert!(one.command.iter().chain([&one.config]).any(|text| text.contains("{root}")), "{one:?}");
            assert!(one.command.iter().chain([&one.config]).any(|text| text.contains("{logs}")), "{one:?}");
        }
    }

    #[test]
    fn what_is_written_wrong_is_refused_with_what_it_is() {
        for (text, why) in [
            ("command = []", "is empty"),
            ("command = [\"a\"]\nconfg = \"\"", "confg"),
            ("command = [\"a\", \"{rot}\"]", "{rot}"),
            ("command = [\"a\"]\nconfig = \"listen {port};{}\"\nlogs_on = \"{whatever}\"", "{whatever}"),
        ] {
            let refused = Contender::parse(&format!("{LEAST}{text}")).unwrap_err();
            assert!(format!("{refused:#}").contains(why), "{refused:#}");
        }
    }

    #[test]
    fn two_of_one_name_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["a.toml", "b.toml"] {
            std::fs::write(folder.path().join(file), format!("{LEAST}command = [\"a\"]")).unwrap();
        }
        assert!(read_all(folder.path()).unwrap_err().to_string().contains("\"a\""));
    }
}
