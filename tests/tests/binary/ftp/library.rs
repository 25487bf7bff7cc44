//! This project's FTP client with a third-party server, pyftpdlib.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Stdio};

use plimsoll_client::SingleSegment;
use plimsoll_client::ftp::{Error, Session, Times};
use plimsoll_engine::block_on;
use plimsoll_io::{Address, Io, Segment};
use plimsoll_tests::binary::{EngineKind, tool};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;

use crate::clients;

/// A running server, which is killed on drop.
struct Stranger {
    child: Child,
    at: SocketAddr,
}

impl Stranger {
    /// Serves a folder to alice.
    fn serve(folder: &Path) -> Stranger {
        let mut command = clients::from_python("python");
        command.args(["-m", "pyftpdlib", "-i", "127.0.0.1", "-p", "0", "-w", "-u", "alice", "-P", "secret"]);
        command.arg("-d").arg(folder).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().expect("python");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
        let at = lines.find_map(|line| address(&line)).expect("it says where it is");
        // Its output is drained, so that it never blocks on a full pipe.
        std::thread::spawn(move || lines.count());
        Stranger { child, at }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        tool::kill(&mut self.child);
        let _ = self.child.wait();
    }
}

/// `>>> starting FTP server on 127.0.0.1:45683, pid=23296 <<<`
fn address(line: &str) -> Option<SocketAddr> {
    line.split_once("FTP server on ")?.1.split(',').next()?.parse().ok()
}

async fn fetch(session: &mut Session, path: &str, offset: u64) -> Result<Vec<u8>, Error> {
    let mut download = session.retrieve(path.as_bytes(), offset).await?;
    let mut all = Vec::new();
    while let Some(lease) = download.recv().await? {
        all.extend_from_slice(&lease);
    }
    Ok(all)
}

async fn go_through(io: Io, at: SocketAddr) {
    let mut session = Session::connect(&io, &Address::Ip(at), Times::default()).await.unwrap();
    session.log_in("alice", "secret").await.unwrap();
    for len in [0, 1, 70_000, 5_000_000] {
        let bytes = noise(len as u64, len);
        let mut source = SingleSegment::new(Segment::Owned(bytes.clone()));
        assert_eq!(session.store("grüße 1".as_bytes(), &mut source).await.unwrap(), len as u64);
        assert_eq!(session.size("/grüße 1".as_bytes()).await.unwrap(), len as u64);
        assert!(fetch(&mut session, "grüße 1", 0).await.unwrap() == bytes);
    }
    assert!(
        fetch(&mut session, "grüße 1", 4_999_000).await.unwrap() == noise(5_000_000, 5_000_000)[4_999_000..]
    );
    assert!(session.list(b"").await.unwrap().discard().await.unwrap() > 20);
    for _ in 0..2 {
        let error = fetch(&mut session, "none", 0).await.unwrap_err();
        assert!(matches!(error, Error::Refused { code: 550, .. }), "{error}");
    }
    session.delete("grüße 1".as_bytes()).await.unwrap();
    let error = session.size("grüße 1".as_bytes()).await.unwrap_err();
    assert!(matches!(error, Error::Refused { code: 550, .. }), "{error}");
    session.quit().await.unwrap();
}

fn our_client_goes_through_a_server_of_others(kind: EngineKind) {
    if !clients::are_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let stranger = Stranger::serve(folder.path());
    let at = stranger.at;
    block_on(kind, move |io| go_through(io, at)).expect("it goes through (its message is above)");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

on_each_engine!(our_client_goes_through_a_server_of_others);
