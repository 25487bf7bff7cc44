//! The packages: their files, scripts, unit, completions and manual pages.
//!
//! A long run also installs, upgrades and removes the .deb in a root of its own, walks through the README
//! with it, and tries tarball and image.

use std::path::{Path, PathBuf};
#[cfg(feature = "every-engine")]
use std::process::Stdio;

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
    let start = "ExecStart=/usr/bin/plimsoll serve ";
    assert!(unit.contains(start), "{unit}");
    let path = folder.join("plimsoll.service");
    let here = format!("ExecStart={} serve ", plimsoll().display());
    std::fs::write(&path, unit.replace(start, &here)).unwrap();
    path
}

#[test]
fn the_unit_is_right_for_systemd() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let mut verify = tool("systemd-analyze");
    verify.args(["verify", "--man=no", "--recursive-errors=no"]).arg(unit_in(folder.path()));
    let done = tool::run(&mut verify).well();
    assert_eq!(done.stderr, "");
}

#[test]
fn the_unit_exposes_little() {
    let _permit = among_others();
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
    let _permit = among_others();
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
    let _permit = among_others();
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

/// Builds the .deb of the binary under test, without its symbols, as fast as it can be.
fn deb_in(folder: &Path, revision: &str) -> PathBuf {
    let mut build = tool(packaged("deb").to_str().unwrap());
    build.env("DEB_BUILD_OPTIONS", "noautodbgsym").env("DEB_COMPRESSION", "-Zgzip -z1");
    tool::run(build.arg(plimsoll()).arg(folder).arg(revision)).well();
    let built = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let ends = format!("-{revision}_");
    let mut debs = built.filter(|path| path.to_str().unwrap().contains(&ends));
    let deb = debs.next().expect("a .deb");
    assert_eq!(debs.next(), None, "and nothing else");
    deb
}

/// Returns what dpkg-deb prints about a package.
fn dpkg_deb(arguments: &[&str], deb: &Path) -> String {
    let (flags, names) = arguments.split_at(1);
    tool::run(tool("dpkg-deb").args(flags).arg(deb).args(names)).well().text()
}

/// The files of the package whose paths other programs know.
const PACKAGED: [&str; 11] = [
    "-rw-r--r-- root/root ./etc/logrotate.d/plimsoll",
    "-rw-r--r-- root/root ./etc/plimsoll/plimsoll.toml",
    "-rw-r--r-- root/root ./lib/systemd/system/plimsoll.service",
    "-rwxr-xr-x root/root ./usr/bin/plimsoll",
    "-rw-r--r-- root/root ./usr/share/bash-completion/completions/plimsoll",
    "-rw-r--r-- root/root ./usr/share/doc/plimsoll/changelog.gz",
    "-rw-r--r-- root/root ./usr/share/doc/plimsoll/copyright",
    "-rw-r--r-- root/root ./usr/share/doc/plimsoll/examples/nginx.conf",
    "-rw-r--r-- root/root ./usr/share/fish/vendor_completions.d/plimsoll.fish",
    "-rw-r--r-- root/root ./usr/share/man/man1/plimsoll-serve.1.gz",
    "-rw-r--r-- root/root ./usr/share/zsh/vendor-completions/_plimsoll",
];

#[test]
fn a_package_has_every_file_and_lintian_finds_no_fault() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let deb = deb_in(folder.path(), "1");
    let listed = dpkg_deb(&["--contents"], &deb);
    let rights_and_path = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        format!("{} {} {}", words[0], words[1], words[5])
    };
    let files: Vec<String> = listed.lines().map(rights_and_path).collect();
    for file in PACKAGED {
        assert!(files.iter().any(|found| found == file), "no {file} in\n{listed}");
    }
    assert!(!files.iter().any(|file| file.contains("./var")), "data and logs are no files of the package");
    let conffiles = dpkg_deb(&["--info", "conffiles"], &deb);
    assert_eq!(conffiles, "/etc/logrotate.d/plimsoll\n/etc/plimsoll/plimsoll.toml\n");
    let needs = dpkg_deb(&["--field", "Depends"], &deb);
    assert!(["libc6 (>= ", "adduser", "procps"].iter().all(|package| needs.contains(package)), "{needs}");
    for script in ["config", "postinst", "prerm", "postrm"] {
        let text = dpkg_deb(&["--info", script], &deb);
        assert!(text.starts_with("#!/bin/sh\n"), "{script}: {text}");
        tool::run(tool("sh").args(["-n", "-c", &text])).well();
    }
    let removal = dpkg_deb(&["--info", "postrm"], &deb);
    assert!(removal.contains("removes_data=false\n"), "a purge keeps the data by default: {removal}");
    let checked = tool::run(tool("lintian").args(["--fail-on", "error,warning"]).arg(&deb));
    assert!(checked.status.success(), "{}{}", checked.text(), checked.stderr);
}

/// The scripts that only a long run and `make package` use fail at their first line, if they fail to parse.
#[test]
fn every_script_of_the_packages_parses() {
    let _permit = among_others();
    let in_folder =
        |name: &str| std::fs::read_dir(packaged(name)).unwrap().map(|entry| entry.unwrap().path());
    let files = in_folder("").chain(in_folder("try")).filter(|path| path.is_file());
    let is_script = |path: &PathBuf| std::fs::read_to_string(path).unwrap().starts_with("#!");
    let scripts: Vec<PathBuf> = files.filter(is_script).chain([packaged("try/common.sh")]).collect();
    assert!(scripts.len() >= 11, "{scripts:?}");
    for script in scripts {
        let parsed = tool::run(tool("bash").arg("-n").arg(&script)).well();
        assert_eq!(parsed.stderr, "", "{script:?}");
    }
}

/// Runs a script of `packaging/try` to its end, which takes longer than a client's command.
#[cfg(feature = "every-engine")]
fn try_out(script: &str, arguments: &[&Path]) -> String {
    let mut command = tool(packaged("try").join(script).to_str().unwrap());
    let done = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let (output, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{script}: {output}{errors}");
    output.into_owned()
}

#[cfg(feature = "every-engine")]
#[test]
fn packages_are_installed_used_upgraded_and_removed_in_a_root_of_their_own() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let (deb, newer) = (deb_in(folder.path(), "1"), deb_in(folder.path(), "2"));
    let earlier = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/upgrade/0.1.0.tar.gz");
    try_out("base", &[]);
    let output = try_out("deb", &[&deb, &newer, &earlier]);
    assert!(output.contains("ok: purged with the data on disks of its own"), "{output}");
    assert!(try_out("internet", &[&deb]).contains("ok: uploaded by lftp "));
    for (script, ending) in [("tarball", ".tar.gz"), ("image", "-image.tar")] {
        tool::run(tool(packaged(script).to_str().unwrap()).arg(&deb).arg(folder.path())).well();
        let built = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut made = built.filter(|path| path.to_str().unwrap().ends_with(ending));
        assert!(try_out(script, &[&made.next().expect(ending)]).contains("ok: "));
    }
}
