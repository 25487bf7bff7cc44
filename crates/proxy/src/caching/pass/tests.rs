//! Receives each response of the documented table with each purpose, under the simulator.

use plimsoll_io::sim::{Faults, Sim};
use plimsoll_wire::http::head::HeadLimits;
use plimsoll_wire::http::response::parse_response;

use super::*;
use crate::body::OutFraming;
use crate::cache::policy::{ResourceKey, stored_for_tests as stored};
use crate::cache::response_cache::CacheSizes;
use crate::cache::store::{CacheFolder, Content};

const STORED: &str = "Cache-Control: max-age=0, stale-if-error=99\r\nETag: \"1\"\r\n";

/// The responses by their names in the table, with Cache-Control, entity tag, and other fields.
const RESPONSES: [(&str, &str, &str, &str, &str); 10] = [
    ("storable", "200 OK", "max-age=9", "1", "Content-Length: 9\r\n"),
    ("storable, of another version", "200 OK", "max-age=9", "2", "Content-Length: 9\r\n"),
    ("not storable", "200 OK", "no-store", "1", "Content-Length: 9\r\n"),
    ("ends with the connection", "200 OK", "max-age=9", "1", ""),
    ("the requested part", "206 P", "max-age=9", "1", "Content-Range: bytes 0-8/9\r\nContent-Length: 9\r\n"),
    ("another part", "206 P", "max-age=9", "1", "Content-Range: bytes 2-8/9\r\nContent-Length: 7\r\n"),
    ("not modified", "304 N", "max-age=9", "1", ""),
    ("not modified, of another version", "304 N", "max-age=9", "2", ""),
    ("not found", "404 N", "no-store", "1", "Content-Length: 0\r\n"),
    ("failed", "503 S", "no-store", "1", "Content-Length: 0\r\n"),
];

const PURPOSES: [&str; 5] = ["Plain", "Lead", "Refresh", "Rest", "Slice"];

/// Receives a response in a new cache with a stale object. Returns its treatment.
fn receive(purpose: &'static str, block: String) -> &'static str {
    let sim = Sim::new(1, Faults::none());
    let host = sim.host("one");
    let sizes = CacheSizes { disk_bytes_max: 64 << 20, memory_bytes_max: 1 << 20, passed_files_max: 0 };
    let now = Timestamp::now(&host.io());
    let cache = ResponseCache::open(&**host.disk(), &CacheFolder::new("/cache"), sizes, now).unwrap();
    let io = host.io();
    let head = parse_response(block.as_bytes(), Method::Get, &HeadLimits::default()).unwrap().unwrap();
    sim.run(&host, async move {
        let key = ResourceKey::new("http", b"a", b"/");
        let request = CacheRequest::new(Method::Get, key, FieldLines::default(), false);
        let old = stored("http://a/", "", STORED);
        assert!(cache.insert(old.clone(), Content::Memory(vec![0; 9].into()), || true));
        let Lookup::Found(object) = cache.lookup(&request) else { panic!("no object") };
        let lead = cache.fetches().lead_alone(&cache.fetch_key(&request, &Lookup::Absent));
        let rest = Rest::behind(&request, &old, Some(9), 0, OutFraming::Length(9));
        let kind = match purpose {
            "Plain" => PassKind::Plain,
            "Lead" => PassKind::Lead(lead, Some(object)),
            "Refresh" => PassKind::Refresh(lead, object),
            "Rest" => PassKind::Rest(rest.unwrap()),
            _ => PassKind::Slice(SliceFetch { lead, number: 0, partial: None, validated: None }),
        };
        let pass = CachePass::new(&cache, &request, kind, CacheStatus::default());
        match pass.receive(&io, &head, FieldLines::of_head(block.as_bytes())).await {
            Received::Relay(_) => "relay",
            Received::Record(recording) if recording.is_for_client => "record",
            Received::Record(_) => "record, no client",
            Received::Stored(_) => "stored",
            Received::Repeat => "repeat",
            Received::Dropped => "drop",
            Received::Rest(Some(_)) => "rest",
            Received::Rest(None) => "unfit",
        }
    })
}

#[test]
fn each_response_is_treated_as_documented_for_each_purpose() {
    let table = include_str!("../pass.rs").lines().filter_map(|line| line.strip_prefix("//! | "));
    let treated = RESPONSES.map(|(name, status, control, tag, fields)| {
        let block =
            format!("HTTP/1.1 {status}\r\nCache-Control: {control}\r\nETag: \"{tag}\"\r\n{fields}\r\n");
        let cells = PURPOSES.map(|purpose| receive(purpose, block.clone()));
        format!("{name} | {} |", cells.join(" | "))
    });
    assert_eq!(table.skip(2).collect::<Vec<_>>(), treated);
}
