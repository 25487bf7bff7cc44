//! A client that changes one folder without a pause: it overwrites, moves, copies, deletes, and uploads in
//! parts.
//!
//! Each request must make one change, so that every intermediate state is in the ledger.

use std::sync::{Arc, Mutex};

use plimsoll_tests::binary::visitor::base64;
use plimsoll_tests::binary::{Broken, Member, Reply};

use super::chance::{Chance, content};
use super::ledger::{Ledger, Sending, State};

/// Names of files that are overwritten.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// The two names of the folder that is created, renamed and deleted.
const FOLDERS: [&str; 2] = ["in", "out"];
/// The maximal size of an upload's part.
const PART_BYTES_MAX: usize = 100_000;

/// One writer.
pub(super) struct Writer {
    pub(super) member: Member,
    /// Its folder in the home, to which no other client writes.
    pub(super) folder: String,
    pub(super) ledger: Arc<Mutex<Ledger>>,
    chance: Chance,
    /// The last version that it has created.
    version: u64,
    /// The URL of its resumable upload.
    pub(super) url: String,
}

/// Returns the URL of a name in a folder.
pub(super) fn url(folder: &str, name: &str) -> String {
    format!("/files/{folder}/{name}")
}

impl Writer {
    /// Creates a writer and its folder.
    pub(super) fn new(mut member: Member, folder: &str, seed: u64) -> Writer {
        member.mkcol(&format!("/files/{folder}"));
        let ledger = Arc::new(Mutex::new(Ledger::new(State::default())));
        let (chance, folder) = (Chance::new(seed), folder.to_owned());
        // Disjoint from other writers' versions: contents are a function of the version alone.
        Writer { member, folder, ledger, chance, version: seed << 32, url: String::new() }
    }

    /// Writes until the connection breaks, or `is_over`.
    pub(super) fn write(&mut self, is_over: impl Fn() -> bool) {
        while !is_over() && self.step().is_ok() {}
    }

    fn step(&mut self) -> Result<(), Broken> {
        let state = self.ledger.lock().unwrap().last().clone();
        match self.chance.below(20) {
            0..=8 => self.put(state),
            9..=10 => self.rename(state, "MOVE"),
            11 => self.rename(state, "COPY"),
            12 => self.delete(state),
            13..=14 => self.folder(state),
            _ => self.upload(state),
        }
    }

    fn version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// Sends one request; the state is confirmed by its answer.
    fn ask(&mut self, next: State, request: (&str, &str, &str), body: &[u8]) -> Result<Reply, Broken> {
        self.ledger.lock().unwrap().begin(next);
        let reply = self.member.try_ask(request, body)?;
        assert!(matches!(reply.status, 201 | 204), "{request:?}: {} {}", reply.status, reply.text());
        self.ledger.lock().unwrap().confirm();
        Ok(reply)
    }

    /// Returns a random name that a file can have in this state.
    fn name(&mut self, state: &State) -> String {
        let mut names: Vec<String> = NAMES.map(str::to_owned).to_vec();
        for folder in FOLDERS.iter().filter(|folder| state.held.contains_key(**folder)) {
            names.push(format!("{folder}/e"));
        }
        names[self.chance.below(names.len())].clone()
    }

    /// Returns a random existing file.
    fn file(&mut self, state: &State) -> Option<(String, u64)> {
        let files: Vec<(&String, u64)> =
            state.held.iter().filter_map(|(name, version)| Some((name, (*version)?))).collect();
        let (name, version) = files.get(self.chance.below(files.len().max(1)))?;
        Some(((*name).clone(), *version))
    }

    fn put(&mut self, mut state: State) -> Result<(), Broken> {
        let (name, version) = (self.name(&state), self.version());
        state.held.insert(name.clone(), Some(version));
        self.ask(state, ("PUT", &url(&self.folder, &name), ""), &content(version)).map(drop)
    }

    fn rename(&mut self, mut state: State, method: &str) -> Result<(), Broken> {
        let to = self.name(&state);
        let Some((from, version)) = self.file(&state).filter(|(from, _)| *from != to) else {
            return self.put(state);
        };
        state.held.insert(to.clone(), Some(version));
        if method == "MOVE" {
            state.held.remove(&from);
        }
        let fields = format!("Destination: {}\r\n", url(&self.folder, &to));
        self.ask(state, (method, &url(&self.folder, &from), &fields), b"").map(drop)
    }

