//! The manual: its commands work when they are typed in the order of the page.

use std::path::{Path, PathBuf};

use plimsoll_tests::binary::{EngineKind, Server, among_others};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(name)).unwrap()
}

#[test]
fn every_request_of_the_page_of_sites_is_served_by_its_first_command() {
    let _permit = among_others();
    let page = page("sites.md");
    let typed = page.lines().find_map(|line| line.strip_prefix("$ plimsoll serve ")).unwrap();
    let site = typed.split_whitespace().find_map(|word| word.strip_suffix("=./docs")).unwrap();
    let (www, docs) = (tempfile::tempdir().unwrap(), root().join("docs"));
    let docs = format!("{site}={}", docs.display());
    let server = Server::start(EngineKind::Epoll, www.path(), &["--site", &docs]);
    let urls = page.lines().filter_map(|line| line.split_once("http://127.0.0.1:8080"));
    let targets: Vec<&str> = urls
        .filter_map(|(_, rest)| rest.split([' ', '\'', '`']).next())
        .filter(|target| target.starts_with('/'))
        .collect();
    assert!(targets.len() >= 3, "{targets:?}");
    for target in targets {
        assert_eq!(server.visit().get(target).unwrap().status, 200, "{target}");
    }
}

#[test]
fn a_user_that_joins_a_group_is_created_above_on_the_page() {
    let _permit = among_others();
    let page = page("databases.md");
    let unit = std::fs::read_to_string(root().join("packaging/systemd/plimsoll.service")).unwrap();
    // The package, and the tarball's installer, create the unit's user.
    let mut created: Vec<&str> = unit.lines().filter_map(|line| line.strip_prefix("User=")).collect();
    for line in page.lines().filter(|line| line.starts_with("sudo ")) {
        let user = line.split_whitespace().last().unwrap();
        if line.contains("useradd ") {
            created.push(user);
        }
        assert!(!line.contains("usermod ") || created.contains(&user), "{line}");
    }
    assert!(created.contains(&"plimsoll") && page.contains("usermod "));
}
