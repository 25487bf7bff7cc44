//! Command lines as clients send them: with Telnet commands, with other line ends, too long, or random
//! bytes.

use std::time::Duration;

use plimsoll_proto::ftp::Limits;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Ftp, FtpClient, Person, Scenario, Scene, behaviours};

use super::{alice, with_accounts};

const LINE_BYTES_MAX: usize = 600;
const LINE_TIME: Duration = Duration::from_millis(400);

fn scenario() -> Scenario {
    let limits = Limits { line_bytes_max: LINE_BYTES_MAX, ..Limits::default() };
    Scenario { ftp: Some(Ftp { limits, ..Ftp::default() }), ..with_accounts() }
}

async fn telnets_own_bytes_are_no_part_of_a_line(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    for line in [
        &b"\xff\xf4\xff\xf2NOOP\r\n"[..],
        b"NO\xff\xf1OP\r\n",
        b"\xff\xfb\x06NOOP\r\n",
        b"NOOP\xff\xfd\x01\r\n",
    ] {
        client.push(line);
        client.reply().await.expect(200);
    }
    // The byte 255 itself is escaped by doubling.
    client.push(b"MKD a\xff\xffb\r\n");
    let answer = client.reply().await;
    assert!(matches!(answer.code, 257 | 553), "{}", answer.text());
}

/// Some programs send a Telnet NOP every minute to keep a connection alive, and nothing else.
async fn telnets_nothing_begins_no_line(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    for _ in 0..3 {
        client.push(b"\xff\xf1");
        client.expect_silence(LINE_TIME).await;
    }
    client.command("NOOP").await.expect(200);
}

async fn a_client_that_sends_all_commands_and_ends_gets_every_response(scene: Scene) {
    let mut client = FtpClient::connect(&scene).await;
    client.push("NOOP\r\nSYST\r\nPWD\r\n");
    client.end();
    for code in [200, 215, 530] {
        client.reply().await.expect(code);
    }
    client.expect_end().await;
}

async fn a_line_may_end_without_a_cr(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.push("NOOP\nPWD\r\nNOOP\n");
    for code in [200, 257, 200] {
        client.reply().await.expect(code);
    }
}

async fn a_line_that_is_too_long_is_refused_and_the_next_is_read(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    for len in [LINE_BYTES_MAX + 1, 5 * LINE_BYTES_MAX, 100_000] {
        client.command(format!("STOR {}", "x".repeat(len))).await.expect(500);
        client.command("NOOP").await.expect(200);
    }
    let long = "x".repeat(LINE_BYTES_MAX - "MLST ".len() - "\r\n".len());
    let answer = client.command(format!("MLST {long}")).await;
    assert!(matches!(answer.code, 550 | 553), "a line as long as may be is read: {}", answer.text());
}

async fn noise_is_refused_line_by_line(scene: Scene) {
    let mut client = FtpClient::connect(&scene).await;
    let lines = noise(5, 400).into_iter().map(|byte| if byte == b'\r' { b'x' } else { byte & 0x7f });
    let lines: Vec<u8> = lines.collect();
    let count = lines.iter().filter(|&&byte| byte == b'\n').count();
    client.push(lines);
    client.push("\r\n");
    for _ in 0..=count {
        assert!(client.reply().await.code >= 500);
    }
    Person::new(&scene, "alice").await;
    client.log_in("alice").await;
}

async fn an_http_request_is_answered_and_goes_nowhere(scene: Scene) {
    let mut client = FtpClient::connect(&scene).await;
    client.push("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 12\r\n\r\nUSER alice\r\n");
    for _ in 0..4 {
        client.reply().await.expect(500);
    }
    client.reply().await.expect(331);
    client.command("SIZE a").await.expect(530);
}

behaviours!(scenario and remote;
    telnets_own_bytes_are_no_part_of_a_line,
    a_client_that_sends_all_commands_and_ends_gets_every_response,
    a_line_may_end_without_a_cr,
    a_line_that_is_too_long_is_refused_and_the_next_is_read,
    noise_is_refused_line_by_line,
    an_http_request_is_answered_and_goes_nowhere,
);

mod line_time {
    use super::*;
    fn scenario() -> Scenario {
        let limits = Limits { line_time: LINE_TIME, ..Limits::default() };
        Scenario { ftp: Some(Ftp { limits, ..Ftp::default() }), ..with_accounts() }
    }
    behaviours!(scenario and remote; telnets_nothing_begins_no_line);
}
