//! LIST, NLST, MLSD, MLST and STAT of folders, of files and of patterns.

use plimsoll_tests::{FtpClient, Scene, behaviours};

use super::{alice, with_accounts};

const NAMES: [&str; 9] = ["-la", ".hidden", "a", "b b", "c[1]", "grüße.txt", "x.bin", "x.txt", "日本"];

/// Creates a file of each name, and a folder with one more.
async fn filled(scene: &Scene) -> FtpClient {
    let (mut person, mut client) = alice(scene).await;
    person.ask("MKCOL", "/files/folder", "", "").await;
    person.put("/files/folder/deep", "deep\n").await;
    for name in NAMES {
        client.stor(name, name).await;
    }
    client
}

/// Returns all names, with the folder's.
fn all() -> Vec<String> {
    let mut all: Vec<_> = NAMES.into_iter().chain(["folder"]).map(str::to_owned).collect();
    all.sort();
    all
}

/// Returns the names of lines in the format of `ls -l`.
fn names_of_long(lines: &[String]) -> Vec<String> {
    let name = |line: &String| {
        let mut words = line.split_ascii_whitespace();
        let eighth = words.nth(7).expect("eight columns before the name");
        let at = eighth.as_ptr() as usize - line.as_ptr() as usize + eighth.len() + 1;
        line[at..].to_owned()
    };
    lines.iter().map(name).collect()
}

async fn nlst_has_names_alone(scene: Scene) {
    let mut client = filled(&scene).await;
    assert_eq!(client.fetch_lines("NLST").await, all());
    assert_eq!(client.fetch_lines("NLST -a").await, all());
    assert_eq!(client.fetch_lines("NLST folder").await, ["folder/deep"]);
    client.command("CWD folder").await.expect(250);
    assert_eq!(client.fetch_lines("NLST").await, ["deep"]);
    for name in client.fetch_lines("NLST /").await {
        assert!(name.starts_with('/'), "{name}: can be said back from here");
    }
}

async fn list_has_a_line_as_ls_has_it_for_each(scene: Scene) {
    let mut client = filled(&scene).await;
    for line in ["LIST", "LIST -la", "LIST -a", "LIST -l .", "LIST /", "LIST -aL /", "list"] {
        let lines = client.fetch_lines(line).await;
        assert_eq!(names_of_long(&lines), all(), "{line}");
        for line in lines {
            let words: Vec<_> = line.split_ascii_whitespace().collect();
            let is_folder = line.ends_with(" folder");
            assert_eq!(words[0], if is_folder { "drwxr-xr-x" } else { "-rw-r--r--" }, "{line}");
            assert_eq!(words[2], "alice", "{line}");
            let name = &names_of_long(std::slice::from_ref(&line))[0];
            assert!(is_folder || words[4] == name.len().to_string(), "{line}");
        }
    }
}

async fn a_listing_goes_as_text_whatever_the_type(scene: Scene) {
    let mut client = filled(&scene).await;
    for line in ["TYPE A", "TYPE I"] {
        client.command(line).await.expect(200);
        let listed = String::from_utf8(client.fetch("NLST").await).unwrap();
        assert_eq!(listed.matches("\r\n").count(), all().len());
        assert_eq!(listed.matches('\n').count(), all().len());
    }
}

async fn a_pattern_finds_names(scene: Scene) {
    let mut client = filled(&scene).await;
    for (pattern, found) in [
        ("x.*", &["x.bin", "x.txt"][..]),
        ("*.txt", &["grüße.txt", "x.txt"]),
        ("?", &["a"]),
        ("??", &["日本"]),
        ("[ab]*", &["a", "b b"]),
        ("b b", &["b b"]),
        ("c[1]", &["c[1]"]),
        ("folder/d*", &["folder/deep"]),
        (".h*", &[".hidden"]),
        ("none*", &[]),
        ("/x.b*", &["/x.bin"]),
        ("./-l*", &["./-la"]),
        ("-- -la", &["-la"]),
    ] {
        assert_eq!(client.fetch_lines(format!("NLST {pattern}")).await, found, "{pattern}");
    }
    assert_eq!(names_of_long(&client.fetch_lines("LIST *.bin").await), ["x.bin"]);
    assert!(!client.fetch_lines("NLST *").await.contains(&".hidden".to_owned()), "as a shell has it");
}

async fn a_file_is_listed_as_itself(scene: Scene) {
    let mut client = filled(&scene).await;
    assert_eq!(names_of_long(&client.fetch_lines("LIST a").await), ["a"]);
    assert_eq!(client.fetch_lines("NLST b b").await, ["b b"]);
    assert_eq!(names_of_long(&client.fetch_lines("LIST -d folder").await), ["folder"]);
}

async fn a_missing_entry_is_not_listed(scene: Scene) {
    let mut client = filled(&scene).await;
    for line in ["LIST none", "NLST none", "MLSD none", "LIST none/*", "MLSD folder/none"] {
        let answer = client.refused(line).await;
        assert_eq!(answer.code, 550, "{line}: {}", answer.text());
    }
    client.refused("MLSD a").await.expect(501);
    for line in ["MLST none", "STAT none"] {
        client.command(line).await.expect(550);
    }
}

