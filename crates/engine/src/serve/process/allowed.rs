//! Bounds on the number of processes: of the user, and of the control groups that this process is in.
//!
//! It does not count the existing processes. Invariants: the least of all bounds is found, in either version
//! of control groups. A bound that cannot be read is ignored.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use crate::limits::{PROCESSES_MAX, PROCESSES_RESERVED};

/// The source of the bound on the number of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessBound {
    /// The engine, which creates [`PROCESSES_MAX`] at most.
    Engine,
    /// The user's limit (`RLIMIT_NPROC`).
    Account,
    /// The limit in this file of a control group: `TasksMax=` of a service, or a container's.
    Group(PathBuf),
}

/// The root of the control groups, and the list of the groups that this process is in.
const GROUPS: &str = "/sys/fs/cgroup";
const OWN_GROUPS: &str = "/proc/self/cgroup";
/// The file of a group with its bound: a number, or a word if there is none.
const BOUND: &str = "pids.max";

/// Returns how many connections there may be, each of which is a process, and the source of that bound.
pub fn processes_max() -> (usize, ProcessBound) {
    let own = fs::read_to_string(OWN_GROUPS).unwrap_or_default();
    least(getrlimit(Resource::Nproc).current, of_groups(&own, Path::new(GROUPS)))
}

fn least(account: Option<u64>, group: Option<(u64, PathBuf)>) -> (usize, ProcessBound) {
    let account = account.map(|most| (most, ProcessBound::Account));
    let group = group.map(|(most, file)| (most, ProcessBound::Group(file)));
    let left = |(most, bound): (u64, _)| (most.saturating_sub(PROCESSES_RESERVED).max(1), bound);
    let bounds = account.into_iter().chain(group).map(left).chain([(PROCESSES_MAX, ProcessBound::Engine)]);
    let (most, bound) = bounds.min_by_key(|(most, _)| *most).unwrap_or((1, ProcessBound::Engine));
    (usize::try_from(most).unwrap_or(usize::MAX), bound)
}

/// Returns the least bound of the groups listed in `own` and of their ancestors, and its file.
fn of_groups(own: &str, root: &Path) -> Option<(u64, PathBuf)> {
    let folders = own.lines().filter_map(|line| folder_of(line, root)).flatten();
    let bounds = folders.filter_map(|folder| {
        let file = folder.join(BOUND);
        let most = fs::read_to_string(&file).ok()?.trim().parse().ok()?;
        Some((most, file))
    });
    bounds.min_by_key(|(most, _)| *most)
}

/// Returns the folders of a group and its ancestors, given `NUMBER:CONTROLLERS:PATH`. Returns `None` if that
/// hierarchy does not count processes. Only version 1 names controllers.
fn folder_of(line: &str, root: &Path) -> Option<Vec<PathBuf>> {
    let (_, line) = line.split_once(':')?;
    let (controllers, path) = line.split_once(':')?;
    let top = match controllers {
        "" => root.to_owned(),
        _ if controllers.split(',').any(|name| name == "pids") => root.join("pids"),
        _ => return None,
    };
    // In a container, the path may be that of the host, while the visible tree begins with the group.
    let own = top.join(path.trim_start_matches('/'));
    let parents = own.ancestors().take_while(|folder| folder.starts_with(&top));
    Some(parents.map(Path::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates groups with these bounds, by their folders.
    fn groups(bounds: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (folder, bound) in bounds {
            let folder = root.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(BOUND), format!("{bound}\n")).unwrap();
        }
        root
    }

    #[test]
    fn the_least_of_a_group_and_those_around_it_holds() {
        let root = groups(&[("", "max"), ("a", "100"), ("a/b", "max"), ("a/b/c", "200"), ("other", "7")]);
        let least = |own| of_groups(own, root.path());
        let at_a = root.path().join("a/pids.max");
        assert_eq!(least("0::/a/b/c\n"), Some((100, at_a)));
        assert_eq!(least("0::/\n"), None);
        // The group itself is not visible here: the bounds of its visible ancestors apply.
        assert_eq!(least("0::/machine/a\n"), None);
        assert_eq!(least("0::/other/hidden\n").unwrap().0, 7);
    }

    #[test]
    fn version_1_has_a_folder_for_what_counts_processes() {
        let root = groups(&[("pids/a", "300"), ("memory/a", "1"), ("a", "2")]);
        let own = "9:name=systemd:/a\n8:pids:/a\n4:memory:/a\n";
        assert_eq!(of_groups(own, root.path()).unwrap().0, 300);
    }

    #[test]
    fn of_account_group_and_engine_the_least_holds_less_what_is_reserved() {
        let file = PathBuf::from("pids.max");
        let group = |most| Some((most, file.clone()));
        assert_eq!(least(None, None), (4_096, ProcessBound::Engine));
        assert_eq!(least(Some(1_064), group(2_064)), (1_000, ProcessBound::Account));
        assert_eq!(least(Some(1_064), group(164)), (100, ProcessBound::Group(file.clone())));
        assert_eq!(least(Some(5), None), (1, ProcessBound::Account));
    }
}
