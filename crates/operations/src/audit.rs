//! One log line and one count for each operation.
//!
//! This module does not write files: lines go to a [`LineSink`], which must not block. Invariant:
//! however an operation ends, also by a dropped future, its audit entry ends. No byte that a client sends
//! can end a line.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plimsoll_io::Io;
use plimsoll_wire::text::is_unsafe_to_show;
use serde::Serialize;

use crate::Operations;
use crate::caller::{Caller, Protocol, Visitor};
use crate::error::{BROKEN_OFF, Error};
use crate::failures::Failure;
use crate::limits::{LOG_NAME_BYTES_MAX, LOG_PATH_BYTES_MAX};
use crate::meter::Meter;
use crate::operation::Operation;
use crate::transfer_permit::Permit;
use crate::xferlog::{self, Entry};

/// The name of a guest in audit entries.
pub const GUEST: &str = "anonymous";

/// The destination of a log's lines.
pub trait LineSink: Send + Sync {
    /// Takes a whole line without blocking. Drops the line if it cannot take it.
    fn take(&self, line: Vec<u8>);
}

/// Counts operations and writes their log lines. Clones share their state.
#[derive(Clone)]
pub struct AuditLog(Arc<Sinks>);

struct Sinks {
    meter: Arc<Meter>,
    log: Option<Arc<dyn LineSink>>,
    xferlog: Option<Arc<dyn LineSink>>,
}

/// The audit entry of an operation in progress. If it is dropped before its end, the operation was aborted.
pub struct AuditEntry {
    audit_log: AuditLog,
    io: Io,
    protocol: Protocol,
    operation: Operation,
    /// `None` without a log, to save the memory.
    names: Option<Box<Names>>,
    start: SystemTime,
    bytes: u64,
    /// The bytes that earlier parts of the same upload moved, which have no line of their own.
    earlier_bytes: u64,
    in_ascii: bool,
    is_omitted: bool,
    ended: bool,
    /// The right that the operation uses, if it is checked again while the operation is in progress.
    permit: Option<Box<Permit>>,
}

/// The client, account and paths of an operation, in the form of the log lines.
struct Names {
    peer: String,
    account: String,
    /// The id of the public link that the client used.
    link: Option<String>,
    path: String,
    to: Option<String>,
}

/// A line of the transfer log. Times are microseconds since 1970.
#[derive(Serialize)]
struct TransferLine<'a> {
    start: u64,
    end: u64,
    protocol: &'a str,
    operation: &'a str,
    peer: &'a str,
    account: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<&'a str>,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    bytes: u64,
    result: &'a str,
}

impl AuditLog {
    /// `log` gets the transfer log's lines. `xferlog` gets a line for each file received, sent or removed,
    /// in the form of xferlog(5), with times in UTC.
    pub fn new(
        meter: Arc<Meter>,
        log: Option<Arc<dyn LineSink>>,
        xferlog: Option<Arc<dyn LineSink>>,
    ) -> AuditLog {
        AuditLog(Arc::new(Sinks { meter, log, xferlog }))
    }

    /// The counters.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.0.meter
    }

    /// Starts the entry of an operation of `account`, which may be unknown yet, or [`GUEST`].
    pub fn begin(
        &self,
        visitor: &Visitor,
        operation: Operation,
        account: &str,
        place: &dyn std::fmt::Display,
    ) -> AuditEntry {
        let has_lines = self.0.log.is_some() || self.0.xferlog.is_some();
        let names = || Names {
            peer: visitor.peer.to_string(),
            account: cut(account.to_owned(), LOG_NAME_BYTES_MAX),
            link: None,
            path: cut(place.to_string(), LOG_PATH_BYTES_MAX),
            to: None,
        };
        AuditEntry {
            audit_log: self.clone(),
            io: visitor.io.clone(),
            protocol: visitor.protocol,
            operation,
            names: has_lines.then(|| Box::new(names())),
            start: visitor.io.wall_exact(),
            bytes: 0,
            earlier_bytes: 0,
            in_ascii: false,
            is_omitted: false,
            ended: false,
            permit: None,
        }
    }
}

