//! Names outside a home or invalid on any file system, sent byte for byte over a raw socket.

use plimsoll_tests::binary::{EngineKind, Member, Server};
use plimsoll_tests::on_each_engine;

use super::left::{folder, names};

/// Paths that lead out of a home, or to nothing. Each would reach a file if it were used literally, or
/// decoded once too often.
const OUTSIDE: [&str; 11] = [
    "/files/../secret",
    "/files/%2e%2e/secret",
    "/files/%2E%2e/%2e%2E/directory.sqlite",
    "/files/docs/../../pending/x",
    "/files/docs/%2e%2e/%2e%2e/%2e%2e/bob/files/secret",
    "/files/..%2f..%2fbob%2ffiles%2fsecret",
    "/files/%2e%2e%2fpending",
    "/files/%2fetc%2fpasswd",
    "/files/./docs",
    "/shared/../files/bob",
    "/shared/bob/../alice/docs",
];

fn two(server: &Server) -> (Member, Member) {
    let (mut alice, mut bob) = (Member::new(server, "alice"), Member::new(server, "bob"));
    alice.mkcol("/files/docs");
    assert_eq!(bob.put("/files/secret", b"bob's alone").status, 201);
    (alice, bob)
}

fn no_path_leads_out_of_a_home(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, data.path(), &[]);
    let (mut alice, mut bob) = two(&server);
    let before = names(data.path());
    for path in OUTSIDE {
        for method in ["GET", "PUT", "DELETE", "MKCOL"] {
            let mut alice = alice.again(&server);
            let reply = alice.ask(method, path, "", b"");
            assert_eq!(reply.status, 400, "{method} {path}: {}", reply.text());
            assert!(!reply.text().contains("bob's alone"), "{method} {path}");
        }
        let fields = format!("Destination: {path}\r\n");
        let moved = alice.again(&server).ask("MOVE", "/files/docs", &fields, b"");
        assert_eq!(moved.status, 400, "{path}: {}", moved.text());
    }
    assert_eq!(alice.names("/files/"), ["docs/"]);
    assert_eq!(bob.get("/files/secret").body, b"bob's alone");
    assert_eq!(names(&folder(data.path(), "alice", "")), ["account", "files", "pending"]);
    assert_eq!(names(data.path()), before);
}

fn an_absolute_path_behind_a_slash_is_a_path_in_the_home(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, data.path(), &[]);
    let (mut alice, _) = two(&server);
    let path = "/files//etc/passwd";
    for (method, status) in [("GET", 404), ("PUT", 409), ("DELETE", 404), ("MKCOL", 409)] {
        let reply = alice.again(&server).ask(method, path, "", b"");
        assert_eq!(reply.status, status, "{method}: {}", reply.text());
    }
    let moved = alice.again(&server).ask("MOVE", "/files/docs", &format!("Destination: {path}\r\n"), b"");
    assert_eq!(moved.status, 409, "{}", moved.text());
    assert_eq!(alice.names("/files/"), ["docs/"]);
}

fn a_slash_in_a_name_is_no_separator_and_nul_is_no_end(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, data.path(), &[]);
    let (mut alice, _) = two(&server);
    assert_eq!(alice.put("/files/docs/file", b"in it").status, 201);
    let refused = [
        "/files/docs%2ffile",
        "/files/docs%2Ffile",
        "/files/docs/file%00",
        "/files/docs/file%00.txt",
        "/files/%00",
        "/files/%",
        "/files/%zz",
    ];
    for path in refused {
        for method in ["GET", "PUT", "DELETE"] {
            let reply = alice.again(&server).ask(method, path, "", b"");
            assert_eq!(reply.status, 400, "{method} {path}: {}", reply.text());
        }
    }
    for path in ["/files/a%0ab", "/files/a%7fb"] {
        for (method, status) in [("GET", 404), ("PUT", 400), ("DELETE", 404)] {
            let reply = alice.again(&server).ask(method, path, "", b"");
            assert_eq!(reply.status, status, "{method} {path}: {}", reply.text());
        }
    }
    // An invalid URL ends the connection after the answer, or before.
    for raw in [&b"GET /files/a\0b HTTP/1.1\r\nHost: t\r\n\r\n"[..], b"GET /files/\xff\x01 HTTP/1.1\r\n\r\n"]
    {
        use std::io::Write as _;
        let mut visitor = server.visit();
        visitor.stream.write_all(raw).unwrap();
        assert_eq!(visitor.reply().expect("an answer").status, 400);
    }
    assert_eq!(alice.names("/files/docs/"), ["file"]);
    assert_eq!(alice.names("/files/"), ["docs/"]);
}

fn names_are_bytes_up_to_255_of_them(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, data.path(), &[]);
    let mut alice = Member::new(&server, "alice");
    let longest = format!("/files/{}", "n".repeat(255));
    for (path, bytes) in [(&*longest, "long"), ("/files/caf%e9", "latin"), ("/files/%ff%fe", "no text")] {
        assert_eq!(alice.put(path, bytes.as_bytes()).status, 201, "{path}");
        assert_eq!(alice.get(path).text(), bytes);
    }
    // 255 bytes that are not UTF-8, three characters of the URL each.
    let wide = format!("/files/{}", "%fe".repeat(255));
    assert_eq!(alice.put(&wide, b"wide").status, 201);
    for long in [format!("{longest}n"), format!("{wide}n"), format!("/files/{}", "d/".repeat(200))] {
        for method in ["GET", "PUT", "MKCOL"] {
            let reply = alice.again(&server).ask(method, &long, "", b"");
            assert_eq!(reply.status, 400, "{method}: {}", reply.text());
            assert!(reply.text().contains("detail"), "{}", reply.text());
        }
    }
    let listed = alice.ask("GET", "/files/", "Accept: application/json\r\n", b"").json();
    for entry in listed["entries"].as_array().expect("entries") {
        let target = format!("/files/{}", entry["href"].as_str().expect("a link"));
        assert_eq!(alice.get(&target).status, 200, "{target}");
        assert_eq!(alice.ask("DELETE", &target, "", b"").status, 204, "{target}");
    }
    assert!(names(&folder(data.path(), "alice", "files")).is_empty());
}

on_each_engine!(
    no_path_leads_out_of_a_home,
    an_absolute_path_behind_a_slash_is_a_path_in_the_home,
    a_slash_in_a_name_is_no_separator_and_nul_is_no_end,
    names_are_bytes_up_to_255_of_them,
);
