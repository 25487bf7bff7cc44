//! Tests of the index: selection, budgets, admission and purges.

use std::collections::BTreeSet;

use plimsoll_wire::http::head::Method;

use super::*;
use crate::cache::limits::SLICE_BYTES;
use crate::cache::policy::{FieldLines, ResourceKey, stored_for_tests as stored};
use crate::cache::store::stored_file::{Folder, Removals};
use crate::cache::store::{PassedFile, StoredFile};

const FRESH: &str = "Cache-Control: max-age=9\r\n";

fn index_of(memory_bytes_max: u64, disk_bytes_max: u64) -> Index {
    Index::new(CacheSizes { memory_bytes_max, disk_bytes_max, passed_files_max: 0 })
}

fn object(uri: &str, request: &str, lines: &str, bytes: usize) -> Arc<Object> {
    Object::new(stored(uri, request, lines), Content::Memory(vec![0; bytes].into()))
}

fn request<'a>(uri: &str, lines: &'a str) -> CacheRequest<'a> {
    let key = ResourceKey::parse(uri.as_bytes()).unwrap();
    CacheRequest::new(Method::Get, key, FieldLines::new(lines.as_bytes()), false)
}

fn insert(index: &Index, object: &Arc<Object>) {
    assert!(index.insert(Arc::clone(object), || true));
}

fn found(index: &Index, uri: &str, lines: &str) -> Option<u64> {
    match index.lookup(&request(uri, lines)) {
        Lookup::Found(object) => Some(object.number()),
        _ => None,
    }
}

#[test]
fn the_newest_object_that_answers_a_request_is_found() {
    let index = index_of(1 << 20, 0);
    let (old, new) = (object("http://a/", "", FRESH, 9), object("http://a/", "", FRESH, 9));
    insert(&index, &old);
    insert(&index, &new);
    assert_eq!(found(&index, "http://a/", ""), Some(new.number()));
    assert_eq!(index.figures().memory_objects, 1);
    assert!(matches!(index.lookup(&request("http://b/", "")), Lookup::Absent));
}

#[test]
fn variants_are_selected_by_their_request_fields() {
    let index = index_of(1 << 20, 0);
    let lines = "Cache-Control: max-age=9\r\nVary: Accept\r\n";
    let one = object("http://a/", "Accept: 1\r\n", lines, 9);
    let two = object("http://a/", "Accept: 2\r\n", lines, 9);
    insert(&index, &one);
    insert(&index, &two);
    assert_eq!(found(&index, "http://a/", "Accept: 1\r\n"), Some(one.number()));
    assert_eq!(found(&index, "http://a/", "Accept: 2\r\n"), Some(two.number()));
    assert!(matches!(index.lookup(&request("http://a/", "Accept: 3\r\n")), Lookup::OtherVariants(_)));
}

#[test]
fn variants_above_the_limit_replace_the_oldest() {
    let index = index_of(1 << 20, 0);
    let lines = "Cache-Control: max-age=9\r\nVary: Accept\r\n";
    for number in 0..=VARIANTS_MAX {
        insert(&index, &object("http://a/", &format!("Accept: {number}\r\n"), lines, 9));
    }
    assert_eq!(index.figures().memory_objects, VARIANTS_MAX as u64);
    assert_eq!(found(&index, "http://a/", "Accept: 0\r\n"), None);
    assert!(found(&index, "http://a/", "Accept: 1\r\n").is_some());
}

#[test]
fn memory_stays_within_its_budget_and_the_table_within_twice_the_objects() {
    let index = index_of(256 << 10, 0);
    for number in 0..20_000 {
        insert(&index, &object(&format!("http://a/{number}"), "", FRESH, 100));
    }
    let figures = index.figures();
    assert!(figures.memory_bytes <= 256 << 10, "{figures:?}");
    let bound = 2 * usize::try_from(figures.memory_objects).unwrap() + INDEX_SHARDS * (VARIANTS_MAX + 2);
    assert!(index.uris() <= bound, "{} uris for {figures:?}", index.uris());
}

