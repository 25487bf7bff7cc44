//! The fields If, Lock-Token and Timeout, and the body of LOCK.
//!
//! Invariants: what is read is bounded; the user that a body names is well-formed XML.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::http::dav::if_field::{parse_if, parse_lock_token, parse_timeout};
use plimsoll_wire::http::dav::lock::LockInfo;
use plimsoll_wire::limits::DAV_IF_CONDITIONS_MAX;

fuzz_target!(|bytes: &[u8]| {
    if let Some(lists) = parse_if(bytes) {
        assert!(!lists.is_empty() && lists.iter().all(|list| !list.conditions.is_empty()));
        let count: usize = lists.iter().map(|list| list.conditions.len()).sum();
        assert!(count <= DAV_IF_CONDITIONS_MAX);
    }
    if let Some(token) = parse_lock_token(bytes) {
        assert!(token.contains(&b':') && !token.contains(&b'>'));
    }
    let _ = parse_timeout(bytes);
    if let Ok(info) = LockInfo::parse(bytes) {
        let again = format!(
            "<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:shared/></D:lockscope><D:locktype><D:write/>\
             </D:locktype><D:owner>{}</D:owner></D:lockinfo>",
            info.about
        );
        assert_eq!(LockInfo::parse(again.as_bytes()).expect("well-formed").about, info.about);
    }
});
