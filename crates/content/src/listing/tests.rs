//! Listings: what is in them, in which order, and as JSON.

use std::time::Duration;

use plimsoll_io::{Entry, EntryCollector, FileKind, ListingPage, Stat};
use serde_json::{Value, json};

use super::{ListingForm, ListingRow, ListingView, ListingWriter, Order};
use crate::Visibility;

fn entry(name: &[u8], kind: FileKind, size: u64, modified: u64) -> Entry {
    let modified = Duration::from_secs(modified);
    let stat = Stat { kind, size, device: 1, inode: 1, modified, changed: modified, links: 1 };
    Entry { name: name.to_vec(), stat }
}

fn file(name: &str) -> Entry {
    entry(name.as_bytes(), FileKind::File, 0, 0)
}

fn folder(name: &str) -> Entry {
    entry(name.as_bytes(), FileKind::Folder, 4096, 0)
}

fn view(query: &str) -> ListingView {
    ListingView {
        path: b"/".to_vec(),
        order: Order::from_query(Some(query.as_bytes())),
        form: ListingForm::Json,
        visibility: Visibility::Public,
        only: None,
        page: None,
        window: None,
        etag: |stat| format!("\"{}\"", stat.size),
    }
}

fn rows(entries: Vec<Entry>, query: &str) -> Vec<ListingRow> {
    let mut writer = ListingWriter::new(view(query));
    entries.into_iter().for_each(|entry| writer.add(entry));
    std::iter::from_fn(|| writer.next_row()).collect()
}

fn names(entries: Vec<Entry>, query: &str) -> Vec<String> {
    rows(entries, query).iter().map(ListingRow::text).collect()
}

fn json(view: ListingView, entries: Vec<Entry>) -> Value {
    serde_json::from_slice(&ListingWriter::new(view).written(entries)).unwrap()
}

#[test]
fn hidden_entries_and_those_without_a_url_are_left_out() {
    let pipe = entry(b"pipe", FileKind::Other, 0, 0);
    let entries =
        vec![file(".env"), folder(".git"), pipe, file("a\nb"), file("a\x7f"), file("a.b"), file("…")];
    assert_eq!(names(entries, ""), ["a\nb", "a.b", "a\u{7f}", "…"]);
}

#[test]
fn folders_come_first_and_names_sort_as_people_count() {
    let entries = ["file10", "File2", "file1", "Zebra", "apple", "Äpfel", "zoo", "ähre"].map(file);
    let entries = entries.into_iter().chain([folder("z2"), folder("z10")]).collect();
    assert_eq!(
        names(entries, ""),
        ["z2", "z10", "apple", "file1", "File2", "file10", "Zebra", "zoo", "ähre", "Äpfel"]
    );
}

#[test]
fn names_that_sort_alike_stand_in_order_of_their_bytes() {
    let entries = || vec![file("a1"), file("A01"), file("A1"), file("a01")];
    assert_eq!(names(entries(), "sort=size"), ["A01", "A1", "a01", "a1"]);
    assert_eq!(names(entries(), "sort=name&order=desc"), ["a1", "a01", "A1", "A01"]);
}

#[test]
fn descending_turns_the_column_but_leaves_folders_first() {
    let entries = || {
        vec![
            entry(b"small", FileKind::File, 1, 30),
            entry(b"big", FileKind::File, 9, 10),
            entry(b"also big", FileKind::File, 9, 20),
            entry(b"new", FileKind::Folder, 1, 50),
            entry(b"old", FileKind::Folder, 5, 40),
        ]
    };
    assert_eq!(names(entries(), "order=desc"), ["old", "new", "small", "big", "also big"]);
    assert_eq!(names(entries(), "sort=size"), ["new", "old", "small", "also big", "big"]);
    assert_eq!(names(entries(), "sort=size&order=desc"), ["new", "old", "also big", "big", "small"]);
    assert_eq!(names(entries(), "sort=modified"), ["old", "new", "big", "also big", "small"]);
    assert_eq!(names(entries(), "sort=modified&order=desc"), ["new", "old", "small", "also big", "big"]);
}