impl Operations {
    /// Starts the entry of an operation of `account`, which may be unknown yet.
    pub(crate) fn begin(&self, visitor: &Visitor, operation: Operation, account: &str) -> AuditEntry {
        self.0.audit_log.begin(visitor, operation, account, &"")
    }

    /// Starts the entry of an operation on a file or folder.
    pub(crate) fn begin_at(
        &self,
        caller: &Caller,
        operation: Operation,
        place: &dyn std::fmt::Display,
    ) -> AuditEntry {
        let identity = &caller.identity;
        let mut audit = self.0.audit_log.begin(&caller.visitor, operation, &identity.account.name, place);
        if let (Some(link), Some(names)) = (identity.link(), &mut audit.names) {
            names.link = Some(link.id.clone());
        }
        audit
    }
}

impl AuditEntry {
    /// Sets the destination of an operation with two paths.
    pub(crate) fn to(mut self, place: &dyn std::fmt::Display) -> AuditEntry {
        if let Some(names) = &mut self.names {
            names.to = Some(cut(place.to_string(), LOG_PATH_BYTES_MAX));
        }
        self
    }

    /// As [`AuditEntry::to`], for another name in the same folder.
    pub(crate) fn renamed(&mut self, name: &[u8]) {
        if let Some(names) = &mut self.names {
            let folder = names.path.rfind('/').map_or("", |end| &names.path[..=end]);
            names.to = Some(cut(format!("{folder}{}", String::from_utf8_lossy(name)), LOG_PATH_BYTES_MAX));
        }
    }

    /// Sets the number of bytes of file contents transferred so far.
    pub fn moved(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// Extends the entry to all parts of an upload, which began at `start` and has `bytes` in all.
    pub(crate) fn include_earlier(&mut self, start: SystemTime, bytes: u64) {
        self.start = self.start.min(start);
        self.earlier_bytes = bytes.saturating_sub(self.bytes);
    }

    /// Omits the operation from the logs and from the number of operations: a part of an upload, or a
    /// response without contents. Its bytes are counted.
    pub fn omit(&mut self) {
        self.is_omitted = true;
    }

    /// Marks the transfer as text: its lines are converted to network line ends.
    pub fn in_ascii(&mut self) {
        self.in_ascii = true;
    }

    /// Stores the right that the operation uses, to check it while the operation is in progress.
    pub(crate) fn set_permit(&mut self, permit: Permit) {
        self.permit = Some(Box::new(permit));
    }

    /// Takes the right out, to check it while the bytes are sent. Returns `None` if there is none, or it
    /// was already taken.
    pub fn take_permit(&mut self) -> Option<Box<Permit>> {
        self.permit.take()
    }

    /// Returns the right that the operation uses.
    pub fn permit(&mut self) -> Option<&mut Permit> {
        self.permit.as_deref_mut()
    }

    /// Checks the right that the operation uses, after a step that took long.
    ///
    /// # Errors
    /// As [`Permit::check`].
    pub async fn check_permit(&mut self) -> Result<(), Error> {
        match self.permit() {
            Some(permit) => permit.check().await,
            None => Ok(()),
        }
    }

    /// Changes the operation's kind: a download of a folder becomes a listing.
    pub fn becomes(&mut self, operation: Operation) {
        self.operation = operation;
    }

    /// Ends the entry with the operation's result, and returns that.
    pub fn end<T, E: Into<Error>>(mut self, result: Result<T, E>) -> Result<T, Error> {
        let result = result.map_err(Into::into);
        self.write(result.as_ref().err().map(Error::word));
        result
    }

    /// Ends the entry of a successful operation.
    pub fn done(mut self) {
        self.write(None);
    }

    /// Ends the entry of a failed operation, with the word for the reason.
    pub fn failed(mut self, why: &'static str) {
        self.write(Some(why));
    }

    fn write(&mut self, failed: Option<&str>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let sinks = &self.audit_log.0;
        sinks.meter.count_bytes(self.protocol, self.operation, self.bytes);
        if self.is_omitted {
            return;
        }
        let end = self.io.wall_exact();
        let time = end.duration_since(self.start).unwrap_or(Duration::ZERO);
        sinks.meter.count(self.protocol, self.operation, time, failed.is_some());
        if let Some(reason) = failed.filter(|word| !Error::EXPECTED.contains(word)) {
            sinks.meter.record_failure(&self.failure(end, reason));
        }
        let Some(names) = &self.names else { return };
        if let Some(log) = &sinks.log {
            log.take(self.line(names, end, failed));
        }
        if let Some(xferlog) = &sinks.xferlog
            && let Some(entry) = self.entry(names, end, time, failed.is_none())
        {
            xferlog.take(entry.line().into_bytes());
        }
    }

    /// Returns the record of a failed operation for operators.
    fn failure(&self, time: SystemTime, reason: &str) -> Failure {
        let (peer, account) = match &self.names {
            Some(names) => (names.peer.clone(), names.account.clone()),
            None => Default::default(),
        };
        let (protocol, operation) = (self.protocol.name().to_owned(), self.operation.name().to_owned());
        Failure { time, protocol, operation, reason: reason.to_owned(), peer, account }
    }

    /// Formats the line of the transfer log.
    fn line(&self, names: &Names, end: SystemTime, failed: Option<&str>) -> Vec<u8> {
        let line = TransferLine {
            start: micros(self.start),
            end: micros(end),
            protocol: self.protocol.name(),
            operation: self.operation.name(),
            peer: &names.peer,
            account: &names.account,
            link: names.link.as_deref(),
            path: &names.path,
            to: names.to.as_deref(),
            bytes: self.bytes + self.earlier_bytes,
            result: failed.unwrap_or("ok"),
        };
        // Serialising strings and numbers into memory cannot fail.
        let mut line = escape_unsafe(&serde_json::to_string(&line).unwrap_or_default());
        line.push('\n');
        line.into_bytes()
    }

    /// The line of xferlog(5). A transfer that failed before its first byte has none.
    fn entry<'a>(
        &self,
        names: &'a Names,
        end: SystemTime,
        time: Duration,
        is_complete: bool,
    ) -> Option<Entry<'a>> {
        let direction = xferlog::direction(self.operation).filter(|_| is_complete || self.bytes > 0)?;
        Some(Entry {
            direction,
            end,
            time,
            peer: &names.peer,
            bytes: self.bytes + self.earlier_bytes,
            path: &names.path,
            in_ascii: self.in_ascii,
            account: &names.account,
            protocol: self.protocol.name(),
            is_complete,
        })
    }
}

