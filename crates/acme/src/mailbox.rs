//! The HTTP client of `instant-acme`, over the client of this server.
//!
//! `instant-acme` requires futures that any thread may poll, and those of a connection stay on theirs. So a
//! request goes into a [`Mailbox`], and [`deliver`] sends it, polled by the same task. It follows no
//! redirection. Invariants: requests go only to https servers, which are verified. Every response is bounded,
//! in bytes and time. A response without JSON, where the server failed, is an error that names its status.

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient, Problem};
use plimsoll_client::http::{Connection, NoResponse, Resolve, ResponseInbox};
use plimsoll_io::{Address, Elapsed, Io, Want, oneshot};
use plimsoll_tls::Connector;
use plimsoll_wire::http::body::BodyDecoder;
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::response::ResponseHead;

use crate::limits::{CONNECT_TIME_MAX, RESPONSE_BYTES_MAX, RESPONSE_TIME_MAX, RETRY_AFTER_TIME_MAX};

/// The field by which a server requests a wait.
const RETRY_AFTER: &str = "Retry-After";
/// The port of a URL without one.
const HTTPS_PORT: u16 = 443;

type Answer = Result<BytesResponse, Error>;

/// Requests to be sent, and what the last response asked for.
#[derive(Default)]
pub(crate) struct Mailbox(Mutex<Contents>);

#[derive(Default)]
struct Contents {
    calls: VecDeque<Call>,
    waker: Option<Waker>,
    retry_after: Option<Duration>,
}

struct Call {
    request: http::Request<BodyWrapper<Bytes>>,
    answer: oneshot::Sender<Answer>,
}

/// The means to send requests.
#[derive(Clone)]
pub(crate) struct Sending {
    pub(crate) io: Io,
    pub(crate) tls: Connector,
    pub(crate) resolve: Resolve,
}

/// A sender of requests, for `instant-acme`.
pub(crate) struct Sender(pub(crate) Arc<Mailbox>);

impl Mailbox {
    /// Returns the wait that the last response requested, once.
    pub(crate) fn take_retry_after(&self) -> Option<Duration> {
        self.lock().retry_after.take()
    }

