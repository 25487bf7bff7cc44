//! WebDAV clients: litmus (the conformance tests of Apache's and neon's authors), cadaver, rclone and curl.

use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_tests::binary::member::{Member, PASSWORD};
use plimsoll_tests::binary::{Done, EngineKind, Server, tool};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;

/// Starts a server with an account.
fn serve(kind: EngineKind, data: &Path) -> Server {
    let server = Server::on_data(kind, data, &[]);
    drop(Member::new(&server, "alice"));
    server
}

/// Runs all suites but `props`. Of the suite `locks`, three tests set a property of the client's own, which
/// the server does not keep: PROPPATCH gets 403.
fn litmus_fails_only_where_it_sets_a_property_of_its_own(kind: EngineKind) {
    let (data, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = serve(kind, data.path());
    let mut litmus = tool("litmus");
    litmus.args(["--keep-going", &server.url("/files/"), "alice", PASSWORD]);
    // It leaves a log in its working folder.
    litmus.env("TESTS", "basic copymove locks http").current_dir(out.path());
    let text = tool::run(&mut litmus).text();
    assert_eq!(text.matches(" passed, 0 failed. 100.0%").count(), 3, "{text}");
    assert!(text.contains("`locks': of 41 tests run: 38 passed, 3 failed."), "{text}");
    let failures: Vec<&str> = text.split("owner_modify.......... FAIL (PROPPATCH ").skip(1).collect();
    let is_refused = |rest: &&str| rest.lines().next().is_some_and(|line| line.ends_with("403 Forbidden"));
    let are_expected = failures.iter().all(is_refused);
    assert!(failures.len() == 3 && are_expected && text.matches("FAIL").count() == 3, "{text}");
    assert!(!text.contains("WARNING") && !text.contains("SKIPPED"), "{text}");
}

/// The commands of the documentation, with a restart in between.
fn a_lock_survives_a_restart(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let run = |server: &Server, arguments: &[&str]| {
        let mut curl = tool("curl");
        curl.args(["-q", "--silent", "--show-error", "--include", "-u", &format!("alice:{PASSWORD}")]);
        tool::run(curl.args(arguments).arg(server.url("/files/a.txt"))).well().text()
    };
    let server = serve(kind, data.path());
    run(&server, &["-X", "PUT", "--data-binary", "one"]);
    let body = "<lockinfo xmlns=\"DAV:\"><lockscope><exclusive/></lockscope><locktype><write/></locktype>\
                </lockinfo>";
    let locked = run(&server, &["-X", "LOCK", "-H", "Timeout: Second-600", "--data", body]);
    let token = locked.split("<urn:uuid:").nth(1).and_then(|rest| rest.split_once('>')).expect("a token").0;
    drop(server);
    let server = Server::on_data(kind, data.path(), &[]);
    let refused = run(&server, &["-X", "PUT", "--data-binary", "two"]);
    assert!(refused.starts_with("HTTP/1.1 423 "), "{refused}");
    assert!(run(&server, &[]).ends_with("one"));
    let submitted = format!("If: (<urn:uuid:{token}>)");
    let stored = run(&server, &["-X", "PUT", "--data-binary", "two", "-H", &submitted]);
    assert!(stored.starts_with("HTTP/1.1 204 "), "{stored}");
    let ended = run(&server, &["-X", "UNLOCK", "-H", &format!("Lock-Token: <urn:uuid:{token}>")]);
    assert!(ended.starts_with("HTTP/1.1 204 "), "{ended}");
}

/// Runs cadaver with a script, as `alice`, in `folder`.
fn cadaver(folder: &Path, url: &str, script: &str) -> Done {
    let netrc = folder.join(".netrc");
    let login = format!("machine 127.0.0.1 login alice password \"{PASSWORD}\"\n");
    std::fs::write(&netrc, login).unwrap();
    let mut cadaver = tool("cadaver");
    cadaver.arg(url).env("HOME", folder).current_dir(folder).stdin(tool::typed(script));
    tool::run(&mut cadaver).well()
}

fn cadaver_stores_lists_moves_and_fetches(kind: EngineKind) {
    let (data, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = serve(kind, data.path());
    std::fs::write(out.path().join("a b.txt"), "of cadaver\n").unwrap();
    let script = "mkcol docs\ncd docs\nput \"a b.txt\"\nmove \"a b.txt\" c.txt\ncopy c.txt d.txt\nls\n\
                  get d.txt\ndelete c.txt\nls\nquit\n";
    let done = cadaver(out.path(), &server.url("/files/"), script);
    let text = done.text();
    assert!(!text.to_lowercase().contains("failed"), "{text}{}", done.stderr);
    assert_eq!(std::fs::read(out.path().join("d.txt")).unwrap(), b"of cadaver\n", "{text}");
    let listed = text.rsplit("Listing collection").next().unwrap();
    assert!(listed.contains("d.txt") && !listed.contains("c.txt"), "{text}");
}

/// Returns rclone with its remote `:webdav:`, the files of `alice`.
fn rclone(server: &Server, folder: &Path) -> Command {
    let obscured = tool::run(tool("rclone").args(["obscure", PASSWORD])).well().text();
    let mut rclone = tool("rclone");
    rclone.env("HOME", folder).env("RCLONE_CONFIG", folder.join("rclone.conf"));
    rclone.env("RCLONE_WEBDAV_URL", server.url("/files")).env("RCLONE_WEBDAV_USER", "alice");
    rclone.env("RCLONE_WEBDAV_PASS", obscured.trim()).env("RCLONE_WEBDAV_VENDOR", "owncloud");
    rclone.args(["--retries", "1", "--low-level-retries", "1"]).stdin(Stdio::null());
    rclone
}

fn rclone_syncs_a_tree_and_finds_it_the_same(kind: EngineKind) {
    let (data, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = serve(kind, data.path());
    let tree = out.path().join("tree");
    std::fs::create_dir_all(tree.join("deep/er & more")).unwrap();
    for (name, bytes) in [("a.txt", 10), ("50% #1.bin", 100_000), ("deep/er & more/ü", 3), ("deep/empty", 0)]
    {
        std::fs::write(tree.join(name), noise(7, bytes)).unwrap();
    }
    let run = |arguments: &[&str]| {
        let mut command = rclone(&server, out.path());
        tool::run(command.args(arguments).arg(&tree).arg(":webdav:copy")).well()
    };
    run(&["sync"]);
    run(&["check", "--download"]);
    // The times of the files are kept, so that a second run has nothing to do.
    let again = run(&["sync", "-vv"]).stderr;
    assert!(again.contains("There was nothing to transfer"), "{again}");
    std::fs::remove_file(tree.join("a.txt")).unwrap();
    std::fs::rename(tree.join("deep/empty"), tree.join("moved")).unwrap();
    run(&["sync"]);
    run(&["check", "--download"]);
}

/// The commands of the documentation.
fn curl_lists_a_folder_and_sets_a_time(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let server = serve(kind, data.path());
    let run = |arguments: &[&str]| {
        let mut curl = tool("curl");
        curl.args(["-q", "--silent", "--show-error", "--fail", "-u", &format!("alice:{PASSWORD}")]);
        tool::run(curl.args(arguments)).well().text()
    };
    run(&["-X", "PUT", "--data-binary", "bytes", &server.url("/files/a.txt")]);
    let listed = run(&["-X", "PROPFIND", "-H", "Depth: 1", &server.url("/files/")]);
    assert!(listed.contains("<D:href>/files/a.txt</D:href>"), "{listed}");
    let update = "<propertyupdate xmlns=\"DAV:\"><set><prop><getlastmodified>Sun, 13 Sep 2020 12:26:40 GMT\
                  </getlastmodified></prop></set></propertyupdate>";
    let set = run(&["-X", "PROPPATCH", "--data", update, &server.url("/files/a.txt")]);
    assert!(set.contains("HTTP/1.1 200 OK"), "{set}");
    assert!(run(&["--head", &server.url("/files/a.txt")]).contains("Last-Modified: Sun, 13 Sep 2020"));
}

on_each_engine!(
    litmus_fails_only_where_it_sets_a_property_of_its_own,
    cadaver_stores_lists_moves_and_fetches,
    rclone_syncs_a_tree_and_finds_it_the_same,
    curl_lists_a_folder_and_sets_a_time,
    a_lock_survives_a_restart,
);
