//! Checks that the data folder exists, can be written, and is readable by no other user.
//!
//! It creates no folder. Invariant: a missing folder is judged by the folder in which it will be created.

use std::io;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::Finding;
use crate::access::{self, existing};
use crate::config::Config;
use crate::exposure;

const CHECK: &str = "data folder";

pub(super) fn check(config: &Config) -> Vec<Finding> {
    if !config.fixed.accounts {
        return Vec::new();
    }
    let folder = &config.fixed.data;
    vec![match folder.metadata() {
        Ok(_) => judge(folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => judge_place_of(folder),
        Err(error) => cannot_write(folder, &error),
    }]
}

fn judge(folder: &Path) -> Finding {
    let shown = folder.display();
    if let Err(error) = access::check_data(folder) {
        return Finding::fail(CHECK, error.to_string()).with_fix(GIVE, GIVE_LASTING);
    }
    if let Err(error) = write_into(folder) {
        return cannot_write(folder, &error);
    }
    match exposure::of_data(folder) {
        None => Finding::ok(CHECK, format!("{shown} can be written, and only by us")),
        Some(open) => Finding::warn(CHECK, open.seen).with_fix(open.remedy, "the same: it stays"),
    }
}

fn judge_place_of(folder: &Path) -> Finding {
    let place = existing(folder);
    match write_into(&place) {
        Ok(()) => Finding::ok(CHECK, format!("{} will be made", folder.display())),
        Err(error) => cannot_write(&place, &error),
    }
}

fn cannot_write(folder: &Path, error: &io::Error) -> Finding {
    let (shown, user) = (folder.display(), access::user(geteuid()));
    let seen = format!("{shown} cannot be written as {user}: {error}");
    Finding::fail(CHECK, seen).with_fix(GIVE, GIVE_LASTING)
}

/// The remedy for data that belongs to another user.
const GIVE: &str = "sudo chown -R USER: DATA, for the server's user  # or name another folder with --data";
const GIVE_LASTING: &str =
    "StateDirectory=plimsoll in the service's unit, and a data folder below /var/lib/plimsoll";

/// Creates a file and removes it.
fn write_into(folder: &Path) -> io::Result<()> {
    let probe = probe_in(folder);
    std::fs::File::create_new(&probe)?;
    std::fs::remove_file(probe)
}

/// Returns the path of the file that a check creates and removes.
pub(super) fn probe_in(folder: &Path) -> PathBuf {
    folder.join(format!(".plimsoll-doctor-{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn a_folder_that_others_can_read_is_a_warning_until_it_is_ours_alone() {
        let folder = tempfile::tempdir().unwrap();
        let set = |mode| std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        set(0o755);
        let open = judge(folder.path());
        assert_eq!(open.verdict, Verdict::Warn);
        assert!(open.now.unwrap().starts_with("chmod 700 "));
        set(0o700);
        assert_eq!(judge(folder.path()).verdict, Verdict::Ok);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn a_folder_that_is_not_there_yet_is_judged_by_its_place() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(judge_place_of(&folder.path().join("a/b")).verdict, Verdict::Ok);
        assert_eq!(judge_place_of(Path::new("/proc/a")).verdict, Verdict::Fail);
    }
}
