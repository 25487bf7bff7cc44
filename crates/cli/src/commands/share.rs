//! `plimsoll share`: lets another account read a path, or write to it.
//!
//! It notifies no account. Invariant: it prints the share only as the server returned it.

use std::ffi::OsString;
use std::time::SystemTime;

use clap::Args;
use plimsoll_wire::calendar::{format_rfc3339, since_1970};
use serde_json::{Value, json};

use super::server_args::SessionArgs;
use super::shares::{ShareInfo, fetch_shares};
use crate::listing::EntryKind;
use crate::output::{print, print_json, text, time};
use crate::{ApiClient, RemotePath, Runtime, WrongUsage};
use plimsoll_wire::units::Time;

/// Share a file or folder with another account
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll share report.pdf bob
  plimsoll share inbox bob --write
  plimsoll share photos bob --expires 7d

A share that bob has of that path already is replaced. It keeps its end, unless you give another
one, or --expires never.
bob then finds it with: plimsoll shared, and gets it with: plimsoll get alice:report.pdf,
or plimsoll get -r alice:photos for a folder
JSON: {\"id\":\"...\",\"owner\":\"alice\",\"path\":\"/report.pdf\",\"with\":\"bob\",\"permission\":\"read\",
       \"created\":\"...\",\"expires\":null,\"url\":\"/shared/alice/report.pdf\"}")]
pub struct Share {
    /// The path to share
    #[arg(value_name = "PATH")]
    path: OsString,
    /// The account that it is shared with
    #[arg(value_name = "NAME")]
    with: String,
    /// Allow the account to write, move and delete too
    #[arg(long)]
    write: bool,
    /// End the share after so long (7d, 12h, 30m), at a time (2030-12-31T23:59:59Z), or never
    #[arg(long, value_name = "WHEN")]
    expires: Option<String>,
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Share {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let place = RemotePath::parse(&self.path)?;
        if place.owner.is_some() {
            return Err(WrongUsage("only what is in one's own home can be shared".to_owned()).into());
        }
        let expires = self.expires.as_deref().map(time_of).transpose()?;
        let (with, keeps_end) = (self.with.clone(), expires.is_none());
        let permission = if self.write { "write" } else { "read" };
        // Encoded, because JSON cannot represent every name.
        let href = place.target().split_off("/files".len());
        let href = if href.is_empty() { "/".to_owned() } else { href };
        let mut body = json!({"href": href, "with": self.with, "permission": permission});
        if let Some(Some(expires)) = expires {
            body["expires"] = expires.into();
        }
        let (given, before, is_folder): (Value, _, _) =
            self.session.run(runtime, async move |mut server| {
                let before = present_share(&mut server, &place, &with).await?;
                if let Some(end) =
                    before.as_ref().and_then(|before| before.expires.clone()).filter(|_| keeps_end)
                {
                    body["expires"] = end.into();
                }
                let given = server.post("/api/shares", &body).await?;
                // The printed command needs -r for a folder. An error here is not one of the share.
                let shared = if self.json { None } else { server.stat(&place).await.ok().flatten() };
                Ok((given, before, shared.is_some_and(|shared| shared.kind == EntryKind::Folder)))
            })?;
        if self.json {
            print_json(&given)
        } else {
            let given = ShareInfo::from_json(given)?;
            let note = before.map(|before| replaced(&before, &given)).unwrap_or_default();
            print(sentence(&given, is_folder) + &note)
        }
    }
}

/// Returns the share of a path with an account, if there is one.
async fn present_share(
    server: &mut ApiClient,
    place: &RemotePath,
    with: &str,
) -> anyhow::Result<Option<ShareInfo>> {
    let shares = fetch_shares(server, "/api/shares").await?.parsed()?;
    let is_it = |share: &ShareInfo| share.with.eq_ignore_ascii_case(with) && share.is_at(place);
    Ok(shares.into_iter().find(is_it))
}

