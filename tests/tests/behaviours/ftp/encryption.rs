//! TLS (RFC 4217): its start, the protection of data connections, and what attackers try.

use std::time::Duration;

use plimsoll_proto::ftp::{Limits, TlsReuse};
use plimsoll_tests::accounts::PASSWORD;
use plimsoll_tests::tls::{SERVER_NAME, connector, tls12_connector};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Data, DataMode, Ftp, FtpClient, FtpTls, Person, Scenario, Scene, behaviours};
use plimsoll_tls::Connector;

use super::{alice, with_accounts};

fn over_tls(tls: FtpTls) -> Scenario {
    // A refused upload is read to its end for a while.
    let limits = Limits { linger_time: Duration::from_secs(1), ..Limits::default() };
    Scenario { ftp: Some(Ftp { tls: Some(tls), limits, ..Ftp::default() }), ..with_accounts() }
}

fn scenario() -> Scenario {
    over_tls(FtpTls::default())
}

/// Uploads to a connection whose client uses `connector`, and returns the last answer.
async fn store_by(client: &mut FtpClient, connector: &Connector) -> u16 {
    let before = client.data_tls.replace(connector.clone());
    let answer = client.send("STOR by", "some bytes").await;
    client.data_tls = before;
    answer.code
}

async fn files_and_listings_go_over_each_kind_of_data_connection(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let bytes = noise(1, 100_000);
    for (at, mode) in DataMode::ALL.into_iter().enumerate() {
        client.mode = mode;
        let name = format!("file-{at}");
        client.stor(&name, bytes.clone()).await;
        assert!(client.retr(&name).await == bytes);
        client.stor(&name, "").await;
        assert_eq!(client.retr(&name).await, b"");
        assert_eq!(client.fetch_lines("NLST").await.len(), at + 1);
    }
    let status = client.command("STAT").await.expect(211).text();
    assert!(status.contains("Encrypted by TLS, data connections too"), "{status}");
}

async fn a_session_may_stay_in_clear_or_have_its_data_in_clear(scene: Scene) {
    let (_person, mut private) = alice(&scene).await;
    private.stor("a", "x").await;
    private.command("PROT C").await.expect(200);
    private.data_tls = None;
    assert_eq!(private.retr("a").await, b"x");
    let mut clear = FtpClient::in_clear(&scene).await;
    clear.log_in("alice").await;
    clear.command("TYPE I").await.expect(200);
    assert_eq!(clear.retr("a").await, b"x");
    assert!(clear.command("STAT").await.expect(211).text().contains("In clear"));
}

async fn commands_about_tls_are_accepted_in_their_order(scene: Scene) {
    let mut client = FtpClient::in_clear(&scene).await;
    let features = client.command("FEAT").await.expect(211).text();
    for feature in ["AUTH TLS", "PBSZ", "PROT"] {
        assert!(features.lines().any(|line| line.trim() == feature), "{features}");
    }
    for (line, code) in [("PBSZ 0", 503), ("PROT P", 503), ("AUTH SSL", 504), ("AUTH", 504), ("CCC", 534)] {
        assert_eq!(client.command(line).await.code, code, "{line}");
    }
    client.encrypt(&connector(&[])).await;
    for (line, code) in [
        ("PROT P", 503),
        ("PBSZ", 501),
        ("PBSZ x", 501),
        ("PBSZ 16384", 200),
        ("PROT", 504),
        ("PROT S", 536),
        ("PROT E", 536),
        ("PROT p", 200),
        ("AUTH TLS", 503),
        ("CCC", 534),
        ("REIN", 502),
    ] {
        assert_eq!(client.command(line).await.code, code, "{line}");
    }
}

async fn a_login_in_clear_does_not_count_after_auth(scene: Scene) {
    Person::new(&scene, "alice").await;
    let mut client = FtpClient::in_clear(&scene).await;
    client.log_in("alice").await;
    client.command("AUTH tls-c").await.expect(234);
    connector(&[]).connect(&scene.io, &mut client.stream, SERVER_NAME).await.unwrap();
    client.command("PWD").await.expect(530);
    client.log_in("alice").await;
    client.command("PWD").await.expect(257);
}

async fn plaintext_behind_auth_ends_the_session_and_nothing_is_executed(scene: Scene) {
    let (_person, mut witness) = alice(&scene).await;
    witness.stor("a", "x").await;
    for behind in ["", "\r\n", "DELE a\r\n", "N", "\u{16}\u{3}\u{1}"] {
        let mut client = FtpClient::in_clear(&scene).await;
        client.log_in("alice").await;
        client.push(format!("AUTH TLS\r\n{behind}NOOP\r\nDELE a\r\n"));
        client.reply().await.expect(234);
        // An alert, if the bytes came when the handshake had begun, and then the end.
        let rest = client.rest().await;
        assert!(rest.is_empty() || rest.first() == Some(&21), "{behind:?}: {rest:?}");
        assert_eq!(witness.retr("a").await, b"x");
    }
}

