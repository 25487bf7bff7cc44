//! Malformed or ambiguous requests: refused once, and never followed by another answer.

use plimsoll_io::Address;
use plimsoll_proto::http::Limits;
use plimsoll_proxy::Settings;
use plimsoll_tests::proxy::plain;
use plimsoll_tests::{Scenario, Scene, Tree, behaviours};
use plimsoll_wire::http::head::HeadLimits;

fn scenario() -> Scenario {
    let tree = Tree::new().file("small.txt", "small\n").file("folder/a.txt", "a\n");
    let head = HeadLimits { bytes_max: 2048, fields_max: 8, target_bytes_max: 512 };
    Scenario { tree, limits: Limits { head, ..Limits::default() }, ..Scenario::default() }
}

/// The same server behind a proxy with the same limits.
fn proxied() -> Scenario {
    Scenario { proxy: Some(strict), ..scenario() }
}

fn strict(origin: &Address) -> Settings {
    Settings { limits: scenario().limits, ..plain(origin) }
}

/// Follows each request in the same write.
const NEXT: &str = "GET /small.txt HTTP/1.1\r\nHost: test\r\n\r\n";

/// Asserts that the request gets `status`, that the connection ends, and that no following request is
/// answered.
async fn refused(scene: Scene, status: u16, request: Vec<u8>) {
    let mut client = scene.connect().await;
    client.push([&*request, NEXT.as_bytes()].concat());
    let answer = client.answer().await;
    assert!(!answer.problem(status).is_empty());
    assert_eq!(answer.field("Connection"), Some("close"));
    client.expect_end().await;
    drop(client);
    scene.until(|| scene.open() == 0).await;
}

