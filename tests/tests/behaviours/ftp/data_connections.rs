//! Data connections: the connecting side and the permitted addresses in each mode.

use std::net::Ipv4Addr;
use std::time::Duration;

use plimsoll_io::Address;
use plimsoll_proto::ftp::{Limits, Ports};
use plimsoll_tests::{Data, DataMode, Engine, Ftp, FtpClient, Scenario, Scene, behaviours};

use super::{alice, someone, with_accounts};

async fn files_and_listings_go_over_each_kind_of_data_connection(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    for (at, mode) in DataMode::ALL.into_iter().enumerate() {
        client.mode = mode;
        let (name, bytes) = (format!("file-{at}"), format!("by {mode:?}\n").repeat(100));
        client.stor(&name, bytes.clone()).await;
        assert_eq!(client.retr(&name).await, bytes.as_bytes());
        assert_eq!(client.fetch_lines("NLST").await.len(), at + 1);
    }
}

async fn a_transfer_needs_a_data_connection_of_its_own(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("STOR a").await.expect(425);
    assert!(scene.home("alice").is_empty());
    client.stor("a", "x").await;
    for line in ["RETR a", "STOR a", "LIST", "NLST", "MLSD", "APPE a"] {
        let answer = client.command(line).await;
        assert_eq!(answer.code, 425, "{line}: {}", answer.text());
    }
    assert_eq!(client.retr("a").await, b"x");
}

async fn a_client_may_connect_after_it_has_asked(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "later\n").await;
    let at = client.epsv().await.unwrap();
    client.command("RETR a").await.expect(150);
    scene.io.sleep(Duration::from_millis(20)).await;
    let mut data = Data::to(&scene.io, at).await.unwrap();
    assert_eq!(data.all().await.unwrap(), b"later\n");
    client.reply().await.expect(226);
}

async fn the_last_way_that_was_said_counts(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "x").await;
    let old = client.epsv().await.unwrap();
    let mut new = client.pasv().await.unwrap();
    while new.port() == old.port() {
        // Both ports are random, and equal once in ten thousand times.
        new = client.pasv().await.unwrap();
    }
    assert!(Data::to(&scene.io, old).await.is_err(), "nobody listens there any more");
    let mut data = Data::to(&scene.io, new).await.unwrap();
    client.command("RETR a").await.expect(150);
    assert_eq!(data.all().await.unwrap(), b"x");
    client.reply().await.expect(226);
    assert!(Data::to(&scene.io, new).await.is_err(), "it was for one transfer");
}

async fn passive_ports_are_of_the_range_and_are_not_counted_up(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let mut ports = Vec::new();
    for _ in 0..8 {
        ports.push(client.epsv().await.unwrap().port());
        ports.push(client.pasv().await.unwrap().port());
    }
    assert!(ports.iter().all(|port| (20_000..=29_999).contains(port)), "{ports:?}");
    let steps: Vec<_> = ports.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    assert!(steps.iter().any(|step| *step != steps[0]), "{ports:?}");
}

async fn the_server_opens_data_connections_only_to_the_clients_own_address(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let own = client.own_ip().to_string();
    let comma = own.replace('.', ",");
    for (line, code) in [
        ("PORT 192,0,2,1,200,1".to_owned(), 501),
        ("PORT 127,0,0,2,200,1".to_owned(), 501),
        (format!("PORT {comma},0,22"), 501),
        (format!("PORT {comma},3,255"), 501),
        (format!("PORT {comma},256,1"), 501),
        (format!("PORT {comma},200"), 501),
        ("PORT".to_owned(), 501),
        ("EPRT |1|192.0.2.1|51201|".to_owned(), 501),
        (format!("EPRT |1|{own}|22|"), 501),
        (format!("EPRT |1|{own}|1023|"), 501),
        (format!("EPRT |1|{own}|70000|"), 501),
        (format!("EPRT |1|{own}|"), 501),
        ("EPRT |2|::1|51201|".to_owned(), 522),
        ("EPRT |2|::ffff:192.0.2.1|51201|".to_owned(), 522),
        (format!("EPRT |3|{own}|51201|"), 522),
    ] {
        let answer = client.command(&line).await;
        assert_eq!(answer.code, code, "{line}: {}", answer.text());
        assert!(code != 522 || answer.text().contains("(1)"), "{line}: {}", answer.text());
        client.command("LIST").await.expect(425);
    }
}