async fn a_failed_handshake_ends_the_session(scene: Scene) {
    let mut client = FtpClient::in_clear(&scene).await;
    client.command("AUTH TLS").await.expect(234);
    client.push("USER alice\r\nPASS x\r\n");
    let rest = client.rest().await;
    assert!(matches!(rest[..], [21, 3, _, 0, 2, 2, _]), "{rest:?}");
    let mut http = FtpClient::in_clear(&scene).await;
    http.command("AUTH TLS").await.expect(234);
    let refused = connector(&["http/1.1"]).connect(&scene.io, &mut http.stream, SERVER_NAME).await;
    assert!(refused.is_err(), "a client of another protocol");
    FtpClient::connect(&scene).await;
}

async fn an_upload_without_close_notify_makes_no_file_and_can_be_resumed(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let bytes = noise(2, 50_000);
    let mut data = client.begin("STOR a").await;
    data.send(bytes[..30_000].to_vec()).await.unwrap();
    data.cut();
    let refused = client.reply().await.expect(426).text();
    assert!(refused.contains("close_notify"), "{refused}");
    assert!(scene.home("alice").is_empty());
    drop(data);
    assert_eq!(client.command("SIZE a").await.expect(213).text(), "30000");
    client.command("REST 30000").await.expect(350);
    client.send("STOR a", &bytes[30_000..]).await.expect(226);
    assert!(client.retr("a").await == bytes);
}

async fn an_upload_without_close_notify_is_complete_at_its_announced_size(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    for (announcement, sent, code) in [
        ("ALLO 10", "0123456789", 226),
        ("OPTS STOR SIZE 10", "0123456789", 226),
        ("ALLO 11", "0123456789", 426),
        ("OPTS STOR SIZE 11", "0123456789", 426),
        ("NOOP", "", 426),
    ] {
        client.command(announcement).await.expect(200);
        let mut data = client.begin(format!("STOR {code} {}", announcement.len())).await;
        data.encrypt().await.unwrap();
        if !sent.is_empty() {
            data.send(sent).await.unwrap();
        }
        data.cut();
        assert_eq!(client.reply().await.code, code, "{announcement}");
    }
    assert_eq!(scene.home("alice").len(), 2);
}

async fn a_private_data_connection_in_clear_is_refused(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "x").await;
    client.data_tls = None;
    let mut data = client.begin("RETR a").await;
    data.send("GET / HTTP/1.1\r\n\r\n").await.unwrap();
    client.reply().await.expect(425);
    let received = data.all().await.unwrap_or_default();
    assert!(received.is_empty() || received[0] == 21, "{received:?}");
    client.send("STOR b", "not a handshake at all").await.expect(425);
    assert_eq!(scene.home("alice").len(), 1);
}

async fn a_client_that_has_resumed_its_session_must_go_on(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let (own, stranger) = (client.data_tls.clone().unwrap(), connector(&["ftp"]).without_resumption());
    assert_eq!(store_by(&mut client, &stranger).await, 226, "nothing is known of the client");
    assert_eq!(client.retr("by").await, b"some bytes");
    for _ in 0..2 {
        assert_eq!(store_by(&mut client, &stranger).await, 522);
    }
    let mut other = FtpClient::connect(&scene).await;
    other.log_in("alice").await;
    let foreign = other.data_tls.clone().unwrap();
    assert_eq!(store_by(&mut client, &foreign).await, 522, "a session of another control connection");
    client.data_tls = Some(stranger.clone());
    let mut data = client.begin("LIST").await;
    assert_eq!(data.all().await.unwrap(), b"", "a clean end, so that clients read the reply");
    let refused = client.reply().await.expect(522).text();
    assert!(refused.contains("did not resume the TLS session"), "{refused}");
    client.data_tls = Some(own);
    assert_eq!(client.retr("by").await, b"some bytes");
}

async fn a_client_that_uses_each_ticket_once_may_run_out_of_them(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    for at in 0..12 {
        client.stor("a", format!("{at}")).await;
    }
    assert_eq!(client.retr("a").await, b"11");
}

async fn a_client_may_have_kept_one_ticket_and_used_it_for_an_upload(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let (own, stranger) = (client.data_tls.clone().unwrap(), connector(&["ftp"]).without_resumption());
    assert_eq!(store_by(&mut client, &own).await, 226);
    assert_eq!(store_by(&mut client, &stranger).await, 226);
    client.data_tls = Some(own);
    assert_eq!(client.retr("by").await, b"some bytes");
    assert_eq!(store_by(&mut client, &stranger).await, 522, "a download brings tickets");
}

async fn a_client_without_tls_13_has_a_ticket_for_each_connection(scene: Scene) {
    let _person = Person::new(&scene, "alice").await;
    let mut client = FtpClient::in_clear(&scene).await;
    client.encrypt(&tls12_connector(&["ftp"])).await;
    client.protect().await;
    client.log_in("alice").await;
    client.command("TYPE I").await.expect(200);
    let stranger = tls12_connector(&["ftp"]).without_resumption();
    for at in 0..12 {
        client.stor("a", format!("{at}")).await;
        assert_eq!(client.retr("a").await, format!("{at}").as_bytes());
    }
    assert_eq!(store_by(&mut client, &stranger).await, 522);
    assert_eq!(client.retr("a").await, b"11");
}

