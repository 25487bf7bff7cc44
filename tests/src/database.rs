//! A database server for a test, run by the script `tests/database`.
//!
//! It knows no database's language. No server outlives the process that started it, not even a killed
//! one: the script ends the server when its standard input ends.

#![allow(
    unreachable_pub,
    dead_code,
    clippy::expect_used,
    missing_docs,
    reason = "more than one crate's tests have this file"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A server that runs until it is dropped.
pub struct Database {
    script: Child,
    orders: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    made: usize,
    folder: PathBuf,
}

/// How a client reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Unix,
    Tcp,
    Tls,
}

impl Transport {
    fn name(self) -> &'static str {
        match self {
            Transport::Unix => "unix",
            Transport::Tcp => "tcp",
            Transport::Tls => "tls",
        }
    }
}

/// An empty database on the server.
#[derive(Clone, Debug)]
pub struct Fresh {
    /// The URL, with the account.
    pub url: String,
    number: usize,
}

impl Fresh {
    /// Returns the ordinal of this database, from 1.
    pub fn number(&self) -> usize {
        self.number
    }
}

impl Database {
    /// Starts a server of this kind: `mysql` (MariaDB), `postgres`, `redis`, `sentinel` or `cluster`.
    pub fn start(kind: &str) -> Database {
        Database::start_in(&std::env::temp_dir(), kind)
    }

    /// As [`Database::start`], with its data in a folder that everyone can enter.
    pub fn start_in(data: &Path, kind: &str) -> Database {
        let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        let script = folders.map(|folder| folder.join("tests/database")).find(|script| script.is_file());
        let mut command = Command::new(script.expect("the script is in the checkout"));
        command.arg(kind).env("TMPDIR", data).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = command.spawn().expect("bash is there");
        let orders = script.stdin.take();
        let output = BufReader::new(script.stdout.take().expect("a pipe"));
        let mut database = Database { script, orders, output, made: 0, folder: PathBuf::new() };
        let ready = database.line();
        let folder =
            ready.strip_prefix("ready ").and_then(|rest| rest.split_once(' ')).map(|(folder, _)| folder);
        database.folder = folder.expect("the server starts").into();
        database
    }

    /// Creates a database for exclusive use, reached by the Unix socket.
    pub fn fresh(&mut self) -> Fresh {
        self.fresh_over(Transport::Unix)
    }

    /// Creates a database for exclusive use, reached over this transport.
    pub fn fresh_over(&mut self, transport: Transport) -> Fresh {
        self.made += 1;
        Fresh { url: self.execute(&format!("fresh {}", transport.name())), number: self.made }
    }

    /// Returns the URL of a database over another transport.
    pub fn url(&mut self, of: &Fresh, transport: Transport) -> String {
        self.execute(&format!("url {} {}", of.number, transport.name()))
    }

    /// Returns the path of a certificate or key, in PEM: `ca.pem`, the authority of the server's
    /// certificate, or `client.pem` with `client.key`, for the user `certified`.
    pub fn certificate(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Has the server present the certificate `server` or `expired` from its next start on.
    pub fn present(&mut self, name: &str) {
        assert_eq!(self.execute(&format!("present {name}")), "done");
    }

    /// Runs a command in a database, in the server's own language.
    pub fn run(&mut self, at: &Fresh, command: &str) {
        assert_eq!(self.execute(&format!("do {} {command}", at.number)), "done", "{command}");
    }

    /// Loads a dump of the server's own tools into a database.
    pub fn load(&mut self, at: &Fresh, file: &Path) {
        assert_eq!(self.execute(&format!("load {} {}", at.number, file.display())), "done");
    }

    /// Returns the schema of a database, as the server's own tools print it.
    pub fn schema(&mut self, at: &Fresh) -> String {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        assert_eq!(self.execute(&format!("schema {} {}", at.number, file.path().display())), "done");
        std::fs::read_to_string(file.path()).expect("the script wrote it")
    }

    /// Kills the server; its stored data stays.
    pub fn kill(&mut self) {
        assert_eq!(self.execute("kill"), "done");
    }

    /// Kills the master of a Sentinel or cluster.
    pub fn fail(&mut self) {
        assert_eq!(self.execute("fail"), "done");
    }

    /// Makes the replica of a cluster the master.
    pub fn switch(&mut self) {
        assert_eq!(self.execute("switch"), "done");
    }

    /// Starts the killed server again. Returns when it answers.
    pub fn start_again(&mut self) {
        assert_eq!(self.execute("start"), "done");
    }

    /// Starts the server again if it has ended by itself, as a service manager would. Returns whether it had.
    pub fn revive(&mut self) -> bool {
        self.execute("revive") == "started"
    }

    /// Stops the server's processes: it accepts connections but does not answer.
    pub fn stop(&mut self) {
        assert_eq!(self.execute("stop"), "done");
    }

    /// Continues the server after [`Database::stop`].
    pub fn resume(&mut self) {
        assert_eq!(self.execute("go"), "done");
    }

    fn execute(&mut self, order: &str) -> String {
        let orders = self.orders.as_mut().expect("it runs");
        writeln!(orders, "{order}").and_then(|()| orders.flush()).expect("the script runs");
        self.line()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the script runs");
        line.trim_end().to_owned()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        drop(self.orders.take());
        // The script's exit status does not matter.
        let _ = self.script.wait();
    }
}
