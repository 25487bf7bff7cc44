//! SIZE, MDTM, MFMT, HASH, SITE, FEAT, OPTS and HELP.

use plimsoll_tests::tree::noise;
use plimsoll_tests::{FtpClient, Scene, behaviours};

use super::{alice, with_accounts};

async fn size_is_a_files_in_bytes(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("MKD folder").await.expect(257);
    for len in [0, 1, 70_000] {
        client.stor("a b", noise(1, len)).await;
        assert_eq!(client.command("SIZE a b").await.expect(213).text(), len.to_string());
    }
    for name in ["none", "folder", "/", "/shared"] {
        client.command(format!("SIZE {name}")).await.expect(550);
    }
}

/// Python's `ftplib` sends SIZE without TYPE after `nlst()`, and tnftp before its first transfer.
async fn size_is_that_of_an_image_whatever_the_type_is(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "one\ntwo\n").await;
    let mut client = FtpClient::connect(&scene).await;
    client.log_in("alice").await;
    assert_eq!(client.command("SIZE a").await.expect(213).text(), "8", "no type was said");
    for line in ["TYPE A", "TYPE I"] {
        client.command(line).await.expect(200);
        assert_eq!(client.command("SIZE a").await.expect(213).text(), "8", "{line}");
    }
    assert_eq!(client.retr("a").await.len(), 8);
}

async fn the_time_of_a_file_is_reported_and_set(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    client.stor("a b", "x").await;
    let now = client.command("MDTM a b").await.expect(213).text();
    assert_eq!(now.split('.').next().unwrap().len(), 14, "{now}");
    let reply = client.command("MFMT 20010203040506 a b").await.expect(213).text();
    assert_eq!(reply, "Modify=20010203040506; a b");
    assert_eq!(client.command("MDTM a b").await.expect(213).text(), "20010203040506");
    let fields = person.get("/files/a%20b").await;
    assert_eq!(fields.field("Last-Modified"), Some("Sat, 03 Feb 2001 04:05:06 GMT"));
    // The forms from before MFMT, and those of SITE.
    client.command("MDTM 20020203040506 a b").await.expect(213);
    assert_eq!(client.command("MDTM a b").await.expect(213).text(), "20020203040506");
    client.command("SITE UTIME 20030203040506 a b").await.expect(200);
    assert_eq!(client.command("MDTM a b").await.expect(213).text(), "20030203040506");
    client.command("SITE UTIME a b 20200101000000 20040203040506 20200101000000 UTC").await.expect(200);
    assert_eq!(client.command("MDTM a b").await.expect(213).text(), "20040203040506");
}

async fn a_malformed_time_is_not_set(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "x").await;
    client.command("MFMT 20010203040506 a").await.expect(213);
    for line in
        ["MFMT", "MFMT a", "MFMT 2001 a", "MFMT 20011303040506 a", "MFMT 20010203040506", "SITE UTIME a"]
    {
        client.command(line).await.expect(501);
    }
    for line in ["MFMT 20020203040506 none", "MDTM none", "MDTM 20020203040506 none"] {
        client.command(line).await.expect(550);
    }
    assert_eq!(client.command("MDTM a").await.expect(213).text(), "20010203040506");
}

/// Clients that copy old files take a refusal of their times for a failed upload.
async fn the_reply_has_the_time_that_was_stored_for_one_that_cannot_be(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "x").await;
    for line in ["MFMT 19650102030405 a", "MFMT 16010101000000 a"] {
        let reply = client.command(line).await.expect(213).text();
        assert!(reply.starts_with("Modify=19700101000000;"), "{line}: {reply}");
    }
    client.command("SITE UTIME 19650102030405 a").await.expect(200);
    client.command("MFMT 99991231235959 a").await.expect(213);
    let set = client.command("MFMT 99991231235959 a").await.expect(213).text();
    let stored = client.command("MDTM a").await.expect(213).text();
    assert!(set.starts_with(&format!("Modify={stored};")), "{set}, but {stored}");
    client.command("MFMT 19650230030405 a").await.expect(501);
}

async fn a_digest_is_made_by_the_algorithm_that_was_chosen(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a b", "abc").await;
    const SHA_256: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let reply = client.command("HASH a b").await.expect(213).text();
    assert!(reply.starts_with("SHA-256 0-") && reply.ends_with(&format!(" {SHA_256} a b")), "{reply}");
    client.command("OPTS HASH MD5").await.expect(200);
    let reply = client.command("HASH a b").await.expect(213).text();
    assert!(reply.contains("900150983cd24fb0d6963f7d28e17f72"), "{reply}");
    let feat = client.command("FEAT").await.expect(211).text();
    assert!(feat.contains(" HASH SHA-256;SHA-1;MD5*;"), "{feat}");
    client.command("OPTS HASH CRC").await.expect(501);
    for name in ["none", "/"] {
        client.command(format!("HASH {name}")).await.expect(550);
    }
}

async fn a_digest_of_a_large_file_is_of_all_of_it(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("zeros", vec![0; 1_000_000]).await;
    const OF_ZEROS: &str = "d29751f2649b32ff572b5e0a9f541ea660a50f94ff0beedfb0b692b924cc8025";
    let reply = client.command("HASH zeros").await.expect(213).text();
    assert!(reply.contains(OF_ZEROS), "{reply}");
}

async fn feat_lists_what_there_is(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let feat = client.command("FEAT").await.expect(211);
    let features = &feat.lines[1..feat.lines.len() - 1];
    assert!(features.iter().all(|line| line.starts_with(' ') && !line.starts_with("  ")), "{features:?}");
    for wanted in [
        "EPRT",
        "EPSV",
        "MDTM",
        "MFMT",
        "REST STREAM",
        "SIZE",
        "TVFS",
        "UTF8",
        "HASH SHA-256*;",
        "MLST type*;",
    ] {
        assert!(features.iter().any(|line| line[1..].starts_with(wanted)), "{wanted} in {features:?}");
    }
    assert!(!feat.text().contains("TLS"), "what is not there is not promised");
}

async fn settings_are_taken_or_refused(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    for (line, code) in [
        ("OPTS UTF8 ON", 200),
        ("opts utf8 on", 200),
        ("OPTS UTF8 OFF", 504),
        ("OPTS", 501),
        ("OPTS XYZ", 501),
        ("SITE", 504),
        ("SITE CHMOD 644 a", 200),
        ("SITE HELP", 214),
        ("HELP", 214),
        ("SYST", 215),
        ("ALLO 5", 200),
        ("ALLO x", 501),
        ("OPTS STOR SIZE 5", 200),
        ("OPTS STOR MD5 5", 501),
        ("ACCT x", 202),
        ("SMNT x", 502),
        ("AUTH TLS", 502),
        ("PBSZ 0", 502),
        ("PROT P", 502),
        ("NOOP", 200),
        ("noop", 200),
        ("XYZZY", 500),
    ] {
        let answer = client.command(line).await;
        assert_eq!(answer.code, code, "{line}: {}", answer.text());
    }
}

behaviours!(with_accounts and remote;
    size_is_a_files_in_bytes,
    size_is_that_of_an_image_whatever_the_type_is,
    the_time_of_a_file_is_reported_and_set,
    a_malformed_time_is_not_set,
    the_reply_has_the_time_that_was_stored_for_one_that_cannot_be,
    a_digest_is_made_by_the_algorithm_that_was_chosen,
    a_digest_of_a_large_file_is_of_all_of_it,
    feat_lists_what_there_is,
    settings_are_taken_or_refused,
);
