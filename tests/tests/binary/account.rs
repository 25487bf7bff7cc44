//! `plimsoll account`: an operator's commands on the data itself, with and without a running server.

use std::cell::Cell;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_tests::binary::{
    Done, EngineKind, Server, among_others, command, reached_within, terminal, tool, type_line,
};
use plimsoll_tests::on_each_engine;
use serde_json::{Value, json};

const PASSWORD: &str = "correct horse";

/// The bound within which a running server must see an operator's change, with the same time again as an
/// allowance for this machine.
const SEEN_WITHIN: Duration = Duration::from_secs(2);

/// A data folder that no server has created yet.
struct Workspace {
    folder: tempfile::TempDir,
}

impl Workspace {
    fn new() -> Workspace {
        Workspace { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut account = command();
        account.arg("account").args(args).arg("--data").arg(self.path("data"));
        account.env("PLIMSOLL_PASSWORD", PASSWORD).env("PLIMSOLL_LAB_FAST_PASSWORDS", "true");
        account
    }

    fn account(&self, args: &[&str]) -> Done {
        tool::run(&mut self.command(args))
    }

    /// Returns the JSON output of a successful command.
    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_slice(&self.account(&[args, &["--json"]].concat()).well().stdout).expect("JSON")
    }

    /// Asserts an operator's error: exit code, and all of `words` on standard error alone.
    fn fails(&self, args: &[&str], code: i32, words: &[&str]) {
        let done = self.account(args);
        assert_eq!(done.status.code(), Some(code), "{args:?}: {}", done.stderr);
        assert_eq!(done.text(), "", "{args:?}: an error is no output");
        for word in words {
            assert!(done.stderr.contains(word), "{args:?}: {word:?} is not in: {}", done.stderr);
        }
    }

    fn serve(&self, kind: EngineKind) -> Server {
        let mut serve = command();
        serve.args(["serve", "--engine", &kind.to_string(), "--http", "127.0.0.1:0", "--access-log", "off"]);
        serve.arg("--data").arg(self.path("data")).env("PLIMSOLL_LAB_FAST_PASSWORDS", "true");
        serve.args(["--signup", "open"]);
        Server::spawn(serve)
    }

    /// Returns the names in a folder of the data.
    fn names(&self, below: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path("data").join(below)) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// Sends a request as alice with her password, and returns the status and the body.
fn asked(server: &Server, password: &str, args: &[&str], path: &str) -> (String, String) {
    let mut curl = tool("curl");
    curl.args(["-q", "-sS", "-w", "\n%{http_code}", "-u", &format!("alice:{password}")]);
    let text = tool::run(curl.args(args).arg(server.url(path))).well().text();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (status.to_owned(), body.to_owned())
}

fn status(server: &Server, args: &[&str], path: &str) -> String {
    asked(server, PASSWORD, args, path).0
}

/// Uploads a file as alice.
fn put(server: &Server, path: &str) -> String {
    status(server, &["-T", "/dev/null"], path)
}

#[test]
fn an_account_is_added_listed_shown_and_removed() {
    let _permit = among_others();
    let place = Workspace::new();
    let added = place.json(&["add", "Alice", "--quota-bytes", "1GiB"]);
    let mut all = json!({"read": true, "write": true, "delete": true, "share": true, "operate": false});
    all["parents"] = false.into();
    all["administer"] = false.into();
    assert_eq!(
        (&added["name"], &added["enabled"], &added["permissions"]),
        (&json!("alice"), &json!(true), &all)
    );
    assert_eq!(added["quota"], json!({"bytes": 1 << 30, "files": null}));
    assert!(added["created"].as_str().unwrap().starts_with("20"), "{added}");
    place.account(&["add", "bob"]).well();
    let listed = place.account(&["list"]).well().text();
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 3, "{listed}");
    assert!(lines[0].starts_with("name ") && lines[1].starts_with("alice ") && lines[2].starts_with("bob "));
    let column = lines[0].find("may").unwrap();
    assert!(lines[1..].iter().all(|line| line[column..].starts_with("read,write,delete,share")), "{listed}");
    assert_eq!(place.json(&["list", "--no-usage"])[0], added);
    assert_eq!(place.json(&["show", "ALICE"])["usage"], json!({"bytes": 0, "files": 0, "folders": 0}));
    let shown = place.account(&["show", "alice"]).well().text();
    for word in ["alice", "enabled", "1.00 GiB, no bound of files", "data/accounts/alice/files"] {
        assert!(shown.contains(word), "{word:?} is not in: {shown}");
    }
    let removed = place.json(&["rm", "alice", "--yes"]);
    assert_eq!((&removed["removed"]["name"], &removed["files"]), (&json!("alice"), &Value::Null));
    assert_eq!(place.json(&["list"]).as_array().unwrap().len(), 1);
}

