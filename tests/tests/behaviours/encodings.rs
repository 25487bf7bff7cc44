//! Precompressed siblings: content negotiation, and the fields of the answer.

use std::time::Duration;

use plimsoll_tests::{Answer, Client, LOOKED_UP_EACH_TIME, Scenario, Scene, Tree, behaviours};

const WRITTEN: Duration = Duration::from_secs(784_111_777);
const WRITTEN_DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const LATER: Duration = Duration::from_secs(784_111_778);
const LATER_DATE: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
const EARLIER: Duration = Duration::from_secs(784_111_776);

fn scenario() -> Scenario {
    let tree = Tree::new()
        .file_of("page.html", "page as it is", WRITTEN)
        .file_of("page.html.br", "page in br", WRITTEN)
        .file_of("page.html.gz", "page in gzip", LATER)
        .file_of("zipped.css", "style as it is", WRITTEN)
        .file_of("zipped.css.gz", "style in gzip", WRITTEN)
        .file_of("stale.js", "script as it is", WRITTEN)
        .file_of("stale.js.br", "an old script in br", EARLIER)
        .file_of("stale.js.gz", "script in gzip", WRITTEN)
        .file_of("folders.txt", "text as it is", WRITTEN)
        .file("folders.txt.br/in.txt", "a folder of that name")
        .link("folders.txt.gz", "/etc/passwd")
        .file_of("pipes.txt", "text as it is", WRITTEN)
        .pipe("pipes.txt.br")
        .link("pipes.txt.gz", "pipes.txt.gz")
        .file("alone.txt.gz", "no original")
        .file_of("folder/index.html", "index as it is", WRITTEN)
        .file_of("folder/index.html.br", "index in br", WRITTEN)
        .file_of("plain.bin", "bytes", WRITTEN);
    Scenario { tree, hot: LOOKED_UP_EACH_TIME, ..Scenario::default() }
}

fn accept(value: &str) -> String {
    format!("Accept-Encoding: {value}\r\n")
}

/// Requests the page with an `Accept-Encoding`, asserts that the body matches the head, and returns its
/// encoding.
async fn encoding(client: &mut Client, accepted: &str) -> &'static str {
    let answer = client.get_with("/page.html", &accept(accepted)).await;
    let (name, text) = match answer.field("Content-Encoding") {
        None => ("identity", "page as it is"),
        Some("br") => ("br", "page in br"),
        Some("gzip") => ("gzip", "page in gzip"),
        Some(other) => panic!("{other} for {accepted}"),
    };
    assert_eq!((answer.status, &*answer.text()), (200, text), "{accepted}");
    name
}

async fn an_accepted_encoding_is_sent(scene: Scene) {
    let mut client = scene.connect().await;
    for (accepted, expected) in [
        ("gzip", "gzip"),
        ("br", "br"),
        ("GZip", "gzip"),
        ("x-gzip", "gzip"),
        ("gzip, deflate, br, zstd", "br"),
        ("br, gzip", "br"),
        ("*", "br"),
        ("deflate, zstd", "identity"),
        ("identity", "identity"),
        ("", "identity"),
        ("gzippy, brr", "identity"),
    ] {
        assert_eq!(encoding(&mut client, accepted).await, expected, "{accepted}");
    }
    assert!(client.get("/page.html").await.field("Content-Encoding").is_none());
}

async fn the_preferred_encoding_is_sent(scene: Scene) {
    let mut client = scene.connect().await;
    for (accepted, expected) in [
        ("gzip;q=1.0, br;q=0.9", "gzip"),
        ("br;q=0.2, gzip;q=0.3", "gzip"),
        ("gzip;q=0.5, br;q=0.5", "br"),
        ("gzip ; q=0.8 , *;q=0.1", "gzip"),
        ("gzip;q=0.001", "gzip"),
        ("identity, gzip;q=0.5", "identity"),
        ("identity;q=0.5, gzip;q=0.4, br;q=0.6", "br"),
        ("identity;q=0.5, gzip;q=0.4, br;q=0.3", "identity"),
        ("identity, br", "br"),
        ("*;q=0.5, identity", "identity"),
    ] {
        assert_eq!(encoding(&mut client, accepted).await, expected, "{accepted}");
    }
}

async fn a_refused_encoding_is_never_sent(scene: Scene) {
    let mut client = scene.connect().await;
    for (accepted, expected) in [
        ("br;q=0, gzip", "gzip"),
        ("gzip;q=0, br", "br"),
        ("br;q=0.000, gzip;q=0", "identity"),
        ("*;q=0", "identity"),
        ("*, br;q=0", "gzip"),
        ("*;q=0, gzip", "gzip"),
        // An invalid weight permits nothing.
        ("br;q=2, gzip;q=x", "identity"),
    ] {
        assert_eq!(encoding(&mut client, accepted).await, expected, "{accepted}");
    }
}

async fn every_answer_of_a_file_varies_by_encoding(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/page.html", "/plain.bin", "/folder/", "/page.html.gz"] {
        let tag = client.get(target).await.field("ETag").expect("a tag").to_owned();
        let not_modified = format!("If-None-Match: {tag}\r\n");
        for (fields, status) in [
            ("", 200),
            ("Accept-Encoding: gzip, br\r\n", 200),
            ("Accept-Encoding: identity\r\n", 200),
            ("Range: bytes=0-2\r\n", 206),
            (&not_modified, 304),
        ] {
            let answer = client.get_with(target, fields).await;
            assert_eq!(answer.status, status, "{target}, {fields}");
            assert_eq!(answer.field("Vary"), Some("Accept-Encoding"), "{target}, {fields}");
        }
    }
}

