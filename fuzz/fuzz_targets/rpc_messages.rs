//! Requests to a storage server, and responses from one.
//!
//! Invariants: a request that is parsed has the same meaning after it is serialised again; a response is an
//! answer, an error or malformed, and never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_rpc::{decode, parse};
use plimsoll_store::backend::{Ended, Ending, HomeRequest, HomeResponse, StatJson, UploadStart};
use plimsoll_store::remote::{ListRequest, StoreRequest, from_ascii, to_ascii};
use plimsoll_store::{Error, Path};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = parse::<StoreRequest<HomeRequest>>(bytes) {
        let written = serde_json::to_vec(&request).expect("it serialises");
        let again = parse::<StoreRequest<HomeRequest>>(&written).expect("what is written is parsed");
        assert_eq!(format!("{request:?}"), format!("{again:?}"));
    }
    let _ = decode::<HomeResponse, Error>(bytes);
    let _ = decode::<Ended, Error>(bytes);
    let _ = parse::<Ending>(bytes);
    let _ = parse::<StoreRequest<ListRequest>>(bytes);
    if let Some(get) = from_ascii::<StoreRequest<Path>>(bytes) {
        let text = to_ascii(&get);
        assert!(text.is_ascii() && !text.contains(['\r', '\n']));
        let again = from_ascii::<StoreRequest<Path>>(text.as_bytes());
        assert_eq!(format!("{again:?}"), format!("{:?}", Some(get)));
    }
    let _ = from_ascii::<StoreRequest<UploadStart>>(bytes);
    let _ = from_ascii::<StatJson>(bytes);
});
