//! The XML bodies of PROPFIND and PROPPATCH.
//!
//! Invariants: what is read is bounded; a name that is read and written into a response is read from there as
//! the same name.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::http::dav::multistatus::{ChangeOutcome, DavResource, PropertySelection, write_changes};
use plimsoll_wire::http::dav::property::PropertyName;
use plimsoll_wire::http::dav::request::{Propfind, PropertyChange};
use plimsoll_wire::limits::{DAV_NAME_BYTES_MAX, DAV_PROPERTIES_MAX};

/// Returns the properties of the last `prop` element of a response, as a request for them.
fn requested_again(response: &str) -> Vec<PropertyName> {
    let Some((_, rest)) = response.rsplit_once("<D:prop>") else { return Vec::new() };
    let Some((elements, _)) = rest.split_once("</D:prop>") else { return Vec::new() };
    let body = format!("<D:propfind xmlns:D=\"DAV:\"><D:prop>{elements}</D:prop></D:propfind>");
    match Propfind::parse(body.as_bytes()).expect("well-formed") {
        Propfind::Prop(names) => names,
        other => panic!("{other:?}"),
    }
}

fn check_names(names: &[PropertyName]) {
    assert!(names.len() <= DAV_PROPERTIES_MAX);
    for name in names {
        assert!(!name.name.is_empty() && name.name.len() <= DAV_NAME_BYTES_MAX);
        assert!(name.namespace.len() <= DAV_NAME_BYTES_MAX);
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(propfind) = Propfind::parse(bytes) {
        let resource = DavResource {
            href: b"/",
            name: "",
            modified: None,
            file: None,
            quota: None,
            locks: Some(&[]),
        };
        let mut out = Vec::new();
        PropertySelection::of(&propfind).write(&resource, &mut out);
        let response = String::from_utf8(out).expect("UTF-8");
        if let Propfind::Prop(names) = &propfind {
            check_names(names);
            assert!(requested_again(&response).iter().all(|name| names.contains(name)));
        }
    }
    if let Ok(changes) = PropertyChange::parse(bytes) {
        let refused = changes.into_iter().map(|change| (change.name, ChangeOutcome::Refused));
        let refused: Vec<(PropertyName, ChangeOutcome)> = refused.collect();
        let response = String::from_utf8(write_changes(b"/", &refused)).expect("UTF-8");
        let names: Vec<PropertyName> = refused.into_iter().map(|(name, _)| name).collect();
        check_names(&names);
        let again = requested_again(&response);
        assert!(names.iter().all(|name| again.contains(name)));
    }
});