async fn an_unreachable_data_port_of_a_client_is_reported(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "x").await;
    let listener = scene.io.listen(&Address::Ip((client.own_ip(), 0).into())).unwrap();
    let Address::Ip(at) = listener.address().clone() else { unreachable!() };
    drop(listener);
    for line in ["RETR a", "STOR b"] {
        client.command(format!("EPRT |1|{}|{}|", at.ip(), at.port())).await.expect(200);
        client.command(line).await.expect(150);
        client.reply().await.expect(425);
    }
    assert_eq!(scene.home("alice").len(), 1);
    assert_eq!(client.retr("a").await, b"x");
}

async fn epsv_takes_the_protocol_of_the_control_connection_alone(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("EPSV 1").await.expect(229);
    for line in ["EPSV 2", "EPSV 9"] {
        assert!(client.command(line).await.expect(522).text().contains("(1)"), "{line}");
    }
}

async fn after_epsv_all_there_is_nothing_but_epsv(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("EPSV ALL").await.expect(200);
    let own = client.own_ip().to_string();
    for line in ["PASV", &format!("PORT {},200,1", own.replace('.', ",")), &format!("EPRT |1|{own}|51201|")] {
        let answer = client.command(line).await;
        assert_eq!(answer.code, 501, "{line}: {}", answer.text());
    }
    client.stor("a", "x").await;
    assert_eq!(client.retr("a").await, b"x");
}

behaviours!(with_accounts and remote;
    files_and_listings_go_over_each_kind_of_data_connection,
    a_transfer_needs_a_data_connection_of_its_own,
    a_client_may_connect_after_it_has_asked,
    the_last_way_that_was_said_counts,
    passive_ports_are_of_the_range_and_are_not_counted_up,
    the_server_opens_data_connections_only_to_the_clients_own_address,
    an_unreachable_data_port_of_a_client_is_reported,
    epsv_takes_the_protocol_of_the_control_connection_alone,
    after_epsv_all_there_is_nothing_but_epsv,
);

mod behind_a_router {
    use super::*;

    const ANNOUNCED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

    fn scenario() -> Scenario {
        Scenario { ftp: Some(Ftp { announced: Some(ANNOUNCED), ..Ftp::default() }), ..with_accounts() }
    }

    async fn the_routers_address_is_announced_to_clients_behind_it(scene: Scene) {
        let (_person, mut client) = alice(&scene).await;
        let announced = client.pasv().await.unwrap().ip();
        // A client on the same machine does not connect through the router.
        let expected = if scene.engine == Engine::Simulator { ANNOUNCED.into() } else { client.server_ip() };
        assert_eq!(announced, expected);
        client.stor("a", "by EPSV, which tells no address\n").await;
    }

    behaviours!(scenario and remote; the_routers_address_is_announced_to_clients_behind_it);
}

mod shares {
    use super::*;

    /// Not of the default range, whose ports other tests use at random.
    const PORTS: Ports = Ports { first: 31_000, last: 31_063 };
    const SHARE: usize = 16;

    fn scenario() -> Scenario {
        Scenario { ftp: Some(Ftp { ports: PORTS, ..Ftp::default() }), ..with_accounts() }
    }

