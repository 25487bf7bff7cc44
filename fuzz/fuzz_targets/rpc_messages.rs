//! Requests to a storage server, and responses from one.
//!
//! Invariants: a request that is parsed has the same meaning after it is serialised again; a response is an
//! answer, an error or malformed, and never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_rpc::{decode, parse};
use plimsoll_store::KeptUpload;
use plimsoll_store::remote::{
    BeginUpload, Ended, Ending, ErrorJson, Get, StatJson, StoreRequest, from_ascii, to_ascii,
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = parse::<StoreRequest>(bytes) {
        let written = serde_json::to_vec(&request).expect("it serialises");
        let again = parse::<StoreRequest>(&written).expect("what is written is parsed");
        assert_eq!(format!("{request:?}"), format!("{again:?}"));
    }
    let _ = decode::<Vec<KeptUpload>, ErrorJson>(bytes);
    let _ = decode::<Ended, ErrorJson>(bytes);
    let _ = parse::<Ending>(bytes);
    if let Some(get) = from_ascii::<Get>(bytes) {
        let text = to_ascii(&get);
        assert!(text.is_ascii() && !text.contains(['\r', '\n']));
        assert_eq!(format!("{:?}", from_ascii::<Get>(text.as_bytes())), format!("{:?}", Some(get)));
    }
    let _ = from_ascii::<BeginUpload>(bytes);
    let _ = from_ascii::<StatJson>(bytes);
});