impl Drop for AuditEntry {
    fn drop(&mut self) {
        self.write(Some(BROKEN_OFF));
    }
}

fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Escapes the characters of a JSON document that are unsafe in a terminal. They occur only in strings,
/// because the rest of a document is ASCII without control characters.
fn escape_unsafe(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len() + 1);
    for character in json.chars() {
        if is_unsafe_to_show(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Truncates a text to `bytes_max` bytes, at a character boundary.
fn cut(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use plimsoll_io::Peer;
    use plimsoll_io::sim::{Faults, Sim};

    use super::*;
    use crate::caller::Protocol;

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl LineSink for Lines {
        fn take(&self, line: Vec<u8>) {
            self.0.lock().unwrap().push(String::from_utf8(line).unwrap());
        }
    }

    /// The lines of the two logs after `test`: transfer log, xferlog.
    fn logged(test: impl FnOnce(&AuditLog, &Visitor) + 'static) -> (Vec<String>, Vec<String>) {
        let (log, xferlog) = (Arc::<Lines>::default(), Arc::<Lines>::default());
        let audit_log = AuditLog::new(Arc::default(), Some(log.clone()), Some(xferlog.clone()));
        let sim = Sim::new(1, Faults::none());
        let host = sim.host("one");
        let peer = Peer::Ip("192.0.2.7".parse().unwrap(), 40_000);
        let visitor = Visitor { io: host.io(), peer, protocol: Protocol::Ftp, is_protected: true };
        sim.run(&host, async move { test(&audit_log, &visitor) });
        let taken = |lines: &Lines| std::mem::take(&mut *lines.0.lock().unwrap());
        (taken(&log), taken(&xferlog))
    }

    #[test]
    fn a_transfer_that_moved_bytes_or_succeeded_has_a_line_in_xferlog() {
        let (log, xferlog) = logged(|audit_log, visitor| {
            let begin = |operation| audit_log.begin(visitor, operation, "alice", &"/f");
            for operation in Operation::ALL {
                begin(operation).done();
                begin(operation).failed("not found");
            }
            for end in [AuditEntry::done, |audit: AuditEntry| audit.failed("quota"), drop] {
                let mut audit = begin(Operation::Upload);
                audit.in_ascii();
                audit.moved(7);
                end(audit);
            }
            let mut listed = begin(Operation::Download);
            listed.becomes(Operation::List);
            listed.done();
        });
        assert_eq!(log.len(), 2 * Operation::ALL.len() + 4);
        let ends: Vec<&str> = xferlog.iter().map(|line| line.split_once(" 192.0.2.7 ").unwrap().1).collect();
        assert_eq!(
            ends,
            [
                "0 /f b _ o r alice ftp 0 * c\n",
                "0 /f b _ i r alice ftp 0 * c\n",
                "0 /f b _ d r alice ftp 0 * c\n",
                "7 /f a _ i r alice ftp 0 * c\n",
                "7 /f a _ i r alice ftp 0 * i\n",
                "7 /f a _ i r alice ftp 0 * i\n",
            ]
        );
    }

    #[test]
    fn failures_are_recorded_unless_they_are_expected() {
        let _ = logged(|audit_log, visitor| {
            for reason in ["not found", "failed", "precondition", BROKEN_OFF, "not authenticated"] {
                audit_log.begin(visitor, Operation::LogIn, "alice", &"/secret").failed(reason);
            }
            drop(audit_log.begin(visitor, Operation::Download, "alice", &"/secret"));
            audit_log.begin(visitor, Operation::Download, "alice", &"/secret").done();
            let failures = audit_log.meter().failures();
            let reasons: Vec<&str> = failures.iter().map(|failure| &*failure.reason).collect();
            assert_eq!(reasons, ["not authenticated", "failed"]);
            let Failure { protocol, operation, peer, account, .. } = &failures[0];
            let fields = [protocol, operation, peer, account];
            assert_eq!(fields, ["ftp", "login", "192.0.2.7", "alice"]);
            assert!(!format!("{failures:?}").contains("secret"));
        });
    }

    #[test]
    fn a_guest_has_a_name_in_both_logs() {
        let (log, xferlog) = logged(|audit_log, visitor| {
            audit_log.begin(visitor, Operation::Download, GUEST, &"/a b").done();
        });
        let line: serde_json::Value = serde_json::from_str(&log[0]).unwrap();
        assert_eq!((&line["account"], &line["path"]), (&"anonymous".into(), &"/a b".into()));
        assert!(xferlog[0].ends_with(" 0 /a_b b _ o a anonymous ftp 0 * c\n"), "{xferlog:?}");
    }

    #[test]
    fn no_name_commands_the_terminal_that_shows_the_log() {
        let path = "/a\u{9b}2J\u{202e}gpj.exe\u{e0041}\u{1b}";
        let (log, xferlog) = logged(move |audit_log, visitor| {
            audit_log.begin(visitor, Operation::Upload, "al\u{85}ice", &path).done();
        });
        let unsafe_in = |line: &str| line.trim_end().chars().any(is_unsafe_to_show);
        assert!(!unsafe_in(&log[0]) && !unsafe_in(&xferlog[0]), "{log:?} {xferlog:?}");
        let line: serde_json::Value = serde_json::from_str(&log[0]).unwrap();
        assert_eq!((&line["account"], &line["path"]), (&"al\u{85}ice".into(), &path.into()));
    }

    #[test]
    fn no_name_is_longer_in_a_line_than_a_name_may_be() {
        let (log, _) = logged(|audit_log, visitor| {
            let (name, path) = ("ä".repeat(100), "ä\n".repeat(5_000));
            audit_log.begin(visitor, Operation::LogIn, &name, &path).done();
        });
        let line: serde_json::Value = serde_json::from_str(&log[0]).unwrap();
        assert_eq!(line["account"].as_str().unwrap().len(), LOG_NAME_BYTES_MAX);
        assert_eq!(line["path"].as_str().unwrap().len(), LOG_PATH_BYTES_MAX - 1);
        assert_eq!(log[0].find('\n'), Some(log[0].len() - 1));
    }
}
