//! Login: accepted and refused credentials, and the commands available before it.

use std::time::Duration;

use plimsoll_auth::{Attempts, Budget, Secret, Settings};
use plimsoll_tests::accounts::{PASSWORD, settings};
use plimsoll_tests::{FtpClient, Person, Scenario, Scene, behaviours};

use super::{alice, with_accounts};

async fn an_account_can_log_in(scene: Scene) {
    Person::new(&scene, "alice").await;
    let mut client = FtpClient::connect(&scene).await;
    client.command("USER alice").await.expect(331);
    client.command(format!("PASS {PASSWORD}")).await.expect(230);
    assert_eq!(client.command("PWD").await.expect(257).quoted(), "/");
    client.command("QUIT").await.expect(221);
    client.expect_end().await;
}

async fn a_wrong_password_and_an_unknown_name_get_the_same_response(scene: Scene) {
    Person::new(&scene, "alice").await;
    let mut client = FtpClient::connect(&scene).await;
    let mut replies = Vec::new();
    for (name, password) in [("alice", "wrong"), ("nobody", PASSWORD), ("alice", ""), ("no\"one", "x")] {
        let asked = client.command(format!("USER {name}")).await;
        replies.push((asked, client.command(format!("PASS {password}")).await));
    }
    assert_eq!((replies[0].0.code, replies[0].1.code), (331, 530));
    assert!(replies.iter().all(|one| *one == replies[0]), "{replies:?}");
    client.command("PWD").await.expect(530);
    client.log_in("alice").await;
}

/// Every verb that needs a login.
const NOT_BEFORE_LOG_IN: [&str; 31] = [
    "CWD /",
    "CDUP",
    "PWD",
    "PORT 127,0,0,1,200,1",
    "EPRT |1|127.0.0.1|51201|",
    "PASV",
    "EPSV",
    "EPSV ALL",
    "TYPE I",
    "RETR a",
    "STOR a",
    "STOU",
    "APPE a",
    "REST 1",
    "RNFR a",
    "RNTO b",
    "ABOR",
    "DELE a",
    "RMD a",
    "MKD a",
    "LIST",
    "NLST",
    "MLST",
    "MLSD",
    "SIZE a",
    "MDTM a",
    "MFMT 20200101000000 a",
    "HASH a",
    "SITE UTIME a",
    "STAT",
    "STAT /",
];

async fn before_log_in_there_is_nothing_else(scene: Scene) {
    let (_person, mut inside) = alice(&scene).await;
    inside.stor("a", "of alice\n").await;
    let mut client = FtpClient::connect(&scene).await;
    for named in [false, true] {
        if named {
            client.command("USER alice").await.expect(331);
        }
        for line in NOT_BEFORE_LOG_IN {
            let answer = client.command(line).await;
            assert_eq!(answer.code, 530, "{line}: {}", answer.text());
        }
    }
    // The USER of before is still valid after all these commands.
    client.command(format!("PASS {PASSWORD}")).await.expect(230);
    assert_eq!(scene.home("alice").len(), 1);
}

async fn commands_that_precede_a_login_work_without_one(scene: Scene) {
    let mut client = FtpClient::connect(&scene).await;
    for (line, code) in [
        ("SYST", 215),
        ("FEAT", 211),
        ("HELP", 214),
        ("NOOP", 200),
        ("OPTS UTF8 ON", 200),
        ("CLNT x", 200),
        ("ACCT x", 202),
        ("PASS x", 503),
        ("AUTH TLS", 502),
        ("XYZZY", 500),
        ("", 500),
        ("USER", 501),
    ] {
        assert_eq!(client.command(line).await.code, code, "{line}");
    }
    client.command("QUIT").await.expect(221);
    client.expect_end().await;
}

async fn after_five_wrong_passwords_the_connection_ends(scene: Scene) {
    Person::new(&scene, "alice").await;
    let mut client = FtpClient::connect(&scene).await;
    for _ in 0..5 {
        client.command("USER alice").await.expect(331);
        client.command("PASS wrong").await.expect(530);
    }
    client.expect_end().await;
    drop(client);
    scene.until(|| scene.open() == 0).await;
}

