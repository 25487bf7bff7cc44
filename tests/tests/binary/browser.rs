//! A real browser as a client: rendered pages, and a script's requests.
//!
//! It runs without a window and prints the resulting DOM.

use plimsoll_tests::binary::tool::{self, Done};
use plimsoll_tests::binary::{EngineKind, Server};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Tree, on_each_engine};

use super::proxy_cache::make_old;
use super::reverse_proxy::proxy;

/// The time for a page's script, in the browser's virtual time, which stands still during requests.
const SCRIPT_TIME: &str = "--virtual-time-budget=20000";

/// A script that sends requests as web applications do, and writes the results into its page.
const PAGE: &str = include_str!("browser.html");
/// A script that logs in and submits forms, as a person does on the pages.
const USE_PAGE: &str = include_str!("browser_page.html");
/// A script of another origin that submits the same forms.
const ATTACK_PAGE: &str = include_str!("browser_attack.html");
/// A script that sends the same request with each mode of the browser's cache.
const CACHE_PAGE: &str = include_str!("browser_cache.html");

fn served(tree: &Tree, kind: EngineKind) -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    tree.plant(folder.path());
    let server = Server::start(kind, folder.path(), &[]);
    (folder, server)
}

/// Opens a page with an empty profile, and returns the resulting DOM.
fn open(url: &str) -> String {
    open_with(&[], url)
}

fn open_with(flags: &[&str], url: &str) -> String {
    let done = browse(flags, url).well();
    let page = done.text();
    assert!(page.contains("</html>"), "no page: {page}\n{}", done.stderr);
    page
}

/// Runs the browser with an empty profile and these flags. It prints the resulting DOM, if there is a page.
pub(super) fn browse(flags: &[&str], url: &str) -> Done {
    let home = tempfile::tempdir().unwrap();
    let browser = tool::first_installed(&["chromium", "chromium-browser", "google-chrome"]);
    let mut command = tool::tool(&browser);
    command.env("HOME", home.path()).arg(format!("--user-data-dir={}", home.path().display()));
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
    command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    command.args(["--disable-dev-shm-usage", "--no-proxy-server", SCRIPT_TIME, "--dump-dom"]);
    tool::run(command.args(flags).arg(url))
}

/// Opens a page whose script reports its end. On a slow machine the browser's virtual time can elapse
/// first: then the page is opened again, a few times.
pub(super) fn open_until_ended(flags: &[&str], url: &str) -> String {
    const TRIES: usize = 5;
    let mut pages = (0..TRIES).map(|_| open_with(flags, url));
    let ended = pages.find(|page| !page.contains("the script has not ended"));
    ended.expect("the script ends in one of a few tries")
}

/// Returns the result that a page's script has written.
fn result_of(page: &str) -> serde_json::Value {
    let (_, result) = page.split_once("<pre id=\"result\">").expect("the place for results");
    let (result, _) = result.split_once("</pre>").expect("its end");
    serde_json::from_str(result).unwrap_or_else(|error| panic!("{error}: {page}"))
}

fn a_folder_is_a_page_with_links(kind: EngineKind) {
    let tree = Tree::new().file("Grüße & more.txt", "x").file("a<b>.txt", "y").file("folder/z.txt", "z");
    let (_folder, server) = served(&tree, kind);
    let page = open(&server.url("/"));
    for link in [
        "<a href=\"Gr%C3%BC%C3%9Fe%20%26%20more.txt\">Grüße &amp; more.txt</a>",
        "<a href=\"a%3Cb%3E.txt\">a&lt;b&gt;.txt</a>",
        "href=\"folder/\">folder/</a>",
    ] {
        assert!(page.contains(link), "{link} is not in: {page}");
    }
    let below = open(&server.url("/folder/"));
    assert!(below.contains("href=\"../\">Parent folder</a>"), "{below}");
    assert!(below.contains(">z.txt</a>"), "{below}");
    let missing = open(&server.url("/missing"));
    assert!(missing.contains("404") && missing.contains("Go to the start page"), "{missing}");
}

fn an_index_page_is_shown_with_what_it_loads(kind: EngineKind) {
    let index = "<!doctype html><title>t</title><link rel=stylesheet href=style.css><p id=p>as served</p>\
        <a href=more/>more</a><script src=script.js></script>";
    let script = "const p = document.getElementById('p');\
        p.textContent = 'coloured ' + getComputedStyle(p).color;";
    let tree = Tree::new().file("index.html", index).file("script.js", script);
    let (_folder, server) = served(&tree.file("style.css", "#p { color: rgb(1, 2, 3) }"), kind);
    let page = open(&server.url("/"));
    assert!(page.contains("coloured rgb(1, 2, 3)"), "{page}");
    assert!(page.contains("<a href=\"more/\">more</a>"), "{page}");
}

