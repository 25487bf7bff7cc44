//! The bodies of PROPFIND and PROPPATCH, and multi-status responses.

use std::time::Duration;

use plimsoll_wire::http::dav::multistatus::{
    BEGIN, ChangeOutcome, DavFile, DavQuota, DavResource, END, PropertySelection, write_changes,
};
use plimsoll_wire::http::dav::property::{DAV, LiveProperty, PropertyName, is_protected};
use plimsoll_wire::http::dav::request::{BadXml, PropertyChange, Propfind};
use plimsoll_wire::limits::{DAV_DEPTH_MAX, DAV_NAME_BYTES_MAX, DAV_PROPERTIES_MAX};
use proptest::prelude::*;

fn name(namespace: &str, name: &str) -> PropertyName {
    PropertyName { namespace: namespace.to_owned(), name: name.to_owned() }
}

fn propfind(content: &str) -> Result<Propfind, BadXml> {
    Propfind::parse(format!("<propfind xmlns=\"DAV:\" xmlns:x=\"urn:x\">{content}</propfind>").as_bytes())
}

#[test]
fn a_propfind_requests_all_properties_names_or_some() {
    assert_eq!(Propfind::parse(b""), Ok(Propfind::AllProp(vec![])));
    assert_eq!(propfind("<allprop/>"), Ok(Propfind::AllProp(vec![])));
    assert_eq!(propfind(" <propname></propname>\n"), Ok(Propfind::PropName));
    let all = vec![name(DAV, "getetag"), name("urn:x", "größe")];
    assert_eq!(propfind("<prop><getetag/><x:größe/><getetag/></prop>"), Ok(Propfind::Prop(all.clone())));
    assert_eq!(
        propfind("<allprop/><include><getetag/><x:größe>text</x:größe></include>"),
        Ok(Propfind::AllProp(all))
    );
    assert_eq!(propfind("<prop/>"), Ok(Propfind::Prop(vec![])));
    // Unknown elements and attributes are ignored.
    let other = "<x:prop><a/></x:prop><new><prop/></new><allprop x:a=\"b\" c='d'/><!-- <propname/> -->";
    assert_eq!(propfind(other), Ok(Propfind::AllProp(vec![])));
    let text = "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<D:propfind xmlns:D=\"DAV:\"><D:prop>\
                <a xmlns=\"urn:a&amp;b\"/><b xmlns=\"\"/><c/></D:prop></D:propfind>\n";
    let named = vec![name("urn:a&b", "a"), name("", "b"), name("", "c")];
    assert_eq!(Propfind::parse(text.as_bytes()), Ok(Propfind::Prop(named)));
}

#[test]
fn a_body_that_is_no_propfind_is_refused_with_the_reason() {
    for (body, bad) in [
        (" ", BadXml::Malformed),
        ("text", BadXml::Malformed),
        ("<propfind xmlns=\"DAV:\"><allprop></propfind>", BadXml::Malformed),
        ("<propfind xmlns=\"DAV:\"><allprop/></propfind><more/>", BadXml::Malformed),
        ("<propfind xmlns=\"DAV:\"><allprop/></propfind>more", BadXml::Malformed),
        ("<propfind xmlns=\"DAV:\"><prop><a:b/></prop></propfind>", BadXml::Malformed),
        ("<propfind xmlns=\"DAV:\"><prop><b xmlns:a=\"\"/></prop></propfind>", BadXml::Malformed),
        ("<propfind xmlns=\"DAV:\"><prop><a=\"/></prop></propfind>", BadXml::Malformed),
        ("<propfind xmlns=\"DAV:\" xmlns=\"DAV:\"><allprop/></propfind>", BadXml::Malformed),
        ("<?xml version=\"1.1\"?><propfind xmlns=\"DAV:\"><allprop/></propfind>", BadXml::Malformed),
        ("<!DOCTYPE a><propfind xmlns=\"DAV:\"><allprop/></propfind>", BadXml::Entity),
        ("<propfind xmlns=\"DAV:\"><prop><a>&b;</a></prop></propfind>", BadXml::Entity),
        ("<propfind xmlns=\"DAV:\"><prop><a xmlns=\"&b;\"/></prop></propfind>", BadXml::Entity),
        (
            "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><propfind xmlns=\"DAV:\"><allprop/></propfind>",
            BadXml::NotUtf8,
        ),
    ] {
        assert_eq!(Propfind::parse(body.as_bytes()), Err(bad), "{body}");
    }
    assert_eq!(
        Propfind::parse(b"<propfind xmlns=\"DAV:\"><prop><\xff/></prop></propfind>"),
        Err(BadXml::NotUtf8)
    );
    for other in ["", "<x:allprop/>", "<allprop/><propname/>", "<prop/><prop/>", "<include/>"] {
        assert!(matches!(propfind(other), Err(BadXml::Other(_))), "{other}");
    }
    for other in ["<propfind/>", "<a xmlns=\"DAV:\"/>", "<propertyupdate xmlns=\"DAV:\"/>"] {
        assert!(matches!(Propfind::parse(other.as_bytes()), Err(BadXml::Other(_))), "{other}");
        assert!(matches!(PropertyChange::parse(other.as_bytes()), Err(BadXml::Other(_))), "{other}");
    }
}

