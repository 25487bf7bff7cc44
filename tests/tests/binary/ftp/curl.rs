//! curl: uploads and downloads, resumed in both directions, listings, and each kind of data connection.

use std::path::Path;

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::{EngineKind, Server, tool, tool::Done};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::skips::{Need, skip};
use plimsoll_tests::tree::noise;

use super::Served;

fn curl(served: &Served, args: &[&str]) -> Done {
    let mut curl = served.client("curl");
    curl.args(["--silent", "--show-error", "--user", &format!("alice:{PASSWORD}")]).args(args);
    tool::run(&mut curl)
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn files_go_up_and_down_in_every_way(kind: EngineKind) {
    let mut served = Served::new(kind);
    let bytes = noise(1, 3_000_000);
    let file = served.folder("local").join("file.bin");
    std::fs::write(&file, &bytes).unwrap();
    for (at, ways) in [
        &["--ftp-pasv"][..],
        &["--disable-epsv"],
        &["--ftp-port", "-"],
        &["--ftp-port", "-", "--disable-eprt"],
        &["--ftp-method", "nocwd"],
        &["--ftp-method", "singlecwd"],
        &["--ftp-method", "multicwd"],
    ]
    .into_iter()
    .enumerate()
    {
        if ways[0] == "--ftp-method" {
            // With some of these methods, curl cannot find out which folder is missing, so they are created
            // here.
            served.alice.mkcol(&format!("/files/folder%20{at}"));
            served.alice.mkcol(&format!("/files/folder%20{at}/deep"));
        }
        let url = served.url(&format!("/folder%20{at}/deep/file.bin"));
        curl(&served, &[ways, &["--ftp-create-dirs", "-T", &text(&file), &url]].concat()).well();
        assert!(curl(&served, &[ways, &[&url[..]]].concat()).well().stdout == bytes, "{ways:?}");
        let listed =
            curl(&served, &[ways, &["--list-only", &served.url(&format!("/folder%20{at}/"))]].concat());
        let listed = listed.well().text();
        // Without CWD, names include the requested folder.
        assert!(["deep\n".to_owned(), format!("folder {at}/deep\n")].contains(&listed), "{ways:?}: {listed}");
    }
    let listed = curl(&served, &[&served.url("/")]).well().text();
    assert_eq!(listed.lines().count(), 7, "{listed}");
    let output = curl(&served, &["--head", &served.url("/folder%200/deep/file.bin")]).well().text();
    assert!(output.contains("Content-Length: 3000000"), "{output}");
    assert_ne!(curl(&served, &[&served.url("/none")]).status.code(), Some(0));
    let wrong =
        tool::run(served.client("curl").args(["--silent", "--user", "alice:wrong", &served.url("/")]));
    assert_eq!(wrong.status.code(), Some(67), "log-in was refused");
}

fn an_aborted_transfer_is_resumed(kind: EngineKind) {
    let served = Served::new(kind);
    let bytes = noise(2, 40_000_000);
    let (local, url) = (served.folder("local"), served.url("/file.bin"));
    let file = local.join("file.bin");
    std::fs::write(&file, &bytes).unwrap();
    let slowly = ["--limit-rate", "4M", "--max-time", "2"];
    let broken = curl(&served, &[&slowly[..], &["-T", &text(&file), &url]].concat());
    assert_eq!(broken.status.code(), Some(28), "out of time: {}", broken.stderr);
    assert!(!served.home().join("file.bin").exists());
    let done = curl(&served, &["--continue-at", "-", "-T", &text(&file), "--verbose", &url]).well();
    assert!(std::fs::read(served.home().join("file.bin")).unwrap() == bytes);
    assert!(done.stderr.contains("> APPE file.bin"), "it went on: {}", done.stderr);
    assert!(!done.stderr.contains("< 213 0\r"), "something had come: {}", done.stderr);
    // And the download.
    let part = local.join("part.bin");
    let broken = curl(&served, &[&slowly[..], &["-o", &text(&part), &url]].concat());
    assert_eq!(broken.status.code(), Some(28), "out of time: {}", broken.stderr);
    assert!(std::fs::metadata(&part).unwrap().len() < 40_000_000);
    curl(&served, &["--continue-at", "-", "-o", &text(&part), &url]).well();
    assert!(std::fs::read(&part).unwrap() == bytes);
}

/// An upload to replace an old file was interrupted, and curl is asked to resume. The upload is refused,
/// because the server cannot know which of them curl means. A download resumes the old file.
fn an_old_file_and_an_upload_to_replace_it_are_not_mixed(kind: EngineKind) {
    let served = Served::new(kind);
    let (old, new) = (noise(3, 3_000_000), noise(4, 30_000_000));
    let (local, url) = (served.folder("local"), served.url("/big.iso"));
    let (old_at, new_at, part) = (local.join("old"), local.join("new"), local.join("part"));
    std::fs::write(&old_at, &old).unwrap();
    std::fs::write(&new_at, &new).unwrap();
    curl(&served, &["-T", &text(&old_at), &url]).well();
    // Interrupted before the old file's size, and behind it.
    for rate in ["1M", "8M"] {
        let slowly = ["--limit-rate", rate, "--max-time", "2"];
        let broken = curl(&served, &[&slowly[..], &["-T", &text(&new_at), &url]].concat());
        assert_eq!(broken.status.code(), Some(28), "out of time: {}", broken.stderr);
        let resumed = curl(&served, &["--continue-at", "-", "-T", &text(&new_at), "--verbose", &url]);
        assert!(!resumed.status.success(), "{}", resumed.stderr);
        assert!(resumed.stderr.contains("STOR alone to send the whole file"), "{}", resumed.stderr);
        assert!(std::fs::read(served.home().join("big.iso")).unwrap() == old);
        std::fs::write(&part, &old[..1_000_000]).unwrap();
        curl(&served, &["--continue-at", "-", "-o", &text(&part), &url]).well();
        assert!(std::fs::read(&part).unwrap() == old);
    }
    curl(&served, &["-T", &text(&new_at), &url]).well();
    assert!(std::fs::read(served.home().join("big.iso")).unwrap() == new);
    assert!(super::held(&super::pending(served.folder.path())).is_empty());
}

fn commands_are_sent_beside(kind: EngineKind) {
    let served = Served::new(kind);
    let file = served.folder("local").join("a");
    std::fs::write(&file, "a\nb\n").unwrap();
    let (url, file) = (served.url("/a"), text(&file));
    curl(&served, &["-T", &file, "--quote", "MKD made", "--quote", "RMD made", "--quote", "*RMD none", &url])
        .well();
    curl(&served, &["--append", "-T", &file, &url]).well();
    assert_eq!(curl(&served, &[&url]).well().text(), "a\nb\na\nb\n");
    assert_eq!(
        curl(&served, &["--use-ascii", &url]).well().text(),
        "a\nb\na\nb\n",
        "curl has ended the lines as this system does"
    );
    assert_eq!(curl(&served, &["--range", "2-5", &url]).well().text(), "b\na\n");
    curl(&served, &["--quote", "DELE a", &served.url("/")]).well();
    assert!(super::held(&served.home()).is_empty());
}

fn ftp_is_served_over_ipv6(kind: EngineKind) {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return skip(Need::Ipv6, "this machine has no IPv6");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, folder.path(), &["--ftp", "[::1]:0"]);
    plimsoll_tests::binary::Member::new(&server, "alice");
    let url = format!("ftp://{}/a", server.ftp_at());
    let file = folder.path().join("a");
    std::fs::write(&file, "over IPv6\n").unwrap();
    for mode in [&["--ftp-pasv"][..], &["--ftp-port", "-"]] {
        let user = format!("alice:{PASSWORD}");
        let run = |args: &[&str]| {
            tool::run(tool("curl").args(["-sS", "-g", "--user", &user]).args(mode).args(args)).well()
        };
        run(&["-T", &text(&file), &url]);
        assert_eq!(run(&[&url]).text(), "over IPv6\n");
    }
}

on_each_engine!(forks:
    files_go_up_and_down_in_every_way,
    an_aborted_transfer_is_resumed,
    an_old_file_and_an_upload_to_replace_it_are_not_mixed,
    commands_are_sent_beside,
    ftp_is_served_over_ipv6,
);