/// Formats what a new share has changed in the one before.
fn replaced(before: &ShareInfo, now: &ShareInfo) -> String {
    let mut changes = Vec::new();
    if before.permission != now.permission {
        changes.push(format!("it was to {}", may(before)));
    }
    if before.expires != now.expires {
        let end = before.expires.as_deref().map(|at| format!("until {} UTC", time(at)));
        changes.push(format!("it was {}", end.unwrap_or_else(|| "without an end".to_owned())));
    }
    match changes.is_empty() {
        true => String::new(),
        false => format!("This replaces the share before: {}.\n", changes.join(", and ")),
    }
}

fn may(share: &ShareInfo) -> &'static str {
    if share.permission == "write" { "read and write" } else { "read" }
}

/// Formats the share, with the command that the grantee can type.
fn sentence(share: &ShareInfo, is_folder: bool) -> String {
    let may = may(share);
    let until = share.expires.as_deref().map(|at| format!(" until {} UTC", time(at))).unwrap_or_default();
    let (with, path) = (text(share.with.as_bytes()), text(share.path.as_bytes()));
    let owner = text(share.owner.as_bytes());
    let get = if is_folder { "get -r" } else { "get" };
    format!("{with} may {may} {path}{until}: plimsoll {get} {owner}:{}\n", path.trim_start_matches('/'))
}

/// Returns a future time in the format of RFC 3339; `None` for no end.
pub(super) fn time_of(typed: &str) -> Result<Option<String>, WrongUsage> {
    if typed == "never" {
        return Ok(None);
    }
    if typed.contains('T') {
        return Ok(Some(typed.to_owned()));
    }
    let Time(time) = typed.parse().map_err(|why| {
        WrongUsage(format!("--expires {typed:?} is not a time: {why}; or write 2030-12-31T23:59:59Z"))
    })?;
    Ok(Some(format_rfc3339(since_1970(SystemTime::now()).saturating_add(time))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_printed_with_the_command_that_gets_the_file_or_folder() {
        let printed = |permission, expires, is_folder| {
            let share = json!({"id": "1", "owner": "alice", "path": "/a/b", "with": "bob", "url": "",
                "permission": permission, "expires": expires});
            sentence(&ShareInfo::from_json(share).unwrap(), is_folder)
        };
        assert_eq!(printed("read", None, false), "bob may read /a/b: plimsoll get alice:a/b\n");
        assert_eq!(printed("read", None, true), "bob may read /a/b: plimsoll get -r alice:a/b\n");
        let until = printed("write", Some("2030-12-31T23:59:59Z"), false);
        assert_eq!(until, "bob may read and write /a/b until 2030-12-31 23:59 UTC: plimsoll get alice:a/b\n");
    }

    #[test]
    fn the_differences_of_a_replaced_share_are_printed() {
        let share = |permission, expires| {
            let share = json!({"id": "1", "owner": "alice", "path": "/a/b", "with": "bob", "url": "",
                "permission": permission, "expires": expires});
            ShareInfo::from_json(share).unwrap()
        };
        let end = Some("2030-12-31T23:59:59Z");
        assert_eq!(replaced(&share("read", end), &share("read", end)), "");
        let note = replaced(&share("write", end), &share("read", None));
        let expected = "This replaces the share before: it was to read and write, and it was until \
                        2030-12-31 23:59 UTC.\n";
        assert_eq!(note, expected);
        assert!(replaced(&share("read", None), &share("read", end)).contains("without an end"));
    }

    #[test]
    fn a_time_is_a_length_or_a_date() {
        assert!(time_of("7d").unwrap().unwrap().ends_with('Z'));
        assert_eq!(time_of("2030-12-31T23:59:59Z").unwrap().as_deref(), Some("2030-12-31T23:59:59Z"));
        assert_eq!(time_of("never").unwrap(), None);
        assert!(time_of("soon").is_err());
        assert!(time_of("7").unwrap_err().0.contains("7 has no unit; write 7s, 7m, 7h or 7d"));
    }
}