#[test]
fn a_scan_does_not_evict_objects_that_are_used_again() {
    let index = index_of(1 << 20, 0);
    let hot: Vec<String> = (0..50).map(|number| format!("http://a/hot/{number}")).collect();
    for uri in &hot {
        insert(&index, &object(uri, "", FRESH, 1000));
    }
    for _ in 0..3 {
        assert!(hot.iter().all(|uri| found(&index, uri, "").is_some()));
    }
    // Twenty times the budget, each used once.
    for number in 0..10_000 {
        let uri = format!("http://a/scan/{number}");
        insert(&index, &object(&uri, "", FRESH, 1000));
    }
    let left = hot.iter().filter(|uri| found(&index, uri, "").is_some()).count();
    assert!(left * 10 >= hot.len() * 9, "{left} of {} hot objects are left", hot.len());
}

#[test]
fn purges_remove_by_uri_prefix_and_tag() {
    let index = index_of(1 << 20, 0);
    let fill = || {
        insert(&index, &object("http://a/x/1", "", "Cache-Control: max-age=9\r\nCache-Tag: t\r\n", 9));
        insert(&index, &object("http://a/x/2", "", FRESH, 9));
        insert(&index, &object("http://b/x/1", "", FRESH, 9));
    };
    let uris = ["http://a/x/1", "http://a/x/2", "http://b/x/1"];
    let left = || uris.map(|uri| found(&index, uri, "").is_some());
    let digest = ResourceKey::parse(b"http://a/x/1").unwrap().digest();
    for (target, expected) in [
        (PurgeTarget::Uri(digest), [false, true, true]),
        (PurgeTarget::Prefix(b"http://a/".to_vec()), [false, false, true]),
        (PurgeTarget::Tag(b"t".to_vec()), [false, true, true]),
        (PurgeTarget::All, [false, false, false]),
    ] {
        fill();
        let purged = index.purge(&target);
        assert_eq!(left(), expected, "{target:?}");
        assert_eq!(purged, expected.iter().filter(|stays| !**stays).count() as u64);
    }
}

/// Returns a slice of a representation of three slices.
fn slice(uri: &str, lines: &str, number: u64) -> Arc<Object> {
    let slice = Some(Slice { number, whole: 2 * SLICE_BYTES + 9 });
    let head = StoredHead { slice, ..stored(uri, "", &format!("{FRESH}{lines}")) };
    Object::new(head, Content::Memory(vec![0; 9].into()))
}

/// Returns the numbers of the slices that are found, and the tag of their set.
fn slices(index: &Index, uri: &str) -> (Vec<u64>, Option<Vec<u8>>) {
    let Some(partial) = index.lookup_partial(&request(uri, "")).0 else { return (Vec::new(), None) };
    let found = (0..4).filter(|number| index.lookup_slice(&partial, *number).is_some()).collect();
    (found, partial.head.strong_etag().map(<[u8]>::to_vec))
}

#[test]
fn slices_of_one_tag_are_found_and_another_tag_or_length_drops_them() {
    let index = index_of(1 << 20, 0);
    let (a, b) = ("ETag: \"a\"\r\n", "ETag: \"b\"\r\n");
    for number in [2, 0] {
        insert(&index, &slice("http://a/", a, number));
    }
    assert_eq!(slices(&index, "http://a/"), (vec![0, 2], Some(b"\"a\"".to_vec())));
    assert_eq!(index.figures().memory_objects, 2);
    insert(&index, &slice("http://a/", b, 1));
    assert_eq!(slices(&index, "http://a/"), (vec![1], Some(b"\"b\"".to_vec())));
    assert_eq!(index.figures().memory_objects, 1, "the old slices are dropped");
    let other = slice("http://a/", b, 0);
    let longer = Some(Slice { number: 0, whole: 3 * SLICE_BYTES });
    insert(&index, &Object::new(StoredHead { slice: longer, ..other.head.clone() }, other.content.clone()));
    assert_eq!(slices(&index, "http://a/").0, [0]);
    assert!(matches!(index.lookup(&request("http://a/", "")), Lookup::Absent), "a slice is no whole object");
}

