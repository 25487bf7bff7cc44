//! lftp: a folder mirrored up and down, several files at a time.

use std::process::Command;

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::{EngineKind, tool};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;

use super::{Served, assert_same, fill, held, pending};

/// Has lftp end at the first error, and wait for at most some seconds.
pub(super) const SETTINGS: &str = "set cmd:fail-exit yes; set net:timeout 10; \
    set net:reconnect-interval-base 1; set net:reconnect-interval-multiplier 1; set net:max-retries 30";

/// Returns an lftp command that runs `script` as alice.
pub(super) fn lftp(served: &Served, port: &str, script: &str) -> Command {
    let mut lftp = served.client("lftp");
    lftp.arg("-c").arg(format!("{SETTINGS}; open -u alice,'{PASSWORD}' -p {port} 127.0.0.1; {script}"));
    lftp
}

fn a_folder_is_mirrored_up_and_down(kind: EngineKind) {
    let served = Served::new(kind);
    let (up, down) = (served.folder("up"), served.folder("down"));
    fill(&up);
    tool::run(&mut lftp(&served, &served.port(), "mirror -R --parallel=3 up mirrored")).well();
    assert_same(&up, &served.home().join("mirrored"));
    tool::run(&mut lftp(&served, &served.port(), "mirror --parallel=3 mirrored down")).well();
    assert_same(&up, &down);
    // lftp detects changed files by time and size.
    std::fs::write(up.join("large.bin"), "small now\n").unwrap();
    std::fs::remove_dir_all(up.join("inner")).unwrap();
    let again = "mirror -R --delete --verbose up mirrored";
    let done = tool::run(&mut lftp(&served, &served.port(), again)).well();
    assert_same(&up, &served.home().join("mirrored"));
    let sent = done.text().lines().filter(|line| line.starts_with("Transferring file")).count();
    assert_eq!(sent, 1, "what has not changed is not sent again: {}", done.text());
}

fn a_file_is_got_in_segments_and_by_patterns(kind: EngineKind) {
    let mut served = Served::new(kind);
    let bytes = noise(5, 4_000_000);
    served.alice.put("/files/large.bin", &bytes);
    for at in 0..5 {
        served.alice.put(&format!("/files/n{at}.txt"), b"n\n");
    }
    let got = served.folder("got");
    let script = "lcd got; pget -n 4 large.bin; mget *.txt; cls -1 *.bin";
    let done = tool::run(&mut lftp(&served, &served.port(), script)).well();
    assert_eq!(done.text(), "large.bin\n");
    assert_eq!(held(&got).len(), 6);
    assert!(std::fs::read(got.join("large.bin")).unwrap() == bytes);
}

/// lftp does not read FEAT for ALLO: it announces a size if its own setting says so.
fn lftp_announces_a_size_if_it_is_configured_to(kind: EngineKind) {
    let served = Served::new(kind);
    std::fs::write(served.folder("up").join("a"), "hello").unwrap();
    for (setting, is_announced) in [("ftp:use-allo yes", true), ("ftp:use-allo no", false)] {
        let script = format!("set {setting}; debug 5; put up/a -o a");
        let done = tool::run(&mut lftp(&served, &served.port(), &script)).well();
        assert_eq!(std::fs::read(served.home().join("a")).unwrap(), b"hello");
        let sent = done.stderr.lines().position(|line| line.ends_with("> ALLO 5"));
        assert_eq!(sent.is_some(), is_announced, "{}", done.stderr);
        let Some(sent) = sent else { continue };
        let replies: Vec<&str> =
            done.stderr.lines().skip(sent).filter(|line| line.contains("<---")).collect();
        assert!(replies[0].contains("<--- 200"), "{}", done.stderr);
    }
}

/// An upload to replace an old file was interrupted. Whether a client then resumes or starts over, the file
/// is the old one or the new one.
fn an_old_file_and_an_upload_to_replace_it_are_not_mixed(kind: EngineKind) {
    let mut served = Served::new(kind);
    let (old, new) = (noise(3, 3_000_000), noise(4, 12_000_000));
    std::fs::write(served.folder("up").join("new"), &new).unwrap();
    let port = served.port();
    let put = |served: &Served, script: &str| {
        let mut lftp = lftp(served, &port, &format!("set net:max-retries 2; {script}"));
        tool::run(&mut lftp)
    };
    let resume = |served: &Served| put(served, "put -c up/new -o big.iso");
    let ncftp = |served: &Served| {
        let login = ["-u", "alice", "-p", PASSWORD, "-P", &port, "-V", "-z"];
        let names = ["-C", "127.0.0.1", "up/new", "big.iso"];
        tool::run(served.client("ncftpput").args(login).args(names))
    };
    // Interrupted before the old file's size, and behind it.
    for part in [1_000_000, 6_000_000] {
        for client in [&resume as &dyn Fn(&Served) -> _, &ncftp] {
            served.alice.put("/files/big.iso", &old);
            interrupt(&served, &new[..part]);
            client(&served);
            let there = std::fs::read(served.home().join("big.iso")).unwrap();
            assert!(there == old || there == new, "neither, after {part} bytes");
            put(&served, "put up/new -o big.iso").well();
            assert!(std::fs::read(served.home().join("big.iso")).unwrap() == new);
            assert!(held(&pending(served.folder.path())).is_empty());
        }
    }
}

/// Uploads a part of `big.iso`, and ends the control connection before the data connection's end.
fn interrupt(served: &Served, part: &[u8]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/binary/ftp/interrupt.py");
    let (folder, at) = (served.folder("part"), "part/bytes");
    std::fs::write(folder.join("bytes"), part).unwrap();
    let mut python = served.client("python3");
    tool::run(python.args([script, "127.0.0.1", &served.port(), "alice", PASSWORD, at, "big.iso"])).well();
}

on_each_engine!(forks:
    a_folder_is_mirrored_up_and_down,
    lftp_announces_a_size_if_it_is_configured_to,
    a_file_is_got_in_segments_and_by_patterns,
    an_old_file_and_an_upload_to_replace_it_are_not_mixed,
);
