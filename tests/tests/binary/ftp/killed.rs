//! lftp with a server that is killed: it reconnects and resumes, and files confirmed before the kill exist.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use plimsoll_tests::binary::{EngineKind, Server, is_long, reached_within, tool, until};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;
use rustix::process::Signal;

use super::lftp::lftp;
use super::{Served, assert_same, held, home};

/// Kills the server, and restarts it on the same data and FTP port. The HTTP port may change, because
/// another program may have taken it meanwhile.
fn kill_and_start(served: &mut Served, kind: EngineKind) {
    let ftp = served.server.ftp_at().to_string();
    served.server.signal(Signal::KILL);
    served.server.ends_within(Duration::from_secs(10));
    let data = served.folder.path().join("data");
    served.server = Server::on_data(kind, &data, &["--ftp", &ftp]);
}

/// Returns the bytes of alice's pending uploads.
fn pending_bytes(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder.join("data/accounts/alice/pending")) else { return 0 };
    entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|stat| stat.len()).sum()
}

fn a_large_upload_goes_on_after_the_server_was_killed(kind: EngineKind) {
    const BYTES: usize = 24_000_000;
    let mut served = Served::new(kind);
    let bytes = noise(7, BYTES);
    std::fs::write(served.folder("up").join("large.bin"), &bytes).unwrap();
    let script = "set net:limit-rate 0:8000000; put -c up/large.bin -o large.bin";
    let mut lftp = lftp(&served, &served.port(), script);
    lftp.stdout(Stdio::null()).stderr(Stdio::null());
    let mut lftp = lftp.spawn().unwrap();
    for part in 1..=2 {
        let folder = served.folder.path().to_owned();
        until("a part of it has come", || pending_bytes(&folder) > part * BYTES as u64 / 4);
        kill_and_start(&mut served, kind);
        assert!(held(&served.home()).is_empty(), "nothing of it is seen");
    }
    let ended = reached_within(Duration::from_secs(60), || lftp.try_wait().unwrap().is_some());
    let status = lftp.wait_timeout_or_kill(ended);
    assert!(status.success(), "{status}");
    assert!(std::fs::read(served.home().join("large.bin")).unwrap() == bytes);
    assert!(served.alice.again(&served.server).get("/files/large.bin").body == bytes);
}

/// Waits for a child, so that no process is left over.
trait Ended {
    fn wait_timeout_or_kill(&mut self, ended: bool) -> std::process::ExitStatus;
}

impl Ended for std::process::Child {
    fn wait_timeout_or_kill(&mut self, ended: bool) -> std::process::ExitStatus {
        if !ended {
            let _ = self.kill();
        }
        self.wait().unwrap()
    }
}

/// Creates local files of several sizes.
fn many(folder: &Path) {
    for at in 0..120_usize {
        let len = if at % 20 == 0 { 2_500_000 } else { 500 * at };
        std::fs::write(folder.join(format!("file {at}")), noise(at as u64, len)).unwrap();
    }
}

/// Returns the names that lftp has logged as sent: it logs them after the server's final answer.
fn confirmed(log: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let name = |line: &str| {
        let (from, _) = line.split_once(" -> ")?;
        Some(from.rsplit_once("/up/")?.1.replace("%20", " "))
    };
    text.lines().filter_map(name).collect()
}

fn confirmed_files_are_there_however_often_the_server_is_killed(kind: EngineKind) {
    let rounds = if is_long() { 20 } else { 4 };
    let mut served = Served::new(kind);
    let (up, log) = (served.folder("up"), served.folder.path().join("transfers"));
    many(&up);
    let mut seen = 0;
    for round in 0..rounds {
        let log_to = format!("set log:enabled/xfer yes; set log:file/xfer '{}'", log.display());
        let script = format!("{log_to}; set net:limit-rate 0:20000000; mirror -R --parallel=2 up /");
        let mut mirroring = lftp(&served, &served.port(), &script);
        let mut mirroring = mirroring.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(250 + 170 * round));
        kill_and_start(&mut served, kind);
        let _ = mirroring.kill();
        mirroring.wait().unwrap();
        let (there, local) = (held(&home(served.folder.path())), held(&up));
        for (name, bytes) in &there {
            assert!(local[name] == *bytes, "{} is not whole after round {round}", name.display());
        }
        for name in confirmed(&log) {
            assert!(there.contains_key(Path::new(&name)), "{name} was confirmed before round {round} ended");
            seen += 1;
        }
    }
    assert!(seen > 0, "something was confirmed before a kill: {:?}", std::fs::read_to_string(&log));
    tool::run(&mut lftp(&served, &served.port(), "mirror -R --parallel=2 up /")).well();
    assert_same(&up, &served.home());
}

on_each_engine!(alone:
    a_large_upload_goes_on_after_the_server_was_killed,
    confirmed_files_are_there_however_often_the_server_is_killed,
);
