//! ncftp and the ftp of GNU inetutils.

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::{EngineKind, tool};
use plimsoll_tests::on_each_engine;

use super::{Served, assert_same, fill};

fn ncftp_puts_and_gets_a_folder(kind: EngineKind) {
    let served = Served::new(kind);
    let up = served.folder("up");
    fill(&up);
    let down = served.folder("down");
    let port = served.port();
    for mode in ["-F", "-E"] {
        let login = [mode, "-u", "alice", "-p", PASSWORD, "-P", &port, "-V"];
        tool::run(served.client("ncftpput").args(login).args(["-R", "127.0.0.1", "/", "up"])).well();
        assert_same(&up, &served.home().join("up"));
        tool::run(served.client("ncftpget").args(login).args(["-R", "-T", "127.0.0.1", "down", "/up"]))
            .well();
        assert_same(&up, &down.join("up"));
        let mut list = served.client("ncftpls");
        list.args(["-u", "alice", "-p", PASSWORD, "-P", &port, &served.url("/up/")]);
        let listed = tool::run(&mut list).well();
        assert!(listed.text().contains("large.bin"), "{}", listed.text());
    }
}

fn the_ftp_of_inetutils_goes_through_it(kind: EngineKind) {
    let served = Served::new(kind);
    let local = served.folder("local");
    let bytes = plimsoll_tests::tree::noise(3, 500_000);
    std::fs::write(local.join("a.bin"), &bytes).unwrap();
    let commands = [
        &*format!("open 127.0.0.1 {}", served.port()),
        &format!("user alice \"{PASSWORD}\""),
        "lcd local",
        "binary",
        "mkdir folder",
        "cd folder",
        "put a.bin",
        "append a.bin",
        "rename a.bin b.bin",
        "get b.bin",
        "size b.bin",
        "ls",
        "modtime b.bin",
        "passive",
        "get b.bin c.bin",
        "delete b.bin",
        "cd ..",
        "rmdir folder",
        "system",
        "status",
        "rstatus",
        "bye",
        "",
    ];
    let script = commands.join("\n");
    let mut ftp = served.client("inetutils-ftp");
    ftp.args(["-n", "-v", "-i"]);
    let file = served.folder.path().join("script");
    std::fs::write(&file, script).unwrap();
    ftp.stdin(std::fs::File::open(&file).unwrap());
    let done = tool::run(&mut ftp);
    let text = done.text();
    for name in ["b.bin", "c.bin"] {
        let came = std::fs::read(local.join(name)).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
        assert!(came == [&bytes[..], &bytes].concat(), "{text}");
    }
    assert!(text.contains("213 1000000"), "{text}");
    let refused: Vec<_> =
        text.lines().filter(|line| line.starts_with(['4', '5']) && line.find(' ') == Some(3)).collect();
    assert!(refused.is_empty(), "{refused:?}\n{text}");
    assert!(super::held(&served.home()).is_empty());
}

on_each_engine!(ncftp_puts_and_gets_a_folder, the_ftp_of_inetutils_goes_through_it);
