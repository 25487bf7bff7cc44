//! The command line: help, mistakes, a check. Exit codes are 0 done, 1 failed, 2 wrong usage.

use std::net::TcpListener;
use std::path::Path;

use plimsoll_tests::Tree;
use plimsoll_tests::binary::{Done, EngineKind, Server, among_others, command, tool};
use plimsoll_tests::on_each_engine;

/// Runs the program in an empty folder, where its output files stay.
fn plimsoll(args: &[&str]) -> Done {
    let home = tempfile::tempdir().unwrap();
    tool::run(command().args(args).current_dir(home.path()))
}

fn site(root: &Path) -> String {
    format!("/={}", root.display())
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    Tree::new().file("small.txt", "small\n").plant(folder.path());
    folder
}

/// Asserts an operator's error: exit code, and all of `words` on standard error alone.
fn fails(args: &[&str], code: i32, words: &[&str]) {
    let done = plimsoll(args);
    assert_eq!(done.status.code(), Some(code), "{args:?}: {}", done.stderr);
    assert_eq!(done.text(), "", "{args:?}: an error is no output");
    for word in words {
        assert!(done.stderr.contains(word), "{args:?}: {word:?} is not in: {}", done.stderr);
    }
}

#[test]
fn help_shows_examples_that_can_be_typed() {
    let _permit = among_others();
    for args in [&["--help"][..], &["serve", "--help"]] {
        let help = plimsoll(args).well().text();
        let (_, examples) = help.split_once("Examples:\n").expect("help has examples");
        assert!(examples.contains("plimsoll serve --site /=./public\n"), "{help}");
    }
}

#[test]
fn every_example_of_the_help_is_right_usage() {
    let _permit = among_others();
    let help = plimsoll(&["serve", "--help"]).well().text();
    let examples: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  plimsoll ")).collect();
    assert!(examples.len() >= 3, "{help}");
    for example in examples {
        let words: Vec<String> = example.split_whitespace().map(|word| word.replace('\'', "")).collect();
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.push("--check");
        words.dedup();
        let done = plimsoll(&words);
        if !["--site", "--config", "--certificate"].iter().any(|flag| example.contains(flag)) {
            done.well();
            continue;
        }
        // The files of an example do not exist here, but nothing else is wrong.
        assert_eq!(done.status.code(), Some(1), "{example}: {}", done.stderr);
        let missing = ["--site needs a folder", "cannot read the configuration", "names a PEM file"];
        assert!(missing.iter().any(|word| done.stderr.contains(word)), "{example}: {}", done.stderr);
    }
}

/// Arguments that the environment sets are omitted from the usage line.
#[test]
fn the_usage_of_a_command_is_the_same_in_errors_and_help() {
    let _permit = among_others();
    for (args, usage) in [
        (&["put"][..], "Usage: plimsoll put [OPTIONS] FILE... [PATH]\n"),
        (&["rm"], "Usage: plimsoll rm [OPTIONS] <PATH>...\n"),
        (&["account", "add"], "Usage: plimsoll account add [OPTIONS] <NAME>\n"),
    ] {
        let mut typed = command();
        typed.args(args).env("PLIMSOLL_SERVER", "http://127.0.0.1:1").env("PLIMSOLL_DATA", "/nowhere");
        let output = tool::run(&mut typed);
        assert!(
            output.status.code() == Some(2) && output.stderr.contains(usage),
            "{args:?}: {}",
            output.stderr
        );
    }
}

#[test]
fn help_fits_a_hundred_columns() {
    let _permit = among_others();
    let names = |help: &str| -> Vec<String> {
        let (_, rest) = help.split_once("Commands:\n").unwrap_or_default();
        let lines = rest.lines().take_while(|line| !line.is_empty());
        lines.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
    };
    let mut todo = vec![Vec::new()];
    while let Some(order) = todo.pop() {
        let help = plimsoll(&[&order[..], &["-h"]].concat()).well().text();
        let wide = help.lines().filter(|line| line.chars().count() > 100).count();
        assert_eq!(wide, 0, "{order:?}: {help}");
        assert!(!help.contains('…'), "{order:?}: {help}");
        for name in names(&help).into_iter().filter(|name| name != "help") {
            let name: &'static str = name.leak();
            todo.push([&order[..], &[name]].concat());
        }
    }
}

#[test]
fn the_version_is_printed() {
    let _permit = among_others();
    for args in [&["--version"][..], &["serve", "--version"]] {
        let printed = plimsoll(args).well().text();
        assert!(printed.starts_with("plimsoll") && printed.contains(env!("CARGO_PKG_VERSION")), "{printed}");
    }
}

