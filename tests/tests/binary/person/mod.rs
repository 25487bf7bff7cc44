//! The client commands: the real binary as a client of the real binary.

mod accounts;
mod changed;
mod cut_off;
mod files;
mod folders;
mod https;
mod links;
mod plain_http;
mod sharing;
mod streams;
mod transfers;
mod trash;
mod wire;

use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_tests::binary::tool::{self, Done};
use plimsoll_tests::binary::{self, EngineKind, Server};

/// The password of every test account.
const PASSWORD: &str = "correct horse";

/// Starts a server with accounts, with its data in `data`, at `http`.
fn serve(kind: EngineKind, data: &Path, http: &str) -> Server {
    Server::spawn(serving(kind, data, http))
}

fn serving(kind: EngineKind, data: &Path, http: &str) -> Command {
    let mut command = binary::command();
    command.args([
        "serve",
        "--http",
        http,
        "--access-log",
        "off",
        "--lab-fast-passwords",
        "true",
        "--signup",
        "open",
    ]);
    command.args(["--engine", &kind.to_string(), "--data"]).arg(data);
    command
}

/// A server with accounts, and its data folder.
struct Workspace {
    server: Server,
    data: tempfile::TempDir,
}

impl Workspace {
    fn open(kind: EngineKind) -> Workspace {
        let data = tempfile::tempdir().unwrap();
        Workspace { server: serve(kind, data.path(), "127.0.0.1:0"), data }
    }
}

/// A user with a separate home and working folder.
struct Person {
    /// The working folder, and next to it the programs' state folder.
    folder: tempfile::TempDir,
    server: String,
}

impl Person {
    /// Creates a user and logs in at `server`.
    fn at(server: &str, name: &str) -> Person {
        let person = Person::logged_out(server);
        person.types(&["signup", name]).well();
        person.types(&["login", name]).well();
        person
    }

    /// Creates a user without a login.
    fn logged_out(server: &str) -> Person {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("here")).unwrap();
        Person { folder, server: server.to_owned() }
    }

    /// Returns a path in the working folder.
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("here").join(name)
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn writes(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    fn reads(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Returns a command that is ready to run.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = binary::command();
        command.args(args);
        self.settle(&mut command);
        command
    }

    /// Sets a program's working folder and environment to the user's.
    fn settle(&self, command: &mut Command) {
        command.current_dir(self.folder.path().join("here")).env("XDG_STATE_HOME", self.state());
        command.env("PLIMSOLL_SERVER", &self.server).env("PLIMSOLL_PASSWORD", PASSWORD);
    }

    fn types(&self, args: &[&str]) -> Done {
        tool::run(&mut self.command(args))
    }

    /// Returns the JSON output of a command.
    fn json(&self, args: &[&str]) -> serde_json::Value {
        let done = self.types(&[args, &["--json"]].concat()).well();
        serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.text()))
    }

    /// Asserts that a command fails with `code`, and prints all of `words`.
    fn fails(&self, args: &[&str], code: i32, words: &[&str]) {
        let done = self.types(args);
        assert_eq!(done.status.code(), Some(code), "{args:?}: {}{}", done.text(), done.stderr);
        for word in words {
            assert!(done.stderr.contains(word), "{args:?}: {word:?} is not in: {}", done.stderr);
        }
    }
}

/// Returns the lines of a command's output.
fn lines(done: Done) -> Vec<String> {
    done.well().text().lines().map(str::to_owned).collect()
}
