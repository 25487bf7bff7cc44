//! `plimsoll directory check`: reads every row of a directory, and looks for contradictions.
//!
//! It changes and upgrades nothing. Invariant: the exit code is 0 only if every row was read.

use anyhow::{Context as _, bail};
use clap::Args;
use plimsoll_auth::directory::{Opening, Schema, Summary, without_password};
use plimsoll_cli::output::{print, print_json};
use serde_json::{Value, json};

use super::problems::Problems;
use super::{counts, json_of, lines};
use crate::access::as_owner;
use crate::cli::account::DirectoryArgs;
use crate::directory_rows::open_existing;
use crate::tiers::directory_url;

/// Read the whole directory, and look for contradictions
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll directory check
  plimsoll directory check --data /srv/plimsoll
  plimsoll directory check --directory postgres://plimsoll@db/plimsoll --json

It changes nothing, also while servers run. It reports the version of the tables, whether servers may
use the directory, the number of rows, and rows that contradict one another. Rows of an older version
are not read: a server upgrades the tables when it starts. The exit code is 1 if there is a problem; a
directory that servers refuse, such as the source of a move, is one.
JSON: {\"directory\":\"sqlite:...\",\"store\":\"SQLite\",\"version\":3,\"known\":3,\"closed\":\"\",
       \"accounts\":12,...,\"digest\":\"...\",\"problems\":[]}; the numbers are missing for another version")]
pub(crate) struct Check {
    #[command(flatten)]
    at: DirectoryArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = self.at.config()?;
        let with_password = directory_url(&config.fixed)?;
        let (schema, rows, problems) = as_owner(&config, || check(&with_password))?;
        let url = without_password(&config.fixed.directory);
        if self.json {
            print_json(&in_json(&url, &schema, rows.as_ref(), &problems))?;
        } else {
            print(text(&url, &schema, rows.as_ref(), &problems))?;
        }
        if problems.is_empty() { Ok(()) } else { bail!("{url} has problems") }
    }
}

fn check(url: &str) -> anyhow::Result<(Schema, Option<Summary>, Vec<String>)> {
    let mut directory = open_existing(url, Opening::Inspect)?;
    let (schema, mut problems) = (directory.schema()?, Problems::default());
    if schema.version != schema.known {
        if schema.version > schema.known {
            problems.note("a newer plimsoll made the tables: use that one".to_owned());
        }
        return Ok((schema, None, problems.into_lines()));
    }
    if !schema.closed.is_empty() {
        problems.note(format!("servers refuse it: {}", schema.closed));
    }
    if let Some(damage) = directory.find_damage()? {
        problems.note(format!("{} finds its file damaged: {damage}", schema.store));
    }
    let mut rows = Summary::default();
    let read = directory.read_rows(&mut |row| {
        rows.add(&row);
        problems.check(&row);
        Ok(())
    });
    read.context("not every row could be read")?;
    Ok((schema, Some(rows), problems.into_lines()))
}

fn version(schema: &Schema) -> String {
    let Schema { store, version, known, .. } = schema;
    match version {
        0 => format!("{store}, without tables; a server creates them when it starts"),
        version if version == known => format!("{version} of {store}, which is this program's"),
        version if version < known => {
            format!("{version} of {store}; a server of this program upgrades it to {known} when it starts")
        }
        version => format!("{version} of {store}; this program knows {known}"),
    }
}

fn text(url: &str, schema: &Schema, rows: Option<&Summary>, problems: &[String]) -> String {
    let servers = match schema.closed.as_str() {
        "" => "may use it".to_owned(),
        closed => format!("may not use it: {closed}"),
    };
    let mut all = vec![("version", version(schema)), ("servers", servers)];
    all.push(("rows", rows.map_or_else(|| "not read".to_owned(), counts)));
    match problems {
        [] => all.push(("problems", "none".to_owned())),
        problems => all.extend(problems.iter().map(|problem| ("problem", problem.clone()))),
    }
    lines(url, &all)
}

fn in_json(url: &str, schema: &Schema, rows: Option<&Summary>, problems: &[String]) -> Value {
    let Schema { store, version, known, closed } = schema;
    let more = [
        ("directory", json!(url)),
        ("store", json!(store)),
        ("version", json!(version)),
        ("known", json!(known)),
        ("closed", json!(closed)),
        ("problems", json!(problems)),
    ];
    match rows {
        Some(rows) => json_of(rows, &more),
        None => more.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}
