//! `/shared`: the paths that other accounts share, with the permission of each share.

use plimsoll_tests::{FtpClient, Person, Scene, behaviours};

use super::{alice, someone, with_accounts};

/// Creates alice with a folder to read and one to write, both shared with bob.
async fn shared(scene: &Scene) -> (Person, FtpClient) {
    let (mut person, mut client) = alice(scene).await;
    for (folder, permission) in [("read", "read"), ("write", "write")] {
        client.command(format!("MKD {folder}")).await.expect(257);
        client.stor(&format!("{folder}/a"), "of alice\n").await;
        if folder == "read" {
            Person::new(scene, "bob").await;
        }
        person.share(folder, "bob", permission).await;
    }
    client.stor("private", "secret\n").await;
    (person, FtpClient::of(scene, "bob").await)
}

async fn the_owners_who_share_something_are_listed(scene: Scene) {
    let (_alice, mut bob) = shared(&scene).await;
    assert_eq!(bob.fetch_lines("NLST").await, ["shared"]);
    assert_eq!(bob.fetch_lines("NLST /shared").await, ["/shared/alice"]);
    bob.command("CWD /shared").await.expect(250);
    assert_eq!(bob.fetch_lines("NLST").await, ["alice"]);
    bob.command("CWD alice").await.expect(250);
    assert_eq!(bob.command("PWD").await.expect(257).quoted(), "/shared/alice");
    assert_eq!(bob.fetch_lines("NLST").await, ["read", "write"]);
    assert_eq!(bob.fetch_lines("NLST read").await, ["read/a"]);
    assert!(bob.fetch_lines("LIST /").await[0].starts_with('d'));
    for line in ["MLST /shared", "MLST /shared/alice", "MLST /shared/alice/read/a"] {
        bob.command(line).await.expect(250);
    }
}

async fn an_account_without_shares_sees_no_shared_folder(scene: Scene) {
    let (_alice, _bob) = shared(&scene).await;
    let (_carol, mut carol) = someone(&scene, "carol").await;
    assert!(carol.fetch("NLST").await.is_empty());
    assert!(carol.fetch("NLST /shared").await.is_empty());
    for path in ["/shared/alice", "/shared/alice/read", "/shared/alice/read/a", "/shared/nobody"] {
        carol.command(format!("CWD {path}")).await.expect(550);
        carol.refused(format!("RETR {path}")).await.expect(550);
        carol.refused(format!("LIST {path}")).await.expect(550);
    }
}

async fn a_share_to_read_is_for_reading(scene: Scene) {
    let (_alice, mut bob) = shared(&scene).await;
    assert_eq!(bob.retr("/shared/alice/read/a").await, b"of alice\n");
    bob.command("CWD /shared/alice/read").await.expect(250);
    for line in ["STOR a", "STOR b", "APPE a", "STOU"] {
        let refused = bob.refused(line).await;
        assert_eq!(refused.code, 550, "{line}: {}", refused.text());
    }
    for line in ["DELE a", "MKD b", "RMD ../read", "MFMT 20200101000000 a"] {
        let refused = bob.command(line).await;
        assert_eq!(refused.code, 550, "{line}: {}", refused.text());
    }
    if bob.command("RNFR a").await.code == 350 {
        bob.command("RNTO b").await.expect(550);
    }
    assert_eq!(scene.home("alice").len(), 5);
    let perm = bob.command("MLST a").await.expect(250).text().to_ascii_lowercase();
    let perm = perm.split("perm=").nth(1).unwrap().split(';').next().unwrap().to_owned();
    assert_eq!(perm, "r");
}

async fn a_share_to_write_is_for_writing(scene: Scene) {
    let (mut alice, mut bob) = shared(&scene).await;
    bob.command("CWD /shared/alice/write").await.expect(250);
    bob.stor("b", "of bob\n").await;
    bob.stor("a", "of bob, too\n").await;
    bob.send("APPE b", "more\n").await.expect(226);
    assert_eq!(alice.get("/files/write/b").await.text(), "of bob\nmore\n");
    assert_eq!(alice.get("/files/write/a").await.text(), "of bob, too\n");
    bob.command("MKD c").await.expect(257);
    bob.command("RNFR b").await.expect(350);
    bob.command("RNTO c/b").await.expect(250);
    bob.command("DELE a").await.expect(250);
    assert_eq!(bob.fetch_lines("NLST").await, ["c"]);
}

async fn nothing_else_of_the_owners_is_there(scene: Scene) {
    let (_alice, mut bob) = shared(&scene).await;
    for path in ["/shared/alice/private", "/private", "/shared/alice/read/../private", "/alice/private"] {
        bob.refused(format!("RETR {path}")).await.expect(550);
        bob.command(format!("SIZE {path}")).await.expect(550);
    }
    let refused = bob.refused("STOR /shared/alice/new").await;
    assert_eq!(refused.code, 550, "{}", refused.text());
    bob.refused("STOR /shared/new").await.expect(550);
    bob.command("MKD /shared/alice/new").await.expect(550);
    bob.command("MKD /shared/carol").await.expect(550);
    assert_eq!(scene.home("alice").len(), 5);
}

