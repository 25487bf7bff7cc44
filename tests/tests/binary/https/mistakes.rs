//! Mistakes of an operator: each is an error that says what to do.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use plimsoll_tests::binary::tool::Done;
use plimsoll_tests::binary::{among_others, command, tool};

use super::plant;

fn check(folder: &Path, args: &[&str]) -> Done {
    let mut check = command();
    check.args(["serve", "--check", "--http", "127.0.0.1:0", "--data"]).arg(folder.join("data"));
    tool::run(check.args(args).current_dir(folder))
}

fn set(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn wrong_certificates_are_errors_that_say_what_to_do() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    for (from, name) in [("server", "a"), ("other", "b"), ("server", "open")] {
        plant(folder.path(), from, name);
    }
    set(&folder.path().join("open.key"), 0o644);
    std::fs::write(folder.path().join("empty.pem"), "").unwrap();
    std::fs::copy(folder.path().join("a.pem"), folder.path().join("no.key")).unwrap();
    set(&folder.path().join("no.key"), 0o600);
    let https = ["--https", "127.0.0.1:0"];
    for (args, code, words) in [
        (&[][..], 2, &["--certificate FILE", "--self-signed"][..]),
        (&["--certificate", "a.pem"], 2, &["--key FILE"]),
        (&["--key", "a.key"], 2, &["--certificate FILE"]),
        (&["--self-signed", "--certificate", "a.pem", "--key", "a.key"], 2, &["choose one"]),
        (&["--certificate", "none.pem", "--key", "a.key"], 1, &["none.pem", "--certificate"]),
        (&["--certificate", "a.pem", "--key", "none.key"], 1, &["none.key", "--key"]),
        (&["--certificate", "a.pem", "--key", "b.key"], 1, &["a.pem", "b.key", "the same pair"]),
        (&["--certificate", "a.pem", "--key", "no.key"], 1, &["no.key", "no PEM file with an unencrypted"]),
        (&["--certificate", "empty.pem", "--key", "a.key"], 1, &["empty.pem", "no PEM file"]),
        (&["--certificate", ".", "--key", "a.key"], 1, &["is no file"]),
        (&["--certificate", "open.pem", "--key", "open.key"], 1, &["open.key", "chmod 600", "mode 644"]),
    ] {
        let done = check(folder.path(), &[&https[..], args].concat());
        assert_eq!(done.status.code(), Some(code), "{args:?}: {}", done.stderr);
        assert!(words.iter().all(|word| done.stderr.contains(word)), "{args:?}: {}", done.stderr);
    }
    let right = ["--certificate", "a.pem", "--key", "a.key", "--certificate", "b.pem", "--key", "b.key"];
    let plan = check(folder.path(), &[&https[..], &right].concat()).well().text();
    assert!(plan.contains("https://127.0.0.1:0"), "{plan}");
    assert!(plan.contains("files.example.org") && plan.contains("*.wild.example.org"), "{plan}");
}

#[test]
fn certificates_can_be_named_in_the_environment_and_in_a_file() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    plant(folder.path(), "server", "a");
    let toml = "https = [\"127.0.0.1:0\"]\ncertificate = [\"a.pem\"]\nkey = [\"a.key\"]\n";
    std::fs::write(folder.path().join("plimsoll.toml"), toml).unwrap();
    let by_file = check(folder.path(), &["--config", "plimsoll.toml"]).well().text();
    assert!(by_file.contains("files.example.org"), "{by_file}");
    let mut by_environment = command();
    by_environment.args(["serve", "--check", "--http", "127.0.0.1:0"]).current_dir(folder.path());
    by_environment.env("PLIMSOLL_HTTPS", "127.0.0.1:0");
    by_environment.env("PLIMSOLL_CERTIFICATE", "a.pem").env("PLIMSOLL_KEY", "a.key");
    assert!(tool::run(&mut by_environment).well().text().contains("files.example.org"));
}
