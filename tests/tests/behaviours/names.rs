//! Names: the bytes of a target that reach a file, and those that are refused.

use plimsoll_tests::{Scenario, Scene, Tree, behaviours};

/// Unusual file names, and a target for each.
const ODD: [(&[u8], &str); 18] = [
    (b"two words", "/two%20words"),
    (b"100%", "/100%25"),
    (b"a%20b", "/a%2520b"),
    (b"why?", "/why%3F"),
    (b"no. #1", "/no.%20%231"),
    (b"\"quoted\" 'too'", "/%22quoted%22%20%27too%27"),
    (b"<b>&amp;", "/%3Cb%3E%26amp%3B"),
    (b"a+b", "/a+b"),
    (b"a&b=c;d", "/a&b=c;d"),
    (b"x:y@z", "/x:y@z"),
    (b"back\\slash", "/back%5Cslash"),
    (b"~tilde [1]{2}|^`", "/~tilde%20[1]{2}|^`"),
    (b"dots...", "/dots..."),
    ("grüße".as_bytes(), "/gr%c3%bc%C3%9Fe"),
    ("日本".as_bytes(), "/日本"),
    (b"\xff\xfe", "/%ff%FE"),
    (b"caf\xe9", "/caf%e9"),
    (b"plain.bin", "/%70%6c%61in%2Ebin"),
];

const LONGEST: usize = 255;

fn scenario() -> Scenario {
    let tree = ODD.iter().fold(Tree::new(), |tree, (name, target)| tree.file(name, *target));
    let tree = tree
        .file("n".repeat(LONGEST), "longest\n")
        .file("d/".repeat(100) + "deep.txt", "deep\n")
        .file(".env", "secret\n")
        .file(".git/config", "secret\n")
        .file("folder/.hidden/in.txt", "secret\n")
        .file("folder/in.txt", "in the folder\n")
        .file("folder/..also hidden", "secret\n")
        .file(".well-known/security.txt", "contact\n")
        .file(".well-known/.hidden", "secret\n")
        .file(".well-known-not", "secret\n")
        .folder("aside")
        .link("to file", "folder/in.txt")
        .link("to folder", "folder")
        .link("folder/up.txt", "../d/d/../../folder/in.txt")
        .link("to link", "to folder/up.txt")
        .link("loop", "loop")
        .link("there", "and back")
        .link("and back", "there")
        .link("dangling", "missing.txt")
        .link("absolute", "/etc/passwd")
        .link("absolute folder", "/")
        .link("absolute in simulator", "/site/folder/in.txt")
        .link("aside/out.txt", "../folder/in.txt")
        .link("aside/out", "..")
        .pipe("pipe")
        .link("to pipe", "pipe");
    Scenario { tree, ..Scenario::default() }
}

async fn a_name_of_any_bytes_reaches_its_file(scene: Scene) {
    let mut client = scene.connect().await;
    for (name, target) in ODD {
        let answer = client.get(target).await;
        assert_eq!((answer.status, &*answer.text()), (200, target), "{}", name.escape_ascii());
    }
}

async fn a_name_is_decoded_once_and_nothing_more(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/a%20b", "/two+words", "/100%2525", "/Two%20words", "/two%20words%20", "/plain%00.bin"] {
        let status = client.get(target).await.status;
        assert!(matches!(status, 400 | 404), "{status} for {target}");
    }
}

async fn a_name_may_be_as_long_as_a_file_systems(scene: Scene) {
    let mut client = scene.connect().await;
    let name = "n".repeat(LONGEST);
    for fields in ["", "Accept-Encoding: br, gzip\r\n"] {
        assert_eq!(client.get_with(&format!("/{name}"), fields).await.text(), "longest\n");
    }
    for longer in [format!("/{name}n"), format!("/{name}n/in.txt"), format!("/{name}/{name}n")] {
        client.get(&longer).await.problem(404);
    }
    let deep = "d/".repeat(100);
    assert_eq!(client.get(&format!("/{deep}deep.txt")).await.text(), "deep\n");
    // Longer than any path on Linux (PATH_MAX).
    client.get(&format!("/{}", "d/".repeat(2_500) + "deep.txt")).await.problem(404);
}

async fn a_name_that_begins_with_a_dot_is_not_there(scene: Scene) {
    let mut client = scene.connect().await;
    for target in [
        "/.env",
        "/%2Eenv",
        "/.git",
        "/.git/",
        "/.git/config",
        "/folder/.hidden/in.txt",
        "/folder/..also%20hidden",
        "/to%20folder/.hidden/in.txt",
        "/.well-known/.hidden",
        "/.well-known-not",
    ] {
        client.get(target).await.problem(404);
        assert_eq!(client.get_with(target, "Accept: text/html\r\n").await.status, 404, "{target}");
    }
    let (hidden, missing) = (client.get("/.env").await, client.get("/.missing").await);
    assert_eq!(hidden.body, missing.body, "whoever asks learns nothing");
    assert_eq!(client.get("/.well-known/security.txt").await.text(), "contact\n");
}

async fn a_path_that_climbs_is_refused(scene: Scene) {
    let mut client = scene.connect().await;
    for target in [
        "/..",
        "/../folder/in.txt",
        "/folder/../plain.bin",
        "/folder/..",
        "/folder/%2e%2e/plain.bin",
        "/folder/.%2E/plain.bin",
        "/./plain.bin",
        "/folder/%2e/in.txt",
        "/aside/../folder/in.txt",
        "//../folder/in.txt",
        "/folder//../plain.bin",
        "/folder%2Fin.txt",
        "/..%2ffolder/in.txt",
    ] {
        client.get(target).await.problem(400);
    }
    for target in ["/folder/..%5Cplain.bin", "/folder/%5C..%5C..%5Cplain.bin"] {
        client.get(target).await.problem(404);
    }
}

async fn a_link_within_the_root_is_followed(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/to%20file", "/to%20folder/in.txt", "/folder/up.txt", "/to%20link"] {
        assert_eq!(client.get(target).await.text(), "in the folder\n", "{target}");
    }
    let answer = client.get("/to%20folder").await;
    assert_eq!((answer.status, answer.field("Location")), (301, Some("/to%20folder/")));
}

async fn a_link_that_leaves_the_root_or_leads_nowhere_is_not_there(scene: Scene) {
    let mut client = scene.connect().await;
    for target in [
        "/loop",
        "/there",
        "/dangling",
        "/absolute",
        "/absolute%20folder",
        "/absolute%20folder/etc/passwd",
        "/absolute%20in%20simulator",
        "/aside/out.txt",
        "/aside/out",
        "/aside/out/",
        "/aside/out/folder/in.txt",
        "/loop/in.txt",
    ] {
        client.get(target).await.problem(404);
    }
    assert_eq!(client.get("/folder/in.txt").await.text(), "in the folder\n");
}

async fn a_pipe_is_not_found_and_blocks_no_client(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/pipe", "/to%20pipe", "/pipe/"] {
        client.get(target).await.problem(404);
        client.head_with(target, "").await;
    }
    assert_eq!(client.get("/folder/in.txt").await.text(), "in the folder\n");
}

behaviours!(scenario and tls;
    a_name_of_any_bytes_reaches_its_file,
    a_name_is_decoded_once_and_nothing_more,
    a_name_may_be_as_long_as_a_file_systems,
    a_name_that_begins_with_a_dot_is_not_there,
    a_path_that_climbs_is_refused,
    a_link_within_the_root_is_followed,
    a_link_that_leaves_the_root_or_leads_nowhere_is_not_there,
    a_pipe_is_not_found_and_blocks_no_client,
);
