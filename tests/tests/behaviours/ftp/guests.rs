//! Guests: they read the site and change nothing.

use plimsoll_tests::accounts::settings;
use plimsoll_tests::{Ftp, FtpClient, Person, Scenario, Scene, Tree, behaviours};

fn with_guests() -> Scenario {
    let tree = Tree::new().file("small.txt", "small\n").file("folder/deep.txt", "deep\n");
    let tree = tree.file(".hidden", "hidden\n").file("folder/.secret", "secret\n").file(".git/config", "x");
    Scenario { tree, ftp: Some(Ftp { guests: true, ..Ftp::default() }), ..Scenario::default() }
}

fn with_guests_and_accounts() -> Scenario {
    Scenario { accounts: Some(settings()), ..with_guests() }
}

fn with_neither() -> Scenario {
    Scenario { ftp: Some(Ftp::default()), ..with_guests_and_accounts() }
}

async fn guest(scene: &Scene, name: &str) -> FtpClient {
    let mut client = FtpClient::connect(scene).await;
    client.command(format!("USER {name}")).await.expect(331);
    client.command("PASS me@example.org").await.expect(230);
    client.command("TYPE I").await.expect(200);
    client
}

async fn a_guest_looks_and_downloads(scene: Scene) {
    for name in ["anonymous", "ftp", "FTP"] {
        let mut client = guest(&scene, name).await;
        assert_eq!(client.fetch_lines("NLST").await, ["folder", "small.txt"]);
        assert_eq!(client.retr("/folder/deep.txt").await, b"deep\n");
        client.command("CWD folder").await.expect(250);
        assert_eq!(client.command("PWD").await.expect(257).quoted(), "/folder");
        assert_eq!(client.fetch_lines("NLST").await, ["deep.txt"]);
        assert_eq!(client.command("SIZE deep.txt").await.expect(213).text(), "5");
        client.command("CDUP").await.expect(250);
        assert_eq!(client.retr("small.txt").await, b"small\n");
        assert_eq!(client.fetch_lines("MLSD").await.len(), 2);
        assert_eq!(client.fetch_lines("LIST").await.len(), 2);
    }
}

async fn a_guest_finds_no_hidden_names(scene: Scene) {
    let mut client = guest(&scene, "ftp").await;
    for name in [".hidden", "folder/.secret", ".git/config", ".git", "folder/../.hidden", "../.hidden"] {
        client.refused(format!("RETR {name}")).await.expect(550);
        for line in ["SIZE", "MDTM", "MLST", "CWD", "HASH"] {
            let answer = client.command(format!("{line} {name}")).await;
            assert_eq!(answer.code, 550, "{line} {name}: {}", answer.text());
        }
    }
    for line in ["LIST -a", "NLST -a", "NLST .*", "MLSD"] {
        let listed = client.fetch_lines(line).await;
        assert!(listed.iter().all(|line| !line.contains("hidden") && !line.contains(".git")), "{listed:?}");
    }
}

async fn a_guest_changes_nothing(scene: Scene) {
    let mut client = guest(&scene, "ftp").await;
    for line in ["STOR new", "STOR small.txt", "APPE small.txt", "STOU"] {
        let refused = client.refused(line).await.expect(550);
        assert!(refused.text().contains("uests"), "{}", refused.text());
    }
    for line in [
        "DELE small.txt",
        "MKD new",
        "RMD folder",
        "RNFR small.txt",
        "MFMT 20200101000000 small.txt",
        "SITE UTIME 20200101000000 small.txt",
    ] {
        let answer = client.command(line).await;
        assert_eq!(answer.code, 550, "{line}: {}", answer.text());
    }
    client.command("RNTO new").await.expect(503);
    assert_eq!(client.fetch_lines("NLST").await, ["folder", "small.txt"]);
    assert_eq!(client.retr("small.txt").await, b"small\n");
}

async fn a_guest_sees_nothing_of_accounts(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    Person::new(&scene, "bob").await;
    alice.put("/files/a", "of alice\n").await;
    alice.share("a", "bob", "read").await;
    let mut client = guest(&scene, "anonymous").await;
    for name in ["/a", "/shared", "/shared/alice", "/shared/alice/a", "/files/a", "/alice/a"] {
        client.command(format!("MLST {name}")).await.expect(550);
    }
    let mut alice = FtpClient::of(&scene, "alice").await;
    assert_eq!(alice.fetch_lines("NLST").await, ["a"]);
    alice.command("SIZE small.txt").await.expect(550);
}

async fn where_guests_are_not_wanted_they_are_not_let_in(scene: Scene) {
    let mut client = FtpClient::connect(&scene).await;
    for name in ["anonymous", "ftp"] {
        client.command(format!("USER {name}")).await.expect(331);
        client.command("PASS me@example.org").await.expect(530);
    }
    client.command("RETR small.txt").await.expect(530);
}

async fn without_accounts_only_a_guest_may_log_in(scene: Scene) {
    let mut client = FtpClient::connect(&scene).await;
    client.command("USER alice").await.expect(331);
    client.command("PASS correct horse").await.expect(530);
    let mut client = guest(&scene, "ftp").await;
    assert_eq!(client.retr("small.txt").await, b"small\n");
}

mod beside_accounts {
    use super::*;

    behaviours!(with_guests_and_accounts and remote;
        a_guest_looks_and_downloads,
        a_guest_finds_no_hidden_names,
        a_guest_changes_nothing,
        a_guest_sees_nothing_of_accounts,
    );
}

mod alone {
    use super::*;

    behaviours!(with_guests;
        without_accounts_only_a_guest_may_log_in,
        a_guest_changes_nothing,
    );
}

mod unwanted {
    use super::*;

    behaviours!(with_neither and remote; where_guests_are_not_wanted_they_are_not_let_in);
}