/// Asserts that the target gets 400 and that the connection continues: the start of the next request is
/// known.
async fn answered_400(scene: Scene, targets: &[&str]) {
    let mut client = scene.connect().await;
    for target in targets {
        client.push(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n{NEXT}"));
        assert!(!client.answer().await.problem(400).is_empty(), "{target}");
        assert_eq!(client.answer().await.text(), "small\n", "{target}");
    }
}

/// Returns a GET with more field lines.
fn get(fields: &str) -> Vec<u8> {
    format!("GET /small.txt HTTP/1.1\r\nHost: test\r\n{fields}\r\n").into_bytes()
}

/// Returns a PUT to the echo with a chunked body of 15 encoded bytes. Its first chunk has 10, so that a
/// `Content-Length` of 10 fits, too.
fn put(fields: &str) -> Vec<u8> {
    format!("PUT /test/echo HTTP/1.1\r\nHost: test\r\n{fields}\r\n5\r\nhello\r\n0\r\n\r\n").into_bytes()
}

/// Defines a behaviour for each line.
macro_rules! refusals {
    (
        refused { $($name:ident: $status:literal, $request:expr;)* }
        answered_400 { $($path_name:ident: $targets:expr;)* }
    ) => {
        $(async fn $name(scene: Scene) { refused(scene, $status, $request.into()).await; })*
        $(async fn $path_name(scene: Scene) { answered_400(scene, &$targets).await; })*
        behaviours!(scenario and tls; $($name,)* $($path_name,)*);

        /// The same requests through a proxy: a refused one never reaches the server.
        mod through_a_proxy {
            use super::{$($name,)* $($path_name,)* behaviours, proxied};
            behaviours!(proxied; $($name,)* $($path_name,)*);
        }
    };
}

refusals! {
    refused {
        a_length_and_a_coding: 400, put("Content-Length: 10\r\nTransfer-Encoding: chunked\r\n");
        a_coding_and_a_length: 400, put("Transfer-Encoding: chunked\r\nContent-Length: 10\r\n");
        two_equal_lengths: 400, put("Content-Length: 10\r\nContent-Length: 10\r\n");
        two_different_lengths: 400, put("Content-Length: 10\r\nContent-Length: 0\r\n");
        a_list_of_lengths: 400, put("Content-Length: 10, 10\r\n");
        an_empty_length: 400, put("Content-Length:\r\n");
        a_length_with_a_plus: 400, put("Content-Length: +10\r\n");
        a_length_below_zero: 400, put("Content-Length: -10\r\n");
        a_length_in_hexadecimal: 400, put("Content-Length: 0xa\r\n");
        a_length_with_a_fraction: 400, put("Content-Length: 10.0\r\n");
        a_length_in_words: 400, put("Content-Length: ten\r\n");
        a_length_with_a_space_within: 400, put("Content-Length: 1 0\r\n");
        a_length_beyond_64_bits: 400, put("Content-Length: 18446744073709551616\r\n");

        an_unknown_coding_under_chunked: 501, put("Transfer-Encoding: gzip, chunked\r\n");
        an_unknown_coding_alone: 400, put("Transfer-Encoding: gzip\r\n");
        an_unknown_coding_over_chunked: 400, put("Transfer-Encoding: chunked, gzip\r\n");
        the_coding_identity: 400, put("Transfer-Encoding: identity\r\n");
        chunked_twice_in_a_list: 400, put("Transfer-Encoding: chunked, chunked\r\n");
        chunked_twice_in_two_lines: 400, put("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n");
        a_coding_that_only_looks_like_chunked: 400, put("Transfer-Encoding: xchunked\r\n");
        an_empty_coding: 400, put("Transfer-Encoding:\r\n");
        a_coding_with_a_control_character: 400, put("Transfer-Encoding: \x0bchunked\r\n");
        a_coding_in_http_1_0: 400,
            "PUT /test/echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";

        a_folded_line: 400, get("X-Long: one\r\n two\r\n");
        a_line_folded_with_a_tab: 400, get("X-Long: one\r\n\ttwo\r\n");
        a_folded_first_line: 400, "GET /small.txt HTTP/1.1\r\n Host: test\r\n\r\n";
        a_bare_cr_in_a_value: 400, get("X-Odd: one\rtwo\r\n");
        a_bare_cr_in_the_request_line: 400, "GET /small.txt HTTP/1.1\rHost: test\r\n\r\n";
        a_bare_lf_after_the_request_line: 400, "GET /small.txt HTTP/1.1\nHost: test\r\n\r\n";
        a_bare_lf_after_a_field: 400, get("X-Odd: one\nX-Even: two\r\n");
        a_bare_lf_for_the_empty_line: 400, "GET /small.txt HTTP/1.1\r\nHost: test\r\n\n";
        bare_lfs_throughout: 400, "GET /small.txt HTTP/1.1\nHost: test\n\n";
        a_nul_in_a_value: 400, get("X-Odd: one\0two\r\n");
        a_nul_in_a_name: 400, get("X-\0dd: one\r\n");
        a_nul_in_the_target: 400, "GET /small\0.txt HTTP/1.1\r\nHost: test\r\n\r\n";
        a_control_character_in_a_value: 400, get("X-Odd: \x1b[1m\r\n");

        two_hosts: 400, get("Host: other\r\n");
        the_same_host_twice: 400, get("Host: test\r\n");
        no_host: 400, "GET /small.txt HTTP/1.1\r\n\r\n";
        an_empty_host: 400, "GET /small.txt HTTP/1.1\r\nHost:\r\n\r\n";
        a_host_with_a_path: 400, "GET /small.txt HTTP/1.1\r\nHost: test/path\r\n\r\n";
        a_host_with_a_user: 400, "GET /small.txt HTTP/1.1\r\nHost: root@test\r\n\r\n";
        a_host_with_a_space: 400, "GET /small.txt HTTP/1.1\r\nHost: one two\r\n\r\n";
        a_list_of_hosts: 400, "GET /small.txt HTTP/1.1\r\nHost: one,two\r\n\r\n";
        a_host_with_a_bad_port: 400, "GET /small.txt HTTP/1.1\r\nHost: test:http\r\n\r\n";

        a_space_before_the_colon: 400, get("X-Odd : one\r\n");
        a_space_before_the_colon_of_the_length: 400, put("Content-Length : 10\r\n");
        an_empty_field_name: 400, get(": one\r\n");
        a_space_in_a_field_name: 400, get("X Odd: one\r\n");
        a_line_without_a_colon: 400, get("X-Odd\r\n");

        a_head_that_is_too_long: 431, get(&format!("X-Long: {}\r\n", "x".repeat(2048)));
        a_head_of_many_long_fields: 431, get(&format!("X-Long: {}\r\n", "x".repeat(500)).repeat(5));
        too_many_fields: 431, get(&"X-Many: 1\r\n".repeat(8));
        a_target_that_is_too_long: 414,
            format!("GET /{} HTTP/1.1\r\nHost: test\r\n\r\n", "x".repeat(512));
        a_target_that_is_longer_than_a_head: 414,
            format!("GET /{} HTTP/1.1\r\nHost: test\r\n\r\n", "x".repeat(5000));

        version_2: 505, "GET /small.txt HTTP/2.0\r\nHost: test\r\n\r\n";
        version_1_2: 505, "GET /small.txt HTTP/1.2\r\nHost: test\r\n\r\n";
        version_0_9_by_name: 505, "GET /small.txt HTTP/0.9\r\n\r\n";
        the_preface_of_http_2: 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        no_version: 400, "GET /small.txt\r\n";
        a_version_in_small_letters: 400, "GET /small.txt http/1.1\r\nHost: test\r\n\r\n";
        another_protocol: 400, "SIP /small.txt SIP/2.0\r\nHost: test\r\n\r\n";
        two_spaces_before_the_target: 400, "GET  /small.txt HTTP/1.1\r\nHost: test\r\n\r\n";
        two_spaces_before_the_version: 400, "GET /small.txt  HTTP/1.1\r\nHost: test\r\n\r\n";
        a_space_within_the_target: 400, "GET /small .txt HTTP/1.1\r\nHost: test\r\n\r\n";
        a_space_before_the_method: 400, " GET /small.txt HTTP/1.1\r\nHost: test\r\n\r\n";
        a_method_that_is_no_token: 400, "GE(T /small.txt HTTP/1.1\r\nHost: test\r\n\r\n";

        two_empty_lines_before_the_request: 400, "\r\n\r\nGET /small.txt HTTP/1.1\r\nHost: test\r\n\r\n";
        a_bare_lf_before_the_request: 400, "\nGET /small.txt HTTP/1.1\r\nHost: test\r\n\r\n";
        a_tls_client_hello: 400, b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\x00\r\n\r\n".to_vec();
        an_ssh_banner: 400, "SSH-2.0-OpenSSH_9.6\r\n";

        a_target_without_a_slash: 400, "GET small.txt HTTP/1.1\r\nHost: test\r\n\r\n";
        a_star_for_another_method: 400, "GET * HTTP/1.1\r\nHost: test\r\n\r\n";
        a_url_of_another_scheme: 400, "GET ftp://test/small.txt HTTP/1.1\r\nHost: test\r\n\r\n";
        a_url_without_a_host: 400, "GET http:///small.txt HTTP/1.1\r\nHost: test\r\n\r\n";
        an_authority_for_another_method: 400, "GET test:80 HTTP/1.1\r\nHost: test\r\n\r\n";
        a_path_for_connect: 400, "CONNECT /small.txt HTTP/1.1\r\nHost: test\r\n\r\n";
    }
    answered_400 {
        dot_segments_are_not_resolved:
            ["/..", "/../small.txt", "/folder/../small.txt", "/./small.txt", "/folder/..", "/folder/."];
        encoded_dots_are_dots:
            ["/%2e%2e/small.txt", "/folder/%2E%2e/small.txt", "/.%2e/small.txt", "/%2e/small.txt"];
        an_encoded_slash_is_none: ["/folder%2fa.txt", "/folder%2Fa.txt", "/%2fetc/passwd"];
        an_encoded_nul_is_refused: ["/small.txt%00", "/%00", "/%00small.txt"];
        bad_escapes_are_refused: ["/%", "/%2", "/%zz", "/small.txt%", "/%%32e", "/%u002e", "/%+1"];
        encoded_slashes_are_not_merged: ["/%2fsmall.txt", "//%2f/small.txt", "/folder/%2f"];
        a_fragment_is_never_sent: ["/small.txt#top", "/#/small.txt"];
    }
}
