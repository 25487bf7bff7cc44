//! What users send, made before the start: targets, heads, and the body of uploads.
//!
//! Nothing is sent from here. What must hold: what is the same for many requests is made once; a target that
//! is asked for is one that can be.

use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plimsoll_io::{Address, Segment};

use crate::checking::References;
use crate::files::{Files, Pick, fill, mixed};
use crate::limits::REFERENCES_FETCHED_MAX;
use crate::place::check;
use crate::workload::{Ask, Checked, Connections, Login, Workload};

/// What the users of a workload do, and all that they need for it; shared by all threads.
pub(crate) struct Plan {
    pub(super) addresses: Vec<Address>,
    pub(super) what: What,
    pub(super) references: References,
    pub(super) checked: Checked,
    pub(super) seed: u64,
    /// Connections are kept.
    pub(super) keeps: bool,
    /// Bodies are.
    pub(super) keeps_bodies: bool,
    /// References are fetched before the start.
    fetches: bool,
    users: u64,
    pattern: String,
    /// The fields that every request has.
    fields: String,
}

/// What is asked for.
pub(super) enum What {
    Download { files: Files, pick: Pick, requests: Vec<Arc<[u8]>> },
    Upload { body: Arc<[u8]>, run: u64 },
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
                let requests = requests(files, &place.pattern, &fields)?;
                let what = What::Download { files: files.clone(), pick: workload.pick, requests };
                (what, references(workload, files)?)
            }
            Ask::Upload { bytes } => {
                let body = body(*bytes, workload.seed).into();
                (What::Upload { body, run }, References::unknown(0))
            }
        };
        Ok(Plan {
            addresses: place.addresses.clone(),
            what,
            references,
            checked: workload.checked,
            seed: workload.seed,
            keeps: workload.connections == Connections::Kept,
            keeps_bodies: workload.keep.is_some(),
            fetches: workload.checked != Checked::None && workload.against.is_none(),
            users: workload.users as u64,
            pattern: place.pattern.clone(),
            fields,
        })
    }

    /// The whole request for a file.
    pub(super) fn request(&self, file: u64) -> Segment {
        let requests =
            if let What::Download { requests, .. } = &self.what { requests.as_slice() } else { &[] };
        let request = usize::try_from(file).ok().and_then(|file| requests.get(file));
        request.map_or(Segment::Static(b""), |request| Segment::Shared(Arc::clone(request)))
    }

    /// The target of a file.
    pub(super) fn target(&self, file: u64) -> String {
        match &self.what {
            What::Download { files, .. } => files.target(&self.pattern, file),
            What::Upload { .. } => String::new(),
        }
    }

    /// The files that a user fetches before the start: between them, users fetch all of them once.
    pub(super) fn references_of(&self, user: u64) -> impl Iterator<Item = u64> + use<> {
        let files = match &self.what {
            What::Download { files, .. } if self.fetches => files.count(),
            _ => 0,
        };
        let step = usize::try_from(self.users.max(1)).unwrap_or(usize::MAX);
        let end = if files > REFERENCES_FETCHED_MAX { 0 } else { files };
        (user..end.max(user)).step_by(step)
    }

    /// The target of an upload that no other has.
    pub(super) fn fresh_target(&self, user: u64, request: u64) -> String {
        let run = if let What::Upload { run, .. } = self.what { run } else { 0 };
        fill(&self.pattern, &format!("load-{run:x}-{user}-{request}"))
    }

    pub(super) fn upload_head(&self, target: &str, length: usize) -> Vec<u8> {
        format!("PUT {target} HTTP/1.1\r\n{}Content-Length: {length}\r\n\r\n", self.fields).into_bytes()
    }

    pub(super) fn get_head(&self, target: &str) -> Vec<u8> {
        get(target, &self.fields)
    }
}

fn get(target: &str, fields: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\n{fields}\r\n").into_bytes()
}

fn requests(files: &Files, pattern: &str, fields: &str) -> io::Result<Vec<Arc<[u8]>>> {
    let targets = (0..files.count()).map(|file| files.target(pattern, file));
    let checked = targets.map(|target| match check(&target) {
        Ok(()) => Ok(get(&target, fields).into()),
        Err(bad) => Err(io::Error::new(io::ErrorKind::InvalidInput, bad.to_string())),
    });
    checked.collect()
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
