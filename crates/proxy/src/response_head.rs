//! Writes the head of an origin's response for a client.
//!
//! It decides neither the framing nor whether the connection is kept. Invariants: the head has one framing,
//! which is written here. Other lines are the origin's, byte for byte, without those that concern its
//! connection.

use plimsoll_wire::http::answer::AnswerHead;
use plimsoll_wire::http::head::{Field, Version};
use plimsoll_wire::http::response::{Framing, ResponseHead};

use crate::body::OutFraming;
use crate::fields::{
    ConnectionOptions, is_hop_by_hop, is_name, list, may_be_trailer, write_field, write_via,
};

/// The properties of a response's head that the proxy decides.
pub(crate) struct ResponseForm<'a> {
    pub(crate) framing: OutFraming,
    /// Whether the client may send another request on its connection.
    pub(crate) keep: bool,
    /// The version of the client.
    pub(crate) version: Version,
    /// The text of Date, for a response without one.
    pub(crate) date: &'a [u8],
    pub(crate) pseudonym: &'a str,
    /// The member that the cache adds to Cache-Status.
    pub(crate) cache_status: Option<&'a str>,
}

/// Returns how a response's body is delimited for a client of this version. "A server MUST NOT send a
/// response containing Transfer-Encoding unless the corresponding request indicates HTTP/1.1" (RFC 9112,
/// section 6.1).
pub(crate) fn framing_for(version: Version, framing: Framing) -> OutFraming {
    match (framing, version) {
        (Framing::None, _) => OutFraming::None,
        (Framing::Length(bytes), _) => OutFraming::Length(bytes),
        (Framing::Chunked | Framing::UntilClose, Version::Http11) => OutFraming::Chunked,
        (Framing::Chunked | Framing::UntilClose, Version::Http10) => OutFraming::UntilClose,
    }
}

/// Writes the head of a final response.
pub(crate) fn write_final(head: &ResponseHead, block: &[u8], form: &ResponseForm<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(head.len() + 192);
    let _unfinished = AnswerHead::begin(&mut out, head.status());
    let has_date = write_end_to_end(head, block, form.framing, &mut out);
    if !has_date {
        write_field(b"Date", form.date, &mut out);
    }
    write_received_by(head, form.pseudonym, &mut out);
    if let Some(status) = form.cache_status {
        write_field(b"Cache-Status", status.as_bytes(), &mut out);
    }
    match form.framing {
        // "A server MAY send a Content-Length header field in a response to a HEAD request", and in a 304:
        // the length that the body would have (RFC 9110, section 8.6). It has been parsed as a number. In a
        // 204 it has not.
        OutFraming::None if !head.status().is_bodiless() || is_304(head) => {
            if let Some(value) = head.field(block, Field::ContentLength) {
                write_field(b"Content-Length", value, &mut out);
            }
        }
        OutFraming::None | OutFraming::UntilClose => {}
        OutFraming::Length(bytes) => write_field(b"Content-Length", bytes.to_string().as_bytes(), &mut out),
        OutFraming::Chunked => write_field(b"Transfer-Encoding", b"chunked", &mut out),
    }
    AnswerHead::resume(&mut out).keep_alive(form.keep, form.version).finish();
    out
}

/// Writes an interim response: a proxy "MUST forward 1xx responses unless the proxy itself requested the
/// generation of the 1xx response" (RFC 9110, section 15.2).
pub(crate) fn write_interim(head: &ResponseHead, block: &[u8], pseudonym: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(head.len() + 64);
    let _unfinished = AnswerHead::begin(&mut out, head.status());
    write_end_to_end(head, block, OutFraming::None, &mut out);
    write_received_by(head, pseudonym, &mut out);
    out.extend_from_slice(b"\r\n");
    out
}

/// Whether a 101 changes the connection to WebSocket, and to nothing else.
pub(crate) fn is_to_websocket(head: &ResponseHead, block: &[u8]) -> bool {
    let lines = head.fields(block).filter(|(name, _)| is_name(name, b"upgrade"));
    let mut protocols = lines.flat_map(|(_, value)| list(value));
    protocols.next().is_some_and(|protocol| protocol.eq_ignore_ascii_case(b"websocket"))
        && protocols.next().is_none()
}

/// Writes the response by which the connection changes to WebSocket.
pub(crate) fn write_switch(head: &ResponseHead, block: &[u8], pseudonym: &str) -> Vec<u8> {
    let mut out = write_interim(head, block, pseudonym);
    out.truncate(out.len() - 2);
    write_field(b"Upgrade", b"websocket", &mut out);
    write_field(b"Connection", b"upgrade", &mut out);
    out.extend_from_slice(b"\r\n");
    out
}