#[test]
fn a_body_is_bounded_in_depth_number_and_length_of_names() {
    let nested = |levels| format!("<prop>{}{}</prop>", "<a>".repeat(levels), "</a>".repeat(levels));
    assert!(propfind(&nested(DAV_DEPTH_MAX - 2)).is_ok());
    assert_eq!(propfind(&nested(DAV_DEPTH_MAX - 1)), Err(BadXml::TooDeep));
    let many = |count| (0..count).map(|number| format!("<n{number}/>")).collect::<String>();
    assert!(propfind(&format!("<prop>{}</prop>", many(DAV_PROPERTIES_MAX))).is_ok());
    assert_eq!(propfind(&format!("<prop>{}</prop>", many(DAV_PROPERTIES_MAX + 1))), Err(BadXml::TooMany));
    let long = |bytes| format!("<prop><{}/></prop>", "n".repeat(bytes));
    assert!(propfind(&long(DAV_NAME_BYTES_MAX)).is_ok());
    assert_eq!(propfind(&long(DAV_NAME_BYTES_MAX + 1)), Err(BadXml::LongName));
    let long = format!("<prop><n xmlns=\"{}\"/></prop>", "n".repeat(DAV_NAME_BYTES_MAX + 1));
    assert_eq!(propfind(&long), Err(BadXml::LongName));
}

const UPDATE: &str = "<?xml version=\"1.0\"?><d:propertyupdate xmlns:d=\"DAV:\" xmlns:x=\"urn:x\">\
    <d:set><d:prop><x:a>1 &lt; <b>2</b><![CDATA[ & 3]]></x:a></d:prop></d:set>\
    <d:remove><d:prop><x:b/></d:prop></d:remove><d:set><d:prop><x:a/></d:prop></d:set></d:propertyupdate>";

#[test]
fn a_property_update_has_its_changes_in_order() {
    let change = |local, value: Option<&str>| PropertyChange {
        name: name("urn:x", local),
        value: value.map(str::to_owned),
    };
    assert_eq!(
        PropertyChange::parse(UPDATE.as_bytes()),
        Ok(vec![change("a", Some("1 < 2 & 3")), change("b", None), change("a", Some(""))])
    );
    let none = "<propertyupdate xmlns=\"DAV:\"><set><prop/></set></propertyupdate>";
    assert!(matches!(PropertyChange::parse(none.as_bytes()), Err(BadXml::Other(_))));
}

#[test]
fn a_document_that_is_cut_at_any_byte_is_refused() {
    let text = "<?xml version=\"1.0\"?><propfind xmlns=\"DAV:\"><prop>\
                <x:a xmlns:x=\"urn:ü\">&#60;</x:a></prop></propfind>";
    assert!(Propfind::parse(text.as_bytes()).is_ok());
    for end in 1..text.len() {
        assert!(Propfind::parse(&text.as_bytes()[..end]).is_err(), "{end}");
    }
    for end in 0..UPDATE.len() {
        assert!(PropertyChange::parse(&UPDATE.as_bytes()[..end]).is_err(), "{end}");
    }
}

fn file<'a>() -> DavResource<'a> {
    let file = DavFile { length: 12, media: "text/plain", etag: "\"1-2\"", sha256: Some([0xab; 32]) };
    let quota = Some(DavQuota { available: None, used: 1 });
    let modified = Some(Duration::from_secs(1_600_000_000));
    DavResource { href: b"/files/a%20b", name: "a & b", modified, file: Some(file), quota, locks: None }
}

