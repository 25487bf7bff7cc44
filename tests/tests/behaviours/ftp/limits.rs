//! Time limits: the server waits with a bound for a client that is silent, sends nothing or receives
//! nothing.

use std::time::Duration;

use plimsoll_io::Instant;
use plimsoll_proto::ftp::Limits;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Engine, Ftp, FtpClient, Person, Scenario, Scene, behaviours};

use super::{alice, large_bytes, with_accounts};

const SHORT: Duration = Duration::from_millis(700);

fn with(limits: Limits) -> Scenario {
    Scenario { ftp: Some(Ftp { limits, ..Ftp::default() }), ..with_accounts() }
}

/// The time that a round trip may take in the simulator.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(100);

/// Asserts that the control connection ends with 421, [`SHORT`] after the client's last act, before which
/// it noted the time `since`. A real machine may be late, but never early.
async fn is_ended(scene: &Scene, client: &mut FtpClient, since: Instant) {
    client.until_answered().await;
    let passed = scene.io.now() - since;
    assert!(passed >= SHORT, "after {passed:?} already");
    assert!(scene.engine != Engine::Simulator || passed < SHORT + ROUND_TRIP_MAX, "only after {passed:?}");
    client.reply().await.expect(421);
    client.expect_end().await;
}

async fn a_client_that_does_not_log_in_is_disconnected(scene: Scene) {
    let since = scene.io.now();
    let mut client = FtpClient::connect(&scene).await;
    is_ended(&scene, &mut client, since).await;
    let since = scene.io.now();
    let mut client = FtpClient::connect(&scene).await;
    client.command("USER alice").await.expect(331);
    is_ended(&scene, &mut client, since).await;
    // The limit also ends a connection that keeps sending commands.
    let since = scene.io.now();
    let mut client = FtpClient::connect(&scene).await;
    while client.try_command("NOOP").await.is_ok_and(|answer| answer.code == 200) {
        scene.io.sleep(SHORT / 10).await;
        assert!(scene.io.now() - since < SHORT * 20, "nobody has logged in for {:?}", scene.io.now() - since);
    }
    assert!(scene.io.now() - since >= SHORT, "after {:?} already", scene.io.now() - since);
}

async fn an_idle_client_is_disconnected(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let mut since = scene.io.now();
    for _ in 0..3 {
        scene.io.sleep(SHORT / 3).await;
        since = scene.io.now();
        client.command("NOOP").await.expect(200);
    }
    is_ended(&scene, &mut client, since).await;
}

async fn a_client_that_does_not_end_its_line_is_disconnected(scene: Scene) {
    let mut client = FtpClient::connect(&scene).await;
    let since = scene.io.now();
    client.push("USER al");
    is_ended(&scene, &mut client, since).await;
}

async fn a_stalled_upload_is_aborted_and_kept(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let mut data = client.begin("STOR a").await;
    data.send("01234").await.unwrap();
    client.reply().await.expect(426);
    assert!(scene.home("alice").is_empty());
    assert_eq!(client.command("SIZE a").await.expect(213).text(), "5");
    let mut data = client.begin("APPE a").await;
    for byte in b"56789" {
        scene.io.sleep(SHORT / 3).await;
        data.send([*byte]).await.unwrap();
    }
    data.finish().await.unwrap();
    client.reply().await.expect(226);
    assert_eq!(client.retr("a").await, b"0123456789");
}

async fn a_download_that_the_client_does_not_receive_is_aborted(scene: Scene) {
    let mut person = Person::new(&scene, "alice").await;
    person.put("/files/large", noise(1, large_bytes(scene.engine))).await;
    let mut client = FtpClient::of(&scene, "alice").await;
    let data = client.begin("RETR large").await;
    client.reply().await.expect(426);
    client.command("NOOP").await.expect(200);
    drop(data);
}

/// Returns `bytes` as TYPE A sends them: each LF has a CR before it.
fn with_crlf(bytes: &[u8]) -> Vec<u8> {
    let before = |at: usize| at.checked_sub(1).map(|at| bytes[at]);
    let is_bare = |at: usize| bytes[at] == b'\n' && before(at) != Some(b'\r');
    (0..bytes.len()).flat_map(|at| is_bare(at).then_some(b'\r').into_iter().chain([bytes[at]])).collect()
}

async fn a_download_that_is_taken_slowly_goes_on(scene: Scene) {
    let mut person = Person::new(&scene, "alice").await;
    let large = noise(2, large_bytes(scene.engine));
    person.put("/files/large", &large).await;
    let mut client = FtpClient::of(&scene, "alice").await;
    // The kernel advertises free receive buffer in large steps.
    let least = if scene.engine == Engine::Simulator { 1 } else { large.len() / 10 };
    for line in ["TYPE I", "TYPE A"] {
        client.command(line).await.expect(200);
        let mut data = client.begin("RETR large").await;
        let mut came = Vec::new();
        for _ in 0..6 {
            let enough = came.len() + least;
            while came.len() < enough
                && let Some(more) = data.receive().await.unwrap()
            {
                came.extend_from_slice(&more);
            }
            scene.io.sleep(SHORT / 3).await;
        }
        came.extend(data.all().await.unwrap());
        assert!(came == if line == "TYPE A" { with_crlf(&large) } else { large.clone() }, "{line}");
        client.reply().await.expect(226);
    }
}

mod log_in_time {
    use super::*;
    fn scenario() -> Scenario {
        with(Limits { login_time: SHORT, ..Limits::default() })
    }
    behaviours!(scenario and remote; a_client_that_does_not_log_in_is_disconnected);
}

mod idle_time {
    use super::*;
    fn scenario() -> Scenario {
        with(Limits { idle_time: SHORT, ..Limits::default() })
    }
    behaviours!(scenario and remote; an_idle_client_is_disconnected);
}

mod line_time {
    use super::*;
    fn scenario() -> Scenario {
        with(Limits { line_time: SHORT, ..Limits::default() })
    }
    behaviours!(scenario and remote; a_client_that_does_not_end_its_line_is_disconnected);
}

mod receive_time {
    use super::*;
    fn scenario() -> Scenario {
        with(Limits { receive_time: SHORT, ..Limits::default() })
    }
    behaviours!(scenario and remote; a_stalled_upload_is_aborted_and_kept);
}

mod send_time {
    use super::*;
    fn scenario() -> Scenario {
        with(Limits { send_time: SHORT, ..Limits::default() })
    }
    behaviours!(scenario and remote;
        a_download_that_the_client_does_not_receive_is_aborted,
        a_download_that_is_taken_slowly_goes_on,
    );
}
