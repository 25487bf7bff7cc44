//! State that one command leaves for the next, and when it is cleared: REST, a prepared data connection, a
//! user name.

use plimsoll_tests::accounts::PASSWORD;
use plimsoll_tests::{FtpClient, Person, Scene, behaviours};

use super::{alice, with_accounts};

async fn abor_forgets_what_was_prepared(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "0123456789").await;
    client.epsv().await.unwrap();
    client.command("ABOR").await.expect(226);
    client.command("LIST").await.expect(425);
    client.command("REST 4").await.expect(350);
    client.command("ABOR").await.expect(226);
    assert_eq!(client.retr("a").await, b"0123456789");
}

async fn rest_is_over_with_a_transfer_that_has_no_use_for_it(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "0123456789").await;
    client.command("REST 4").await.expect(350);
    let mut data = client.data().await;
    client.command("STOU").await.expect(150);
    data.send("x").await.unwrap();
    data.finish().await.unwrap();
    client.reply().await.expect(226);
    assert_eq!(client.retr("a").await, b"0123456789");
    for line in ["LIST", "NLST", "MLSD"] {
        client.command("REST 4").await.expect(350);
        client.fetch(line).await;
        client.send("STOR b", "whole").await.expect(226);
        assert_eq!(client.retr("b").await, b"whole", "after {line}");
    }
    client.command("REST 4").await.expect(350);
    client.command("MKD folder").await.expect(257);
    assert_eq!(client.retr("a").await, b"0123456789");
}

async fn rest_is_for_appe_too(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "0123456789").await;
    client.command("REST 4").await.expect(350);
    client.send("APPE a", "xyz").await.expect(226);
    assert_eq!(client.retr("a").await, b"0123xyz");
    client.send("APPE a", "!").await.expect(226);
    assert_eq!(client.retr("a").await, b"0123xyz!");
}

async fn an_unexpected_password_ends_no_session(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command(format!("PASS {PASSWORD}")).await.expect(503);
    client.command("PWD").await.expect(257);
}

async fn rest_is_over_with_a_transfer_that_is_refused(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "0123456789").await;
    for line in ["RETR none", "STOR none/a", "APPE none/a"] {
        client.command("REST 4").await.expect(350);
        client.refused(line).await.expect(550);
        assert_eq!(client.retr("a").await, b"0123456789", "after {line}");
    }
}

async fn a_name_is_for_one_password(scene: Scene) {
    Person::new(&scene, "alice").await;
    let mut client = FtpClient::connect(&scene).await;
    client.command("USER alice").await.expect(331);
    client.command("PASS wrong").await.expect(530);
    client.command(format!("PASS {PASSWORD}")).await.expect(503);
    client.command("PWD").await.expect(530);
}

async fn a_file_whose_name_begins_as_a_time_is_asked_about_and_not_changed(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "x").await;
    client.stor("20200101000000 a", "x").await;
    client.command("MFMT 20010203040506 a").await.expect(213);
    client.command("MFMT 20020203040506 20200101000000 a").await.expect(213);
    assert_eq!(client.command("MDTM 20200101000000 a").await.expect(213).text(), "20020203040506");
    assert_eq!(client.command("MDTM a").await.expect(213).text(), "20010203040506");
}

behaviours!(with_accounts and remote;
    abor_forgets_what_was_prepared,
    rest_is_over_with_a_transfer_that_has_no_use_for_it,
    rest_is_over_with_a_transfer_that_is_refused,
    rest_is_for_appe_too,
    an_unexpected_password_ends_no_session,
    a_name_is_for_one_password,
    a_file_whose_name_begins_as_a_time_is_asked_about_and_not_changed,
);