behaviours!(scenario and remote;
    files_and_listings_go_over_each_kind_of_data_connection,
    a_session_may_stay_in_clear_or_have_its_data_in_clear,
    commands_about_tls_are_accepted_in_their_order,
    a_login_in_clear_does_not_count_after_auth,
    plaintext_behind_auth_ends_the_session_and_nothing_is_executed,
    a_failed_handshake_ends_the_session,
    an_upload_without_close_notify_makes_no_file_and_can_be_resumed,
    an_upload_without_close_notify_is_complete_at_its_announced_size,
    a_private_data_connection_in_clear_is_refused,
    a_client_that_has_resumed_its_session_must_go_on,
    a_client_that_uses_each_ticket_once_may_run_out_of_them,
    a_client_may_have_kept_one_ticket_and_used_it_for_an_upload,
    a_client_without_tls_13_has_a_ticket_for_each_connection,
);

mod required {
    use super::*;

    fn scenario() -> Scenario {
        over_tls(FtpTls { is_required: true, reuse: TlsReuse::Require, ..FtpTls::default() })
    }

    async fn a_login_and_data_in_clear_are_refused(scene: Scene) {
        let _person = Person::new(&scene, "alice").await;
        let mut client = FtpClient::in_clear(&scene).await;
        let refused = client.command("USER alice").await.expect(530).text();
        assert!(refused.contains("AUTH TLS"), "{refused}");
        client.command(format!("PASS {PASSWORD}")).await.expect(503);
        client.encrypt(&connector(&[])).await;
        client.log_in("alice").await;
        for line in ["STOR a", "LIST"] {
            client.refused(line).await.expect(521);
        }
        client.command("PBSZ 0").await.expect(200);
        client.command("PROT C").await.expect(534);
        client.command("PROT P").await.expect(200);
        client.stor("a", "x").await;
    }

    async fn each_data_connection_must_resume_the_session(scene: Scene) {
        let (_person, mut client) = alice(&scene).await;
        let stranger = connector(&["ftp"]).without_resumption();
        assert_eq!(store_by(&mut client, &stranger).await, 522);
        assert!(scene.home("alice").is_empty());
        for at in 0..12 {
            client.stor("a", format!("{at}")).await;
            assert_eq!(client.retr("a").await, format!("{at}").as_bytes());
        }
        assert_eq!(store_by(&mut client, &stranger).await, 522);
    }

    behaviours!(scenario;
        a_login_and_data_in_clear_are_refused,
        each_data_connection_must_resume_the_session,
    );
}

mod not_required {
    use super::*;

    fn scenario() -> Scenario {
        over_tls(FtpTls { reuse: TlsReuse::Off, ..FtpTls::default() })
    }

    async fn data_connections_need_not_resume_the_session(scene: Scene) {
        let (_person, mut client) = alice(&scene).await;
        client.stor("a", "x").await;
        let stranger = connector(&["ftp"]).without_resumption();
        assert_eq!(store_by(&mut client, &stranger).await, 226);
    }

    behaviours!(scenario; data_connections_need_not_resume_the_session);
}

mod implicit {
    use super::*;

    fn scenario() -> Scenario {
        over_tls(FtpTls { is_implicit: true, ..FtpTls::default() })
    }

    async fn a_session_and_its_data_are_encrypted_from_the_first_byte(scene: Scene) {
        let (_person, mut client) = alice(&scene).await;
        client.stor("a", "x").await;
        client.command("AUTH TLS").await.expect(503);
        client.protect().await;
        assert_eq!(client.retr("a").await, b"x");
        client.command("PROT C").await.expect(200);
        client.data_tls = None;
        assert_eq!(client.retr("a").await, b"x");
    }

    async fn a_client_in_clear_gets_an_alert(scene: Scene) {
        let mut stream = Data::to(&scene.io, ip(&scene)).await.unwrap();
        stream.send("USER alice\r\n").await.unwrap();
        let alert = stream.all().await.unwrap();
        assert!(matches!(alert[..], [21, 3, _, 0, 2, 2, _]), "{alert:?}");
    }

    fn ip(scene: &Scene) -> std::net::SocketAddr {
        let plimsoll_io::Address::Ip(at) = scene.ftp() else { unreachable!("it is TCP") };
        *at
    }

    behaviours!(scenario;
        a_session_and_its_data_are_encrypted_from_the_first_byte,
        a_client_in_clear_gets_an_alert,
    );
}

mod absent {
    use super::*;

    async fn without_a_certificate_there_is_no_tls(scene: Scene) {
        let mut client = FtpClient::in_clear(&scene).await;
        assert!(!client.command("FEAT").await.expect(211).text().contains("AUTH"));
        for line in ["AUTH TLS", "PBSZ 0", "PROT P", "CCC"] {
            client.command(line).await.expect(502);
        }
    }

    behaviours!(with_accounts; without_a_certificate_there_is_no_tls);
}