    async fn next(&self) -> Call {
        poll_fn(|cx| {
            let mut contents = self.lock();
            match contents.calls.pop_front() {
                Some(call) => Poll::Ready(call),
                None => {
                    contents.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpClient for Sender {
    fn request(
        &self,
        request: http::Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send>> {
        let (answer, wait) = oneshot::oneshot();
        let mut contents = self.0.lock();
        contents.calls.push_back(Call { request, answer });
        let waker = contents.waker.take();
        drop(contents);
        waker.into_iter().for_each(Waker::wake);
        Box::pin(async move { wait.await.unwrap_or_else(|| Err(other("the request was abandoned"))) })
    }
}

/// Sends the requests of a mailbox, for ever.
pub(crate) async fn deliver(mailbox: &Mailbox, sending: &Sending) -> std::convert::Infallible {
    loop {
        let Call { request, answer } = mailbox.next().await;
        let deadline = sending.io.deadline();
        deadline.after(RESPONSE_TIME_MAX);
        let uri = request.uri().clone();
        let mut retry_after = None;
        let sent = deadline.within(send(sending, request, &mut retry_after)).await;
        mailbox.lock().retry_after = retry_after;
        answer.send(sent.unwrap_or_else(|Elapsed| Err(other(format!("{uri} does not answer in time")))));
    }
}

/// Answers the requests of a mailbox by `answer`, for ever.
#[cfg(test)]
pub(crate) async fn respond(
    mailbox: &Mailbox,
    answer: impl Fn(&http::request::Parts, &[u8]) -> http::Response<Bytes>,
) -> std::convert::Infallible {
    loop {
        let Call { request, answer: sender } = mailbox.next().await;
        let (parts, body) = request.into_parts();
        let body = bytes_of(body).await.unwrap_or_default();
        let (parts, body) = answer(&parts, &body).into_parts();
        sender.send(Ok(BytesResponse { parts, body: Box::new(body) }));
    }
}

/// Sends one request over a connection of its own, so that a server that closes idle connections breaks none.
/// `retry_after` gets the wait that the response requests, also if that is an error.
async fn send(
    sending: &Sending,
    request: http::Request<BodyWrapper<Bytes>>,
    retry_after: &mut Option<Duration>,
) -> Answer {
    let (parts, body) = request.into_parts();
    let uri = parts.uri.clone();
    let failed = |error: String| other(format!("{uri}: {error}"));
    let mut connection = connect(sending, &uri).await.map_err(failed)?;
    let body = bytes_of(body).await?;
    connection.tx.push_slice(&head_of(&parts, body.len())?);
    connection.tx.push_slice(&body);
    let method = if parts.method == http::Method::HEAD { Method::Head } else { Method::Post };
    let (head, block, body) = receive(&mut connection.inbox, method).await.map_err(failed)?;
    connection.close();
    let status = head.status().code();
    let asked = head.named(&block, RETRY_AFTER).and_then(|value| std::str::from_utf8(value).ok());
    *retry_after = asked.and_then(|text| parse_retry_after(text, sending.io.wall()));
    let mut response = http::Response::builder().status(status);
    for (name, value) in head.fields(&block) {
        if !name.eq_ignore_ascii_case(RETRY_AFTER.as_bytes()) {
            response = response.header(name, value);
        }
    }
    // `instant-acme` adds the time to the present without a bound.
    if let Some(time) = *retry_after {
        response = response.header(RETRY_AFTER, time.as_secs());
    }
    if status >= 400 && serde_json::from_slice::<Problem>(&body).is_err() {
        return Err(failed(format!("the server answers with status {status}")));
    }
    let (parts, ()) = response.body(())?.into_parts();
    Ok(BytesResponse { parts, body: Box::new(Bytes::from(body)) })
}

/// Connects to the server of a URL: to the first of its addresses that accepts.
async fn connect(sending: &Sending, uri: &http::Uri) -> Result<Connection, String> {
    if uri.scheme_str() != Some("https") {
        return Err("the URL of an ACME server is https".to_owned());
    }
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = uri.port_u16().unwrap_or(HTTPS_PORT);
    let addresses = (sending.resolve)(host, port).await;
    let addresses = addresses.map_err(|error| format!("its name cannot be resolved: {error}"))?;
    let mut refused = "its name has no address".to_owned();
    let deadline = sending.io.deadline();
    for address in addresses {
        // An address that drops packets would use up the request's time.
        deadline.after(CONNECT_TIME_MAX);
        match deadline.within(connect_to(sending, address, host)).await {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => refused = error,
            Err(Elapsed) => refused = format!("{address} does not answer in time"),
        }
    }
    Err(refused)
}

async fn connect_to(sending: &Sending, address: SocketAddr, host: &str) -> Result<Connection, String> {
    let connected = sending.io.connect(&Address::Ip(address)).await;
    let mut stream = connected.map_err(|error| format!("cannot connect: {error}"))?;
    let encrypted = sending.tls.connect(&sending.io, &mut stream, host).await;
    encrypted.map_err(|error| error.to_string())?;
    Ok(Connection::new(stream))
}

/// Encodes the head of a request.
fn head_of(parts: &http::request::Parts, body_bytes: usize) -> Result<Vec<u8>, Error> {
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let host = parts.uri.authority().map_or("", |authority| authority.as_str());
    let mut head = format!("{} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n", parts.method);
    for (name, value) in &parts.headers {
        let value = value.to_str().map_err(|_| other("a field is not text"))?;
        head += &format!("{name}: {value}\r\n");
    }
    if body_bytes > 0 {
        head += &format!("Content-Length: {body_bytes}\r\n");
    }
    Ok((head + "\r\n").into_bytes())
}

/// Receives a response: its head, the head's bytes, and its body.
async fn receive(
    inbox: &mut ResponseInbox,
    method: Method,
) -> Result<(ResponseHead, Vec<u8>, Vec<u8>), String> {
    let (head, block) = loop {
        let head = inbox.head(method).await.map_err(|error| match error {
            NoResponse::Broken(error) => format!("the connection broke: {error}"),
            NoResponse::Malformed(_) => "the response is no HTTP".to_owned(),
        })?;
        let block = inbox.take_head(head.len());
        if !head.is_interim() {
            break (head, block);
        }
    };
    let (mut decoder, mut body) = (BodyDecoder::new(head.framing()), Vec::new());
    while !decoder.has_ended() {
        if inbox.buffered.is_none() {
            match inbox.rx.recv(Want::Body).await {
                Ok(None) if decoder.close() => break,
                Ok(None) => return Err("the response was cut short".to_owned()),
                Ok(lease) => inbox.buffered = lease,
                Err(error) => return Err(format!("the connection broke: {error}")),
            }
        }
        let part = inbox.take_body(&mut decoder).map_err(|_| "the response is malformed".to_owned())?;
        part.iter().for_each(|part| body.extend_from_slice(part));
        if body.len() > RESPONSE_BYTES_MAX {
            return Err(format!("the response has more than {RESPONSE_BYTES_MAX} bytes"));
        }
    }
    Ok((head, block, body))
}

/// Returns the bytes of a request's body. Only bodies of responses can be read.
async fn bytes_of(body: BodyWrapper<Bytes>) -> Result<Bytes, Error> {
    let BytesResponse { mut body, .. } = BytesResponse::from(http::Response::new(body));
    body.into_bytes().await.map_err(Error::Other)
}

/// Parses `Retry-After`: seconds, or a date.
fn parse_retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let time = match text.trim().parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(text.trim()).ok()?.duration_since(now).ok()?,
    };
    Some(time.min(RETRY_AFTER_TIME_MAX))
}

fn other(reason: impl Into<String>) -> Error {
    let reason: String = reason.into();
    Error::Other(reason.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_700);
        assert_eq!(parse_retry_after("120", now), Some(Duration::from_secs(120)));
        assert_eq!(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(Duration::from_secs(77)));
        assert_eq!(parse_retry_after("18446744073709551615", now), Some(RETRY_AFTER_TIME_MAX));
        for text in ["", "-1", "soon", "Sun, 06 Nov 1990 08:49:37 GMT"] {
            assert_eq!(parse_retry_after(text, now), None, "{text}");
        }
    }

    #[test]
    fn a_request_names_its_host_and_has_its_length() {
        let request = http::Request::post("https://acme.example:14000/new?a=b").header("Content-Type", "a/b");
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let head = String::from_utf8(head_of(&parts, 7).unwrap()).unwrap();
        let lines = "POST /new?a=b HTTP/1.1|Host: acme.example:14000|Connection: close|content-type: a/b";
        assert_eq!(head, format!("{lines}|Content-Length: 7||").replace('|', "\r\n"));
    }
}
