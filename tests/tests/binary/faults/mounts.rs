//! File systems that the operator mounted in a home, or on the folder of its files: uploads and copies work
//! there, over HTTP and FTP.
//!
//! Only root may mount; without that permission, the test reports a skip.

use std::path::Path;

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::visitor::base64;
use plimsoll_tests::binary::{EngineKind, Member, Server, tool};
use plimsoll_tests::on_each_engine;
use rustix::mount::{UnmountFlags, mount_bind, unmount};

use super::full_disk::Small;
use super::left::until_nothing_is_pending;

fn stor(server: &Server, folder: &Path, path: &str) -> String {
    let url = format!("ftp://{}/{path}", server.ftp_at());
    let mut curl = tool("curl");
    curl.args(["--silent", "--verbose", "--user", &format!("alice:{PASSWORD}"), "--url", &url, "-T", "new"]);
    tool::run(curl.current_dir(folder)).stderr
}

/// Stores, replaces, copies, moves and removes files below the folder `m` of alice's home.
fn use_all_of(server: &Server, alice: &mut Member, folder: &Path, m: &str) {
    assert_eq!(alice.put(&format!("/files/{m}a"), b"a").status, 201);
    assert_eq!(alice.put(&format!("/files/{m}a"), &vec![7; 300_000]).status, 204);
    alice.mkcol(&format!("/files/{m}d"));
    assert!(stor(server, folder, &format!("{m}d/b")).contains("< 226 "), "STOR to {m}d/b");
    for (method, from, to) in
        [("COPY", "a", "d/copy"), ("COPY", "d", "e"), ("MOVE", "a", "e/a"), ("MOVE", "e", "d")]
    {
        let destination = format!("Destination: /files/{m}{to}\r\n");
        let done = alice.ask(method, &format!("/files/{m}{from}"), &destination, b"");
        assert!(matches!(done.status, 201 | 204), "{method} {from} {to}: {}", done.text());
    }
    assert_eq!(alice.names(&format!("/files/{m}d/")), ["a", "b", "copy"]);
    let tus = format!(
        "Tus-Resumable: 1.0.0\r\nUpload-Length: 3\r\nUpload-Metadata: path {}\r\n\
         Content-Type: application/offset+octet-stream\r\n",
        base64(format!("{m}tus").as_bytes())
    );
    assert_eq!(alice.ask("POST", "/uploads", &tus, b"tus").status, 201);
    assert_eq!(alice.get(&format!("/files/{m}tus")).body, b"tus");
    assert_eq!(alice.ask("DELETE", &format!("/files/{m}d"), "", b"").status, 204);
    assert_eq!(alice.ask("DELETE", &format!("/files/{m}tus"), "", b"").status, 204);
}

fn a_mount_in_a_home_or_on_its_files_is_used_like_any_folder(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::write(folder.path().join("new"), "new").unwrap();
    let files = data.join("accounts/alice/files");
    // The home is alice's before the operator mounts anything.
    let server = Server::on_data(kind, &data, &[]);
    let mut alice = Member::new(&server, "alice");
    assert_eq!(alice.put("/files/below", b"below").status, 201);
    drop(server);
    let Some(_files) = Small::at(&files) else { return };
    std::fs::create_dir_all(files.join("m")).unwrap();
    let Some(_inner) = Small::at(&files.join("m")) else { return };
    // One file system in two places: a rename does not lead from one to the other.
    for name in ["real", "bound"] {
        std::fs::create_dir(files.join(name)).unwrap();
    }
    mount_bind(files.join("real"), files.join("bound")).unwrap();
    let server = Server::on_data(kind, &data, &["--ftp", "127.0.0.1:0"]);
    for m in ["", "m/", "bound/"] {
        use_all_of(&server, &mut alice.again(&server), folder.path(), m);
    }
    let mut alice = alice.again(&server);
    assert_eq!(alice.put("/files/a", b"a").status, 201);
    for to in ["m/a", "bound/a", "m"] {
        let moved = alice.ask("MOVE", "/files/a", &format!("Destination: /files/{to}\r\n"), b"");
        assert_eq!(moved.status, 409, "{to}: {}", moved.text());
    }
    for mount in ["m", "bound"] {
        let removed = alice.ask("DELETE", &format!("/files/{mount}"), "", b"");
        assert_eq!(removed.status, 409, "{mount}: {}", removed.text());
    }
    assert_eq!(alice.names("/files/"), ["bound/", "m/", "real/", "a"]);
    assert!(alice.names("/files/m/").is_empty(), "{:?}", alice.names("/files/m/"));
    until_nothing_is_pending(&data, "alice");
    unmount(files.join("bound"), UnmountFlags::DETACH).unwrap();
}

on_each_engine!(alone: a_mount_in_a_home_or_on_its_files_is_used_like_any_folder);