#[test]
fn links_are_exact_whatever_the_name() {
    for (name, href) in [
        (&b"plain-1.0_a~.txt"[..], "plain-1.0_a~.txt"),
        (b"a b", "a%20b"),
        (b"100%", "100%25"),
        (b"a?b#c", "a%3Fb%23c"),
        (b"\"<&>'", "%22%3C%26%3E%27"),
        (b"a\xff\xfeb", "a%FF%FEb"),
        ("é".as_bytes(), "%C3%A9"),
        (b"a\\b", "a%5Cb"),
    ] {
        let entries = vec![entry(name, FileKind::File, 0, 0)];
        assert_eq!(rows(entries, "")[0].href(), href);
    }
}

#[test]
fn no_name_reads_as_the_scheme_of_a_url() {
    let entries = vec![file("a:b"), file("javascript:alert(1)"), folder("http:")];
    let hrefs: Vec<String> = rows(entries, "").iter().map(ListingRow::href).collect();
    assert_eq!(hrefs, ["http%3A/", "a%3Ab", "javascript%3Aalert%281%29"]);
}

#[test]
fn json_has_all_of_a_file_and_no_size_of_a_folder() {
    let entries = vec![
        entry(b"a b", FileKind::File, 1_234_567, 1_795_182_005),
        entry(b"sub", FileKind::Folder, 4096, 784_111_777),
    ];
    assert_eq!(
        json(view(""), entries),
        json!({"path": "/", "entries": [
            {"name": "sub", "kind": "folder", "modified": "1994-11-06T08:49:37Z",
             "mtime": "784111777.000000000", "etag": "\"4096\"", "href": "sub/"},
            {"name": "a b", "kind": "file", "size": 1_234_567, "modified": "2026-11-20T13:40:05Z",
             "mtime": "1795182005.000000000", "etag": "\"1234567\"", "href": "a%20b"},
        ]})
    );
}

#[test]
fn json_is_readable_whatever_the_bytes() {
    let entries = vec![entry(b"\xff\"\\", FileKind::File, u64::MAX, u64::MAX)];
    let json = json(ListingView { path: b"/\xfe/".to_vec(), ..view("") }, entries);
    assert_eq!(json["path"], "/\u{fffd}/");
    assert_eq!(json["entries"][0]["name"], "\u{fffd}\"\\");
    assert_eq!(json["entries"][0]["href"], "%FF%22%5C");
    assert_eq!(json["entries"][0]["size"], u64::MAX);
}

#[test]
fn an_empty_folder_is_an_empty_list() {
    assert_eq!(ListingWriter::new(view("")).written(Vec::new()), br#"{"path":"/","entries":[]}"#);
}

#[test]
fn a_page_is_in_order_of_bytes_and_leads_to_the_next() {
    let entries = || ["b", "a", "B", "c", ".hidden"].map(file).into_iter().chain([folder("z")]).collect();
    let page = |after: Option<&str>, limit| {
        let page = Some(ListingPage { after: after.map(Into::into), limit });
        json(ListingView { page, ..view("") }, entries())
    };
    let names = |json: &Value| -> Vec<String> {
        let entries = json["entries"].as_array().unwrap().iter();
        entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    let first = page(None, 2);
    assert_eq!((names(&first), &first["next"]), (vec!["B".to_owned(), "a".to_owned()], &json!("a")));
    assert_eq!(first["next_href"], "?format=json&after=a&limit=2");
    assert_eq!(names(&page(Some("a"), 2)), ["b", "c"]);
    let last = page(Some("c"), 2);
    assert_eq!((names(&last), last.get("next")), (vec!["z".to_owned()], None));
    assert_eq!(page(Some("b"), 2).get("next"), None, "it ends with the last entry");
}
