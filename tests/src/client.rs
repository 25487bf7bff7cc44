//! A client that writes bytes by hand and reads answers by RFC 9112, over any stream.

use std::time::Duration;

use plimsoll_io::{Deadline, Io, Lease, Segment, Stream, Want};

use crate::service::AS_OPERATOR;

/// One connection to the server.
pub struct Client {
    pub stream: Stream,
    deadline: Deadline,
    received: Vec<u8>,
}

/// An answer of the server.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The lines of the trailer section, each ended by LF.
    pub trailers: String,
}

/// Longer than any time that a behaviour gives the server.
const PATIENCE: Duration = Duration::from_secs(30);

impl Client {
    pub fn new(io: &Io, stream: Stream) -> Client {
        Client { stream, deadline: io.deadline(), received: Vec::new() }
    }

    /// Pushes bytes; the engine sends them without a further call.
    pub fn push(&mut self, bytes: impl Into<Vec<u8>>) {
        self.stream.tx.push(Segment::Owned(bytes.into()));
    }

    /// Sends bytes. Ignores a connection that the server has closed: its answer can still be read.
    pub async fn send(&mut self, bytes: impl Into<Vec<u8>>) {
        self.push(bytes);
        self.deadline.after(PATIENCE);
        let _ = self.deadline.within(self.stream.tx.drain(0)).await.expect("the server takes what is sent");
    }

    /// Sends a GET on the keep-alive connection.
    pub async fn get(&mut self, target: &str) -> Answer {
        self.get_with(target, "").await
    }

    /// Requests the server's status as from an address of `--metrics`.
    pub async fn status(&mut self) -> Answer {
        self.get_with("/api/status", AS_OPERATOR).await
    }

    /// Sends a GET with more field lines, each ended by CRLF.
    pub async fn get_with(&mut self, target: &str, fields: &str) -> Answer {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n")).await;
        self.answer().await
    }

    /// Sends any request on the keep-alive connection, with more field lines, each ended by CRLF.
    /// `Content-Length` is sent if there is a body, or with PUT, POST and PATCH.
    pub async fn ask(&mut self, method: &str, target: &str, fields: &str, body: impl AsRef<[u8]>) -> Answer {
        let body = body.as_ref();
        let has_length = !body.is_empty() || matches!(method, "PUT" | "POST" | "PATCH");
        let length = if has_length { format!("Content-Length: {}\r\n", body.len()) } else { String::new() };
        let head = format!("{method} {target} HTTP/1.1\r\nHost: test\r\n{length}{fields}\r\n");
        self.push([head.as_bytes(), body].concat());
        self.try_answer(method != "HEAD").await.expect("a whole answer")
    }

    /// Sends a HEAD on the keep-alive connection, with more field lines, each ended by CRLF.
    pub async fn head_with(&mut self, target: &str, fields: &str) -> Answer {
        self.send(format!("HEAD {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n")).await;
        self.answer_to_head().await
    }

    /// Receives once; `None` at the end.
    pub async fn receive(&mut self) -> std::io::Result<Option<Lease>> {
        self.deadline.after(PATIENCE);
        self.deadline
            .within(self.stream.rx.recv(Want::Body))
            .await
            .expect("the server sends something in time")
    }

    /// Waits for the first byte of the next answer.
    pub async fn until_answered(&mut self) {
        if self.received.is_empty() {
            self.receive_more().await.expect("the begin of an answer");
        }
    }

    /// Receives the next answer, with its body.
    pub async fn answer(&mut self) -> Answer {
        self.try_answer(true).await.expect("a whole answer")
    }

    /// Receives the next answer to HEAD, which has no body even if its head has a length.
    pub async fn answer_to_head(&mut self) -> Answer {
        self.try_answer(false).await.expect("a whole answer")
    }

