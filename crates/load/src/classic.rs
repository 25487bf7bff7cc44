//! A user that speaks classic: downloads files, or creates accounts under new names.
//!
//! The protocol itself is the client library's. Invariant: each request has its own connection, as the
//! protocol requires, and the latency includes its setup.

use std::io;
use std::sync::Arc;

use plimsoll_client::classic::{Download, Error, Times, When, get, sign_up};
use plimsoll_io::{Address, Io};
use plimsoll_wire::classic::Credentials;

use crate::failure::Failure;
use crate::measure::CorrectResponse;
use crate::plan::{Plan, PlannedRequests};
use crate::user::Protocol;
use crate::workload::Login;

/// The password of all accounts that users create.
const PASSWORD: &str = "a password of the laboratory";

/// A user that speaks classic.
pub(crate) struct ClassicUser {
    io: Io,
    plan: Arc<Plan>,
    number: u64,
}

impl ClassicUser {
    pub(crate) fn new(io: &Io, plan: &Arc<Plan>, number: u64) -> ClassicUser {
        ClassicUser { io: io.clone(), plan: Arc::clone(plan), number }
    }

    fn times(&self) -> Times {
        let timeout = self.plan.timeout;
        Times { connect: timeout, answer: timeout, between_bytes: timeout }
    }

    /// Sends a request to the first address that accepts a connection.
    async fn at_any<T>(&self, ask: impl AsyncFn(&Address) -> Result<T, Error>) -> Result<T, Failure> {
        let mut failed = Failure::Connect(io::ErrorKind::AddrNotAvailable.into());
        for address in &self.plan.addresses {
            match ask(address).await {
                Err(Error::Connect { source, .. }) => failed = Failure::Connect(source),
                asked => return Ok(asked?),
            }
        }
        Err(failed)
    }

    async fn begin(&self, path: &[u8]) -> Result<Download, Failure> {
        let login = match &self.plan.login {
            Login::Account { name, password } => credentials(name, password),
            Login::Nobody | Login::Token(_) => credentials("", ""),
        };
        self.at_any(async |at| get(&self.io, at, login.clone(), path, self.times()).await).await
    }

    async fn download(&self, file: u64, is_due: bool) -> Result<CorrectResponse, Failure> {
        let (path, mut taking) = (self.plan.asked(file), self.plan.taking(is_due));
        let mut download = self.begin(&path).await?;
        match &mut taking {
            Some(taking) => {
                while let Some(lease) = download.recv().await? {
                    taking.take(&lease);
                }
            }
            None => drop(download.discard().await?),
        }
        self.plan.judge(file, download.bytes(), taking)
    }

    async fn sign_up(&self, request: u64) -> Result<CorrectResponse, Failure> {
        let login = credentials(&self.plan.fresh_name(self.number, request), PASSWORD);
        self.at_any(async |at| sign_up(&self.io, at, login.clone(), self.times()).await).await?;
        Ok(CorrectResponse::default())
    }
}

fn credentials(name: &str, password: &str) -> Credentials {
    Credentials { name: name.into(), password: password.as_bytes().to_vec().into() }
}

impl Protocol for ClassicUser {
    async fn get_ready(&mut self) -> Result<(), Failure> {
        for file in self.plan.references_of(self.number) {
            self.download(file, true).await?;
        }
        Ok(())
    }

    async fn ask(&mut self, request: u64) -> Result<CorrectResponse, Failure> {
        let is_due = self.plan.checked.is_due(self.plan.seed, self.number, request);
        match &self.plan.requests {
            PlannedRequests::Download { files, pick, .. } => {
                self.download(pick.file(self.number, request, files.count()), is_due).await
            }
            PlannedRequests::SignUp => self.sign_up(request).await,
            PlannedRequests::Upload { .. } => Err(Failure::Malformed("classic has no uploads")),
        }
    }

    async fn verify_upload(&mut self, _: &str) -> Result<(), Failure> {
        Err(Failure::Malformed("classic has no uploads"))
    }

    async fn leave(self) {}
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Connect { source, .. } => Failure::Connect(source),
            Error::Broken { when: When::Receiving, source } => Failure::Short(source),
            Error::Broken { source, .. } => Failure::Broken(source),
            Error::Late(_) => Failure::Timeout,
            Error::Refused(_) => Failure::Refused,
            Error::Malformed => Failure::Malformed("it does not fit what was asked"),
            Error::Request(_) => Failure::Malformed("the name or the password cannot be said"),
        }
    }
}