/// Returns the lines of a body's trailer section that may be forwarded.
pub(crate) fn trailer_lines<'a>(trailers: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    let (none, mut lines) = (ConnectionOptions::of(std::iter::empty()), Vec::new());
    for (name, value) in trailers.filter(|(name, _)| may_be_trailer(name, &none)) {
        write_field(name, value, &mut lines);
    }
    lines
}

/// Writes the fields for all recipients. Returns whether a Date is among them.
fn write_end_to_end(head: &ResponseHead, block: &[u8], framing: OutFraming, out: &mut Vec<u8>) -> bool {
    let options = ConnectionOptions::of(head.fields(block));
    let mut has_date = false;
    for (name, value) in head.fields(block) {
        let is_without_trailers = framing != OutFraming::Chunked && is_name(name, b"trailer");
        if is_hop_by_hop(name, &options) || is_name(name, b"content-length") || is_without_trailers {
            continue;
        }
        has_date |= is_name(name, b"date");
        write_field(name, value, out);
    }
    has_date
}

fn write_received_by(head: &ResponseHead, pseudonym: &str, out: &mut Vec<u8>) {
    let version: &[u8] = if head.version() == Version::Http10 { b"1.0" } else { b"1.1" };
    write_via(version, pseudonym, out);
}

fn is_304(head: &ResponseHead) -> bool {
    head.status().code() == 304
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::http::head::{HeadLimits, Method};
    use plimsoll_wire::http::response::parse_response;

    use super::*;

    fn written(response: &str, method: Method, version: Version) -> String {
        let limits = HeadLimits::default();
        let head = parse_response(response.as_bytes(), method, &limits).unwrap().unwrap();
        let framing = framing_for(version, head.framing());
        let keep = framing != OutFraming::UntilClose;
        let form = ResponseForm { framing, keep, version, date: b"now", pseudonym: "p", cache_status: None };
        String::from_utf8(write_final(&head, response.as_bytes(), &form)).unwrap()
    }

    fn of_get(response: &str) -> String {
        written(response, Method::Get, Version::Http11)
    }

    #[test]
    fn fields_of_the_origins_connection_end_at_the_proxy() {
        let response = "HTTP/1.1 200 Fine\r\nConnection: keep-alive, X-Own\r\nX-Own: 1\r\n\
                        Keep-Alive: timeout=5\r\n\
                        A: 1\r\nDate: then\r\nContent-Length: 3\r\nA: 2\r\n\r\n";
        assert_eq!(
            of_get(response),
            "HTTP/1.1 200 OK\r\nA: 1\r\nDate: then\r\nA: 2\r\nVia: 1.1 p\r\nContent-Length: 3\r\n\r\n"
        );
    }

    #[test]
    fn a_body_is_framed_for_the_version_of_the_client() {
        for response in ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"] {
            assert_eq!(
                of_get(response),
                "HTTP/1.1 200 OK\r\nDate: now\r\nVia: 1.1 p\r\nTransfer-Encoding: chunked\r\n\r\n"
            );
            assert_eq!(
                written(response, Method::Get, Version::Http10),
                "HTTP/1.1 200 OK\r\nDate: now\r\nVia: 1.1 p\r\nConnection: close\r\n\r\n"
            );
        }
    }

    #[test]
    fn the_length_of_a_body_that_is_not_sent_is_forwarded_where_it_has_a_meaning() {
        let response = "HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n";
        let of_head = written(response, Method::Head, Version::Http11);
        assert_eq!(of_head, "HTTP/1.1 200 OK\r\nDate: now\r\nVia: 1.0 p\r\nContent-Length: 9\r\n\r\n");
        let unchanged = of_get("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n");
        assert!(unchanged.contains("Content-Length: 9\r\n"), "{unchanged}");
        for length in ["0", "5", "x"] {
            let empty = format!("HTTP/1.1 204 No Content\r\nContent-Length: {length}\r\n\r\n");
            for method in [Method::Get, Method::Head] {
                let empty = written(&empty, method, Version::Http11);
                assert!(!empty.contains("Content-Length"), "{empty}");
            }
        }
    }

    #[test]
    fn trailers_that_may_be_forwarded_are() {
        let trailers = [(&b"Digest"[..], &b"x"[..]), (b"Content-Length", b"9"), (b"Server-Timing", b"")];
        assert_eq!(trailer_lines(trailers.into_iter()), b"Digest: x\r\nServer-Timing: \r\n");
    }
}
