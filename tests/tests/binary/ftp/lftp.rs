//! lftp: a folder mirrored up and down, several files at a time.

use std::process::Command;

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::{Kind, tool};
use plimsoll_tests::on_each_engine;

use super::{Served, assert_same, fill, held};

/// lftp that runs `script` as Alice.
pub(super) fn lftp(served: &Served, port: &str, script: &str) -> Command {
    let mut lftp = served.client("lftp");
    let settings = "set cmd:fail-exit yes; set net:timeout 10; set net:reconnect-interval-base 1; \
        set net:reconnect-interval-multiplier 1; set net:max-retries 30";
    lftp.arg("-c").arg(format!("{settings}; open -u alice,'{PASSWORD}' -p {port} 127.0.0.1; {script}"));
    lftp
}

fn a_folder_is_mirrored_up_and_down(kind: Kind) {
    let served = Served::new(kind);
    let (up, down) = (served.folder("up"), served.folder("down"));
    fill(&up);
    tool::run(&mut lftp(&served, &served.port(), "mirror -R --parallel=3 up mirrored")).well();
    assert_same(&up, &served.home().join("mirrored"));
    tool::run(&mut lftp(&served, &served.port(), "mirror --parallel=3 mirrored down")).well();
    assert_same(&up, &down);
    // What has changed and what has gone is seen by its time and its size.
    std::fs::write(up.join("large.bin"), "small now\n").unwrap();
    std::fs::remove_dir_all(up.join("inner")).unwrap();
    let again = "mirror -R --delete --verbose up mirrored";
    let done = tool::run(&mut lftp(&served, &served.port(), again)).well();
    assert_same(&up, &served.home().join("mirrored"));
    let sent = done.text().lines().filter(|line| line.starts_with("Transferring file")).count();
    assert_eq!(sent, 1, "what has not changed is not sent again: {}", done.text());
}

fn a_file_is_got_in_segments_and_by_patterns(kind: Kind) {
    let mut served = Served::new(kind);
    let bytes = plimsoll_tests::tree::noise(5, 4_000_000);
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

on_each_engine!(forks: a_folder_is_mirrored_up_and_down, a_file_is_got_in_segments_and_by_patterns);
