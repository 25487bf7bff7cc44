//! `plimsoll man`: writes the manual pages, one for each command.
//!
//! It installs nothing. Invariants: the pages are generated from the commands. Each example keeps its own
//! line.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Command, CommandFactory as _};

use super::Plimsoll;

/// The heading under which clap_mangen puts the text after the options.
const AFTER_OPTIONS: &str = ".SH EXTRA\n";

/// Write the manual pages into a folder
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll man ~/.local/share/man/man1
  plimsoll man ./man && man ./man/plimsoll-serve.1")]
pub(crate) struct Man {
    /// The folder, which is created if it is missing
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let shown = self.folder.display();
        fs::create_dir_all(&self.folder).with_context(|| format!("cannot make the folder {shown}"))?;
        // Pages of one release are the same, whatever the commit.
        let version = env!("CARGO_PKG_VERSION");
        let mut command = Plimsoll::command().version(version).disable_help_subcommand(true);
        command.build();
        write_pages(&command, &self.folder)
            .with_context(|| format!("cannot write the manual pages into {shown}"))
    }
}

/// Writes the manual pages of a command and its subcommands.
fn write_pages(command: &Command, folder: &Path) -> std::io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_pages(subcommand, folder)?;
    }
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    fs::write(folder.join(page.get_filename()), unfilled(&String::from_utf8_lossy(&text)))
}

/// Turns off filling for the text after the options, because man(1) would join its lines into paragraphs.
fn unfilled(page: &str) -> String {
    let Some((before, after)) = page.split_once(AFTER_OPTIONS) else { return page.to_owned() };
    let end = after.find("\n.SH ").map_or(after.len(), |end| end + 1);
    let (text, rest) = after.split_at(end);
    let text = text.strip_prefix("Examples:\n").unwrap_or(text);
    format!("{before}.SH EXAMPLES\n.nf\n{text}.fi\n{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines_and_what_follows_is_filled() {
        let page = ".SH OPTIONS\na\n.SH EXTRA\nExamples:\n  one\n  two\n.SH VERSION\nv1\n";
        let expected = ".SH OPTIONS\na\n.SH EXAMPLES\n.nf\n  one\n  two\n.fi\n.SH VERSION\nv1\n";
        assert_eq!(unfilled(page), expected);
        assert_eq!(unfilled(".SH NAME\nb\n"), ".SH NAME\nb\n");
    }
}