/// Two builds of one version may differ: a bug report needs the commit and the features.
#[test]
fn the_version_names_the_commit_and_the_features() {
    let _permit = among_others();
    let printed = plimsoll(&["--version"]).well().text();
    let number = concat!("plimsoll ", env!("CARGO_PKG_VERSION"), " (commit ");
    let details = printed.trim_end().strip_prefix(number);
    let Some((commit, features)) = details.and_then(|details| details.split_once(", features: ")) else {
        panic!("{printed}")
    };
    let is_commit = commit.len() == 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(is_commit || commit == "unknown", "{printed}");
    assert_eq!(features, "mysql postgres redis)");
    let git = tool::run(tool("git").args(["-c", "safe.directory=*", "rev-parse", "--git-dir"]));
    assert!(is_commit || !git.status.success(), "a build in a repository knows its commit: {printed}");
}

#[test]
fn wrong_usage_exits_2_and_says_what_to_do() {
    let _permit = among_others();
    let folder = folder();
    let site = site(folder.path());
    let next = "--help";
    fails(&[], 2, &["Usage: plimsoll"]);
    fails(&["swim"], 2, &["swim", next]);
    fails(&["serve", "--accounts", "false"], 2, &["--site PREFIX=DIR", next]);
    fails(&["serve", "--site", &site, "--swim"], 2, &["--swim", next]);
    fails(&["serve", "--site", "public"], 2, &["PREFIX=DIR", "/=./public", next]);
    fails(&["serve", "--site", "docs=./docs"], 2, &["begin with a slash", "/=./docs", next]);
    fails(&["serve", "--site", "/="], 2, &["no folder", next]);
    fails(&["serve", "--site", "/docs/=./docs"], 2, &["without a slash at its end", next]);
    fails(&["serve", "--site", "/api=./docs"], 2, &["belongs to the server", next]);
    fails(&["serve", "--site", &site, "--site-cache-control", "/=\u{1}"], 2, &["Cache-Control", next]);
    fails(&["serve", "--site", &site, "--channel-slots", "65"], 2, &["from 1 to 64", next]);
    fails(&["proxy", "--origin", "unix:/a", "--channel-slots", "0"], 2, &["from 1 to 64", next]);
    let of_proxy = ["serve", "--site", &site, "--proxy-origin", "http://127.0.0.1:1"];
    fails(&of_proxy, 2, &["--proxy-origin is for a proxy", "plimsoll proxy --help"]);
    fails(&["serve", "--ftp", "unix:/run/ftp"], 2, &["FTP needs an address of IP", next]);
    fails(&["serve", "--ftp", ":0", "--ftp-guests", "true"], 2, &["give --site /=DIR"]);
    fails(&["serve", "--ftps", ":0"], 2, &["--ftps needs a certificate", "--self-signed"]);
    fails(&["serve", "--ftps", ":0", "--self-signed", "--ftp-tls", "off"], 2, &["--ftps begins with TLS"]);
    let required = ["serve", "--ftp", ":0", "--ftp-tls", "require"];
    fails(&required, 2, &["--ftp-tls require needs a certificate"]);
    let nobody = ["serve", "--site", &site, "--ftp", ":0", "--accounts", "false"];
    fails(&nobody, 2, &["no client could log in", "--ftp-guests true"]);
    fails(&["serve", "--site", &site, "--grace", "soon"], 2, &["--grace", next]);
    fails(&["serve", "--site", &site, "--threads", "0"], 2, &["--threads", next]);
}

/// Runs `plimsoll proxy` with the words of `args` and asserts that it fails with one line.
fn proxy_fails(args: &str, variable: Option<(&str, &str)>, code: i32, words: &[&str]) {
    let mut proxy = command();
    proxy.arg("proxy").args(args.split_whitespace()).envs(variable);
    let done = tool::run(&mut proxy);
    assert_eq!(done.status.code(), Some(code), "{args}: {}", done.stderr);
    assert_eq!(done.stderr.lines().count(), 1, "{args}: {}", done.stderr);
    for word in words {
        assert!(done.stderr.contains(word), "{args}: {word:?} is not in: {}", done.stderr);
    }
}

