//! Pages: their structure, and that no name becomes markup.

use std::time::Duration;

use plimsoll_io::{Entry, FileKind, Stat};
use plimsoll_wire::http::status::Status;

use super::PublicFolder;
use crate::Visibility;
use crate::listing::{ListingForm, ListingView, ListingWriter, Order};

fn entry(name: &[u8], kind: FileKind, size: u64) -> Entry {
    let modified = Duration::from_secs(1_795_182_005);
    let stat = Stat { kind, size, device: 1, inode: 1, modified, changed: modified, links: 1 };
    Entry { name: name.to_vec(), stat }
}

fn file(name: &str) -> Entry {
    entry(name.as_bytes(), FileKind::File, 1_234_567)
}

fn folder(name: &str) -> Entry {
    entry(name.as_bytes(), FileKind::Folder, 4096)
}

fn page(path: &str, entries: Vec<Entry>, query: &str) -> String {
    let order = Order::from_query(Some(query.as_bytes()));
    let view = ListingView {
        path: path.as_bytes().to_vec(),
        order,
        form: ListingForm::Page(Box::new(PublicFolder)),
        visibility: Visibility::Public,
        only: None,
        page: None,
        window: None,
        etag: |_| String::new(),
    };
    String::from_utf8(ListingWriter::new(view).written(entries)).unwrap()
}

fn error(status: Status, detail: &str) -> String {
    String::from_utf8(super::error(status, detail)).unwrap()
}

/// That all of them are in a page, in this order.
fn assert_in_order(page: &str, parts: &[&str]) {
    let mut rest = page;
    for part in parts {
        let (_, after) = rest.split_once(part).unwrap_or_else(|| panic!("no {part} in {rest}"));
        rest = after;
    }
}

#[test]
fn a_listing_is_a_whole_document() {
    assert_in_order(
        &page("/", vec![file("a")], ""),
        &[
            "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">",
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">",
            "<title>/ – plimsoll</title>",
            "<style>",
            "color-scheme: light dark",
            "</style></head><body><main>",
            "<table><thead>",
            "</thead><tbody>",
            "</tbody></table></main></body></html>",
        ],
    );
}

#[test]
fn a_page_asks_for_nothing_from_elsewhere() {
    for page in [page("/a/", vec![file("b")], ""), error(Status::NOT_FOUND, "")] {
        let markup = page.replace("http://www.w3.org/2000/svg", "");
        for outside in ["http:", "https:", "src=", "<script", "@import", "onclick"] {
            assert!(!markup.contains(outside), "{outside}");
        }
    }
}

#[test]
fn a_row_has_a_link_a_size_and_a_time() {
    assert_in_order(
        &page("/", vec![file("b c.txt"), folder("d")], ""),
        &[
            "<tr><td><a class=\"folder\" href=\"d/\">d/</a></td><td></td><td><time",
            "<tr><td><a href=\"b%20c.txt\">b c.txt</a></td><td title=\"1,234,567 bytes\">1.2 MiB</td>",
            "<td><time datetime=\"2026-11-20T13:40:05Z\">2026-11-20<span> 13:40</span></time></td></tr>",
        ],
    );
}

#[test]
fn a_window_shows_some_entries_and_leads_to_the_others() {
    let window = |from| {
        let view = ListingView {
            path: b"/".to_vec(),
            order: Order::default(),
            form: ListingForm::Page(Box::new(PublicFolder)),
            visibility: Visibility::Private,
            only: None,
            page: None,
            window: Some(from..from + 2),
            etag: |_| String::new(),
        };
        let entries = (0..5).rev().map(|number| file(&format!("f{number}"))).collect();
        String::from_utf8(ListingWriter::new(view).written(entries)).unwrap()
    };
    let shown =
        |page: &str| (0..5).filter(|number| page.contains(&format!(">f{number}<"))).collect::<Vec<_>>();
    let (first, second, last) = (window(0), window(2), window(4));
    assert_eq!([shown(&first), shown(&second), shown(&last)], [vec![0, 1], vec![2, 3], vec![4]]);
    for page in [&first, &second, &last, &window(9)] {
        assert!(page.contains("<p>5 files, "), "{page}");
    }
    assert!(first.contains("order=asc&amp;from=2\" rel=\"next\"") && !first.contains("rel=\"prev\""));
    assert!(second.contains("from=0\" rel=\"prev\"") && second.contains("from=4\" rel=\"next\""));
    assert!(last.contains("from=2\" rel=\"prev\"") && !last.contains("rel=\"next\""));
    assert!(first.contains("1–2 / 5") && last.contains("5–5 / 5"));
}

#[test]
fn a_name_cannot_reverse_its_ending() {
    let page = page("/", vec![file("annexe\u{202e}txt.exe")], "");
    assert!(page.contains("annexe\u{fffd}txt.exe"));
}

#[test]
fn no_name_is_markup() {
    let page = page("/<b>\"&/", vec![file("<script>alert(1)</script>"), folder("\"&'\" onclick=x")], "");
    assert_in_order(
        &page,
        &[
            "<title>/&lt;b&gt;&quot;&amp;/ – plimsoll</title>",
            "aria-current=\"page\"><bdi>&lt;b&gt;&quot;&amp;</bdi></a>",
            "href=\"%22%26%27%22%20onclick%3Dx/\">&quot;&amp;'&quot; onclick=x/</a>",
            "href=\"%3Cscript%3Ealert%281%29%3C/script%3E\"",
            "&lt;script&gt;alert(1)&lt;/script&gt;</a>",
        ],
    );
    assert!(!page.contains("<script") && !page.contains("<b>\""));
}