#[test]
fn nothing_but_add_and_import_makes_a_directory() {
    let _permit = among_others();
    let place = Workspace::new();
    let commands: [&[&str]; 9] = [
        &["list"],
        &["show", "alice"],
        &["passwd", "alice"],
        &["quota", "alice", "--files", "1"],
        &["permit", "alice", "all"],
        &["disable", "alice"],
        &["enable", "alice"],
        &["rm", "alice", "--yes"],
        &["export"],
    ];
    for args in commands {
        let path = place.path("data/directory.sqlite");
        place.fails(args, 1, &[path.to_str().unwrap(), "--data DIR", "plimsoll account add NAME"]);
        assert!(!place.path("data").exists(), "{args:?} made the data folder");
    }
    place.account(&["add", "alice"]).well();
    for name in ["data", "data/directory.sqlite"] {
        let mode = std::fs::metadata(place.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others have no business in {name}");
    }
}

#[test]
fn wrong_usage_exits_2_and_says_what_to_do() {
    let _permit = among_others();
    let place = Workspace::new();
    place.account(&["add", "alice"]).well();
    let none = tool::run(command().arg("account"));
    assert_eq!(none.status.code(), Some(2));
    assert!(none.stderr.contains("Usage: plimsoll account"), "{}", none.stderr);
    place.fails(&["swim"], 2, &["swim", "--help"]);
    place.fails(&["add"], 2, &["NAME", "--help"]);
    place.fails(&["add", "bob", "--quota-bytes", "much"], 2, &["10MiB", "none"]);
    place.fails(&["quota", "alice"], 2, &["--bytes SIZE", "--files COUNT"]);
    place.fails(
        &["permit", "alice", "fly"],
        2,
        &["\"fly\"", "read, write, delete, share, operate, parents and administer"],
    );
    place.fails(&["permit", "alice", "read,+write"], 2, &["before every permission"]);
    place.fails(&["rm", "alice"], 2, &["--yes"]);
    let other = tool::run(command().args(["account", "list", "--directory", "mongo://there"]));
    assert_eq!(other.status.code(), Some(2), "{}", other.stderr);
    assert!(other.stderr.contains("sqlite:PATH"), "{}", other.stderr);
    assert_eq!(place.json(&["list"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_failed_account_command_exits_1_and_says_what_to_do() {
    let _permit = among_others();
    let place = Workspace::new();
    place.account(&["add", "alice"]).well();
    place.fails(&["add", "ALICE"], 1, &["already", "account show"]);
    place.fails(&["add", "../alice"], 1, &["begins with a letter or digit"]);
    for args in [&["show", "bob"][..], &["disable", "bob"], &["rm", "bob", "--yes"], &["passwd", "bob"]] {
        place.fails(args, 1, &["no account \"bob\"", "plimsoll account list"]);
    }
    let mut short = place.command(&["passwd", "alice"]);
    let done = tool::run(short.env("PLIMSOLL_PASSWORD", "short"));
    assert!(done.status.code() == Some(1) && done.stderr.contains("password"), "{}", done.stderr);
}

#[test]
fn permissions_are_set_as_a_whole_or_changed_one_by_one() {
    let _permit = among_others();
    let place = Workspace::new();
    place.account(&["add", "alice"]).well();
    let may = |args: &[&str]| {
        let may = place.json(&[&["permit", "alice"], args].concat())["permissions"].clone();
        ["read", "write", "delete", "share", "operate"].map(|word| may[word].as_bool().unwrap())
    };
    assert_eq!(may(&["read,write"]), [true, true, false, false, false]);
    assert_eq!(may(&["-write,+share"]), [true, false, false, true, false]);
    assert_eq!(may(&["+write,-read"]), [false, true, false, true, false]);
    assert_eq!(may(&["none"]), [false; 5]);
    assert_eq!(may(&["all"]), [true, true, true, true, false]);
    assert_eq!(may(&["+operate"]), [true; 5]);
    assert_eq!(may(&["-operate"]), [true, true, true, true, false]);
    let output = place.account(&["permit", "alice", "-delete"]).well().text();
    assert_eq!(output, "alice may: read,write,share.\n");
}

#[test]
fn a_bound_that_is_not_given_stays() {
    let _permit = among_others();
    let place = Workspace::new();
    place.account(&["add", "alice", "--quota-bytes", "5MiB", "--quota-files", "7"]).well();
    let quota = |args: &[&str]| place.json(&[&["quota", "alice"], args].concat())["quota"].clone();
    assert_eq!(quota(&["--files", "9"]), json!({"bytes": 5 << 20, "files": 9}));
    assert_eq!(quota(&["--bytes", "none"]), json!({"bytes": null, "files": 9}));
}

#[test]
fn the_settings_of_a_server_lead_to_its_directory() {
    let _permit = among_others();
    let place = Workspace::new();
    let (file, other) = (place.path("plimsoll.toml"), place.path("elsewhere"));
    let text = format!("data = {:?}\nquota.files = \"3\"\n", other.to_str().unwrap());
    std::fs::write(&file, text).unwrap();
    let mut add = command();
    add.args(["account", "add", "alice", "--json", "--config"]).arg(&file);
    let added = tool::run(add.env("PLIMSOLL_PASSWORD", PASSWORD)).well();
    let added: Value = serde_json::from_slice(&added.stdout).unwrap();
    assert_eq!(added["quota"]["files"], json!(3), "new accounts have the quota of the settings");
    let listed = tool::run(command().args(["account", "list"]).env("PLIMSOLL_DATA", &other)).well().text();
    assert!(listed.contains("alice"), "{listed}");
    let url = format!("sqlite:{}", other.join("directory.sqlite").display());
    let listed = tool::run(command().args(["account", "list", "--directory", &url])).well().text();
    assert!(listed.contains("alice"), "{listed}");
    place.fails(&["list", "--config", file.to_str().unwrap()], 1, &["data/directory.sqlite"]);
}

/// A running server sees an operator's change within a second, also in its cached entries.
fn a_running_server_sees_a_change_within_a_second(kind: EngineKind) {
    let place = Workspace::new();
    place.account(&["add", "alice"]).well();
    let server = place.serve(kind);
    assert_eq!(put(&server, "/files/a"), "201");
    let becomes = |args: &[&str], expected: &str, ask: &dyn Fn() -> String| {
        place.account(args).well();
        let changed = Instant::now();
        let seen = reached_within(SEEN_WITHIN, || ask() == expected);
        assert!(seen, "{args:?} was not seen within {SEEN_WITHIN:?}: {}", ask());
        println!("{kind}: {args:?} was seen after {:?}", changed.elapsed());
    };
    becomes(&["permit", "alice", "-write"], "403", &|| put(&server, "/files/b"));
    becomes(&["permit", "alice", "all"], "204", &|| put(&server, "/files/a"));
    // A new file each time: once stored, a file can be overwritten despite the quota of files.
    let more = Cell::new(0);
    becomes(&["quota", "alice", "--files", "1"], "507", &|| {
        more.set(more.get() + 1);
        put(&server, &format!("/files/more-{}", more.get()))
    });
    becomes(&["disable", "alice"], "401", &|| status(&server, &[], "/files/"));
    becomes(&["enable", "alice"], "200", &|| status(&server, &[], "/files/"));
    let file = place.path("password");
    std::fs::write(&file, "battery staple\n").unwrap();
    becomes(&["passwd", "alice", "--password-file", file.to_str().unwrap()], "401", &|| {
        status(&server, &[], "/files/")
    });
    assert_eq!(asked(&server, "battery staple", &[], "/files/").0, "200", "the new password is the one");
}

/// A removed account's home does not affect its successor: a later account of the name begins empty, even
/// if the server had its files open.
fn a_later_account_of_the_name_gets_none_of_the_files(kind: EngineKind) {
    let place = Workspace::new();
    place.account(&["add", "alice"]).well();
    let server = place.serve(kind);
    assert_eq!(put(&server, "/files/a"), "201");
    let removed = place.json(&["rm", "alice", "--yes"]);
    assert_eq!(status(&server, &[], "/files/"), "401");
    let kept = PathBuf::from(removed["files"].as_str().unwrap());
    assert!(kept.starts_with(place.path("data/removed")) && kept.join("files/a").is_file(), "{removed}");
    assert!(place.names("accounts").is_empty(), "{:?}", place.names("accounts"));
    place.account(&["add", "alice"]).well();
    let (code, listed) = asked(&server, PASSWORD, &["-H", "Accept: application/json"], "/files/");
    assert!(code == "200" && !listed.contains("\"a\""), "{listed}");
    assert_eq!(put(&server, "/files/b"), "201");
    let (_, known) = asked(&server, PASSWORD, &[], "/api/whoami");
    let known: Value = serde_json::from_str(&known).unwrap();
    assert_eq!(known["usage"]["files"], json!(1), "{known}");
    assert!(kept.join("files/a").is_file() && !kept.join("files/b").exists());
    let removed = place.account(&["rm", "alice", "--yes", "--with-files"]).well().text();
    assert!(removed.contains("Its files are deleted."), "{removed}");
    assert!(place.names("accounts").is_empty());
    assert_eq!(place.names("removed").len(), 1, "those of the first account are still there");
}

#[test]
fn a_person_at_a_terminal_is_asked_before_an_account_goes() {
    let _permit = among_others();
    let place = Workspace::new();
    place.account(&["add", "alice"]).well();
    for (answer, code, left) in [("", 1, 1), ("n", 1, 1), ("y", 0, 0)] {
        let (mut hands, program) = terminal();
        let mut rm = place.command(&["rm", "alice"]);
        let mut child = rm.stdin(program).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        type_line(&mut hands, answer);
        let mut output = String::new();
        child.stderr.take().unwrap().read_to_string(&mut output).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{output}");
        assert!(
            output.contains("Remove the account alice with its shares, and put its files away?"),
            "{output}"
        );
        assert_eq!(place.json(&["list"]).as_array().unwrap().len(), left, "after {answer:?}");
    }
}

#[test]
fn exported_accounts_are_imported_at_another_server_with_their_passwords() {
    let _permit = among_others();
    let (place, other) = (Workspace::new(), Workspace::new());
    place.account(&["add", "alice", "--quota-files", "5"]).well();
    place.account(&["permit", "alice", "-share"]).well();
    place.account(&["add", "bob"]).well();
    place.account(&["disable", "bob"]).well();
    // The import is a second later.
    std::thread::sleep(Duration::from_millis(1100));
    let file = place.path("accounts.jsonl");
    let file = file.to_str().unwrap();
    assert_eq!(place.json(&["export", file]), json!({"accounts": 2, "file": file}));
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    place.fails(&["export", file], 1, &[file, "exists"]);
    assert_eq!(place.account(&["export"]).well().stdout, std::fs::read(file).unwrap());
    assert_eq!(other.json(&["import", file]).as_array().unwrap().len(), 2);
    let [here, there] = [&place, &other].map(|place| place.json(&["list"]));
    assert_eq!(here, there, "their creation times too");
    let server = other.serve(EngineKind::Epoll);
    assert_eq!(put(&server, "/files/a"), "201");
    assert_eq!(asked(&server, "wrong", &[], "/files/").0, "401");
}

#[test]
fn the_files_and_interrupted_uploads_of_an_account_are_listed() {
    let _permit = among_others();
    let place = Workspace::new();
    place.account(&["add", "alice", "--quota-bytes", "1GiB"]).well();
    let server = place.serve(EngineKind::Epoll);
    assert_eq!(put(&server, "/files/a"), "201");
    let path = "Upload-Metadata: path Yi5iaW4=";
    let announced = ["-X", "POST", "-H", "Tus-Resumable: 1.0.0", "-H", "Upload-Length: 5000", "-H", path];
    assert_eq!(status(&server, &announced, "/uploads"), "201");
    let stored = std::fs::metadata(place.path("data/accounts/alice/files/a")).unwrap().len();
    for counted in [&place.json(&["list"])[0], &place.json(&["show", "alice"])] {
        assert_eq!(counted["usage"], json!({"bytes": stored, "files": 1, "folders": 0}), "{counted}");
        assert_eq!(counted["uploads"], json!({"count": 1, "bytes": 5000}), "{counted}");
    }
    let listed = place.account(&["list"]).well().text();
    assert!(listed.contains("1, 4.88 KiB"), "{listed}");
    let shown = place.account(&["show", "alice"]).well().text();
    assert!(shown.contains("1, 4.88 KiB") && shown.contains("1 file"), "{shown}");
}

#[test]
fn a_new_password_is_taken_from_its_variable_and_a_guessable_one_is_refused() {
    let _permit = among_others();
    let place = Workspace::new();
    place.account(&["add", "alice"]).well();
    let set = |password: &str| {
        tool::run(place.command(&["passwd", "alice"]).env("PLIMSOLL_NEW_PASSWORD", password))
    };
    set("battery staple").well();
    let server = place.serve(EngineKind::Epoll);
    assert_eq!(asked(&server, "battery staple", &[], "/files/").0, "200");
    for bad in ["password", "Password1", "12345678", "short"] {
        let refused = set(bad);
        assert_eq!(refused.status.code(), Some(1), "{bad}");
        assert!(refused.stderr.contains("Choose"), "{bad}: {}", refused.stderr);
    }
    assert_eq!(asked(&server, "battery staple", &[], "/files/").0, "200");
}

/// Types `lines` at the prompts of a command, and returns all that the terminal shows and the exit code.
fn typed(mut command: Command, prompts: &[(&str, &str)]) -> (String, Option<i32>) {
    let (mut hands, program) = terminal();
    let mut tried = Command::new("setsid");
    tried.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => tried.env(name, value),
            None => tried.env_remove(name),
        };
    }
    command = tried;
    command.env_remove("PLIMSOLL_PASSWORD").stdin(program.try_clone().unwrap());
    command.stdout(program.try_clone().unwrap()).stderr(program);
    let mut child = command.spawn().unwrap();
    drop(command);
    let (mut shown, mut block) = (String::new(), [0; 1024]);
    for (prompt, line) in prompts.iter().copied().chain([("\0", "")]) {
        while !shown.contains(prompt)
            && let Ok(bytes @ 1..) = hands.read(&mut block)
        {
            shown.push_str(&String::from_utf8_lossy(&block[..bytes]));
        }
        if shown.contains(prompt) {
            type_line(&mut hands, line);
        }
    }
    (shown, child.wait().unwrap().code())
}

#[test]
fn a_taken_name_is_refused_before_a_password_is_typed_and_a_bad_password_before_it_is_typed_again() {
    let _permit = among_others();
    let place = Workspace::new();
    place.account(&["add", "alice"]).well();
    for name in ["alice", "not/a/name"] {
        let (shown, code) = typed(place.command(&["add", name]), &[]);
        assert!(code == Some(1) && !shown.contains("Password for"), "{shown}");
    }
    let (shown, code) = typed(place.command(&["passwd", "nobody"]), &[]);
    assert!(code == Some(1) && !shown.contains("Password for") && shown.contains("no account"), "{shown}");
    for bad in ["short", "password"] {
        let (shown, code) = typed(place.command(&["add", "bob"]), &[("Password for bob: ", bad)]);
        assert!(code == Some(1) && shown.contains("Choose") && !shown.contains("again: "), "{shown}");
    }
    let prompts = [("Password for bob: ", PASSWORD), ("again: ", PASSWORD)];
    let (shown, code) = typed(place.command(&["add", "bob"]), &prompts);
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn all_lines_are_imported_or_none() {
    let _permit = among_others();
    let (place, other) = (Workspace::new(), Workspace::new());
    for name in ["alice", "bob"] {
        place.account(&["add", name]).well();
    }
    let good = place.account(&["export"]).well().text();
    let file = place.path("accounts.jsonl");
    let import = |text: &str, words: &[&str]| {
        std::fs::write(&file, text).unwrap();
        other.fails(&["import", file.to_str().unwrap()], 1, words);
    };
    other.account(&["add", "bob"]).well();
    import(&good, &["No account was imported", "bob", "--skip-existing"]);
    import(&(good.replace("bob", "carol") + "{}"), &["line 3", "no account"]);
    import(&good.replace("bob", "Alice"), &["line 2", "twice"]);
    // The last one fails only after those before it were created.
    let clear = "{\"name\":\"zoe\",\"password\":\"in clear\"}";
    import(&(good.replace("bob", "carol") + clear), &["No account was imported", "zoe", "Argon2id"]);
    let left = other.json(&["list"]);
    assert_eq!((left.as_array().unwrap().len(), &left[0]["name"]), (1, &json!("bob")), "{left}");
    other.fails(&["import", "/nowhere/accounts.jsonl"], 1, &["cannot read /nowhere/accounts.jsonl"]);
}

#[test]
fn an_import_can_skip_accounts_that_exist() {
    let _permit = among_others();
    let (place, other) = (Workspace::new(), Workspace::new());
    for name in ["alice", "bob"] {
        place.account(&["add", name]).well();
    }
    let file = place.path("accounts.jsonl");
    std::fs::write(&file, place.account(&["export"]).well().text()).unwrap();
    other.account(&["add", "bob", "--quota-files", "7"]).well();
    let output = other.account(&["import", "--skip-existing", file.to_str().unwrap()]).well().text();
    assert!(output.contains(": 1, 1 skipped"), "{output}");
    let accounts = other.json(&["list"]);
    let names: Vec<&Value> = accounts.as_array().unwrap().iter().map(|account| &account["name"]).collect();
    assert_eq!(names, [&json!("alice"), &json!("bob")]);
    assert_eq!(accounts[1]["quota"]["files"], 7, "an account that exists is left as it is: {accounts}");
}

#[test]
fn every_command_has_examples_that_are_right_usage() {
    let _permit = among_others();
    let commands =
        ["add", "list", "show", "passwd", "quota", "permit", "disable", "enable", "rm", "export", "import"];
    for name in commands {
        let help = tool::run(command().args(["account", name, "--help"])).well().text();
        let examples: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  plimsoll ")).collect();
        assert!(!examples.is_empty(), "{help}");
        for example in examples {
            let words = example.split(" | ").next().unwrap().split(" < ").next().unwrap();
            let place = Workspace::new();
            let mut typed = command();
            typed.args(words.split_whitespace()).env("PLIMSOLL_DATA", place.path("data"));
            typed.env("PLIMSOLL_PASSWORD", PASSWORD).current_dir(place.folder.path());
            let done = tool::run(&mut typed);
            let asks = name == "rm" && done.stderr.contains("add --yes");
            assert!(done.status.code() != Some(2) || asks, "{example}: {}", done.stderr);
        }
    }
}

on_each_engine!(
    a_running_server_sees_a_change_within_a_second,
    a_later_account_of_the_name_gets_none_of_the_files,
);
