//! An FTP client that disappears after each of its steps in turn. Its data connection, its control
//! connection, or both break, or end as those of a killed process do.
//!
//! Nothing must be left open. Each file is the old one or the new one, complete. An interrupted upload can
//! be resumed.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_io::sim::Faults;
use plimsoll_tests::tree::noise;
use plimsoll_tests::under::Simulation;
use plimsoll_tests::{Data, FtpClient, Person, Scene};

use super::scenario;

const OLD: &[u8] = b"the old one\n";
const BYTES: usize = 3_000;

/// Returns the contents sent to a name.
fn new(name: &str) -> Vec<u8> {
    noise(name.len() as u64, BYTES)
}

/// The connections that end at the present step.
#[derive(Clone, Copy, Debug)]
enum Dropped {
    /// The data connection breaks, and the client waits for the server to notice.
    Data,
    /// The control connection breaks, and the data connection a little later.
    Control,
    /// Both break.
    Both,
    /// Both end, as the kernel ends those of a killed process. The older one ends first, an order that the
    /// server can rely on only if the network preserves it.
    Ended,
}

/// A client session in progress.
struct Session {
    scene: Scene,
    client: Option<FtpClient>,
    data: Option<Data>,
    steps_left: usize,
    /// A delay that preserves the order of two events across the network.
    order_kept_after: Duration,
}

impl Session {
    /// Counts one more step. Fails if none is left.
    fn step(&mut self) -> io::Result<()> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or(io::ErrorKind::Interrupted)?;
        Ok(())
    }

    fn client(&mut self) -> &mut FtpClient {
        self.client.as_mut().expect("it has connected")
    }

    async fn reply(&mut self, code: u16) -> io::Result<()> {
        self.step()?;
        self.client().try_reply().await?.expect(code);
        Ok(())
    }

    async fn command(&mut self, line: &str, code: u16) -> io::Result<()> {
        self.step()?;
        self.client().push(format!("{line}\r\n"));
        self.reply(code).await
    }

    async fn prepare(&mut self) -> io::Result<()> {
        self.step()?;
        let at = self.client().epsv().await?;
        self.step()?;
        self.data = Some(Data::to(&self.scene.io, at).await?);
        Ok(())
    }

    async fn store(&mut self, name: &str) -> io::Result<()> {
        self.prepare().await?;
        self.command(&format!("STOR {name}"), 150).await?;
        let bytes = new(name);
        for part in bytes.chunks(BYTES / 3) {
            self.step()?;
            self.data.as_mut().expect("it was prepared").send(part).await?;
        }
        self.step()?;
        self.data.as_mut().expect("it was prepared").end().await?;
        self.reply(226).await?;
        self.data = None;
        Ok(())
    }

    /// Runs all steps.
    async fn run(&mut self) -> io::Result<()> {
        self.step()?;
        self.client = Some(FtpClient::try_connect(&self.scene).await?);
        self.reply(220).await?;
        self.command("USER alice", 331).await?;
        self.command("PASS correct horse", 230).await?;
        self.command("TYPE I", 200).await?;
        self.store("a").await?;
        self.store("new").await?;
        self.prepare().await?;
        self.command("RETR a", 150).await?;
        self.step()?;
        let came = self.data.as_mut().expect("it was prepared").all().await?;
        assert!(came == new("a"));
        self.reply(226).await?;
        self.prepare().await?;
        self.command("LIST", 150).await?;
        self.step()?;
        self.data.as_mut().expect("it was prepared").all().await?;
        self.reply(226).await?;
        self.command("QUIT", 221).await
    }

    async fn end(mut self, dropped: Dropped) {
        let pause = Duration::from_millis(50);
        match dropped {
            Dropped::Both => {}
            Dropped::Data => {
                self.data = None;
                self.scene.io.sleep(pause).await;
            }
            Dropped::Control => {
                self.client = None;
                self.scene.io.sleep(pause).await;
            }
            Dropped::Ended => {
                if let Some(client) = &mut self.client {
                    client.end();
                }
                self.scene.io.sleep(self.order_kept_after).await;
                if let Some(data) = &mut self.data {
                    let _ = data.end().await;
                }
                self.scene.io.sleep(pause).await;
            }
        }
    }
}

/// Asserts that a file is the old one, the new one, or absent. Returns whether it is the new one.
fn is_new(scene: &Scene, name: &str) -> bool {
    let held = scene.home("alice").get(name).cloned().flatten();
    let is_new = held.as_ref() == Some(&new(name));
    let old = (name == "a").then(|| OLD.to_vec());
    assert!(is_new || held == old, "{name} has {:?} bytes", held.map(|bytes| bytes.len()));
    is_new
}

