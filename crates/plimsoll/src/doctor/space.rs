//! Checks the free space of the data folder's file system: bytes and files.
//!
//! It is not a quota. Invariant: space that is reserved for the superuser does not count.

use super::Finding;
use crate::access::existing;
use crate::config::Config;

const CHECK: &str = "space";
/// With less, uploads will soon be refused.
const BYTES_FEW: u64 = 1 << 30;
const BYTES_LEAST: u64 = 16 << 20;
/// With fewer, uploads of small files will soon be refused.
const FILES_FEW: u64 = 10_000;

pub(super) fn check(config: &Config) -> Vec<Finding> {
    if !config.fixed.accounts {
        return Vec::new();
    }
    let folder = existing(&config.fixed.data);
    vec![match rustix::fs::statvfs(&folder) {
        // A file system without a limit of files reports 0 files in total.
        Ok(found) => judge(found.f_bavail * found.f_frsize, (found.f_files > 0).then_some(found.f_favail)),
        Err(error) => Finding::warn(CHECK, format!("{}: {error}", folder.display())),
    }]
}

fn judge(bytes: u64, files: Option<u64>) -> Finding {
    let files_left = files.map_or("any number of".to_owned(), |files| files.to_string());
    let seen = format!("{} MiB and {files_left} files are left", bytes >> 20);
    let finding = match (bytes, files) {
        (..BYTES_LEAST, _) | (_, Some(0)) => Finding::fail(CHECK, seen),
        (..BYTES_FEW, _) | (_, Some(..FILES_FEW)) => Finding::warn(CHECK, seen),
        _ => return Finding::ok(CHECK, seen),
    };
    finding.with_fix("df -h, df -i: remove what is not needed", "a larger disk: --data DIR")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn little_room_is_a_warning_and_none_a_failure() {
        assert_eq!(judge(10 << 30, None).verdict, Verdict::Ok);
        assert_eq!(judge(10 << 30, Some(20_000)).verdict, Verdict::Ok);
        assert_eq!(judge(512 << 20, None).verdict, Verdict::Warn);
        assert_eq!(judge(10 << 30, Some(5)).verdict, Verdict::Warn);
        assert_eq!(judge(1 << 20, None).verdict, Verdict::Fail);
        assert_eq!(judge(10 << 30, Some(0)).verdict, Verdict::Fail);
    }
}
