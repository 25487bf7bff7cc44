//! TYPE, MODE and STRU: transfers of files as binary and as text.

use plimsoll_tests::{Scene, behaviours};

use super::{alice, with_accounts};

async fn a_text_has_the_networks_line_ends_on_its_way_only(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let long = "a line\n".repeat(3_000);
    for (at, text) in ["", "\n", "a", "a\n", "a\nb\n\nc", &long].into_iter().enumerate() {
        let on_the_way = text.replace('\n', "\r\n");
        client.command("TYPE A").await.expect(200);
        client.stor(&format!("{at}"), on_the_way.clone()).await;
        assert_eq!(scene.home("alice")[&format!("{at}")].as_deref(), Some(text.as_bytes()));
        assert!(client.retr(&format!("{at}")).await == on_the_way.as_bytes());
        client.command("TYPE I").await.expect(200);
        assert!(client.retr(&format!("{at}")).await == text.as_bytes());
    }
}

async fn a_cr_that_ends_no_line_stays(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("TYPE A").await.expect(200);
    for bytes in ["\r", "a\rb", "a\r", "\r\r\n", "\r\ra\r"] {
        client.stor("a", bytes).await;
        let stored = bytes.replace("\r\n", "\n");
        assert_eq!(scene.home("alice")["a"].as_deref(), Some(stored.as_bytes()), "{bytes:?}");
    }
}

async fn bytes_stay_as_they_are(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let all: Vec<u8> = (0..=255).chain(*b"\r\n\n\r").collect();
    for line in ["TYPE I", "TYPE L 8", "type i"] {
        client.command(line).await.expect(200);
        client.stor("a", all.clone()).await;
        assert_eq!(client.retr("a").await, all);
    }
    assert_eq!(scene.home("alice")["a"], Some(all));
}

async fn text_is_what_a_session_begins_with(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "a\n").await;
    client.command("REIN").await.expect(220);
    client.log_in("alice").await;
    assert_eq!(client.retr("a").await, b"a\r\n");
}

async fn an_unsupported_type_mode_or_structure_is_refused_and_changes_nothing(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "a\n").await;
    for (line, codes) in [
        ("TYPE E", [504, 504]),
        ("TYPE L 7", [504, 504]),
        ("TYPE", [501, 504]),
        ("TYPE X", [501, 504]),
        ("MODE B", [504, 504]),
        ("MODE C", [504, 504]),
        ("MODE", [501, 504]),
        ("STRU R", [504, 504]),
        ("STRU P", [504, 504]),
        ("STRU", [501, 504]),
        ("MODE S", [200, 200]),
        ("STRU F", [200, 200]),
    ] {
        let answer = client.command(line).await;
        assert!(codes.contains(&answer.code), "{line}: {} {}", answer.code, answer.text());
    }
    assert_eq!(client.retr("a").await, b"a\n");
}

async fn a_text_is_not_resumed(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "abc").await;
    client.command("TYPE A").await.expect(200);
    client.command("REST 1").await.expect(504);
    client.command("REST 0").await.expect(350);
    assert_eq!(client.retr("a").await, b"abc");
}

behaviours!(with_accounts and remote;
    a_text_has_the_networks_line_ends_on_its_way_only,
    a_cr_that_ends_no_line_stays,
    bytes_stay_as_they_are,
    text_is_what_a_session_begins_with,
    an_unsupported_type_mode_or_structure_is_refused_and_changes_nothing,
    a_text_is_not_resumed,
);