    /// Receives the next answer, or returns the error that interrupted it.
    pub async fn try_answer(&mut self, with_body: bool) -> std::io::Result<Answer> {
        let mut answer = loop {
            match parse_head(&self.received) {
                Some((len, answer)) => {
                    self.received.drain(..len);
                    break answer;
                }
                None => self.receive_more().await?,
            }
        };
        let bodiless = answer.status < 200 || matches!(answer.status, 204 | 304);
        if with_body && !bodiless && answer.field("Transfer-Encoding") == Some("chunked") {
            (answer.body, answer.trailers) = self.chunked().await?;
        } else if with_body && !bodiless {
            let length = answer.field("Content-Length").expect("a length").parse().expect("a number");
            answer.body = self.body(length).await?;
        }
        Ok(answer)
    }

    /// Receives a chunked body: its data, and the lines of its trailer section.
    async fn chunked(&mut self) -> std::io::Result<(Vec<u8>, String)> {
        let mut data = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.line().await?, 16).expect("a size in hexadecimal");
            if size == 0 {
                break;
            }
            data.extend_from_slice(&self.body(size).await?);
            assert_eq!(self.line().await?, "", "the end of a chunk");
        }
        let mut trailers = String::new();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Ok((data, trailers));
            }
            trailers += &(line + "\n");
        }
    }

    /// Receives a line that ends in CRLF, and returns it without that.
    async fn line(&mut self) -> std::io::Result<String> {
        loop {
            if let Some(end) = self.received.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.body(end + 2).await?;
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            self.receive_more().await?;
        }
    }

    /// Receives the next `length` bytes: of a body whose head was read separately.
    pub async fn body(&mut self, length: usize) -> std::io::Result<Vec<u8>> {
        while self.received.len() < length {
            self.receive_more().await?;
        }
        let rest = self.received.split_off(length);
        Ok(std::mem::replace(&mut self.received, rest))
    }

    async fn receive_more(&mut self) -> std::io::Result<()> {
        match self.receive().await? {
            Some(lease) => self.received.extend_from_slice(&lease),
            None => return Err(std::io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(())
    }

    /// Expects that the server ends the connection cleanly and sends nothing more.
    pub async fn expect_end(&mut self) {
        assert!(self.received.is_empty(), "not asked for: {:?}", String::from_utf8_lossy(&self.received));
        let end = self.receive().await.expect("a clean end");
        assert!(
            end.is_none(),
            "not asked for: {:?}",
            end.map(|lease| String::from_utf8_lossy(&lease).into_owned())
        );
    }

    /// Receives all bytes until the server ends the connection cleanly.
    ///
    /// # Errors
    /// Fails if the connection is aborted.
    pub async fn rest(&mut self) -> std::io::Result<Vec<u8>> {
        while let Some(lease) = self.receive().await? {
            self.received.extend_from_slice(&lease);
        }
        Ok(std::mem::take(&mut self.received))
    }

    /// Receives until the connection is aborted, and returns the bytes until then. A clean end is a
    /// failure.
    pub async fn expect_abort(&mut self) -> Vec<u8> {
        loop {
            match self.receive().await {
                Ok(Some(lease)) => self.received.extend_from_slice(&lease),
                Ok(None) => panic!("a clean end, after {} bytes", self.received.len()),
                Err(_) => return std::mem::take(&mut self.received),
            }
        }
    }
}

fn parse_head(bytes: &[u8]) -> Option<(usize, Answer)> {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Response::new(&mut fields);
    let len = match head.parse(bytes).expect("an answer's head") {
        httparse::Status::Complete(len) => len,
        httparse::Status::Partial => return None,
    };
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("ASCII");
    let fields = head.headers.iter().map(|field| (field.name.to_owned(), text(field.value))).collect();
    let status = head.code.unwrap();
    Some((len, Answer { status, fields, body: Vec::new(), trailers: String::new() }))
}

impl Answer {
    /// Returns the value of a field that occurs at most once; `None` if it is absent.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} comes twice");
        value
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("text")
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// Asserts a problem document (`application/problem+json`), and returns its `detail`.
    pub fn problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        assert_eq!(self.field("Content-Type"), Some("application/problem+json"));
        let problem = self.json();
        assert_eq!(problem["status"], status);
        problem["detail"].as_str().expect("a detail").to_owned()
    }
}