#[test]
fn a_proxy_refuses_wrong_settings_in_one_line_that_names_what_was_typed() {
    let _permit = among_others();
    let (tcp, next) = ("--origin http://127.0.0.1:1", "see plimsoll proxy --help");
    for (args, words) in [
        ("--grace 5 --check", ["'5' for --grace: ", next]),
        ("--threads 0", ["'0' for --threads: ", next]),
        ("--queue foo", ["'foo' for --queue: ", next]),
        ("--cache ./cache --cache-size ten", ["'ten' for --cache-size: ", next]),
        ("--cache ./cache --cache-size 0 --check", ["'0' for --cache-size: ", "from 1MiB"]),
        (tcp, ["the origin http://127.0.0.1:1 is given twice", "once"]),
    ] {
        proxy_fails(&format!("{tcp} {args}"), None, 2, &words);
    }
    let variable = Some(("PLIMSOLL_PROXY_CONNECT_TIME", "9"));
    proxy_fails(tcp, variable, 2, &["'9' for PLIMSOLL_PROXY_CONNECT_TIME: ", next]);
    let over_memory = "--origin unix:/a --channel shm --send-proxy-protocol v2";
    for args in [over_memory, &format!("{over_memory} --check")] {
        proxy_fails(args, None, 2, &["the channel shm has no header", "take --channel unix"]);
    }
}

