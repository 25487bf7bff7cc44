//! Public links: made by the command line, used by curl and by a browser, ended.

use plimsoll_tests::binary::tool::{self, Done};
use plimsoll_tests::binary::{EngineKind, among_others};
use plimsoll_tests::on_each_engine;

use super::{Person, Workspace};
use crate::browser::browse;

fn curl(args: &[&str], folder: &std::path::Path) -> Done {
    tool::run(tool::tool("curl").args(["-q", "--silent", "--show-error"]).args(args).current_dir(folder))
}

/// Returns the status of a GET.
fn status(url: &str, args: &[&str], folder: &std::path::Path) -> String {
    let shown = ["-o", "/dev/null", "-w", "%{http_code}", url];
    curl(&[&shown, args].concat(), folder).well().text()
}

fn a_link_is_made_used_by_curl_and_ended(kind: EngineKind) {
    let (place, out) = (Workspace::open(kind), tempfile::tempdir().unwrap());
    let alice = Person::at(&place.server.url(""), "alice");
    alice.writes("report é.txt", "report");
    alice.types(&["put", "report é.txt"]).well();
    let link = alice.json(&["link", "report é.txt", "--expires", "7d"]);
    let url = link["url"].as_str().unwrap();
    assert!(url.starts_with(&place.server.url("/s/")), "{url}");
    curl(&["--fail", "-OJ", url], out.path()).well();
    assert_eq!(std::fs::read(out.path().join("report __.txt")).unwrap(), b"report");
    assert_eq!(curl(&["-r", "2-3", url], out.path()).well().stdout, b"po");

    let printed = alice.types(&["link", "report é.txt", "--downloads", "1"]).well().text();
    let limited = printed.lines().next().unwrap();
    let cookies = ["-c", "jar", "-b", "jar"];
    assert_eq!(curl(&[&cookies[..], &["-r", "0-2", limited]].concat(), out.path()).well().stdout, b"rep");
    assert_eq!(curl(&[&cookies[..], &["-r", "3-", limited]].concat(), out.path()).well().stdout, b"ort");
    assert_eq!(status(limited, &[], out.path()), "410");

    alice.writes("password", "open sesame now\n");
    let printed = alice.types(&["link", "report é.txt", "--password-file", "password"]).well().text();
    let locked = printed.lines().next().unwrap();
    assert_eq!(status(locked, &[], out.path()), "401");
    assert_eq!(status(locked, &["-u", "any:wrong"], out.path()), "401");
    assert_eq!(status(locked, &["-u", "any:open sesame now"], out.path()), "200");

    let listed = alice.types(&["links"]).well().text();
    assert!(listed.contains("1 of 1 downloads") && listed.contains("password"), "{listed}");
    assert!(!listed.contains("/s/"), "{listed}");
    let id = link["id"].as_str().unwrap();
    alice.types(&["unlink", id]).well();
    assert_eq!(status(url, &[], out.path()), "404");
    alice.fails(&["unlink", id], 1, &["no public link"]);
    alice.fails(&["link", "nothing"], 1, &["nothing at"]);
    alice.fails(&["link", "bob:report"], 2, &["one's own home"]);
    assert_eq!(alice.json(&["links"])["links"].as_array().unwrap().len(), 2);
}

on_each_engine!(forks: a_link_is_made_used_by_curl_and_ended);

#[test]
fn a_browser_shows_a_linked_folder_and_a_linked_file() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    alice.writes("photos/a.png", "not a picture");
    alice.types(&["put", "-r", "photos"]).well();
    let folder = alice.json(&["link", "photos"]);
    let page = browse(&[], folder["url"].as_str().unwrap()).well().text();
    assert!(page.contains("href=\"a.png\"") && page.contains("photos"), "{page}");
    assert!(!page.contains("alice") && !page.contains("/app/entry"), "{page}");
    let file = alice.json(&["link", "photos/a.png"]);
    let page = browse(&[], file["url"].as_str().unwrap()).well().text();
    assert!(page.contains("href=\"?download\"") && page.contains("13"), "{page}");
}
