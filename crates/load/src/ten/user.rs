//! A user that sends the ten requests over HTTP, one life after another.
//!
//! Each life has an account of its own. It shares with the account of the previous life, which stays logged
//! in for that purpose: it lists and downloads the shared files, and logs out at the end. So no user waits
//! for another, and every request is measured. Invariants: no name, file or body is sent twice; a life with
//! a failed request ends there, and a new one begins.

use std::sync::Arc;

use plimsoll_client::http::{Body, Client, Request as Asked, Response};
use plimsoll_io::Io;
use serde_json::{Value, json};

use super::answers::{self, done, failure, file, has};
use super::{Plan, Request};
use crate::checking::Fingerprint;
use crate::failure::Failure;
use crate::measure::CorrectResponse;
use crate::user::Protocol;

/// The password of all accounts that users create.
const PASSWORD: &str = "a password of the laboratory";

/// An account with a login session.
#[derive(Debug, Default)]
struct Account {
    name: String,
    token: String,
}

/// A file uploaded in this life.
struct Uploaded {
    name: String,
    fingerprint: Fingerprint,
}

/// A user that runs a mix.
pub(crate) struct TenUser {
    io: Io,
    plan: Arc<Plan>,
    client: Client,
    number: u64,
    /// Number of lives begun.
    lives: u64,
    /// The remaining requests of this life, in reverse order.
    left: Vec<Request>,
    /// The account of this life, and that of the previous life.
    own: Account,
    friend: Account,
    /// The files of this life, and how many of them are shared.
    files: Vec<Uploaded>,
    shared: usize,
    /// Set while a request is in progress, and afterwards if it failed.
    is_astray: bool,
}

impl TenUser {
    pub(crate) fn new(io: &Io, plan: &Arc<Plan>, number: u64) -> TenUser {
        TenUser {
            io: io.clone(),
            plan: Arc::clone(plan),
            client: plan.client(io),
            number,
            lives: 0,
            left: Vec::new(),
            own: Account::default(),
            friend: Account::default(),
            files: Vec::new(),
            shared: 0,
            is_astray: false,
        }
    }

    /// Returns the next request, of a new life if this one has none left.
    fn next(&mut self) -> Request {
        if std::mem::replace(&mut self.is_astray, true) {
            self.left.clear();
        }
        if self.left.is_empty() {
            self.begin_life();
        }
        self.left.pop().unwrap_or(Request::SignUp)
    }

    /// Starts a new life. The previous account becomes the grantee of its shares, if it ever logged in.
    fn begin_life(&mut self) {
        self.left = self.plan.mix.life(self.plan.seed, self.number, self.lives);
        self.left.reverse();
        let new = Account { name: self.plan.name(self.number, self.lives), token: String::new() };
        let before = std::mem::replace(&mut self.own, new);
        if !before.token.is_empty() {
            self.friend = before;
        }
        self.lives += 1;
        self.files.clear();
        self.shared = 0;
    }

    /// Sends a request with a token.
    async fn send<'a>(&'a mut self, request: Asked<'a>, token: &str) -> Result<Response<'a>, Failure> {
        if !self.plan.keeps {
            self.client = self.plan.client(&self.io);
        }
        let request = request.field("Authorization", format!("Bearer {token}"));
        self.client.send(request).await.map_err(failure)
    }

    async fn as_owner<'a>(&'a mut self, request: Asked<'a>) -> Result<Response<'a>, Failure> {
        let token = self.own.token.clone();
        self.send(request, &token).await
    }

    async fn as_friend<'a>(&'a mut self, request: Asked<'a>) -> Result<Response<'a>, Failure> {
        let token = self.friend.token.clone();
        self.send(request, &token).await
    }

    /// Sends the name and the password of this life's account.
    async fn introduce(&mut self, target: &'static str) -> Result<Value, Failure> {
        if !self.plan.keeps {
            self.client = self.plan.client(&self.io);
        }
        let account = json!({ "name": self.own.name, "password": PASSWORD });
        let answer = self.client.send(post(target, &account)).await.map_err(failure)?;
        answers::json(answer, 201).await.map(|(json, _)| json)
    }

    async fn log_in(&mut self) -> Result<(), Failure> {
        let begun = self.introduce("/api/sessions").await?;
        let token = begun["token"].as_str().ok_or(Failure::Malformed("a token is missing in it"))?;
        self.own.token = token.to_owned();
        Ok(())
    }

    async fn list(&mut self) -> Result<u64, Failure> {
        let count = self.files.len();
        let answer = self.as_owner(Asked::new("GET", "/files/?format=json")).await?;
        let (listing, bytes) = answers::json(answer, 200).await?;
        has(&listing["entries"], count).map(|()| bytes)
    }

