//! The scripts of the web page, used as a person does: Playwright drives Chromium through each scenario.
//!
//! A scenario has a server of its own, and prints `kill` or `start` for it to end or to start again, or
//! `permit NAME PERMISSIONS` to change an account on the command line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use plimsoll_tests::binary::ports::free_port;
use plimsoll_tests::binary::{EngineKind, Server, command, tool};

use super::clients::node_modules;

/// A server that a scenario ends and starts again at the same address.
struct Restarted {
    kind: EngineKind,
    data: tempfile::TempDir,
    address: String,
    server: Option<Server>,
}

impl Restarted {
    fn new(kind: EngineKind) -> Restarted {
        let (data, address) = (tempfile::tempdir().unwrap(), format!("127.0.0.1:{}", free_port()));
        let mut restarted = Restarted { kind, data, address, server: None };
        restarted.execute("start");
        restarted
    }

    fn execute(&mut self, order: &str) {
        match order {
            // Dropping it kills the process.
            "kill" => self.server = None,
            "start" => {
                let args = ["--http", &*self.address];
                self.server = Some(Server::on_data(self.kind, self.data.path(), &args));
            }
            order if order.starts_with("permit ") => {
                let mut account = command();
                account.arg("account").args(order.split(' ')).arg("--data").arg(self.data.path());
                tool::run(&mut account).well();
            }
            other => println!("{other}"),
        }
    }
}

/// Ends a scenario with the test, also if that fails.
struct Scenario(Child);

impl Drop for Scenario {
    fn drop(&mut self) {
        tool::kill(&mut self.0);
        let _ = self.0.wait();
    }
}

/// Runs a scenario to its end.
fn run(kind: EngineKind, name: &str) {
    let Some(modules) = node_modules() else { return };
    let mut server = Restarted::new(kind);
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/binary/web_page");
    let browser = tool::first_installed(&["chromium", "chromium-browser", "google-chrome"]);
    let mut node = tool("node");
    node.arg(here.join(format!("{name}.mjs"))).env("TOOLS", modules.join("..")).env("PICTURES", pictures());
    node.env("BROWSER", path_of_program(&browser));
    node.env("SERVER", format!("http://{}", server.address));
    node.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut scenario = Scenario(node.spawn().expect("tests/install brings node"));
    let orders = BufReader::new(scenario.0.stdout.take().expect("a pipe"));
    let mut done = scenario.0.stdin.take().expect("a pipe");
    for order in orders.lines() {
        server.execute(&order.expect("text"));
        // The scenario may have ended.
        let _ = done.write_all(b"done\n");
    }
    assert!(scenario.0.wait().expect("a child").success(), "{name} fails; its error is above");
}

/// Returns the path of a program: Playwright looks for none.
fn path_of_program(program: &str) -> PathBuf {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|at| at.join(program))
        .find(|path| path.is_file())
        .expect("it is there")
}

/// Returns where the pictures of the page are left.
fn pictures() -> PathBuf {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    target.parent().expect("the folder of all targets").join("page-pictures")
}

#[test]
fn a_person_sorts_filters_selects_renames_moves_copies_and_deletes() {
    run(EngineKind::Epoll, "list");
}

#[test]
fn uploads_are_paused_resumed_after_a_kill_and_a_closed_tab_and_cancelled() {
    run(EngineKind::Epoll, "uploads");
}

#[test]
fn files_are_previewed_and_a_text_is_edited_unless_another_person_has_changed_it() {
    run(EngineKind::Epoll, "preview");
}

#[test]
fn an_operator_changes_an_account_on_the_page_without_scripts() {
    run(EngineKind::Epoll, "operator");
}

#[test]
fn no_name_and_no_content_of_a_file_runs_as_code() {
    run(EngineKind::Epoll, "hostile");
}

#[test]
fn the_page_is_accessible_and_looks_right_at_each_width_in_light_and_dark() {
    run(EngineKind::Epoll, "pictures");
}
