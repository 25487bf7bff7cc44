//! The users' requests, built before the start: heads, paths, and the body of uploads.
//!
//! Nothing is sent from here. Invariants: data shared by many requests is built once; every target is
//! valid.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plimsoll_io::Address;
use plimsoll_tls::Connector;
use plimsoll_wire::http::target::{decode_path, parse_target};

use crate::checking::{Fingerprint, Fingerprinting, References, Taking};
use crate::failure::Failure;
use crate::files::{Files, Pick, fill, mixed};
use crate::limits::{REFERENCES_FETCHED_MAX, UPLOADS_VERIFIED_MAX};
use crate::measure::CorrectResponse;
use crate::target::{Scheme, Target, check};
use crate::workload::{Checked, Connections, Login, Requests, Workload};

/// The requests of a workload's users and the data for them; shared by all threads.
pub(crate) struct Plan {
    pub(crate) addresses: Vec<Address>,
    pub(crate) scheme: Scheme,
    /// Encrypts connections, and the name in the server's certificate.
    pub(crate) tls: Option<(Connector, String)>,
    pub(crate) requests: PlannedRequests,
    /// A number unique to the run.
    run: u64,
    pub(crate) references: References,
    pub(crate) checked: Checked,
    pub(crate) seed: u64,
    /// Connections are keep-alive.
    pub(crate) keeps: bool,
    /// Bodies are saved.
    keeps_bodies: bool,
    pub(crate) login: Login,
    pub(crate) timeout: Duration,
    /// Reference bodies are downloaded before the start.
    fetches: bool,
    users: u64,
    pattern: String,
    /// The fields common to all requests.
    fields: String,
}

/// The kind of requests.
pub(crate) enum PlannedRequests {
    /// `asked` holds what is sent for each file: the whole request with HTTP, else the path.
    Download {
        files: Files,
        pick: Pick,
        asked: Vec<Arc<[u8]>>,
    },
    Upload {
        body: Arc<[u8]>,
    },
    SignUp,
}

/// Targets of the uploads to verify after the end, of one thread.
#[derive(Clone, Default)]
pub(crate) struct Uploaded(Rc<RefCell<Vec<String>>>);

impl Uploaded {
    /// Records a target if its upload is to be verified.
    pub(crate) fn note(&self, is_due: bool, target: String) {
        let mut targets = self.0.borrow_mut();
        if is_due && targets.len() < UPLOADS_VERIFIED_MAX {
            targets.push(target);
        }
    }

    /// Removes and returns all targets so far.
    pub(crate) fn take(&self) -> Vec<String> {
        self.0.take()
    }
}

impl Plan {
    /// Prepares the requests. `run` makes the names of uploads unique to the run.
    ///
    /// # Errors
    /// An error if a target is invalid, or a reference file cannot be read.
    pub(crate) fn new(workload: &Workload, run: u64) -> io::Result<Plan> {
        let (place, fields) = (&workload.place, fields(workload));
        let (requests, references) = match &workload.ask {
            Requests::Download(files) => {
                let asked = asked(files, place, &fields)?;
                let requests = PlannedRequests::Download { files: files.clone(), pick: workload.pick, asked };
                (requests, references(workload, files)?)
            }
            Requests::Upload { bytes } => {
                let body = body(*bytes, workload.seed).into();
                (PlannedRequests::Upload { body }, References::unknown(0))
            }
            Requests::SignUp => (PlannedRequests::SignUp, References::unknown(0)),
            // A mix has its own plan, `ten::Plan`.
            Requests::Ten { .. } => return Err(io::ErrorKind::InvalidInput.into()),
        };
        Ok(Plan {
            addresses: place.addresses.clone(),
            scheme: place.scheme,
            tls: workload.tls.clone().map(|tls| (tls, place.host().to_owned())),
            requests,
            run,
            references,
            checked: workload.checked,
            seed: workload.seed,
            keeps: workload.connections == Connections::Kept,
            keeps_bodies: workload.keep.is_some(),
            login: workload.login.clone(),
            timeout: workload.timeout,
            fetches: workload.checked != Checked::None && workload.against.is_none(),
            users: workload.users as u64,
            pattern: place.pattern.clone(),
            fields,
        })
    }

    /// Returns the bytes to send for a file, or none if there is no such file.
    pub(crate) fn asked(&self, file: u64) -> Arc<[u8]> {
        let asked =
            if let PlannedRequests::Download { asked, .. } = &self.requests { asked.as_slice() } else { &[] };
        usize::try_from(file).ok().and_then(|file| asked.get(file)).map(Arc::clone).unwrap_or_default()
    }

    /// Judges a received body. Returns a response if the body is correct, as far as it was verified.
    pub(crate) fn judge(
        &self,
        file: u64,
        bytes: u64,
        taken: Option<Taking>,
    ) -> Result<CorrectResponse, Failure> {
        if !self.references.may_be(file, bytes) {
            return Err(Failure::WrongBody);
        }
        let Taking { fingerprinting, bytes: kept } = taken.unwrap_or_default();
        if let Some(fingerprinting) = &fingerprinting {
            self.references.compare(file, &fingerprinting.end())?;
        }
        let kept = kept.map(|body| (self.target(file), body));
        Ok(CorrectResponse { bytes, verified: fingerprinting.is_some(), kept, ..CorrectResponse::default() })
    }

