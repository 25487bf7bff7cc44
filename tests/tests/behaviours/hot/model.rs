//! Changes and reads in any order, against a model: no read returns a file that no longer exists.

use std::collections::BTreeMap;

use plimsoll_content::limits::HOT_BODY_BYTES_MAX;
use plimsoll_tests::accounts::settings;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Engine, Ftp, FtpClient, Person, Scenario, Scene, behaviours};

use super::FOR_EVER;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const SIZES: [usize; 4] = [0, 700, 9_000, 60_000];

fn scenario() -> Scenario {
    let (accounts, ftp) = (Some(settings()), Some(Ftp::default()));
    Scenario { accounts, ftp, hot: FOR_EVER, ..Scenario::default() }
}

/// A pseudorandom generator from a seed, which a failure prints.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: usize) -> usize {
        // The multiplier is Knuth's (MMIX); the low bits are the weak ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.below(NAMES.len())]
    }
}

/// The expected contents of alice's home, the clients that change it, and a grantee that reads it.
struct Model {
    held: BTreeMap<&'static str, (u64, usize)>,
    alice: Person,
    ftp: FtpClient,
    bob: Person,
    /// The id of the share of `docs`, while there is one.
    share: Option<String>,
    next: u64,
    seed: u64,
    /// Whether a read has found a file whose bytes the cache keeps: in a short run, there may be none. A
    /// larger file is kept open, and is no hit where asking for its status would block.
    has_found_bytes: bool,
}

impl Model {
    async fn change(&mut self, draws: &mut Draws) {
        let (name, other) = (draws.name(), draws.name());
        let (target, is_there) = (format!("/files/docs/{name}"), self.held.contains_key(name));
        let to = format!("Destination: /files/docs/{other}\r\n");
        match draws.below(8) {
            0..3 => {
                let (content, size) = (self.next, SIZES[draws.below(SIZES.len())]);
                self.next += 1;
                assert!(self.alice.put(&target, noise(content, size)).await.status < 300);
                self.held.insert(name, (content, size));
            }
            3 => {
                let (content, size) = (self.next, SIZES[draws.below(SIZES.len())]);
                self.next += 1;
                self.ftp.stor(&format!("docs/{name}"), noise(content, size)).await;
                self.held.insert(name, (content, size));
            }
            4 => {
                let status = self.alice.delete(&target).await.status;
                assert_eq!(status, if is_there { 204 } else { 404 });
                self.held.remove(name);
            }
            5 if name != other && is_there => {
                assert!(self.alice.ask("MOVE", &target, &to, "").await.status < 300);
                let moved = self.held.remove(name).unwrap();
                self.held.insert(other, moved);
            }
            6 if name != other && is_there => {
                assert!(self.alice.ask("COPY", &target, &to, "").await.status < 300);
                self.held.insert(other, self.held[name]);
            }
            _ => match self.share.take() {
                Some(id) => assert_eq!(self.alice.delete(&format!("/api/shares/{id}")).await.status, 204),
                None => self.share = Some(self.alice.share("/docs", "bob", "read").await),
            },
        }
    }

    async fn read(&mut self, name: &'static str) {
        let expected = self.held.get(name).map(|(content, size)| noise(*content, *size));
        let is_kept = |content: &Vec<u8>| (1..=HOT_BODY_BYTES_MAX).contains(&content.len());
        self.has_found_bytes |= expected.as_ref().is_some_and(is_kept);
        for _ in 0..2 {
            let hers = self.alice.get(&format!("/files/docs/{name}")).await;
            let his = self.bob.get(&format!("/shared/alice/docs/{name}")).await;
            let found = (hers.status == 200).then_some(hers.body);
            assert!(found == expected, "seed {}: what Alice has as {name}", self.seed);
            let found = (his.status == 200).then_some(his.body);
            let shown = expected.clone().filter(|_| self.share.is_some());
            assert!(found == shown, "seed {}: what Bob sees as {name}", self.seed);
        }
    }
}

async fn a_read_returns_the_current_file_after_random_changes(scene: Scene) {
    let mut seed = [0; 8];
    scene.io.entropy(&mut seed);
    let seed = u64::from_le_bytes(seed);
    let mut alice = Person::new(&scene, "alice").await;
    assert_eq!(alice.ask("MKCOL", "/files/docs", "", "").await.status, 201);
    let (bob, ftp) = (Person::new(&scene, "bob").await, FtpClient::of(&scene, "alice").await);
    let (held, mut draws) = (BTreeMap::new(), Draws(seed));
    let mut model = Model { held, alice, ftp, bob, share: None, next: 1, seed, has_found_bytes: false };
    let steps = if scene.engine == Engine::Simulator { 12 } else { 60 };
    for _ in 0..steps {
        model.change(&mut draws).await;
        for _ in 0..2 {
            model.read(draws.name()).await;
        }
    }
    // A file that was found once was read a second time, from the cache.
    assert!(scene.hot.figures().hits > 0 || !model.has_found_bytes, "seed {seed}");
}

behaviours!(scenario and remote and tls; a_read_returns_the_current_file_after_random_changes);