async fn an_empty_folder_lists_as_nothing(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    for line in ["LIST", "NLST", "LIST -la"] {
        assert!(client.fetch(line).await.is_empty(), "{line}");
    }
}

/// Returns the facts of a line, with lower-case names, and the entry's name.
fn facts(line: &str) -> (Vec<(String, String)>, &str) {
    let (facts, name) = line.split_once(' ').expect("a space before the name");
    let fact = |fact: &str| {
        let (name, value) = fact.split_once('=').expect("name and value");
        (name.to_ascii_lowercase(), value.to_owned())
    };
    let facts = facts.strip_suffix(';').expect("a semicolon at the end").split(';').map(fact).collect();
    (facts, name)
}

fn fact<'a>(facts: &'a [(String, String)], name: &str) -> &'a str {
    &facts.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("{name} of {facts:?}")).1
}

async fn mlsd_tells_facts_of_each(scene: Scene) {
    let mut client = filled(&scene).await;
    let lines = client.fetch_lines("MLSD").await;
    let listed: Vec<_> = lines.iter().map(|line| facts(line)).collect();
    assert_eq!(listed.iter().map(|(_, name)| (*name).to_owned()).collect::<Vec<_>>(), all());
    for (facts, name) in &listed {
        let is_folder = *name == "folder";
        assert_eq!(fact(facts, "type"), if is_folder { "dir" } else { "file" });
        assert_eq!(fact(facts, "modify").split('.').next().unwrap().len(), 14);
        let perm = fact(facts, "perm");
        let needed = if is_folder { "cdelmp" } else { "adfrw" };
        assert!(needed.chars().all(|right| perm.contains(right)), "{name}: {perm}");
        assert!(is_folder || fact(facts, "size") == name.len().to_string());
    }
    let mut unique: Vec<_> = listed.iter().map(|(facts, _)| fact(facts, "unique")).collect();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), listed.len());
}

async fn mlst_tells_facts_of_one_on_the_control_connection(scene: Scene) {
    let mut client = filled(&scene).await;
    for (path, whole, kind) in [
        ("b b", "/b b", "file"),
        ("folder", "/folder", "dir"),
        ("/folder/deep", "/folder/deep", "file"),
        ("", "/", "dir"),
    ] {
        let answer = client.command(format!("MLST {path}").trim_end()).await.expect(250);
        assert_eq!(answer.lines.len(), 3);
        let line = answer.lines[1].strip_prefix(' ').expect("RFC 3659 wants one space");
        let (facts, name) = facts(line);
        assert_eq!((name, fact(&facts, "type")), (whole, kind));
    }
}

async fn opts_mlst_chooses_the_facts(scene: Scene) {
    let mut client = filled(&scene).await;
    let reply = client.command("OPTS MLST size;TYPE;nonsense;").await.expect(200).text();
    assert!(reply.to_ascii_lowercase().starts_with("mlst opts"), "{reply}");
    let feat = client.command("FEAT").await.expect(211);
    let mlst = feat.lines.iter().find(|line| line.trim_start().starts_with("MLST")).expect("MLST");
    assert_eq!(mlst.to_ascii_lowercase(), " mlst type*;size*;modify;perm;unique;");
    let lines = client.fetch_lines("MLSD").await;
    for line in lines {
        let (facts, name) = facts(&line);
        assert!(facts.len() <= 2 && (facts.len() == 2 || name == "folder"), "{line}");
    }
    client.command("OPTS MLST").await.expect(200);
    assert!(client.fetch_lines("MLSD").await.iter().all(|line| line.starts_with(' ')), "no facts at all");
}

async fn stat_of_a_path_lists_on_the_control_connection(scene: Scene) {
    let mut client = filled(&scene).await;
    let answer = client.command("STAT folder").await.expect(213);
    assert!(answer.lines.iter().any(|line| line.ends_with(" deep")), "{answer:?}");
    let answer = client.command("STAT x.*").await.expect(213);
    assert_eq!(answer.lines.len(), 4, "{answer:?}");
}

async fn an_upload_in_progress_is_not_listed(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let mut other = FtpClient::of(&scene, "alice").await;
    let mut data = client.begin("STOR a").await;
    data.send("x").await.unwrap();
    for line in ["LIST -la", "NLST", "MLSD"] {
        assert!(other.fetch(line).await.is_empty(), "{line}");
    }
    data.finish().await.unwrap();
    client.reply().await.expect(226);
    assert_eq!(other.fetch_lines("NLST").await, ["a"]);
}

behaviours!(with_accounts and remote and tls;
    nlst_has_names_alone,
    list_has_a_line_as_ls_has_it_for_each,
    a_listing_goes_as_text_whatever_the_type,
    a_pattern_finds_names,
    a_file_is_listed_as_itself,
    a_missing_entry_is_not_listed,
    an_empty_folder_lists_as_nothing,
    mlsd_tells_facts_of_each,
    mlst_tells_facts_of_one_on_the_control_connection,
    opts_mlst_chooses_the_facts,
    stat_of_a_path_lists_on_the_control_connection,
    an_upload_in_progress_is_not_listed,
);