/// A client that reconnects can complete both files.
async fn comes_back(scene: &Scene) {
    let mut client = FtpClient::of(scene, "alice").await;
    if !is_new(scene, "new") {
        let size = client.command("SIZE new").await;
        let at = if size.code == 213 { size.text().parse().unwrap() } else { 0 };
        assert!(at > 0 || size.code == 550, "{}", size.text());
        client.command(format!("REST {at}")).await.expect(350);
        client.send("STOR new", &new("new")[at..]).await.expect(226);
        assert!(client.retr("new").await == new("new"));
    }
    client.stor("a", new("a")).await;
    assert!(client.retr("a").await == new("a"));
    client.command("QUIT").await.expect(221);
    client.expect_end().await;
}

/// Returns whether the session completed before its connections were dropped.
fn run(seed: u64, faults: Faults, steps: usize, dropped: Dropped) -> bool {
    let Simulation { sim, client, scene, .. } = Simulation::new(seed, faults, &scenario());
    let over = Rc::new(Cell::new(false));
    let completed = Rc::clone(&over);
    let within = scene.clone();
    sim.run(&client, async move {
        let scene = within;
        Person::new(&scene, "alice").await.put("/files/a", OLD).await;
        let order_kept_after = faults.delay_max * 4;
        let mut session =
            Session { scene: scene.clone(), client: None, data: None, steps_left: steps, order_kept_after };
        completed.set(session.run().await.is_ok());
        session.end(dropped).await;
        scene.until(|| scene.open() == 0).await;
        if completed.get() {
            assert!(is_new(&scene, "a") && is_new(&scene, "new"));
        } else {
            is_new(&scene, "a");
        }
        comes_back(&scene).await;
        scene.until(|| scene.open() == 0).await;
        scene.until(|| scene.pending("alice").is_empty()).await;
    });
    assert_eq!(sim.connections_open(), 0, "seed {seed}, {dropped:?} after {steps} steps");
    assert!(sim.panics().is_empty(), "seed {seed}, {dropped:?} after {steps} steps: {:?}", sim.panics());
    over.get()
}

/// Drops the connections of a session after each of its steps.
fn at_every_step(dropped: Dropped) {
    for (seed, faults) in [(0, Faults::none()), (1, Faults::splits()), (2, Faults::splits())] {
        let mut steps = 0;
        while !run(seed, faults, steps, dropped) {
            steps += 1;
        }
        assert!(steps > 30, "it has more steps than {steps}");
    }
}

#[test]
fn a_data_connection_may_break_at_every_step() {
    at_every_step(Dropped::Data);
}

#[test]
fn a_control_connection_may_break_at_every_step() {
    at_every_step(Dropped::Control);
}

#[test]
fn both_may_break_at_every_step() {
    at_every_step(Dropped::Both);
}

#[test]
fn a_client_may_be_killed_at_every_step() {
    at_every_step(Dropped::Ended);
}

#[test]
fn after_any_resets_files_are_whole_and_nothing_is_left() {
    for (seed, per_mille) in plimsoll_tests::under::every_seed().zip([20, 5, 1].into_iter().cycle()) {
        let faults = Faults::resets(per_mille);
        let Simulation { sim, client, scene, .. } = Simulation::new(seed, faults, &scenario());
        sim.run(&client, async move {
            let auth = &scene.accounts().auth;
            let (quota, may) = (Default::default(), Default::default());
            let password = plimsoll_auth::Secret::from(plimsoll_tests::accounts::PASSWORD);
            auth.add(&scene.io, "alice", &password, quota, may).await.unwrap();
            for _ in 0..3 {
                let mut session = Session {
                    scene: scene.clone(),
                    client: None,
                    data: None,
                    steps_left: usize::MAX,
                    order_kept_after: Duration::ZERO,
                };
                let _ = session.run().await;
                session.end(Dropped::Both).await;
            }
            scene.until(|| scene.open() == 0).await;
            for name in ["a", "new"] {
                let held = scene.home("alice").get(name).cloned().flatten();
                assert!(held.is_none_or(|held| held == new(name)));
            }
        });
        assert!(sim.panics().is_empty(), "seed {seed}: {:?}", sim.panics());
        assert_eq!(sim.connections_open(), 0, "seed {seed}");
    }
}
