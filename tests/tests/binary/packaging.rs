//! The files of a distribution's package besides the binary: the unit, completions, manual pages.

use std::path::{Path, PathBuf};

use plimsoll_tests::binary::{among_others, command, plimsoll, tool};

/// The maximal exposure that `systemd-analyze security` may report for the unit, in tenths: 0 is best, 100
/// is worst.
const EXPOSURE_MAX: &str = "15";

fn packaged(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(name)
}

/// Writes the unit with the path of the built binary.
fn unit_in(folder: &Path) -> PathBuf {
    let unit = std::fs::read_to_string(packaged("systemd/plimsoll.service")).unwrap();
    let start = "ExecStart=/usr/local/bin/plimsoll serve ";
    assert!(unit.contains(start), "{unit}");
    let path = folder.join("plimsoll.service");
    let here = format!("ExecStart={} serve ", plimsoll().display());
    std::fs::write(&path, unit.replace(start, &here)).unwrap();
    path
}

#[test]
fn the_unit_is_right_for_systemd() {
    let _turn = among_others();
    let folder = tempfile::tempdir().unwrap();
    let mut verify = tool("systemd-analyze");
    verify.args(["verify", "--man=no", "--recursive-errors=no"]).arg(unit_in(folder.path()));
    let done = tool::run(&mut verify).well();
    assert_eq!(done.stderr, "");
}

#[test]
fn the_unit_exposes_little() {
    let _turn = among_others();
    let folder = tempfile::tempdir().unwrap();
    let mut security = tool("systemd-analyze");
    security.args(["security", "--offline=true", "--no-pager", "--threshold", EXPOSURE_MAX]);
    let done = tool::run(security.arg(unit_in(folder.path())));
    assert!(done.status.success(), "{}", done.text());
    assert!(done.text().contains("Overall exposure level"), "{}", done.text());
}

/// Returns the commands listed by the help.
fn commands() -> Vec<String> {
    let help = tool::run(command().arg("--help")).well().text();
    let (_, listed) = help.split_once("Commands:\n").expect("help lists commands");
    let names = listed.lines().take_while(|line| line.starts_with("  "));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

#[test]
fn every_command_has_a_manual_page() {
    let _turn = among_others();
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    tool::run(command().arg("man").arg(&pages)).well();
    assert!(commands().len() >= 4, "{:?}", commands());
    for name in commands() {
        let page = std::fs::read_to_string(pages.join(format!("plimsoll-{name}.1"))).expect(&name);
        assert!(page.contains(".SH NAME") && page.contains(".SH EXAMPLES\n.nf\n"), "{name}: {page}");
        assert!(page.contains("\n.fi\n.SH VERSION\n"), "{name}: {page}");
    }
    let serve = tool::run(tool("man").arg("-l").arg(pages.join("plimsoll-serve.1")).env("MANWIDTH", "100"));
    let example = |line: &str| line.trim() == "plimsoll serve --data /srv/plimsoll --ftp :2121";
    assert!(serve.well().text().lines().any(example), "an example stands on a line of its own");
    let main = std::fs::read_to_string(pages.join("plimsoll.1")).unwrap();
    assert!(main.contains("plimsoll\\-serve(1)"), "{main}");
}

#[test]
fn every_shell_can_complete_every_command() {
    let _turn = among_others();
    for shell in ["bash", "zsh", "fish"] {
        let script = tool::run(command().args(["completions", shell])).well().text();
        for name in commands() {
            assert!(script.contains(&name), "{shell}: {name}");
        }
        assert!(script.contains("durability"), "{shell}: its flags too");
        for engine in ["process", "thread", "pool", "epoll", "uring"] {
            assert!(script.contains(engine), "{shell}: --engine {engine}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("plimsoll.bash");
    std::fs::write(&script, tool::run(command().args(["completions", "bash"])).well().stdout).unwrap();
    tool::run(tool("bash").arg("-n").arg(&script)).well();
}