    async fn an_account_that_holds_its_share_of_the_ports_leaves_the_rest_to_others(scene: Scene) {
        let (_alice, mut client) = alice(&scene).await;
        let (_bob, mut other) = someone(&scene, "bob").await;
        client.stor("a", "x").await;
        let mut sessions = Vec::new();
        for number in 0..SHARE {
            let mut session = FtpClient::of(&scene, "alice").await;
            let at = session.epsv().await.unwrap();
            // With and without a transfer that waits.
            if number % 2 == 0 {
                session.command("RETR a").await.expect(150);
            }
            sessions.push((session, at));
        }
        for line in ["EPSV", "PASV"] {
            client.command(line).await.expect(425);
        }
        other.stor("a", "of bob").await;
        assert_eq!(other.retr("a").await, b"of bob");
        let (session, at) = &mut sessions[0];
        let mut data = Data::to(&scene.io, *at).await.unwrap();
        assert_eq!(data.all().await.unwrap(), b"x");
        session.reply().await.expect(226);
        assert_eq!(client.retr("a").await, b"x");
        drop(sessions);
        scene.until(|| scene.open() <= 4).await;
        assert_eq!(client.retr("a").await, b"x");
    }

    behaviours!(scenario and remote;
        an_account_that_holds_its_share_of_the_ports_leaves_the_rest_to_others,
    );
}

mod late {
    use super::*;

    const CONNECT_TIME: Duration = Duration::from_millis(800);

    fn scenario() -> Scenario {
        let limits = Limits { connect_time: CONNECT_TIME, ..Limits::default() };
        Scenario { ftp: Some(Ftp { limits, ..Ftp::default() }), ..with_accounts() }
    }

    async fn a_data_connection_that_does_not_come_is_not_waited_for(scene: Scene) {
        let (_person, mut client) = alice(&scene).await;
        for line in ["STOR a", "LIST"] {
            client.epsv().await.unwrap();
            let asked = scene.io.now();
            client.command(line).await.expect(150);
            client.reply().await.expect(425);
            assert!(scene.io.now() - asked >= CONNECT_TIME);
        }
        assert!(scene.home("alice").is_empty());
        client.stor("a", "x").await;
    }

    async fn a_data_port_without_a_transfer_is_closed_in_time(scene: Scene) {
        let (_person, mut client) = alice(&scene).await;
        client.stor("a", "x").await;
        let at = client.epsv().await.unwrap();
        scene.io.sleep(CONNECT_TIME + Duration::from_millis(500)).await;
        assert!(Data::to(&scene.io, at).await.is_err(), "the port is free for others");
        client.command("RETR a").await.expect(425);
        assert_eq!(client.retr("a").await, b"x");
        // Other commands do not extend the time of a data port.
        let at = client.epsv().await.unwrap();
        for _ in 0..13 {
            scene.io.sleep(CONNECT_TIME / 8).await;
            client.command("NOOP").await.expect(200);
        }
        assert!(Data::to(&scene.io, at).await.is_err());
    }

    behaviours!(scenario and remote;
        a_data_connection_that_does_not_come_is_not_waited_for,
        a_data_port_without_a_transfer_is_closed_in_time,
    );
}

/// The control connection survives any failure of its data connection.
async fn a_session_outlives_its_data_connections(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "x").await;
    for _ in 0..3 {
        client.begin("STOR b").await.abort();
        client.reply().await.expect(426);
        let mut other = FtpClient::of(&scene, "alice").await;
        assert_eq!(other.retr("a").await, b"x");
    }
    assert_eq!(client.retr("a").await, b"x");
    assert_eq!(scene.home("alice").len(), 1);
}

/// An abort right behind the last bytes is never taken for the end of the file.
async fn an_upload_that_breaks_right_behind_its_bytes_is_not_whole(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let rounds = if scene.engine == Engine::Simulator { 3 } else { 60 };
    for _ in 0..rounds {
        let mut data = client.begin("STOR a").await;
        data.send([b'x'; 5_000]).await.unwrap();
        data.abort();
        client.reply().await.expect(426);
    }
    assert!(scene.home("alice").is_empty());
}

mod broken {
    use super::*;

    behaviours!(with_accounts and remote;
        a_session_outlives_its_data_connections,
        an_upload_that_breaks_right_behind_its_bytes_is_not_whole,
    );
}
