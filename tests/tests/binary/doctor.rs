//! `plimsoll doctor`: its findings on this machine, and its exit codes.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use plimsoll_tests::binary::{Done, EngineKind, Server, among_others, command, tool};
use serde_json::Value;

fn doctor(args: &[&str]) -> Done {
    tool::run(command().arg("doctor").args(args))
}

/// Returns the finding of a check, from the JSON output.
fn finding(args: &[&str], check: &str) -> Value {
    let done = doctor(&[args, &["--json"]].concat());
    let findings: Vec<Value> = serde_json::from_slice(&done.stdout).expect("JSON");
    let found = findings.into_iter().find(|finding| finding["check"] == check);
    found.unwrap_or_else(|| panic!("nothing of {check:?}: {}", done.text()))
}

#[test]
fn a_machine_that_will_do_exits_0_and_nothing_is_left_behind() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let args = ["--http", ":0", "--data", folder.path().to_str().unwrap()];
    let done = doctor(&args).well();
    let checks =
        ["kernel", "chance", "open files", "accept queue", "outgoing ports", "congestion", "address"];
    for check in checks.into_iter().chain(["data folder", "proxies", "disk", "space", "clock", "memory"]) {
        assert!(done.text().contains(&format!(" {check} ")), "{check}: {}", done.text());
    }
    for line in done.text().lines() {
        let known = ["ok ", "warn ", " "].iter().any(|begin| line.starts_with(begin));
        assert!(known, "{line}");
    }
    assert_eq!(finding(&args, "data folder")["verdict"], "ok");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_failed_check_exits_1_and_has_its_fix() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    // The program on the port closes each connection at once.
    std::thread::spawn(move || taken.incoming().for_each(drop));
    let (at, data) = (at.to_string(), folder.path().to_str().unwrap());
    let args = ["--http", &at, "--data", data];
    let done = doctor(&args);
    assert_eq!(done.status.code(), Some(1), "{}", done.text());
    assert!(done.text().contains("fail  address") && done.text().contains("ss -ltnp"), "{}", done.text());
    assert!(done.stderr.contains("checks that failed: 1"), "{}", done.stderr);
    let found = finding(&args, "address");
    assert_eq!(found["verdict"], "fail");
    assert!(found["now"].is_string() && found["lasting"].is_string(), "{found}");
}

#[test]
fn a_server_of_ours_at_the_address_is_no_failure() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(EngineKind::Epoll, folder.path(), &[]);
    let found = finding(&["--http", &server.at().to_string(), "--accounts", "false"], "address");
    assert_eq!(found["verdict"], "ok", "{found}");
}

#[test]
fn ftp_is_looked_at_where_it_is_on() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let site = format!("/={}", folder.path().display());
    let guests = ["--ftp", "127.0.0.1:0", "--ftp-guests", "true", "--accounts", "false"];
    let server = Server::start(EngineKind::Epoll, folder.path(), &guests);
    let at = server.ftp_at().to_string();
    let all = ["--http", ":0", "--accounts", "false", "--site", &site, "--ftp-guests", "true"];
    let done = doctor(&all).well();
    assert!(!done.text().contains("data ports") && !done.text().contains("data address"), "{}", done.text());
    let local = doctor(&[&all[..], &["--ftp", &at]].concat()).well().text();
    assert!(local.contains(&format!("{at} is served by plimsoll")), "{local}");
    assert!(!local.contains("data address"), "nobody comes from elsewhere: {local}");
    // Two port ranges, inside and outside the kernel's ephemeral ports.
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let first = range.split_whitespace().next().unwrap();
    let beyond = [&all[..], &["--ftp", "0.0.0.0:0", "--ftp-announce", "10.0.0.1"]].concat();
    let inside = format!("--ftp-ports={first}-{first}");
    let found = finding(&[&beyond[..], &[&inside]].concat(), "data ports");
    assert!(found["verdict"] == "warn" && found["now"].as_str().unwrap().contains(first), "{found}");
    let outside = [&beyond[..], &["--ftp-ports", "1024-1025"]].concat();
    assert_eq!(finding(&outside, "data ports")["verdict"], "ok");
    let found = finding(&beyond, "data address");
    assert!(found["verdict"] == "warn" && found["seen"].as_str().unwrap().contains("10.0.0.1"), "{found}");
    let public = [&all[..], &["--ftp", "0.0.0.0:0", "--ftp-announce", "203.0.113.7"]].concat();
    assert_eq!(finding(&public, "data address")["verdict"], "ok");
}