#[test]
fn a_whole_object_replaces_slices_and_purges_include_them() {
    let index = index_of(1 << 20, 0);
    let tagged = "ETag: \"a\"\r\nCache-Tag: t\r\n";
    let digest = ResourceKey::parse(b"http://a/x").unwrap().digest();
    for target in [
        PurgeTarget::Uri(digest),
        PurgeTarget::Prefix(b"http://a/".to_vec()),
        PurgeTarget::Tag(b"t".to_vec()),
        PurgeTarget::All,
    ] {
        insert(&index, &slice("http://a/x", tagged, 0));
        insert(&index, &slice("http://a/x", tagged, 1));
        assert_eq!(index.purge(&target), 2, "{target:?}");
        assert_eq!(slices(&index, "http://a/x"), (Vec::new(), None));
        assert_eq!(index.figures().memory_objects, 0);
    }
    insert(&index, &slice("http://a/x", tagged, 0));
    insert(&index, &object("http://a/x", "", &format!("{FRESH}ETag: \"a\"\r\n"), 9));
    assert_eq!(slices(&index, "http://a/x"), (Vec::new(), None));
    assert_eq!(index.figures().memory_objects, 1);
}

#[test]
fn an_object_that_is_no_longer_wanted_is_not_stored() {
    let index = index_of(1 << 20, 0);
    assert!(!index.insert(object("http://a/", "", FRESH, 9), || false));
    assert!(matches!(index.lookup(&request("http://a/", "")), Lookup::Absent));
}

#[test]
fn a_refresh_replaces_the_head_only_while_the_object_is_stored() {
    let index = index_of(1 << 20, 0);
    let old = object("http://a/", "", FRESH, 9);
    let new = || Object::new(old.head.clone(), old.content.clone());
    insert(&index, &old);
    let refreshed = new();
    index.refresh(&old, Arc::clone(&refreshed), || true);
    assert_eq!(found(&index, "http://a/", ""), Some(refreshed.number()));
    assert_eq!(index.figures().memory_objects, 1);
    index.refresh(&old, new(), || true);
    assert_eq!(found(&index, "http://a/", ""), Some(refreshed.number()));
    index.purge(&PurgeTarget::All);
    index.refresh(&refreshed, new(), || true);
    assert_eq!(found(&index, "http://a/", ""), None);
}

fn passed(uri: &str, bytes: u64) -> Arc<Object> {
    Object::new(stored(uri, "", FRESH), Content::Passed(Arc::new(PassedFile::for_tests(bytes))))
}

#[test]
fn passed_files_are_bounded_in_number_and_a_scan_closes_no_hot_one() {
    let sizes = CacheSizes { memory_bytes_max: 1 << 20, disk_bytes_max: 1 << 30, passed_files_max: 33 };
    let index = Index::new(sizes);
    let hot: Vec<String> = (0..10).map(|number| format!("http://a/hot/{number}")).collect();
    hot.iter().for_each(|uri| insert(&index, &passed(uri, 20_000)));
    for _ in 0..3 {
        assert!(hot.iter().all(|uri| found(&index, uri, "").is_some()));
    }
    for number in 0..1_000 {
        insert(&index, &passed(&format!("http://a/scan/{number}"), 20_000));
        assert!(index.figures().passed_objects <= 33);
    }
    assert!(index.figures().passed_objects > 16, "{:?}", index.figures());
    assert_eq!((index.figures().disk_objects, index.figures().memory_objects), (0, 0));
    let left = hot.iter().filter(|uri| found(&index, uri, "").is_some()).count();
    assert!(left >= 9, "{left} of {} hot files are left", hot.len());
    assert_eq!(index.passed_objects().len() as u64, index.figures().passed_objects);
    index.purge(&PurgeTarget::All);
    assert_eq!(index.figures().passed_objects, 0);
}