async fn an_encoded_answer_is_described_as_what_it_encodes(scene: Scene) {
    let mut client = scene.connect().await;
    let answer = client.get_with("/page.html", &accept("gzip")).await;
    assert_eq!(answer.field("Content-Type"), Some("text/html; charset=utf-8"));
    assert_eq!(answer.field("Content-Length"), Some("12"));
    assert_eq!(answer.field("X-Content-Type-Options"), Some("nosniff"));
    let head = client.head_with("/page.html", &accept("gzip")).await;
    for name in ["Content-Type", "Content-Length", "Content-Encoding", "ETag", "Vary", "Last-Modified"] {
        assert_eq!(head.field(name), answer.field(name), "{name}");
    }
    let style = client.get_with("/zipped.css", &accept("br, gzip")).await;
    assert_eq!((style.field("Content-Encoding"), &*style.text()), (Some("gzip"), "style in gzip"));
    assert_eq!(style.field("Content-Type"), Some("text/css; charset=utf-8"));
}

async fn each_representation_has_validators_of_its_own(scene: Scene) {
    let mut client = scene.connect().await;
    let mut tags: Vec<String> = Vec::new();
    for (accepted, date) in [("identity", WRITTEN_DATE), ("br", WRITTEN_DATE), ("gzip", LATER_DATE)] {
        let answer = client.get_with("/page.html", &accept(accepted)).await;
        assert_eq!(answer.field("Last-Modified"), Some(date), "{accepted}");
        tags.push(answer.field("ETag").expect("a tag").to_owned());
    }
    for (at, accepted) in ["identity", "br", "gzip"].into_iter().enumerate() {
        for (other, tag) in tags.iter().enumerate() {
            let fields = format!("If-None-Match: {tag}\r\n{}", accept(accepted));
            let expected = if other == at { 304 } else { 200 };
            assert_eq!(client.get_with("/page.html", &fields).await.status, expected, "{accepted}, {tag}");
        }
    }
}

async fn an_older_sibling_is_passed_over(scene: Scene) {
    let mut client = scene.connect().await;
    let plain = client.get_with("/stale.js", &accept("br")).await;
    assert_eq!((plain.field("Content-Encoding"), &*plain.text()), (None, "script as it is"));
    let zipped = client.get_with("/stale.js", &accept("br, gzip")).await;
    assert_eq!((zipped.field("Content-Encoding"), &*zipped.text()), (Some("gzip"), "script in gzip"));
    // The original is written anew: now both siblings are old.
    scene.write("stale.js", b"a new script");
    let new = client.get_with("/stale.js", &accept("br, gzip")).await;
    assert_eq!((new.field("Content-Encoding"), &*new.text()), (None, "a new script"));
}

async fn a_sibling_that_is_no_file_is_passed_over(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/folders.txt", "/pipes.txt"] {
        let answer = client.get_with(target, &accept("br, gzip")).await;
        assert_eq!((answer.status, &*answer.text()), (200, "text as it is"), "{target}");
        assert!(answer.field("Content-Encoding").is_none(), "{target}");
    }
}

async fn a_compressed_file_asked_for_by_its_name_is_sent_as_such(scene: Scene) {
    let as_such = |answer: &Answer, media: &str| {
        assert_eq!((answer.status, answer.field("Content-Encoding")), (200, None));
        assert_eq!(answer.field("Content-Type"), Some(media));
    };
    let mut client = scene.connect().await;
    for accepted in ["identity", "gzip, br", "gzip;q=0"] {
        let zipped = client.get_with("/page.html.gz", &accept(accepted)).await;
        as_such(&zipped, "application/gzip");
        assert_eq!(zipped.text(), "page in gzip");
        assert_eq!(client.get_with("/page.html.br", &accept(accepted)).await.text(), "page in br");
        as_such(&client.get_with("/alone.txt.gz", &accept(accepted)).await, "application/gzip");
        // A sibling without its original is not negotiated.
        client.get_with("/alone.txt", &accept(accepted)).await.problem(404);
    }
}

async fn an_index_page_has_siblings_too(scene: Scene) {
    let mut client = scene.connect().await;
    let answer = client.get_with("/folder/", &accept("gzip, br")).await;
    assert_eq!((answer.field("Content-Encoding"), &*answer.text()), (Some("br"), "index in br"));
    assert_eq!(answer.field("Content-Type"), Some("text/html; charset=utf-8"));
    assert_eq!(client.get_with("/folder/", &accept("gzip")).await.text(), "index as it is");
}

async fn a_sibling_that_comes_and_goes_is_noticed(scene: Scene) {
    let mut client = scene.connect().await;
    assert_eq!(client.get_with("/plain.bin", &accept("gzip")).await.text(), "bytes");
    scene.write("plain.bin.gz", b"bytes in gzip");
    assert_eq!(client.get_with("/plain.bin", &accept("gzip")).await.text(), "bytes in gzip");
    scene.remove("plain.bin.gz");
    assert_eq!(client.get_with("/plain.bin", &accept("gzip")).await.text(), "bytes");
}

behaviours!(scenario and tls;
    an_accepted_encoding_is_sent,
    the_preferred_encoding_is_sent,
    a_refused_encoding_is_never_sent,
    every_answer_of_a_file_varies_by_encoding,
    an_encoded_answer_is_described_as_what_it_encodes,
    each_representation_has_validators_of_its_own,
    an_older_sibling_is_passed_over,
    a_sibling_that_is_no_file_is_passed_over,
    a_compressed_file_asked_for_by_its_name_is_sent_as_such,
    an_index_page_has_siblings_too,
    a_sibling_that_comes_and_goes_is_noticed,
);