#[test]
fn a_proxy_checks_its_cache_folder_and_its_addresses_by_their_own_flags() {
    let _permit = among_others();
    let folder = folder();
    let file = folder.path().join("small.txt");
    let origin = "--origin http://127.0.0.1:1";
    let cache = format!("{origin} --listen :0 --cache {}", file.display());
    for args in [&cache, &format!("{cache} --check")] {
        proxy_fails(
            args,
            None,
            1,
            &["cannot make the cache folder", "small.txt; choose another with --cache"],
        );
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let taken = format!("{origin} --listen {at} --check");
    proxy_fails(&taken, None, 1, &[&at.to_string(), "choose another with --listen"]);
    let new = folder.path().join("new");
    let args = ["--listen", ":0", "--cache", new.to_str().unwrap(), "--check"];
    let plan = plimsoll(&[&["proxy", "--origin", "http://127.0.0.1:1"], &args[..]].concat()).well().text();
    assert!(plan.contains("would use     the origin http://127.0.0.1:1\n"), "{plan}");
    assert!(!new.exists(), "a check makes nothing");
}

#[test]
fn an_address_that_is_none_exits_2_and_says_which_are() {
    let _permit = among_others();
    let folder = folder();
    let site = site(folder.path());
    for bad in ["8080", "example.org:80", "1.2.3.4", ":65536", "unix:"] {
        fails(&["serve", "--site", &site, "--http", bad], 2, &[bad, "IP:PORT", "unix:PATH"]);
    }
}

#[test]
fn an_engine_that_is_none_exits_2_and_says_which_are() {
    let _permit = among_others();
    let folder = folder();
    fails(
        &["serve", "--site", &site(folder.path()), "--engine", "steam"],
        2,
        &["steam", "auto", "thread", "epoll"],
    );
}

#[test]
fn a_folder_that_is_missing_exits_1_and_says_what_is_needed() {
    let _permit = among_others();
    let folder = folder();
    for name in ["missing", "small.txt"] {
        let path = folder.path().join(name);
        fails(&["serve", "--site", &site(&path)], 1, &[name, "--site needs a folder"]);
        fails(&["serve", "--site", &site(&path), "--check"], 1, &[name, "--site needs a folder"]);
    }
}

#[test]
fn a_prefix_that_is_given_twice_exits_2_and_says_what_to_do() {
    let _permit = among_others();
    let folder = folder();
    let site = site(folder.path());
    fails(&["serve", "--site", &site, "--site", &site], 2, &["twice", "give each prefix one folder"]);
}

#[test]
fn a_log_that_cannot_be_written_exits_1() {
    let _permit = among_others();
    let folder = folder();
    let log = folder.path().join("missing").join("access.log");
    let (site, log) = (site(folder.path()), log.to_str().unwrap());
    fails(&["serve", "--site", &site, "--http", ":0", "--access-log", log], 1, &["access log", log]);
    for more in [&[][..], &["--check"]] {
        fails(&[&["serve", "--http", ":0", "--xferlog", log], more].concat(), 1, &["the xferlog", log]);
    }
}

#[test]
fn an_address_that_is_not_ours_exits_1_and_says_what_to_do() {
    let _permit = among_others();
    let folder = folder();
    // TEST-NET-1 (RFC 5737) is assigned to no machine.
    let args = ["serve", "--site", &site(folder.path()), "--http", "192.0.2.1:8080"];
    fails(&args, 1, &["192.0.2.1:8080", "choose another with --http"]);
}

/// A port in use by another program or another server: exit 1, and a remedy.
fn a_taken_port_exits_1_and_says_what_to_do(kind: EngineKind) {
    let folder = folder();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::start(kind, folder.path(), &[]);
    for at in [taken.local_addr().unwrap(), server.at()] {
        let (at, kind) = (at.to_string(), kind.to_string());
        let args = ["serve", "--site", &site(folder.path()), "--engine", &kind, "--http", &at];
        fails(&args, 1, &[&at, "choose another with --http", "in use"]);
        fails(&["serve", "--http", ":0", "--ftp", &at], 1, &[&at, "choose another with --ftp", "in use"]);
        let args = ["serve", "--site", &site(folder.path()), "--http", &at, "--check"];
        fails(&args, 1, &[&at, "choose another with --http", "in use"]);
    }
}

/// `--check` reports the actions of a start and performs none.
fn a_check_listens_nowhere_and_exits_0(kind: EngineKind) {
    let folder = folder();
    let (socket, log) = (folder.path().join("socket"), folder.path().join("access.log"));
    let (site, kind) = (site(folder.path()), kind.to_string());
    let at = format!("unix:{}", socket.display());
    let log = log.to_str().unwrap();
    let done = plimsoll(&[
        "serve",
        "--site",
        &site,
        "--engine",
        &kind,
        "--http",
        ":7777",
        "--http",
        &at,
        "--access-log",
        log,
        "--check",
    ]);
    let output = done.well().text();
    for word in [folder.path().to_str().unwrap(), "http://127.0.0.1:7777", &at, &kind, log] {
        assert!(output.contains(word), "{word:?} is not in: {output}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was made beside small.txt");
}

/// A check before a reload: the server itself has bound the addresses.
fn a_check_beside_the_running_server_exits_0_and_reports_it(kind: EngineKind) {
    let folder = folder();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let server = Server::start(kind, folder.path(), &["--accounts", "true", "--data", data]);
    let at = server.at().to_string();
    let args = ["serve", "--accounts", "true", "--data", data, "--http", &at, "--check"];
    let output = plimsoll(&args).well().text();
    assert!(output.contains(&format!("would find    {data} held by a plimsoll that runs")), "{output}");
    let json: serde_json::Value =
        serde_json::from_str(&plimsoll(&[&args[..], &["--json"]].concat()).well().text()).unwrap();
    assert_eq!(json["would"][0], serde_json::json!({"do": "listen", "what": format!("http://{at}")}));
    assert_eq!(plimsoll(&["serve", "--json"]).status.code(), Some(2), "it needs --check");
}

/// The greeting contains a command to type, and the access log follows it.
fn the_greeting_can_be_typed_and_the_log_follows(kind: EngineKind) {
    let folder = folder();
    let server = Server::start(kind, folder.path(), &["--access-log", "-"]);
    plimsoll_tests::binary::until("the greeting ends", || server.stdout().contains("To end:"));
    let greeting = server.stdout();
    let typed = greeting.lines().find_map(|line| line.trim().strip_prefix("curl http")).unwrap();
    let url = format!("http{}", typed.split_whitespace().next().unwrap());
    let listed = tool::run(tool("curl").args(["-q", "-sSf", &url])).well().text();
    assert!(listed.contains("small.txt"), "{listed}");
    plimsoll_tests::binary::until("the request is logged", || {
        server.stdout().contains("\"GET / HTTP/1.1\" 200")
    });
    assert!(
        !server.stderr().contains('\x1b'),
        "no colours where there is no terminal: {:?}",
        server.stderr()
    );
}

on_each_engine!(
    a_taken_port_exits_1_and_says_what_to_do,
    a_check_listens_nowhere_and_exits_0,
    a_check_beside_the_running_server_exits_0_and_reports_it,
    the_greeting_can_be_typed_and_the_log_follows,
);

#[test]
fn a_command_that_resembles_none_has_no_suggestion() {
    let _permit = among_others();
    let suggested = |typed: &str| plimsoll(&[typed]).stderr.contains("similar");
    assert!(suggested("bakup") && suggested("acount"));
    assert!(!suggested("cat"), "auth does not resemble it");
}

#[test]
fn completions_end_quietly_if_their_reader_has_gone() {
    let _permit = among_others();
    let script = "for shell in bash zsh fish; do \"$0\" completions $shell | true; done";
    let done = tool::run(tool("sh").args(["-c", script]).arg(plimsoll_tests::binary::plimsoll()));
    assert_eq!(done.stderr, "");
}