#[test]
fn a_data_folder_that_others_can_read_is_a_warning() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let args = ["--http", ":0", "--data", folder.path().to_str().unwrap()];
    let found = finding(&args, "data folder");
    assert_eq!(found["verdict"], "warn", "{found}");
    doctor(&args).well();
}

#[test]
fn a_data_folder_in_memory_is_a_warning() {
    let _permit = among_others();
    let shared = std::path::Path::new("/dev/shm");
    let folder = tempfile::tempdir_in(shared).expect("a file system in memory");
    let found = finding(&["--http", ":0", "--data", folder.path().to_str().unwrap()], "disk");
    assert_eq!(found["verdict"], "warn", "{found}");
    assert!(found["seen"].as_str().unwrap().contains("nothing here survives"), "{found}");
}

#[test]
fn a_url_that_names_no_directory_is_not_taken_for_a_dead_server() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let bad =
        ["oracle://me:secret@db/files", "postgres:files", "postgres://", "mysql://", "redis://db/x", "files"];
    for url in bad {
        let done = doctor(&["--http", ":0", "--data", data, "--directory", url]);
        let output = [done.text(), done.stderr.clone()].concat();
        assert_eq!(done.status.code(), Some(1), "{url}: {output}");
        assert!(!output.contains("does not answer") && !output.contains("secret"), "{url}: {output}");
        assert!(output.contains("directory"), "{url}: {output}");
    }
}

#[test]
fn the_doctor_reads_the_configuration_like_the_server() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plimsoll.toml");
    std::fs::write(&file, "http = \"unix:/nowhere/at-all/socket\"\naccounts = false\n").unwrap();
    let found = finding(&["--config", file.to_str().unwrap()], "address");
    assert!(found["verdict"] == "fail" && found["seen"].as_str().unwrap().contains("/nowhere"), "{found}");
    std::fs::write(&file, "htpp = 1").unwrap();
    let done = doctor(&["--config", file.to_str().unwrap()]);
    assert_eq!(done.status.code(), Some(1));
    assert!(done.stderr.contains("line 1"), "{}", done.stderr);
}

#[test]
fn a_finding_about_the_network_has_a_fix_for_now_and_a_lasting_one() {
    let _permit = among_others();
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/{name}")).unwrap();
    let args = ["--http", ":0", "--accounts", "false"];
    // The verdict depends on this machine; a bad one must come with a command for each setting.
    for (check, setting, file) in [
        ("accept queue", "net.core.somaxconn", "core/somaxconn"),
        ("outgoing ports", "net.ipv4.ip_local_port_range", "ipv4/ip_local_port_range"),
        ("congestion", "net.ipv4.tcp_congestion_control", "ipv4/tcp_congestion_control"),
    ] {
        let found = finding(&args, check);
        let first = read(file).split_whitespace().next().unwrap().to_owned();
        assert!(found["seen"].as_str().unwrap().contains(&first), "{found}");
        let mends = |when: &str| found[when].as_str().is_some_and(|fix| fix.contains(setting));
        assert!(found["verdict"] == "ok" || (mends("now") && mends("lasting")), "{found}");
    }
    let bbr = read("ipv4/tcp_congestion_control").trim() == "bbr";
    assert_eq!(finding(&args, "congestion")["verdict"], if bbr { "warn" } else { "ok" });
    let beyond = ["--http", "0.0.0.0:0", "--accounts", "false"];
    assert_eq!(finding(&beyond, "congestion")["verdict"], "ok");
}

#[test]
fn a_soft_limit_is_reported_with_the_hard_one_that_the_server_uses() {
    let _permit = among_others();
    let program = command().get_program().to_owned();
    let doctor = format!("ulimit -Sn 500; exec {} doctor --http :0 --accounts false", program.display());
    let done = tool::run(tool("sh").args(["-c", &doctor])).well();
    assert!(done.text().contains("raised from 500 at the start"), "{}", done.text());
}