async fn another_name_ends_the_session_of_the_first(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "of alice\n").await;
    client.command("MKD folder").await.expect(257);
    client.command("CWD folder").await.expect(250);
    Person::new(&scene, "bob").await;
    client.command("USER bob").await.expect(331);
    client.command("RETR /a").await.expect(530);
    client.command(format!("PASS {PASSWORD}")).await.expect(230);
    assert_eq!(client.command("PWD").await.expect(257).quoted(), "/");
    client.command("SIZE /a").await.expect(550);
    client.command("REIN").await.expect(220);
    client.command("PWD").await.expect(530);
    client.log_in("alice").await;
    client.command("TYPE I").await.expect(200);
    assert_eq!(client.command("SIZE a").await.expect(213).text(), "9");
}

/// Asserts that the first command that touches files ends the login, and then a clean end.
async fn is_over(client: &mut FtpClient, line: &str) {
    client.command(line).await.expect(421);
    client.expect_end().await;
}

async fn a_disabled_accounts_session_ends_at_its_next_command(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "x").await;
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push(FtpClient::of(&scene, "alice").await);
    }
    scene.accounts().auth.set_enabled(&scene.io, "alice", false).await.unwrap();
    is_over(&mut client, "SIZE a").await;
    for (other, line) in others.iter_mut().zip(["DELE a", "MKD b", "MLST a", "RNFR a", "CWD /"]) {
        is_over(other, line).await;
    }
    assert_eq!(scene.home("alice").len(), 1);
    let mut again = FtpClient::connect(&scene).await;
    again.command("USER alice").await.expect(331);
    again.command(format!("PASS {PASSWORD}")).await.expect(530);
}

async fn a_removed_accounts_session_ends_at_its_next_command(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "x").await;
    scene.accounts().auth.remove(&scene.io, "alice").await.unwrap();
    is_over(&mut client, "MLST a").await;
}

async fn sessions_of_an_old_password_end_at_their_next_command(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let mut transferring = FtpClient::of(&scene, "alice").await;
    client.stor("a", "x").await;
    let _unused = transferring.data().await;
    scene.accounts().auth.set_password(&scene.io, "alice", &Secret::from("another one")).await.unwrap();
    is_over(&mut client, "SIZE a").await;
    is_over(&mut transferring, "STOR b").await;
    let mut again = FtpClient::connect(&scene).await;
    again.command("USER alice").await.expect(331);
    again.command(format!("PASS {PASSWORD}")).await.expect(530);
    again.command("USER alice").await.expect(331);
    again.command("PASS another one").await.expect(230);
}

behaviours!(with_accounts and remote;
    an_account_can_log_in,
    a_wrong_password_and_an_unknown_name_get_the_same_response,
    before_log_in_there_is_nothing_else,
    commands_that_precede_a_login_work_without_one,
    after_five_wrong_passwords_the_connection_ends,
    another_name_ends_the_session_of_the_first,
    a_disabled_accounts_session_ends_at_its_next_command,
    a_removed_accounts_session_ends_at_its_next_command,
    sessions_of_an_old_password_end_at_their_next_command,
);

mod held_back {
    use super::*;

    const FORGIVEN_AFTER: Duration = Duration::from_secs(2);

    fn scenario() -> Scenario {
        let few = Budget { count: 3, forgiven_after: FORGIVEN_AFTER };
        let quick = Duration::from_millis(1);
        let attempts = Attempts {
            per_name_from_address: few,
            slow_first: quick,
            slow_max: quick,
            ..Attempts::default()
        };
        Scenario { accounts: Some(Settings { attempts: Some(attempts), ..settings() }), ..with_accounts() }
    }

    async fn a_client_that_guesses_is_refused_on_every_connection_with_a_retry_time(scene: Scene) {
        Person::new(&scene, "alice").await;
        for _ in 0..3 {
            let mut client = FtpClient::connect(&scene).await;
            client.command("USER alice").await.expect(331);
            client.command("PASS guess").await.expect(530);
        }
        let mut client = FtpClient::connect(&scene).await;
        client.command("USER alice").await.expect(331);
        let refused = client.command("PASS guess").await.expect(530).text();
        assert!(refused.contains("Try again in"), "{refused}");
        scene.io.sleep(FORGIVEN_AFTER).await;
        client.log_in("alice").await;
    }

    behaviours!(scenario and remote; a_client_that_guesses_is_refused_on_every_connection_with_a_retry_time);
}