#[test]
fn a_name_that_is_not_utf8_is_readable_and_its_link_exact() {
    let page = page("/", vec![entry(b"caf\xe9", FileKind::File, 0)], "");
    assert!(page.contains("<a href=\"caf%E9\">caf\u{fffd}</a>"));
}

#[test]
fn breadcrumbs_lead_up_by_relative_links() {
    assert_in_order(
        &page("/a b/c/d/", Vec::new(), ""),
        &[
            "<nav aria-label=\"Breadcrumbs\"><h1><a href=\"../../../\"><bdi>Files</bdi></a>",
            "<a href=\"../../\"><bdi>a b</bdi></a>",
            "<a href=\"../\"><bdi>c</bdi></a>",
            "<a href=\"./\" aria-current=\"page\"><bdi>d</bdi></a></h1></nav>",
        ],
    );
    let top = page("/", Vec::new(), "");
    assert!(top.contains("<h1><a href=\"./\" aria-current=\"page\"><bdi>Files</bdi></a></h1>"), "{top}");
    assert!(page("/a\u{202e}b/", Vec::new(), "").contains("<bdi>a\u{fffd}b</bdi>"));
}

#[test]
fn breadcrumbs_of_a_deep_path_are_cut() {
    let page = page(&format!("/{}", "a/".repeat(2000)), Vec::new(), "");
    assert!(page.contains("…<i>/</i>"));
    assert_eq!(page.matches("<i>/</i>").count(), crate::limits::BREADCRUMBS_MAX + 1);
    assert!(page.len() < 20_000);
}

#[test]
fn heads_of_columns_say_the_order_and_turn_it() {
    assert_in_order(
        &page("/", vec![file("a")], "sort=size&order=desc"),
        &[
            "<th scope=\"col\"><form><input type=\"hidden\" name=\"order\" value=\"asc\">",
            "<button name=\"sort\" value=\"name\">Name",
            "<th scope=\"col\" aria-sort=\"descending\"><form>",
            "<input type=\"hidden\" name=\"order\" value=\"asc\">",
            "<button name=\"sort\" value=\"size\">Size",
            "<b aria-hidden=\"true\"> ↓</b>",
            "<th scope=\"col\"><form><input type=\"hidden\" name=\"order\" value=\"desc\">",
            "<button name=\"sort\" value=\"modified\">Modified",
        ],
    );
    let by_name = page("/", vec![file("a")], "");
    assert_in_order(&by_name, &["aria-sort=\"ascending\"><form>", "name=\"order\" value=\"desc\">", " ↑"]);
    assert_eq!(by_name.matches("aria-sort=").count(), 1);
    assert!(!by_name.contains("href=\"?"), "a link to the folder in another order");
}

#[test]
fn the_summary_counts_what_is_there() {
    let summary = |entries| {
        let page = page("/a/", entries, "");
        page.split("<p>").nth(1).and_then(|rest| rest.split("</p>").next()).unwrap().to_owned()
    };
    assert_eq!(summary(vec![]), "This folder is empty.");
    assert_eq!(summary(vec![folder("a")]), "1 folder");
    assert_eq!(summary(vec![file("a")]), "1 file, 1.2 MiB");
    assert_eq!(summary(vec![folder("a"), folder("b"), file("c"), file("d")]), "2 folders, 2 files, 2.4 MiB");
    assert_eq!(summary((0..1000).map(|n| folder(&n.to_string())).collect()), "1,000 folders");
    let huge = |name: &[u8]| entry(name, FileKind::File, u64::MAX);
    assert_eq!(summary(vec![huge(b"a"), huge(b"b")]), "2 files, 16 EiB");
}

#[test]
fn all_but_the_top_folder_have_a_way_up() {
    let up = "<a class=\"up\" href=\"../\">Parent folder</a>";
    assert!(page("/a/", Vec::new(), "").contains(up));
    assert!(page("/a/", vec![file("b")], "").contains(up));
    assert!(!page("/", vec![file("b")], "").contains(up));
    assert!(!page("/", Vec::new(), "").contains("<table"));
}

#[test]
fn the_frame_is_small_and_a_large_folder_grows_by_the_row() {
    let length =
        |entries: usize| page("/", (0..entries).map(|n| file(&format!("{n:05}"))).collect(), "").len();
    assert!(length(0) < 6000);
    let row = length(2) - length(1);
    assert!(length(10_000) < length(0) + 1000 + 10_000 * row);
}

#[test]
fn an_error_says_what_to_do_and_is_no_markup() {
    assert_in_order(
        &error(Status::NOT_FOUND, "No <file> \"a & b\" here."),
        &[
            "<title>404 Not Found – plimsoll</title>",
            "<h1>404 Not Found</h1><p>No &lt;file&gt; &quot;a &amp; b&quot; here.</p>",
            "<a href=\"/\">",
        ],
    );
    assert!(!error(Status::SERVICE_UNAVAILABLE, "Try later.").contains("href=\"/\""));
}
