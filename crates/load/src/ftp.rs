//! A user that speaks FTP: logs in, downloads existing files, uploads under new names.
//!
//! The protocol itself is the client library's. Invariants: a control connection is not reused after an
//! error. With new connections, each request logs in again, and its latency includes the login. With kept
//! ones, a download user starts with an open data connection, so that RETR is its first command. The
//! handshake of that data connection follows RETR.

use std::io;
use std::sync::Arc;

use plimsoll_client::SingleSegment;
use plimsoll_client::ftp::{Encryption, Error, Session, Times, When};
use plimsoll_io::{Address, Io, Segment};
use plimsoll_tls::Handshake;

use crate::checking::Taking;
use crate::failure::Failure;
use crate::measure::CorrectResponse;
use crate::plan::{Plan, PlannedRequests, Uploaded, path};
use crate::target::Scheme;
use crate::user::Protocol;
use crate::workload::Login;

/// Name and password of a guest (RFC 1635).
const GUEST: (&str, &str) = ("anonymous", "plimsoll-load@");

/// A user that speaks FTP.
pub(crate) struct FtpUser {
    io: Io,
    plan: Arc<Plan>,
    number: u64,
    /// The control connection. Taken out during a request, so that a cancelled request closes it.
    session: Option<Session>,
    /// The encryption of each session.
    encryption: Option<Encryption>,
    /// The handshakes of the present request.
    handshakes: Vec<Handshake>,
    uploaded: Uploaded,
}

impl FtpUser {
    pub(crate) fn new(io: &Io, plan: &Arc<Plan>, number: u64, uploaded: &Uploaded) -> FtpUser {
        FtpUser {
            io: io.clone(),
            plan: Arc::clone(plan),
            number,
            session: None,
            encryption: encryption(plan),
            handshakes: Vec::new(),
            uploaded: uploaded.clone(),
        }
    }

    /// Returns a logged-in control connection: the open one, or a new one.
    async fn session(&mut self) -> Result<Session, Failure> {
        match self.session.take() {
            Some(session) => Ok(session),
            None => self.log_in().await,
        }
    }

    async fn log_in(&self) -> Result<Session, Failure> {
        let timeout = self.plan.timeout;
        let times = Times { connect: timeout, answer: timeout, between_bytes: timeout };
        let mut failed = Failure::Connect(io::ErrorKind::AddrNotAvailable.into());
        for address in &self.plan.addresses {
            match self.connect(address, times).await {
                Ok(mut session) => {
                    let (name, password) = match &self.plan.login {
                        Login::Account { name, password } => (name.as_str(), password.as_str()),
                        Login::Nobody | Login::Token(_) => GUEST,
                    };
                    session.log_in(name, password).await?;
                    return Ok(session);
                }
                Err(error) => failed = error.into(),
            }
        }
        Err(failed)
    }

    async fn connect(&self, address: &Address, times: Times) -> Result<Session, Error> {
        match &self.encryption {
            Some(encryption) => Session::connect_encrypted(&self.io, address, times, encryption).await,
            None => Session::connect(&self.io, address, times).await,
        }
    }

    async fn put_back(&mut self, mut session: Session) {
        self.handshakes = session.take_handshakes();
        if self.plan.keeps {
            self.session = Some(session);
        } else {
            // The response is complete, so an error on QUIT does not matter.
            let _ = session.quit().await;
        }
    }

    /// Downloads a whole file. Its bytes go to `taking`, or are discarded.
    async fn retrieve(&mut self, path: &[u8], taking: &mut Option<Taking>) -> Result<u64, Failure> {
        let mut session = self.session().await?;
        let mut download = session.retrieve(path, 0).await?;
        let bytes = match taking {
            Some(taking) => {
                while let Some(lease) = download.recv().await? {
                    taking.take(&lease);
                }
                download.bytes()
            }
            None => download.discard().await?,
        };
        self.put_back(session).await;
        Ok(bytes)
    }

    async fn download(&mut self, file: u64, is_due: bool) -> Result<CorrectResponse, Failure> {
        let (path, mut taking) = (self.plan.asked(file), self.plan.taking(is_due));
        let bytes = self.retrieve(&path, &mut taking).await?;
        let handshakes = std::mem::take(&mut self.handshakes);
        Ok(CorrectResponse { handshakes, ..self.plan.judge(file, bytes, taking)? })
    }

    async fn upload(
        &mut self,
        body: &Arc<[u8]>,
        request: u64,
        is_due: bool,
    ) -> Result<CorrectResponse, Failure> {
        let target = self.plan.fresh_target(self.number, request);
        let mut session = self.session().await?;
        let mut source = SingleSegment::new(Segment::Shared(Arc::clone(body)));
        let bytes = session.store(&path(&target), &mut source).await?;
        self.put_back(session).await;
        self.uploaded.note(is_due, target);
        let handshakes = std::mem::take(&mut self.handshakes);
        Ok(CorrectResponse { bytes, handshakes, ..CorrectResponse::default() })
    }
}

/// Returns the encryption of sessions, if the server is to be reached so.
fn encryption(plan: &Plan) -> Option<Encryption> {
    let (Scheme::FtpOverTls(start), Some((connector, name))) = (plan.scheme, &plan.tls) else { return None };
    Some(Encryption { connector: connector.clone(), name: name.clone(), start })
}

impl Protocol for FtpUser {
    async fn get_ready(&mut self) -> Result<(), Failure> {
        for file in self.plan.references_of(self.number) {
            self.download(file, true).await?;
        }
        if self.plan.keeps && self.session.is_none() {
            self.session = Some(self.log_in().await?);
        }
        if let (PlannedRequests::Download { .. }, Some(session)) = (&self.plan.requests, &mut self.session) {
            session.open_data().await?;
            // They precede the measurement.
            session.take_handshakes();
        }
        Ok(())
    }

    async fn ask(&mut self, request: u64) -> Result<CorrectResponse, Failure> {
        let plan = Arc::clone(&self.plan);
        let is_due = plan.checked.is_due(plan.seed, self.number, request);
        match &plan.requests {
            PlannedRequests::Download { files, pick, .. } => {
                self.download(pick.file(self.number, request, files.count()), is_due).await
            }
            PlannedRequests::Upload { body } => self.upload(body, request, is_due).await,
            PlannedRequests::SignUp => Err(Failure::Malformed("accounts are made over classic")),
        }
    }

    async fn verify_upload(&mut self, target: &str) -> Result<(), Failure> {
        let mut taking = Some(Taking::to_verify());
        self.retrieve(&path(target), &mut taking).await?;
        self.plan.judge_upload(taking)
    }

    async fn leave(mut self) {
        if let Some(session) = self.session.take() {
            // An error on QUIT does not matter.
            let _ = session.quit().await;
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Connect { source, .. } => Failure::Connect(source),
            Error::Broken { when: When::Receiving, source } => Failure::Short(source),
            Error::Broken { source, .. } | Error::Source(source) => Failure::Broken(source),
            Error::Encryption(error) => Failure::Broken(io::Error::other(error)),
            Error::Late(_) => Failure::Timeout,
            Error::Refused { code, .. } => Failure::Status(code),
            Error::Malformed { .. } | Error::Unexpected(_) => {
                Failure::Malformed("it does not fit what was asked")
            }
            Error::Request(_) | Error::OutOfStep => Failure::Malformed("the session is of no more use"),
        }
    }
}