fn written(propfind: &Propfind, resource: &DavResource<'_>) -> String {
    let mut out = Vec::new();
    PropertySelection::of(propfind).write(resource, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_file_and_a_folder_have_the_properties_of_their_kind() {
    let all = Propfind::AllProp(vec![]);
    assert_eq!(
        written(&all, &file()),
        "<D:response><D:href>/files/a%20b</D:href><D:propstat><D:prop><D:resourcetype/>\
         <D:displayname>a &amp; b</D:displayname><D:getcontentlength>12</D:getcontentlength>\
         <D:getcontenttype>text/plain</D:getcontenttype><D:getetag>&quot;1-2&quot;</D:getetag>\
         <D:getlastmodified>Sun, 13 Sep 2020 12:26:40 GMT</D:getlastmodified><D:supportedlock/></D:prop>\
         <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>\n"
    );
    let folder = DavResource { file: None, modified: None, ..file() };
    assert_eq!(
        written(&all, &folder),
        "<D:response><D:href>/files/a%20b</D:href><D:propstat><D:prop>\
         <D:resourcetype><D:collection/></D:resourcetype><D:displayname>a &amp; b</D:displayname>\
         <D:supportedlock/></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>\n"
    );
    let checksums = name("http://owncloud.org/ns", "checksums");
    let some = Propfind::Prop(vec![checksums, name(DAV, "quota-used-bytes"), name("urn:x", "y")]);
    let text = written(&some, &file());
    assert!(text.contains(&format!("<checksum>SHA256:{}</checksum>", "ab".repeat(32))), "{text}");
    assert!(
        text.contains("<y xmlns=\"urn:x\"/><D:quota-used-bytes/></D:prop><D:status>HTTP/1.1 404 "),
        "{text}"
    );
    let text = written(&some, &folder);
    assert!(text.contains("<D:quota-used-bytes>1</D:quota-used-bytes>"), "{text}");
    assert!(
        text.contains("<checksums xmlns=\"http://owncloud.org/ns\"/></D:prop><D:status>HTTP/1.1 404 "),
        "{text}"
    );
    let names = written(&Propfind::PropName, &folder);
    assert!(
        names.contains("<D:displayname/>") && !names.contains("getetag") && !names.contains("404"),
        "{names}"
    );
}

#[test]
fn the_outcome_of_a_change_is_grouped_by_status() {
    let changes = [
        (name("urn:x", "a"), ChangeOutcome::Refused),
        (name(DAV, "getetag"), ChangeOutcome::Protected),
        (name("urn:x", "b"), ChangeOutcome::Refused),
    ];
    let text = String::from_utf8(write_changes(b"/files/a", &changes)).unwrap();
    assert!(
        text.contains("<D:prop><a xmlns=\"urn:x\"/><b xmlns=\"urn:x\"/></D:prop><D:status>HTTP/1.1 403 "),
        "{text}"
    );
    let protected = "<D:prop><D:getetag/></D:prop><D:status>HTTP/1.1 403 Forbidden</D:status>\
                     <D:error><D:cannot-modify-protected-property/></D:error></D:propstat>";
    assert!(text.contains(protected), "{text}");
}

#[test]
fn the_servers_own_properties_are_protected_except_the_time_of_modification() {
    for live in LiveProperty::ALL {
        let found =
            ["getlastmodified", "getetag", "resourcetype", "displayname"].map(|local| name(DAV, local));
        let of = found.iter().find(|name| LiveProperty::of(name) == Some(live));
        assert!(of.is_none_or(|name| is_protected(name) != (name.name == "getlastmodified")), "{live:?}");
    }
    assert!(is_protected(&name(DAV, "creationdate")) && !is_protected(&name("urn:x", "getetag")));
}

proptest! {
    /// A response has the names that were read, for names of any characters.
    #[test]
    fn a_response_is_read_as_it_was_written(
        display in ".{0,20}",
        namespace in "[ -~ä]{0,20}",
        local in "[a-zA-Zä_][a-zA-Z0-9._ä-]{0,10}",
    ) {
        let requested = Propfind::Prop(vec![name(&namespace, &local)]);
        let mut out = b"<propfind xmlns=\"DAV:\">".to_vec();
        let element = written(&requested, &DavResource { name: &display, ..file() });
        let start = element.find("<D:prop>").map(|at| at + 8);
        let missing = start.and_then(|start| element[start..].split("</D:prop>").next());
        if let Some(missing) = missing.filter(|_| namespace != DAV) {
            out.extend_from_slice(format!("<prop>{missing}</prop></propfind>").as_bytes());
            prop_assert_eq!(Propfind::parse(&out), Ok(requested));
        }
        let mut whole = BEGIN.to_vec();
        let resource = DavResource { name: &display, ..file() };
        PropertySelection::of(&Propfind::AllProp(vec![])).write(&resource, &mut whole);
        whole.extend_from_slice(END);
        // It is well-formed, but no propfind.
        let is_other = matches!(Propfind::parse(&whole), Err(BadXml::Other(_)));
        prop_assert!(is_other);
    }

    #[test]
    fn no_bytes_make_a_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Propfind::parse(&bytes);
        let _ = PropertyChange::parse(&bytes);
    }
}