async fn a_share_that_ends_is_over_at_the_next_command(scene: Scene) {
    let (mut alice, mut bob) = shared(&scene).await;
    bob.command("CWD /shared/alice/read").await.expect(250);
    let shares = alice.get("/api/shares").await.json();
    let id = |share: &serde_json::Value| share["id"].as_str().unwrap().to_owned();
    for share in shares["shares"].as_array().unwrap().iter().map(id).collect::<Vec<_>>() {
        assert_eq!(alice.delete(&format!("/api/shares/{share}")).await.status, 204);
    }
    bob.refused("RETR a").await.expect(550);
    bob.refused("LIST").await.expect(550);
    bob.command("SIZE a").await.expect(550);
    assert!(bob.fetch("NLST /").await.is_empty());
}

async fn an_own_folder_of_that_name_is_shadowed(scene: Scene) {
    let (mut bob, mut client) = someone(&scene, "bob").await;
    bob.ask("MKCOL", "/files/shared", "", "").await;
    bob.put("/files/shared/own", "own\n").await;
    client.refused("RETR /shared/own").await.expect(550);
    assert!(!client.fetch_lines("NLST /shared").await.iter().any(|name| name.ends_with("own")));
    let refused = client.command("DELE /shared/own").await;
    assert_eq!(refused.code, 550, "{}", refused.text());
}

async fn a_link_in_a_shared_folder_does_not_lead_out_of_it(scene: Scene) {
    let (mut alice, mut bob) = shared(&scene).await;
    alice.ask("MKCOL", "/files/hidden", "", "").await;
    alice.put("/files/hidden/secret", "secret\n").await;
    for (link, target) in [("write/file", "../private"), ("write/folder", "../hidden"), ("write/in", "a")] {
        scene.link_into_home("alice", link, target);
    }
    bob.command("CWD /shared/alice/write").await.expect(250);
    assert_eq!(bob.retr("in").await, b"of alice\n");
    assert_eq!(bob.fetch_lines("NLST").await, ["a", "in"]);
    assert!(
        !bob.fetch_lines("MLSD").await.iter().any(|line| line.contains("file;") && line.ends_with(" file"))
    );
    for path in ["file", "folder/secret"] {
        bob.refused(format!("RETR {path}")).await.expect(550);
        for verb in ["SIZE", "MDTM", "HASH", "MLST"] {
            bob.command(format!("{verb} {path}")).await.expect(550);
        }
    }
    bob.command("CWD folder").await.expect(550);
    bob.refused("LIST folder/").await.expect(550);
    bob.refused("STOR folder/new").await.expect(550);
    bob.refused("APPE folder/secret").await.expect(550);
    for line in ["MKD folder/new", "DELE folder/secret", "RNFR folder/secret"] {
        bob.command(line).await.expect(550);
    }
    bob.command("RNFR a").await.expect(350);
    bob.command("RNTO folder/a").await.expect(550);
    assert_eq!(scene.home("alice")["hidden/secret"].as_deref(), Some(&b"secret\n"[..]));
}

async fn a_grantee_neither_removes_nor_renames_the_shared_folder_itself(scene: Scene) {
    let (mut alice, mut bob) = shared(&scene).await;
    bob.command("DELE /shared/alice/write/a").await.expect(250);
    let refused = bob.command("RMD /shared/alice/write").await.expect(550);
    assert!(refused.text().contains("itself"), "{}", refused.text());
    if bob.command("RNFR /shared/alice/write").await.code == 350 {
        bob.command("RNTO /mine").await.expect(550);
    }
    let perm = bob.command("MLST /shared/alice/write").await.expect(250).text().to_ascii_lowercase();
    let perm = perm.split("perm=").nth(1).unwrap().split(';').next().unwrap().to_owned();
    assert!(perm.contains('c') && !perm.contains(['d', 'f']), "{perm}");
    bob.stor("/shared/alice/write/new", "of bob\n").await;
    assert_eq!(alice.get("/files/write/new").await.text(), "of bob\n");
}

behaviours!(with_accounts and remote and tls;
    a_link_in_a_shared_folder_does_not_lead_out_of_it,
    a_grantee_neither_removes_nor_renames_the_shared_folder_itself,
    the_owners_who_share_something_are_listed,
    an_account_without_shares_sees_no_shared_folder,
    a_share_to_read_is_for_reading,
    a_share_to_write_is_for_writing,
    nothing_else_of_the_owners_is_there,
    a_share_that_ends_is_over_at_the_next_command,
    an_own_folder_of_that_name_is_shadowed,
);
