//! A test user with an account on a running server, on a separate connection.
//!
//! It is not [`crate::Person`], which runs on an engine inside the test. An unexpected answer must fail the
//! test with the server's message.

use serde_json::{Value, json};

use super::{Broken, Reply, Server, Visitor};

/// The password of every test account.
pub const PASSWORD: &str = "correct horse";

/// A connection with a session.
pub struct Member {
    pub name: String,
    pub token: String,
    pub visitor: Visitor,
}

/// Sends a request with a JSON body, without credentials.
///
/// # Errors
/// Returns how the connection ended instead of an answer.
pub fn send(visitor: &mut Visitor, method: &str, target: &str, body: &Value) -> Result<Reply, Broken> {
    send_with(visitor, (method, target, ""), body)
}

/// As [`send`], with more fields, which each end in CRLF.
///
/// # Errors
/// As [`send`].
pub fn send_with(
    visitor: &mut Visitor,
    (method, target, fields): (&str, &str, &str),
    body: &Value,
) -> Result<Reply, Broken> {
    let fields = format!("Content-Type: application/json\r\n{fields}");
    visitor.ask(method, target, &fields, body.to_string().as_bytes())
}

/// Logs in and returns the token.
///
/// # Errors
/// Returns how the connection ended instead of an answer.
pub fn log_in(visitor: &mut Visitor, name: &str) -> Result<String, Broken> {
    let reply = send(visitor, "POST", "/api/sessions", &json!({ "name": name, "password": PASSWORD }))?;
    assert_eq!(reply.status, 201, "{}", reply.text());
    Ok(reply.json()["token"].as_str().expect("a token").to_owned())
}

impl Member {
    /// Signs up and logs in.
    pub fn new(server: &Server, name: &str) -> Member {
        Member::with_fields(server, name, "")
    }

    /// As [`Member::new`], as a proxy that adds `fields` to both requests, which each end in CRLF.
    pub fn with_fields(server: &Server, name: &str, fields: &str) -> Member {
        let mut visitor = server.visit();
        let body = json!({ "name": name, "password": PASSWORD });
        let mut post = |target| {
            let made = send_with(&mut visitor, ("POST", target, fields), &body).expect("an answer");
            assert_eq!(made.status, 201, "{}", made.text());
            made
        };
        post("/api/accounts");
        let token = post("/api/sessions").json()["token"].as_str().expect("a token").to_owned();
        Member { name: name.to_owned(), token, visitor }
    }

    /// Returns the same session on another connection, perhaps to another server on the same data.
    pub fn again(&self, server: &Server) -> Member {
        Member { name: self.name.clone(), token: self.token.clone(), visitor: server.visit() }
    }

    /// Returns the `Authorization` field with the session's token.
    pub fn field(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token)
    }

    /// Sends one request; `fields` each end in CRLF.
    ///
    /// # Errors
    /// Returns how the connection ended instead of an answer.
    pub fn try_ask(&mut self, request: (&str, &str, &str), body: &[u8]) -> Result<Reply, Broken> {
        let (method, target, fields) = request;
        let fields = format!("{}{fields}", self.field());
        self.visitor.ask(method, target, &fields, body)
    }

    /// Sends one request and returns its answer.
    pub fn ask(&mut self, method: &str, target: &str, fields: &str, body: &[u8]) -> Reply {
        let answered = self.try_ask((method, target, fields), body);
        answered.unwrap_or_else(|broken| panic!("{method} {target} of {}: {broken:?}", self.name))
    }

    pub fn get(&mut self, target: &str) -> Reply {
        self.ask("GET", target, "", b"")
    }

    pub fn put(&mut self, target: &str, body: &[u8]) -> Reply {
        self.ask("PUT", target, "", body)
    }

    /// Creates a folder.
    pub fn mkcol(&mut self, target: &str) {
        assert_eq!(self.ask("MKCOL", target, "", b"").status, 201, "{target}");
    }

    /// Returns the names in a folder from its listing; folders end with a slash.
    pub fn names(&mut self, target: &str) -> Vec<String> {
        let reply = self.ask("GET", target, "Accept: application/json\r\n", b"");
        assert_eq!(reply.status, 200, "{target}: {}", reply.text());
        let listed = reply.json();
        let entries = listed["entries"].as_array().expect("entries");
        let name = |entry: &Value| {
            let end = if entry["kind"] == "folder" { "/" } else { "" };
            format!("{}{end}", entry["name"].as_str().expect("a name"))
        };
        entries.iter().map(name).collect()
    }
}