    async fn upload(&mut self) -> Result<u64, Failure> {
        let number = self.files.len();
        let bytes = self.plan.file(self.number, self.lives, number);
        let (name, fingerprint) = (format!("file-{number}"), Fingerprint::of(&bytes));
        let target = format!("/files/{name}");
        done(self.as_owner(Asked::new("PUT", &target).body(Body::Bytes(bytes))).await?, 201).await?;
        let sent = fingerprint.bytes();
        self.files.push(Uploaded { name, fingerprint });
        Ok(sent)
    }

    async fn download(&mut self, at: usize, is_due: bool) -> Result<u64, Failure> {
        let (name, expected) = self.file(at, self.files.len())?;
        let target = format!("/files/{name}");
        file(self.as_owner(Asked::new("GET", &target)).await?, &expected, is_due).await?;
        Ok(expected.bytes())
    }

    async fn share(&mut self) -> Result<(), Failure> {
        let (name, _) = self.file(self.shared, self.files.len())?;
        let new = json!({ "path": format!("/{name}"), "with": self.friend.name, "permission": "read" });
        done(self.as_owner(post("/api/shares", &new)).await?, 201).await?;
        self.shared += 1;
        Ok(())
    }

    async fn list_shared(&mut self) -> Result<u64, Failure> {
        let count = self.shared;
        let answer = self.as_friend(Asked::new("GET", "/api/shared")).await?;
        let (listing, bytes) = answers::json(answer, 200).await?;
        has(&listing["shares"], count).map(|()| bytes)
    }

    async fn download_shared(&mut self, at: usize, is_due: bool) -> Result<u64, Failure> {
        let (name, expected) = self.file(at, self.shared)?;
        let target = format!("/shared/{}/{name}", self.own.name);
        file(self.as_friend(Asked::new("GET", &target)).await?, &expected, is_due).await?;
        Ok(expected.bytes())
    }

    /// Deletes the last file.
    async fn delete(&mut self) -> Result<(), Failure> {
        let (name, _) = self.file(self.files.len().saturating_sub(1), self.files.len())?;
        let target = format!("/files/{name}");
        done(self.as_owner(Asked::new("DELETE", &target)).await?, 204).await?;
        self.files.pop();
        Ok(())
    }

    /// Ends the login session of the previous life's account.
    async fn log_out(&mut self) -> Result<(), Failure> {
        done(self.as_friend(Asked::new("DELETE", "/api/sessions/current")).await?, 204).await
    }

    /// Returns one of the first `among` files.
    fn file(&self, at: usize, among: usize) -> Result<(String, Fingerprint), Failure> {
        let file = self.files.get(at % among.max(1)).ok_or(Failure::Malformed("there is no file"))?;
        Ok((file.name.clone(), file.fingerprint.clone()))
    }

    /// Sends a request. Returns the bytes of its body or of its response's.
    async fn make(&mut self, request: Request, at: usize, is_due: bool) -> Result<u64, Failure> {
        match request {
            Request::SignUp => self.introduce("/api/accounts").await.map(|_| 0),
            Request::LogIn => self.log_in().await.map(|()| 0),
            Request::List => self.list().await,
            Request::Upload => self.upload().await,
            Request::Download => self.download(at, is_due).await,
            Request::Share => self.share().await.map(|()| 0),
            Request::ListShared => self.list_shared().await,
            Request::DownloadShared => self.download_shared(at, is_due).await,
            Request::Delete => self.delete().await.map(|()| 0),
            Request::LogOut => self.log_out().await.map(|()| 0),
        }
    }
}

impl Protocol for TenUser {
    /// Creates the account that the first life shares with.
    async fn get_ready(&mut self) -> Result<(), Failure> {
        self.begin_life();
        self.introduce("/api/accounts").await?;
        self.log_in().await?;
        self.left.clear();
        Ok(())
    }

    async fn ask(&mut self, request: u64) -> Result<CorrectResponse, Failure> {
        let kind = self.next();
        let is_file = matches!(kind, Request::Download | Request::DownloadShared);
        let is_due = is_file && self.plan.checked.is_due(self.plan.seed, self.number, request);
        let at = usize::try_from(request).unwrap_or_default();
        let bytes = self.make(kind, at, is_due).await?;
        self.is_astray = false;
        Ok(CorrectResponse { kind: kind as usize, bytes, verified: is_due, ..CorrectResponse::default() })
    }

    /// Does nothing: a life verifies its uploads by its own downloads.
    async fn verify_upload(&mut self, _target: &str) -> Result<(), Failure> {
        Ok(())
    }

    /// Does nothing: the client closes its connection when dropped.
    async fn leave(self) {}
}

fn post<'a>(target: &'a str, body: &Value) -> Asked<'a> {
    let body = Body::Bytes(body.to_string().into_bytes());
    Asked::new("POST", target).field("Content-Type", "application/json").body(body)
}