#[test]
fn passed_files_are_bounded_in_bytes_and_none_is_kept_without_descriptors() {
    let sizes = CacheSizes { memory_bytes_max: 1 << 20, disk_bytes_max: 1 << 20, passed_files_max: 100 };
    let index = Index::new(sizes);
    for number in 0..100 {
        insert(&index, &passed(&format!("http://a/{number}"), 100_000));
        assert!(index.figures().passed_bytes <= 1 << 20);
    }
    assert!((5..=10).contains(&index.figures().passed_objects), "{:?}", index.figures());
    let none = Index::new(CacheSizes { passed_files_max: 0, ..sizes });
    insert(&none, &passed("http://a/", 1));
    assert_eq!((none.figures().passed_objects, found(&none, "http://a/", "")), (0, None));
}

#[test]
fn an_object_that_is_not_stored_removes_those_that_it_replaces_and_evicts_no_other() {
    let sizes = CacheSizes { memory_bytes_max: 1 << 20, disk_bytes_max: 1 << 20, passed_files_max: 10 };
    let index = Index::new(sizes);
    (0..20).for_each(|number| insert(&index, &passed(&format!("http://a/{number}"), 1)));
    let kept = || index.passed_objects().iter().map(|object| object.number()).collect::<BTreeSet<_>>();
    let before = kept();
    let variant = |accept| object("http://a/", accept, "Cache-Control: max-age=9\r\nVary: Accept\r\n", 9);
    let [one, two] = ["Accept: 1\r\n", "Accept: 2\r\n"];
    insert(&index, &variant(one));
    insert(&index, &variant(two));
    index.remove_replaced(&variant(two), || false);
    assert!(found(&index, "http://a/", two).is_some(), "the newer one is not wanted");
    index.remove_replaced(&variant(two), || true);
    assert_eq!(found(&index, "http://a/", two), None);
    assert!(found(&index, "http://a/", one).is_some());
    (0..20).for_each(|_| index.remove_replaced(&passed("http://a/new", 1), || true));
    assert!(!before.is_empty() && kept() == before);
    assert!(matches!(index.lookup(&request("http://a/new", "")), Lookup::Absent));
}

#[test]
fn a_scan_of_large_objects_evicts_none_that_is_used_again() {
    let sizes = CacheSizes { memory_bytes_max: 1 << 20, disk_bytes_max: 8 << 20, passed_files_max: 1_000 };
    let index = Index::new(sizes);
    // Eight have room, and use more than 96 % of it.
    let bytes = sizes.disk_bytes_max * 10 / 83;
    let hot: Vec<String> = (0..4).map(|number| format!("http://a/hot/{number}")).collect();
    hot.iter().for_each(|uri| insert(&index, &passed(uri, bytes)));
    for _ in 0..3 {
        assert!(hot.iter().all(|uri| found(&index, uri, "").is_some()));
    }
    for number in 0..100 {
        insert(&index, &passed(&format!("http://a/scan/{number}"), bytes));
    }
    let left = hot.iter().filter(|uri| found(&index, uri, "").is_some()).count();
    assert_eq!(left, hot.len());
}

#[test]
fn a_purge_queues_a_file_that_a_lookup_holds_at_this_moment() {
    for target in [PurgeTarget::All, PurgeTarget::Uri(request("http://a/", "").key.digest())] {
        let (index, removals) = (index_of(1 << 20, 1 << 20), Arc::<Removals>::default());
        let file = Arc::new(StoredFile::new(7, 10, 20, &removals));
        let object = Object::new(stored("http://a/", "", FRESH), Content::File(file));
        insert(&index, &object);
        let held = index.evictors.of(&object).get(&object.number()).unwrap();
        assert_eq!(index.purge(&target), 1);
        assert_eq!(removals.take(), [(Folder::Objects, 7)], "the purge does not wait for the lookup");
        drop((held, object));
        assert!(removals.take().is_empty(), "it is queued once");
    }
}