    /// Returns a collector for a body, or None if it is neither verified nor saved.
    pub(crate) fn taking(&self, is_due: bool) -> Option<Taking> {
        (is_due || self.keeps_bodies).then(|| Taking {
            fingerprinting: is_due.then(Fingerprinting::new),
            bytes: self.keeps_bodies.then(Vec::new),
        })
    }

    /// Compares a downloaded upload with the bytes sent.
    pub(crate) fn judge_upload(&self, taken: Option<Taking>) -> Result<(), Failure> {
        let PlannedRequests::Upload { body } = &self.requests else { return Ok(()) };
        let found = taken.and_then(|taken| taken.fingerprinting).map(|all| all.end());
        if found == Some(Fingerprint::of(body)) { Ok(()) } else { Err(Failure::WrongBody) }
    }

    /// Returns the target of a file.
    pub(crate) fn target(&self, file: u64) -> String {
        match &self.requests {
            PlannedRequests::Download { files, .. } => files.target(&self.pattern, file),
            PlannedRequests::Upload { .. } | PlannedRequests::SignUp => String::new(),
        }
    }

    /// Returns the files that a user downloads before the start: together, users download each file once.
    pub(crate) fn references_of(&self, user: u64) -> impl Iterator<Item = u64> + use<> {
        let files = match &self.requests {
            PlannedRequests::Download { files, .. } if self.fetches => files.count(),
            _ => 0,
        };
        let step = usize::try_from(self.users.max(1)).unwrap_or(usize::MAX);
        let end = if files > REFERENCES_FETCHED_MAX { 0 } else { files };
        (user..end.max(user)).step_by(step)
    }

    /// Returns a new target for an upload.
    pub(crate) fn fresh_target(&self, user: u64, request: u64) -> String {
        fill(&self.pattern, &self.fresh_name(user, request))
    }

    /// Returns a unique name.
    pub(crate) fn fresh_name(&self, user: u64, request: u64) -> String {
        format!("load-{:x}-{user}-{request}", self.run)
    }

    pub(crate) fn upload_head(&self, target: &str, length: usize) -> Vec<u8> {
        format!("PUT {target} HTTP/1.1\r\n{}Content-Length: {length}\r\n\r\n", self.fields).into_bytes()
    }

    pub(crate) fn get_head(&self, target: &str) -> Vec<u8> {
        get(target, &self.fields)
    }
}

fn get(target: &str, fields: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\n{fields}\r\n").into_bytes()
}

fn asked(files: &Files, place: &Target, fields: &str) -> io::Result<Vec<Arc<[u8]>>> {
    let targets = (0..files.count()).map(|file| files.target(&place.pattern, file));
    let asked = targets.map(|target| match (check(&target), place.scheme) {
        (Ok(()), Scheme::Http | Scheme::Https) => {
            Ok(get(&target, &fields_for(&target, place, fields)).into())
        }
        (Ok(()), Scheme::Ftp | Scheme::FtpOverTls(_) | Scheme::Classic) => Ok(path(&target).into()),
        (Err(bad), _) => Err(io::Error::new(io::ErrorKind::InvalidInput, bad.to_string())),
    });
    asked.collect()
}

/// Returns the fields of a request for `target`. "If the target URI includes an authority component, then a
/// client MUST send a field value for Host that is identical to that authority component" (RFC 9112, section
/// 3.2).
fn fields_for<'a>(target: &str, place: &Target, fields: &'a str) -> Cow<'a, str> {
    match parse_target(target.as_bytes()).ok().and_then(|target| target.authority) {
        // Host is the first field.
        Some(authority) => fields.replacen(&place.authority, &String::from_utf8_lossy(authority), 1).into(),
        None => fields.into(),
    }
}

/// Decodes a URL's target into a path for FTP and classic.
pub(crate) fn path(target: &str) -> Vec<u8> {
    let mut path = Vec::new();
    match decode_path(target.as_bytes(), &mut path) {
        Ok(()) => path,
        // Unreachable, since the target was checked before; undecoded, it names no other file.
        Err(_) => target.as_bytes().to_vec(),
    }
}

fn references(workload: &Workload, files: &Files) -> io::Result<References> {
    match &workload.against {
        Some(folder) => References::of_folder(folder, files, &workload.place.pattern),
        None => Ok(References::unknown(files.count())),
    }
}

fn fields(workload: &Workload) -> String {
    let mut fields = format!("Host: {}\r\nUser-Agent: plimsoll-load\r\n", workload.place.authority);
    match &workload.login {
        Login::Nobody => {}
        Login::Account { name, password } => {
            let basic = BASE64_STANDARD.encode(format!("{name}:{password}"));
            fields.push_str(&format!("Authorization: Basic {basic}\r\n"));
        }
        Login::Token(token) => fields.push_str(&format!("Authorization: Bearer {token}\r\n")),
    }
    if workload.connections == Connections::New {
        fields.push_str("Connection: close\r\n");
    }
    fields
}

/// Returns incompressible bytes.
fn body(bytes: u64, seed: u64) -> Vec<u8> {
    let words = bytes.div_ceil(8);
    let mut body: Vec<u8> = (0..words).flat_map(|word| mixed(seed, bytes, word).to_le_bytes()).collect();
    body.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
    body
}
