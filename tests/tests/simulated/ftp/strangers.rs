//! Connections of strangers to a data port, and the exhaustion of data ports.

use std::net::SocketAddr;
use std::time::Duration;

use plimsoll_io::sim::Faults;
use plimsoll_io::{Io, Want};
use plimsoll_proto::ftp::{Limits, Ports};
use plimsoll_tests::under::{Simulation, every_seed, simulated};
use plimsoll_tests::{Data, DataMode, Ftp, FtpClient, Person, Scenario};

use super::scenario;

/// Returns whether a stranger received any byte.
async fn got_something(io: &Io, at: SocketAddr) -> bool {
    let Ok(mut data) = Data::to(io, at).await else { return false };
    let Ok(stream) = data.stream().await else { return false };
    matches!(stream.rx.recv(Want::Body).await, Ok(Some(_)))
}

#[test]
fn a_stranger_at_a_data_port_gets_nothing_and_delays_no_client() {
    for seed in every_seed().take(50) {
        let Simulation { sim, client, scene, .. } = Simulation::new(seed, Faults::splits(), &scenario());
        let stranger = sim.host("stranger").io();
        sim.run(&client, async move {
            drop(Person::new(&scene, "alice").await);
            let mut client = FtpClient::of(&scene, "alice").await;
            client.stor("a", "of alice\n").await;
            let at = client.epsv().await.unwrap();
            client.command("RETR a").await.expect(150);
            assert!(!got_something(&stranger, at).await);
            assert!(!got_something(&stranger, at).await);
            let mut data = Data::to(&scene.io, at).await.unwrap();
            assert_eq!(data.all().await.unwrap(), b"of alice\n");
            client.reply().await.expect(226);
            // Bytes that a stranger sends are not stored either.
            let at = client.epsv().await.unwrap();
            let mut first = Data::to(&stranger, at).await.unwrap();
            client.command("STOR b").await.expect(150);
            let _ = first.send("of a stranger\n").await;
            let _ = first.end().await;
            let mut data = Data::to(&scene.io, at).await.unwrap();
            data.send("of alice, too\n").await.unwrap();
            data.finish().await.unwrap();
            client.reply().await.expect(226);
            assert_eq!(client.retr("b").await, b"of alice, too\n");
        });
        assert!(sim.panics().is_empty(), "seed {seed}: {:?}", sim.panics());
    }
}

/// More connections than any backlog or limit of strangers in former versions of the server.
const CROWD: usize = 40;

#[test]
fn a_transfer_succeeds_however_many_strangers_connect_to_its_data_port_first() {
    for seed in every_seed().take(20) {
        let Simulation { sim, client, scene, .. } = Simulation::new(seed, Faults::splits(), &scenario());
        let stranger = sim.host("stranger").io();
        sim.run(&client, async move {
            drop(Person::new(&scene, "alice").await);
            let mut client = FtpClient::of(&scene, "alice").await;
            client.stor("a", "of alice\n").await;
            for mode in [DataMode::Passive, DataMode::Extended] {
                let at = if mode == DataMode::Passive { client.pasv().await } else { client.epsv().await };
                let at = at.unwrap();
                client.command("RETR a").await.expect(150);
                for _ in 0..CROWD {
                    assert!(!got_something(&stranger, at).await);
                }
                let mut data = Data::to(&scene.io, at).await.expect("the port still accepts");
                assert_eq!(data.all().await.unwrap(), b"of alice\n");
                client.reply().await.expect(226);
            }
        });
        assert!(sim.panics().is_empty(), "seed {seed}: {:?}", sim.panics());
    }
}

#[test]
fn an_endless_crowd_of_strangers_delays_the_refusal_no_longer_than_the_connect_time() {
    let Simulation { sim, client, scene, .. } = Simulation::new(3, Faults::splits(), &scenario());
    let stranger = sim.host("stranger").io();
    sim.run(&client, async move {
        drop(Person::new(&scene, "alice").await);
        let mut client = FtpClient::of(&scene, "alice").await;
        client.stor("a", "of alice\n").await;
        let at = client.epsv().await.unwrap();
        client.command("RETR a").await.expect(150);
        let asked = scene.io.now();
        while Data::to(&stranger, at).await.is_ok() {
            stranger.sleep(Duration::from_millis(100)).await;
        }
        client.reply().await.expect(425);
        let (waited, connect_time) = (scene.io.now() - asked, Limits::default().connect_time);
        assert!(waited >= connect_time && waited < connect_time * 2, "{waited:?}");
        assert_eq!(client.retr("a").await, b"of alice\n");
    });
    assert!(sim.panics().is_empty());
}

#[test]
fn with_all_ports_taken_passive_mode_is_refused_and_active_mode_works() {
    let ftp = Ftp { ports: Ports { first: 30_000, last: 30_000 }, ..Ftp::default() };
    let scenario = Scenario { ftp: Some(ftp), ..scenario() };
    simulated(0, Faults::none(), &scenario, |scene| async move {
        drop(Person::new(&scene, "alice").await);
        drop(Person::new(&scene, "bob").await);
        let mut first = FtpClient::of(&scene, "alice").await;
        assert_eq!(first.epsv().await.unwrap().port(), 30_000);
        let mut second = FtpClient::of(&scene, "bob").await;
        second.command("EPSV").await.expect(425);
        second.command("PASV").await.expect(425);
        second.mode = DataMode::Active;
        second.stor("a", "x").await;
        drop(first);
        scene.until(|| scene.open() == 1).await;
        second.mode = DataMode::Extended;
        assert_eq!(second.retr("a").await, b"x");
    });
}