    fn delete(&mut self, mut state: State) -> Result<(), Broken> {
        let Some((name, _)) = self.file(&state) else { return self.put(state) };
        state.held.remove(&name);
        self.ask(state, ("DELETE", &url(&self.folder, &name), ""), b"").map(drop)
    }

    /// Creates the folder, renames it, or deletes it with its contents.
    fn folder(&mut self, mut state: State) -> Result<(), Broken> {
        let Some(at) = FOLDERS.iter().position(|folder| state.held.contains_key(*folder)) else {
            state.held.insert(FOLDERS[0].to_owned(), None);
            return self.ask(state, ("MKCOL", &url(&self.folder, FOLDERS[0]), ""), b"").map(drop);
        };
        let (from, to) = (FOLDERS[at], FOLDERS[1 - at]);
        let here = format!("{from}/");
        let (inside, rest) = state.held.into_iter().partition(|(name, _)| name.starts_with(&here));
        let inside: std::collections::BTreeMap<String, Option<u64>> = inside;
        state.held = rest;
        state.held.remove(from);
        let source = url(&self.folder, from);
        if self.chance.below(2) == 0 {
            return self.ask(state, ("DELETE", &source, ""), b"").map(drop);
        }
        state.held.insert(to.to_owned(), None);
        state.held.extend(inside.into_iter().map(|(name, held)| (name.replacen(from, to, 1), held)));
        let fields = format!("Destination: {}\r\n", url(&self.folder, to));
        self.ask(state, ("MOVE", &source, &fields), b"").map(drop)
    }

    /// Announces an upload, resumes it, or discards it.
    fn upload(&mut self, state: State) -> Result<(), Broken> {
        match state.upload.clone() {
            None => self.announce(state),
            Some(_) if self.chance.below(8) == 0 => {
                let (next, at) = (State { upload: None, ..state }, self.url.clone());
                self.ask(next, ("DELETE", &at, "Tus-Resumable: 1.0.0\r\n"), b"").map(drop)
            }
            Some(sending) => self.resume(state, sending),
        }
    }

    /// Announces an upload and discards it; both are confirmed.
    pub(super) fn change_its_mind(&mut self) {
        let state = self.ledger.lock().unwrap().last().clone();
        self.announce(state.clone()).expect("an answer");
        let at = self.url.clone();
        self.ask(state, ("DELETE", &at, "Tus-Resumable: 1.0.0\r\n"), b"").expect("an answer");
    }

    fn announce(&mut self, mut state: State) -> Result<(), Broken> {
        // Not empty, because an empty upload is complete at once. The name is outside the folder that is
        // renamed.
        let version = self.version() / 16 * 16 + 17;
        self.version = version;
        let name = NAMES[self.chance.below(NAMES.len())].to_owned();
        let bytes = content(version).len();
        state.upload = Some(Sending { name: name.clone(), version, bytes, offset: 0 });
        let metadata = base64(format!("{}/{name}", self.folder).as_bytes());
        let fields =
            format!("Tus-Resumable: 1.0.0\r\nUpload-Length: {bytes}\r\nUpload-Metadata: path {metadata}\r\n");
        let reply = self.ask(state, ("POST", "/uploads", &fields), b"")?;
        self.url = reply.field("Location").expect("where it is").to_owned();
        Ok(())
    }

    fn resume(&mut self, mut state: State, sending: Sending) -> Result<(), Broken> {
        let from = sending.offset;
        let until = (from + 1 + self.chance.below(PART_BYTES_MAX)).min(sending.bytes);
        let bytes = content(sending.version)[from..until].to_vec();
        if until == sending.bytes {
            state.held.insert(sending.name, Some(sending.version));
            state.upload = None;
        } else {
            state.upload = Some(Sending { offset: until, ..sending });
        }
        let at = self.url.clone();
        self.ask(state, ("PATCH", &at, &part(from)), &bytes).map(drop)
    }
}

/// Returns the fields of a part at `offset`.
pub(super) fn part(offset: usize) -> String {
    format!(
        "Tus-Resumable: 1.0.0\r\nContent-Type: application/offset+octet-stream\r\nUpload-Offset: {offset}\r\n"
    )
}
