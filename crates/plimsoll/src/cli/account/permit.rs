//! `plimsoll account permit`: sets the permissions of an account for its own files.
//!
//! It creates no share. Invariants: words without a sign replace all permissions. Words with signs change
//! only the named ones.

use clap::Args;
use plimsoll_auth::Permissions;
use plimsoll_cli::WrongUsage;

use super::directory_args::{DirectoryArgs, refused};
use super::output::{permissions, print_done};

/// Set what an account may do
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll account permit alice read,write
  plimsoll account permit alice +share,-delete
  plimsoll account permit alice all
  plimsoll account permit prometheus operate
  plimsoll account permit camera +parents
  plimsoll account permit olga +administer

read: download and list. write: upload, create folders, move and copy. delete: delete and overwrite.
share: share with others. operate: read the server's /metrics and /api/status from other machines.
parents: FTP's STOR, APPE and MKD create missing folders of a path. administer: change other accounts
over HTTP. all (the first four) and none stand alone. JSON: as of plimsoll account add")]
pub(crate) struct Permit {
    /// The name of the account
    name: String,
    /// Permissions of read, write, delete, share, operate, parents and administer, with commas: all that it
    /// has; or with + or - before each that changes
    #[arg(value_name = "PERMISSIONS", allow_hyphen_values = true)]
    words: String,
    #[command(flatten)]
    at: DirectoryArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Returns the field of the permissions that a word names.
type PermissionField = fn(&mut Permissions) -> &mut bool;

const WORDS: [(&str, PermissionField); 7] = [
    ("read", |may| &mut may.read),
    ("write", |may| &mut may.write),
    ("delete", |may| &mut may.delete),
    ("share", |may| &mut may.share),
    ("operate", |may| &mut may.operate),
    ("parents", |may| &mut may.parents),
    ("administer", |may| &mut may.administer),
];

const NONE: Permissions = Permissions::NONE;

impl Permit {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        // Checked before the directory is opened, because invalid words are an error for every account.
        changed(NONE, &self.words)?;
        let (name, words) = (self.name, self.words);
        let account = self.at.run(async move |at| {
            let before = at.auth.account(&at.io, &name).await.map_err(refused(&name))?.permissions;
            let may = changed(before, &words)?;
            at.auth.set_permissions(&at.io, &name, may).await.map_err(refused(&name))
        })?;
        let text = format!("{} may: {}.", account.name, permissions(account.permissions));
        print_done(self.json, &account, &text)
    }
}

/// Applies `words` to the permissions `before`.
fn changed(before: Permissions, words: &str) -> Result<Permissions, WrongUsage> {
    match words {
        "all" => return Ok(Permissions::default()),
        "none" => return Ok(NONE),
        _ => {}
    }
    let is_signed = |word: &str| word.starts_with(['+', '-']);
    let all_signed = words.split(',').all(is_signed);
    if !all_signed && words.split(',').any(is_signed) {
        return Err(WrongUsage("write + or - before every permission, or before none of them".to_owned()));
    }
    let mut may = if all_signed { before } else { NONE };
    for word in words.split(',') {
        *permission_named(word.trim_start_matches(['+', '-']))?(&mut may) = !word.starts_with('-');
    }
    Ok(may)
}

fn permission_named(word: &str) -> Result<PermissionField, WrongUsage> {
    let found = WORDS.iter().find(|(name, _)| *name == word);
    found.map(|(_, field)| *field).ok_or_else(|| {
        WrongUsage(format!(
            "{word:?} is no permission. Permissions are: read, write, delete, share, operate, parents and \
             administer, or all, or none"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(before: Permissions, typed: &str) -> Option<Permissions> {
        changed(before, typed).ok()
    }

    #[test]
    fn words_without_a_sign_are_all_that_is_allowed() {
        let all = Permissions::default();
        assert_eq!(after(all, "read,write"), Some(Permissions { delete: false, share: false, ..all }));
        assert_eq!(after(NONE, "read,write,delete,share"), Some(all));
        assert_eq!((after(NONE, "all"), after(all, "none")), (Some(all), Some(NONE)));
    }

    #[test]
    fn words_with_a_sign_leave_the_others() {
        let all = Permissions::default();
        assert_eq!(after(all, "-delete"), Some(Permissions { delete: false, ..all }));
        let before = Permissions { write: false, ..all };
        assert_eq!(after(before, "+write,-share"), Some(Permissions { share: false, ..all }));
        assert_eq!(after(all, "+operate"), Some(Permissions { operate: true, ..all }));
        assert_eq!(after(all, "+administer"), Some(Permissions { administer: true, ..all }));
        assert_eq!(after(all, "+parents"), Some(Permissions { parents: true, ..all }));
        assert_eq!(after(NONE, "operate"), Some(Permissions { operate: true, ..NONE }));
    }

    #[test]
    fn other_words_and_a_mixture_are_refused() {
        for typed in ["fly", "+fly", "", "read,+write", "all,read", "read,", "+all"] {
            assert_eq!(after(NONE, typed), None, "{typed}");
        }
    }
}
