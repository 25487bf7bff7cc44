//! What users ask for, made before the start: requests, paths, and the body of uploads.
//!
//! Nothing is sent from here. What must hold: what is the same for many requests is made once; a target that
//! is asked for is one that can be.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plimsoll_io::Address;
use plimsoll_wire::http::target::decode_path;

use crate::load::checking::{Fingerprint, Fingerprinting, References, Taking};
use crate::load::failure::Failure;
use crate::load::files::{Files, Pick, fill, mixed};
use crate::load::limits::{REFERENCES_FETCHED_MAX, UPLOADS_VERIFIED_MAX};
use crate::load::measure::Right;
use crate::load::place::{Place, Scheme, check};
use crate::load::workload::{Ask, Checked, Connections, Login, Workload};

/// What the users of a workload do, and all that they need for it; shared by all threads.
pub(crate) struct Plan {
    pub(crate) addresses: Vec<Address>,
    pub(crate) what: What,
    /// A number that no other run has.
    run: u64,
    pub(crate) references: References,
    pub(crate) checked: Checked,
    pub(crate) seed: u64,
    /// Connections are kept.
    pub(crate) keeps: bool,
    /// Bodies are.
    keeps_bodies: bool,
    pub(crate) login: Login,
    pub(crate) timeout: Duration,
    /// References are fetched before the start.
    fetches: bool,
    users: u64,
    pattern: String,
    /// The fields that every request has.
    fields: String,
}

/// What is asked for.
pub(crate) enum What {
    /// `asked` has for each file what is sent to get it: HTTP's whole request, else a path.
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

/// Names of uploads that are to be verified after the end; those of one thread.
#[derive(Clone, Default)]
pub(crate) struct Uploaded(Rc<RefCell<Vec<String>>>);

impl Uploaded {
    /// Takes a name down, if it is to be verified.
    pub(crate) fn note(&self, is_due: bool, target: String) {
        let mut targets = self.0.borrow_mut();
        if is_due && targets.len() < UPLOADS_VERIFIED_MAX {
            targets.push(target);
        }
    }

    /// All names so far; none are left.
    pub(crate) fn take(&self) -> Vec<String> {
        self.0.take()
    }
}

impl Plan {
    /// Makes everything ready; `run` makes the names of uploads differ from those of other runs.
    ///
    /// # Errors
    /// A target cannot be asked for, or a file to compare with cannot be read.
    pub(crate) fn new(workload: &Workload, run: u64) -> io::Result<Plan> {
        let (place, fields) = (&workload.place, fields(workload));
        let (what, references) = match &workload.ask {
            Ask::Download(files) => {
                let asked = asked(files, place, &fields)?;
                let what = What::Download { files: files.clone(), pick: workload.pick, asked };
                (what, references(workload, files)?)
            }
            Ask::Upload { bytes } => {
                let body = body(*bytes, workload.seed).into();
                (What::Upload { body }, References::unknown(0))
            }
            Ask::SignUp => (What::SignUp, References::unknown(0)),
            // A mix has a plan of its own.
            Ask::Ten { .. } => return Err(io::ErrorKind::InvalidInput.into()),
        };
        Ok(Plan {
            addresses: place.addresses.clone(),
            what,
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

    /// What is sent to get a file; nothing for one that is not there.
    pub(crate) fn asked(&self, file: u64) -> Arc<[u8]> {
        let asked = if let What::Download { asked, .. } = &self.what { asked.as_slice() } else { &[] };
        usize::try_from(file).ok().and_then(|file| asked.get(file)).map(Arc::clone).unwrap_or_default()
    }

    /// What comes of a body that was received: an answer if it is right, as far as that was looked at.
    pub(crate) fn judge(&self, file: u64, bytes: u64, taken: Option<Taking>) -> Result<Right, Failure> {
        if !self.references.may_be(file, bytes) {
            return Err(Failure::WrongBody);
        }
        let Taking { fingerprinting, bytes: kept } = taken.unwrap_or_default();
        if let Some(fingerprinting) = &fingerprinting {
            self.references.compare(file, &fingerprinting.end())?;
        }
        let kept = kept.map(|body| (self.target(file), body));
        Ok(Right { kind: 0, bytes, verified: fingerprinting.is_some(), kept })
    }

    /// What is done with the bytes of a body: nothing, unless it is to be verified or kept.
    pub(crate) fn taking(&self, is_due: bool) -> Option<Taking> {
        (is_due || self.keeps_bodies).then(|| Taking {
            fingerprinting: is_due.then(Fingerprinting::new),
            bytes: self.keeps_bodies.then(Vec::new),
        })
    }

    /// Whether what was stored is what was sent.
    pub(crate) fn judge_upload(&self, taken: Option<Taking>) -> Result<(), Failure> {
        let What::Upload { body } = &self.what else { return Ok(()) };
        let found = taken.and_then(|taken| taken.fingerprinting).map(|all| all.end());
        if found == Some(Fingerprint::of(body)) { Ok(()) } else { Err(Failure::WrongBody) }
    }

    /// The target of a file.
    pub(crate) fn target(&self, file: u64) -> String {
        match &self.what {
            What::Download { files, .. } => files.target(&self.pattern, file),
            What::Upload { .. } | What::SignUp => String::new(),
        }
    }

    /// The files that a user fetches before the start: between them, users fetch all of them once.
    pub(crate) fn references_of(&self, user: u64) -> impl Iterator<Item = u64> + use<> {
        let files = match &self.what {
            What::Download { files, .. } if self.fetches => files.count(),
            _ => 0,
        };
        let step = usize::try_from(self.users.max(1)).unwrap_or(usize::MAX);
        let end = if files > REFERENCES_FETCHED_MAX { 0 } else { files };
        (user..end.max(user)).step_by(step)
    }

    /// The target of an upload that no other has.
    pub(crate) fn fresh_target(&self, user: u64, request: u64) -> String {
        fill(&self.pattern, &self.fresh_name(user, request))
    }

    /// A name that nothing else has.
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

fn asked(files: &Files, place: &Place, fields: &str) -> io::Result<Vec<Arc<[u8]>>> {
    let targets = (0..files.count()).map(|file| files.target(&place.pattern, file));
    let asked = targets.map(|target| match (check(&target), place.scheme) {
        (Ok(()), Scheme::Http) => Ok(get(&target, fields).into()),
        (Ok(()), Scheme::Ftp | Scheme::Classic) => Ok(path(&target).into()),
        (Err(bad), _) => Err(io::Error::new(io::ErrorKind::InvalidInput, bad.to_string())),
    });
    asked.collect()
}

/// The path that a target of a URL names, as FTP has it.
pub(crate) fn path(target: &str) -> Vec<u8> {
    let mut path = Vec::new();
    match decode_path(target.as_bytes(), &mut path) {
        Ok(()) => path,
        // It was checked before; as it was written, it names nothing else.
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

/// Bytes that nothing on their way can make smaller.
fn body(bytes: u64, seed: u64) -> Vec<u8> {
    let words = bytes.div_ceil(8);
    let mut body: Vec<u8> = (0..words).flat_map(|word| mixed(seed, bytes, word).to_le_bytes()).collect();
    body.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
    body
}