/// Ranges, conditions, errors, a hundred concurrent files, and a download that the page aborts.
fn a_script_gets_what_it_asks_for(kind: EngineKind) {
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let mut tree = Tree::new().file("page.html", PAGE).file("data.bin", bytes);
    tree =
        tree.file("huge.bin", noise(23, 16 << 20)).file("folder/one.txt", "1").file("folder/two.txt", "22");
    for number in 0..100 {
        tree = tree.file(format!("many/{number}.txt"), format!("number {number}"));
    }
    let (_folder, server) = served(&tree, kind);
    let page = open_until_ended(&[], &server.url("/page.html"));
    let got = result_of(&page);
    let expected = serde_json::json!({
        "whole": [200, 100_000, "application/octet-stream"],
        "range": [206, "bytes 250-259/100000", [250, 251, 252, 253, 254, 255, 0, 1, 2, 3]],
        "suffix": [206, "bytes 99998-99999/100000", [158, 159]],
        "beyond": [416, "bytes */100000"],
        "unchanged": [304, 0],
        "changed": [200, 100_000],
        "if_range_same": [206, 10],
        "if_range_other": [200, 100_000],
        "head": [200, "100000", 0],
        "missing": [404, "application/problem+json"],
        "put": [405],
        "folder": ["one.txt", "two.txt"],
        "many": 100,
        "given_up": "AbortError",
        "after": [200, "number 7"],
    });
    assert_eq!(got, expected);
}

/// A browser with its own cache, behind the cache of a proxy.
fn a_browser_and_a_proxy_cache_the_same_response(kind: EngineKind) {
    const BYTES: usize = 100_000;
    let tree = Tree::new().file("page.html", CACHE_PAGE).file("data.bin", noise(29, BYTES));
    let (folder, server) = served(&tree, kind);
    // A response without a lifetime of its own is fresh for a tenth of the file's age.
    make_old(&folder.path().join("data.bin"));
    let cache = tempfile::tempdir().unwrap();
    let (origin, cache) = (format!("http://{}", server.at()), cache.path().to_str().unwrap().to_owned());
    let proxy = proxy(kind, &["--origin", &origin, "--cache", &cache]);
    let visit = || result_of(&open_until_ended(&[], &proxy.url("/page.html")));
    // Each visit is of a browser with an empty cache. The proxy stores the response at the first one.
    let is_stored = |got: &serde_json::Value| got["first"][2].as_str().is_some_and(|it| it.contains("; hit"));
    let got = (0..5).map(|_| visit()).find(is_stored).expect("the proxy stores the response");
    let status = |name: &str| got[name][2].as_str().unwrap_or_default().to_owned();
    for name in ["first", "own", "validated", "reloaded", "not_stored"] {
        assert_eq!((&got[name][0], &got[name][1]), (&200.into(), &BYTES.into()), "{name}: {got}");
    }
    assert_eq!((&got["range"][0], &got["range"][1]), (&206.into(), &10.into()), "{got}");
    assert_eq!((status("own"), &got["own"][3]), (status("first"), &0.into()), "of its own cache: {got}");
    assert!(got["first"][3].as_u64() > Some(BYTES as u64), "{got}");
    assert!(status("validated").contains("fwd-status=304"), "the browser sends max-age=0: {got}");
    assert!(status("reloaded").contains("fwd="), "the browser sends no-cache: {got}");
    assert!(status("not_stored").contains("fwd="), "the browser sends no-cache: {got}");
}

/// Accounts on the web page, and a page of another port of the same host that sends requests with the cookie.
#[test]
fn a_person_uses_the_web_page_and_a_page_of_another_origin_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let site = Tree::new().file("page.html", USE_PAGE).file("attack.html", ATTACK_PAGE);
    site.plant(folder.path());
    let site = format!("/t={}", folder.path().display());
    let data = tempfile::tempdir().unwrap();
    let kind = EngineKind::Epoll;
    let server = Server::on_data(kind, data.path(), &["--site", &site]);
    let other = Server::start(kind, folder.path(), &[]);
    let target = format!("/t/page.html?other={}", other.url("/attack.html"));
    let got = result_of(&open_until_ended(&[], &server.url(&target)));
    let expected = serde_json::json!({
        "before": [401, "/files/"],
        "signed_up": [200, "/files/", true],
        "cookie": "",
        "uploaded": [200, "/files/"],
        "made": [200, "/files/"],
        "renamed": [200, "/files/"],
        "entries": ["renamed/", "kept", "page.html"],
        "framed": false,
        "opened": "attachment",
        "attack": "sent",
        "after_attack": ["renamed", "kept", "page.html"],
        "account": "alice",
        "left": [200, "/app/"],
        "after": 401,
    });
    assert_eq!(got, expected);
}

on_each_engine!(
    a_folder_is_a_page_with_links,
    an_index_page_is_shown_with_what_it_loads,
    a_script_gets_what_it_asks_for,
    a_browser_and_a_proxy_cache_the_same_response,
);
