//! Compares the state after a killed server or a power cut with the permitted states.
//!
//! It sends requests to the server, and reads the folder of pending uploads itself. Every byte of every
//! file must be checked.

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll_tests::binary::{Member, Server, until};

use super::chance::{content, version_of};
use super::ledger::{FileVersions, Ledger, ListedUpload, State};
use super::writer::{Writer, part, url};

/// The usage of a home, as the server counts it.
#[derive(Default, Debug, PartialEq)]
struct Usage {
    bytes: u64,
    files: u64,
    folders: u64,
}

/// Asserts that the homes of `writers` match their ledgers, and completes the resumable uploads. Returns
/// the resulting state of each.
pub(super) fn check(writers: &[&Writer], ledgers: &[Ledger], server: &Server, data: &Path) -> Vec<State> {
    let mut states = Vec::new();
    for (writer, ledger) in writers.iter().zip(ledgers) {
        let mut member = writer.member.again(server);
        let held = held(&mut member, &writer.folder);
        let all = kept(&mut member);
        assert_pending(&all, &data.join("accounts").join(&member.name).join("pending"));
        let own = format!("/{}/", writer.folder);
        let mut own = all.into_iter().filter_map(|kept| {
            let name = kept.name.strip_prefix(&own)?.to_owned();
            Some(ListedUpload { name, ..kept })
        });
        let (kept, more) = (own.next(), own.next());
        assert!(more.is_none(), "{more:?}: one at a time was begun");
        let found = ledger.find(&held, kept.as_ref());
        let Some(found) = found else {
            panic!("{}: {held:?} and {kept:?} are none of {:#?}", writer.folder, ledger.expected());
        };
        let mut found = found.clone();
        if let Some(kept) = kept {
            complete(&mut member, &writer.folder, &kept, &mut found);
        }
        states.push(found);
    }
    for writer in writers {
        assert_counted(&mut writer.member.again(server));
    }
    states
}

/// Returns every file below a folder, each read to its last byte.
fn held(member: &mut Member, folder: &str) -> FileVersions {
    let mut held = FileVersions::new();
    for name in member.names(&format!("/files/{folder}/")) {
        let Some(inner) = name.strip_suffix('/') else {
            held.insert(name.clone(), Some(read(member, &url(folder, &name))));
            continue;
        };
        held.insert(inner.to_owned(), None);
        for deep in member.names(&url(folder, &name)) {
            let path = format!("{name}{deep}");
            let version = read(member, &url(folder, &path));
            held.insert(path, Some(version));
        }
    }
    held
}

fn read(member: &mut Member, target: &str) -> u64 {
    let reply = member.get(target);
    assert_eq!(reply.status, 200, "{target}: {}", reply.text());
    version_of(target, &reply.body).unwrap_or(0)
}

/// Returns the resumable uploads of a home.
fn kept(member: &mut Member) -> Vec<ListedUpload> {
    let listed = member.get("/uploads").json();
    let number = |value: &serde_json::Value| usize::try_from(value.as_u64().expect("a number")).unwrap();
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    let kept = listed["uploads"].as_array().expect("uploads").iter().map(|upload| ListedUpload {
        url: text(&upload["url"]),
        name: text(&upload["path"]),
        bytes: number(&upload["length"]),
        offset: number(&upload["offset"]),
    });
    kept.collect()
}

/// Asserts that `pending` contains only resumable uploads, each with its bytes and its record.
fn assert_pending(kept: &[ListedUpload], pending: &Path) {
    let ids = kept.iter().filter_map(|kept| kept.url.strip_prefix("/uploads/"));
    let expected: BTreeSet<String> = ids.flat_map(|id| [id.to_owned(), format!("{id}.record")]).collect();
    let names = || -> BTreeSet<String> {
        let entries = std::fs::read_dir(pending).expect("the folder of pending uploads");
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name != "trash").collect()
    };
    // A folder that was being removed is cleaned up in the background.
    until("removed folders are cleared away", || !names().iter().any(|name| name.ends_with(".tree")));
    assert_eq!(names(), expected, "in {}", pending.display());
}

/// Sends the missing bytes. The file is then the complete version.
fn complete(member: &mut Member, folder: &str, kept: &ListedUpload, state: &mut State) {
    let sending = state.upload.take().expect("it was found");
    let bytes = content(sending.version);
    let last = member.ask("PATCH", &kept.url, &part(kept.offset), &bytes[kept.offset..]);
    assert_eq!(last.status, 204, "{}", last.text());
    assert_eq!(read(member, &url(folder, &kept.name)), sending.version, "what was kept was of that version");
    state.held.insert(sending.name, Some(sending.version));
}

/// Asserts that the server's usage, without the trash, equals the contents.
fn assert_counted(member: &mut Member) {
    let counted = member.get("/api/whoami").json();
    let of = |part: &str, name: &str| counted[part][name].as_u64().expect("a number");
    let number = |name: &str| of("usage", name) - of("trash", name);
    let counted = Usage { bytes: number("bytes"), files: number("files"), folders: number("folders") };
    let mut there = Usage::default();
    count(member, "/files/", &mut there);
    assert_eq!(counted, there, "of {}", member.name);
}

fn count(member: &mut Member, folder: &str, usage: &mut Usage) {
    for name in member.names(folder) {
        let target = format!("{folder}{name}");
        if name.ends_with('/') {
            usage.folders += 1;
            count(member, &target, usage);
        } else {
            usage.files += 1;
            usage.bytes += member.get(&target).body.len() as u64;
        }
    }
}
