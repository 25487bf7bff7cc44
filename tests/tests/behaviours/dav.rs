//! WebDAV: PROPFIND and PROPPATCH (RFC 4918). Its other methods are in `folders` and `files`.

use plimsoll_auth::{Permissions, Quota};
use plimsoll_tests::accounts::settings;
use plimsoll_tests::{Answer, Person, Scenario, Scene, Tree, behaviours};

fn scenario() -> Scenario {
    let tree = Tree::new().file("index.html", "of the site\n");
    Scenario { tree, accounts: Some(settings()), ..Scenario::default() }
}

const ONE: &str = "Depth: 1\r\n";
const ZERO: &str = "Depth: 0\r\n";

/// Names that a URL or XML cannot have as they are.
const ODD: [&str; 6] = ["a b", "50% #1?;x", "<a&b>\"'", "grüße", "e\u{301}", "deep"];

async fn propfind(person: &mut Person, target: &str, fields: &str, body: &str) -> Answer {
    let answer = person.ask("PROPFIND", target, fields, body).await;
    assert_eq!(answer.status, 207, "{target}: {}", answer.text());
    assert_eq!(answer.field("Content-Type"), Some("application/xml; charset=utf-8"));
    answer
}

/// Returns the values of all elements of a name, in order.
fn values(answer: &Answer, name: &str) -> Vec<String> {
    let (text, start, end) = (answer.text(), format!("<{name}>"), format!("</{name}>"));
    assert!(text.ends_with("</D:multistatus>\n"), "{text}");
    let rests = text.split(&start).skip(1);
    rests.map(|rest| rest.split(&end).next().expect("an end").to_owned()).collect()
}

fn hrefs(answer: &Answer) -> Vec<String> {
    let mut hrefs = values(answer, "D:href");
    hrefs.sort();
    hrefs
}

/// Returns the body of a PROPFIND for these properties of WebDAV.
fn prop(names: &[&str]) -> String {
    let elements: String = names.iter().map(|name| format!("<{name}/>")).collect();
    format!("<?xml version=\"1.0\"?><propfind xmlns=\"DAV:\"><prop>{elements}</prop></propfind>")
}

fn update(changes: &str) -> String {
    format!("<D:propertyupdate xmlns:D=\"DAV:\">{changes}</D:propertyupdate>")
}

fn set(properties: &str) -> String {
    update(&format!("<D:set><D:prop>{properties}</D:prop></D:set>"))
}

fn encoded(name: &str) -> String {
    plimsoll_wire::http::target::encoded_path(name.as_bytes())
}

async fn a_client_finds_the_class_the_methods_and_the_way(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/", "/files/", "/files/a", "/shared/", "/shared/bob/a"] {
        let options = client.ask("OPTIONS", target, "", "").await;
        assert_eq!((options.status, options.field("DAV")), (204, Some("1, 2")), "{target}");
        assert!(options.field("Allow").is_some_and(|allow| allow.contains("PROPFIND")), "{target}");
    }
    assert_eq!(client.ask("OPTIONS", "/app/", "", "").await.field("DAV"), None);
    assert_eq!(client.get("/").await.text(), "of the site\n");
    let mut alice = Person::new(&scene, "alice").await;
    let root = propfind(&mut alice, "/", ONE, "").await;
    assert_eq!(values(&root, "D:href"), ["/", "/files/", "/shared/"]);
    assert_eq!(values(&propfind(&mut alice, "/", ZERO, "").await, "D:href"), ["/"]);
    for target in ["/", "/files/", "/shared/", "/files/none"] {
        let refused = client.ask("PROPFIND", target, ONE, "").await;
        refused.problem(401);
        let asked = client.get("/files/").await;
        let challenges = |answer: &Answer| {
            let ways = answer.fields.iter().filter(|(name, _)| name == "WWW-Authenticate");
            ways.map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        assert!(!challenges(&refused).is_empty(), "{target}");
        assert_eq!(challenges(&refused), challenges(&asked), "{target}");
    }
}

async fn the_properties_of_a_file_are_those_of_its_download(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a.txt", "twelve bytes").await;
    let got = alice.get("/files/a.txt").await;
    for depth in [ZERO, ONE, "Depth: infinity\r\n", ""] {
        let found = propfind(&mut alice, "/files/a.txt", depth, "").await;
        assert_eq!(values(&found, "D:href"), ["/files/a.txt"]);
        assert_eq!(values(&found, "D:displayname"), ["a.txt"]);
        assert_eq!(values(&found, "D:getcontentlength"), ["12"]);
        assert_eq!(values(&found, "D:getcontenttype"), [got.field("Content-Type").unwrap()]);
        let tag = values(&found, "D:getetag")[0].replace("&quot;", "\"");
        assert_eq!(Some(&*tag), got.field("ETag"));
        let modified = values(&found, "D:getlastmodified");
        assert!(got.field("Last-Modified").is_none_or(|date| modified == [date]), "{modified:?}");
        assert_eq!(values(&found, "D:status"), ["HTTP/1.1 200 OK"]);
        assert!(
            found.text().contains("<D:resourcetype/>")
                && found.text().contains("<D:supportedlock><D:lockentry>")
        );
    }
    for missing in ["/files/a.txt/", "/files/none", "/files/none/", "/files/a.txt/b"] {
        alice.ask("PROPFIND", missing, ZERO, "").await.problem(404);
    }
}

async fn a_folder_shows_itself_and_its_entries(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for name in ODD {
        let target = format!("/files/{}", encoded(name));
        match name {
            "deep" => assert_eq!(alice.ask("MKCOL", &target, "", "").await.status, 201),
            _ => assert_eq!(alice.put(&target, name).await.status, 201, "{name}"),
        }
    }
    alice.put("/files/deep/hidden", "not shown").await;
    for target in ["/files/", "/files"] {
        let found = propfind(&mut alice, target, ONE, "").await;
        let mut expected: Vec<String> = ODD.iter().map(|name| format!("/files/{}", encoded(name))).collect();
        expected.push("/files/".to_owned());
        let deep = expected.iter_mut().find(|path| path.ends_with("deep")).unwrap();
        deep.push('/');
        expected.sort();
        assert_eq!(hrefs(&found), expected, "{target}");
        assert_eq!(found.text().matches("<D:collection/>").count(), 2);
        for (href, name) in values(&found, "D:href").into_iter().zip(values(&found, "D:displayname")) {
            let got = alice.get(&href).await;
            assert_eq!(got.status, 200, "{href}");
            if !href.ends_with('/') {
                let name = name.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
                assert_eq!(got.text(), name.replace("&amp;", "&"));
            }
        }
        assert_eq!(hrefs(&propfind(&mut alice, target, ZERO, "").await), ["/files/"]);
    }
    for (fields, body) in
        [("", ""), ("Depth: infinity\r\n", ""), ("Depth: Infinity\r\n", &*prop(&["getetag"]))]
    {
        let refused = alice.ask("PROPFIND", "/files/", fields, body).await;
        assert_eq!(refused.status, 403);
        assert!(refused.text().contains("<D:propfind-finite-depth/>"), "{}", refused.text());
    }
    alice.ask("PROPFIND", "/files/", "Depth: 2\r\n", "").await.problem(400);
}

async fn a_client_selects_properties(scene: Scene) {
    let quota = Quota { bytes: Some(1000), files: None };
    let mut alice = Person::with(&scene, "alice", quota, Permissions::default()).await;
    alice.put("/files/a", "ten bytes.").await;
    // What is in the trash can make room: it is available.
    alice.put("/files/deleted", "of no account").await;
    assert_eq!(alice.delete("/files/deleted").await.status, 204);
    let body = "<propfind xmlns=\"DAV:\" xmlns:x=\"urn:x&amp;y\"><prop><getcontentlength/><x:colour/>\
                <getcontentlength/><nothing xmlns=\"\"/><creationdate/></prop></propfind>";
    let found = propfind(&mut alice, "/files/a", ZERO, body).await;
    let parts = values(&found, "D:prop");
    assert_eq!(parts[0], "<D:getcontentlength>10</D:getcontentlength>");
    assert_eq!(parts[1], "<colour xmlns=\"urn:x&amp;y\"/><nothing xmlns=\"\"/><D:creationdate/>");
    assert_eq!(values(&found, "D:status"), ["HTTP/1.1 200 OK", "HTTP/1.1 404 Not Found"]);
    let names = "<propfind xmlns=\"DAV:\"><propname/></propfind>";
    let found = propfind(&mut alice, "/files/a", ZERO, names).await;
    assert!(found.text().contains("<D:getetag/>") && !found.text().contains("<D:quota-used-bytes/>"));
    let found = propfind(&mut alice, "/files/", ZERO, names).await;
    assert!(!found.text().contains("<D:getetag/>") && found.text().contains("<D:quota-used-bytes/>"));
    let with = "<propfind xmlns=\"DAV:\"><allprop/><include><quota-used-bytes/></include></propfind>";
    let found = propfind(&mut alice, "/files/", ZERO, with).await;
    assert_eq!(values(&found, "D:quota-used-bytes"), ["10"]);
    assert!(!found.text().contains("quota-available-bytes") && found.text().contains("<D:resourcetype>"));
    let both = prop(&["quota-available-bytes", "quota-used-bytes"]);
    let found = propfind(&mut alice, "/files/", ZERO, &both).await;
    assert_eq!(values(&found, "D:quota-available-bytes"), ["990"]);
    let found = propfind(&mut alice, "/files/a", ZERO, &both).await;
    assert!(found.text().contains("404 Not Found"));
}

async fn a_body_that_is_no_propfind_is_refused(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let bomb =
        "<!DOCTYPE a [<!ENTITY b \"bbbb\">]><propfind xmlns=\"DAV:\"><prop><a>&b;</a></prop></propfind>";
    let deep = format!("<propfind xmlns=\"DAV:\"><prop>{}{}", "<a>".repeat(40), "</a>".repeat(40));
    let many: String = (0..101).map(|number| format!("<n{number}/>")).collect();
    let many = format!("<propfind xmlns=\"DAV:\"><prop>{many}</prop></propfind>");
    for body in [
        "x",
        "<propfind xmlns=\"DAV:\">",
        "<propfind xmlns=\"DAV:\"/>",
        "<propfind><allprop/></propfind>",
        "<propfind xmlns=\"DAV:\"><allprop/><propname/></propfind>",
        "<propfind xmlns=\"DAV:\"><prop><bar:foo xmlns:bar=\"\"/></prop></propfind>",
        "<propfind xmlns=\"DAV:\"><prop><bar:foo/></prop></propfind>",
        "<?xml version=\"1.0\" encoding=\"utf-16\"?><propfind xmlns=\"DAV:\"><allprop/></propfind>",
        bomb,
        &deep,
        &many,
    ] {
        alice.ask("PROPFIND", "/files/", ZERO, body).await.problem(400);
        alice.ask("PROPPATCH", "/files/", "", body).await.problem(400);
    }
    let long = " ".repeat(64 * 1024 + 1);
    alice.ask("PROPFIND", "/files/", ZERO, &long).await.problem(413);
    let again = &mut Person::again(&scene, "alice").await;
    again.ask("PROPFIND", "/files/", "Depth: 0\r\nContent-Encoding: gzip\r\n", "x").await.problem(415);
    // The same request however its body is cut.
    let body = prop(&["resourcetype"]);
    let head = format!(
        "PROPFIND /files/ HTTP/1.1\r\nHost: test\r\n{}{ZERO}Content-Length: {}\r\n\r\n",
        again.field(),
        body.len()
    );
    again.client.send(head).await;
    for byte in body.bytes() {
        again.client.send(vec![byte]).await;
    }
    let answer = again.client.answer().await;
    assert_eq!((answer.status, hrefs(&answer)), (207, vec!["/files/".to_owned()]));
}

async fn a_long_response_is_sent_while_the_folder_is_read(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for number in 0..20 {
        alice.put(&format!("/files/f{number}"), "x").await;
    }
    // Each entry lacks them all.
    let names: String = (0..100).map(|number| format!("<x:{}{number}/>", "n".repeat(60))).collect();
    let body = format!(
        "<propfind xmlns=\"DAV:\" xmlns:x=\"urn:{}\"><prop>{names}</prop></propfind>",
        "x".repeat(200)
    );
    let found = propfind(&mut alice, "/files/", ONE, &body).await;
    assert_eq!((found.field("Transfer-Encoding"), found.field("Content-Length")), (Some("chunked"), None));
    let mut expected: Vec<String> = (0..20).map(|number| format!("/files/f{number}")).collect();
    expected.push("/files/".to_owned());
    expected.sort();
    assert_eq!(hrefs(&found), expected);
    // The connection remains usable; to a client of HTTP/1.0, its end is that of the response.
    let short = propfind(&mut alice, "/files/", ONE, &prop(&["getetag"])).await;
    assert!(short.field("Content-Length").is_some());
    let head = format!(
        "PROPFIND /files/ HTTP/1.0\r\nConnection: keep-alive\r\n{}{ONE}Content-Length: {}\r\n\r\n",
        alice.field(),
        body.len()
    );
    alice.client.send(head + &body).await;
    let all = String::from_utf8(alice.client.rest().await.unwrap()).unwrap();
    let (head, answered) = all.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains("Connection: close") && !head.contains("Transfer-Encoding"), "{head}");
    assert!(answered == found.text());
}

async fn shares_are_found_with_the_rights_that_they_give(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut bob = Person::new(&scene, "bob").await;
    for folder in ["/files/docs", "/files/docs/read", "/files/docs/write"] {
        alice.ask("MKCOL", folder, "", "").await;
    }
    alice.put("/files/docs/read/a", "a").await;
    alice.put("/files/docs/other", "b").await;
    assert_eq!(hrefs(&propfind(&mut bob, "/shared/", ONE, "").await), ["/shared/"]);
    alice.share("/docs/read/", "bob", "read").await;
    alice.share("/docs/write/", "bob", "write").await;
    for (target, found) in [
        ("/shared", &["/shared/", "/shared/alice/"][..]),
        ("/shared/alice/", &["/shared/alice/", "/shared/alice/docs/"]),
        (
            "/shared/alice/docs",
            &["/shared/alice/docs/", "/shared/alice/docs/read/", "/shared/alice/docs/write/"],
        ),
        ("/shared/alice/docs/read/", &["/shared/alice/docs/read/", "/shared/alice/docs/read/a"]),
    ] {
        assert_eq!(hrefs(&propfind(&mut bob, target, ONE, "").await), found, "{target}");
    }
    let quota = propfind(&mut bob, "/shared/alice/docs/read/", ZERO, &prop(&["quota-used-bytes"])).await;
    assert_eq!(values(&quota, "D:status"), ["HTTP/1.1 404 Not Found"]);
    for hidden in ["/shared/alice/docs/other", "/shared/carol/", "/shared/alice/none"] {
        bob.ask("PROPFIND", hidden, ONE, "").await.problem(404);
    }
    let time = set("<D:getlastmodified>Sun, 13 Sep 2020 12:26:40 GMT</D:getlastmodified>");
    bob.ask("PROPPATCH", "/shared/alice/docs/read/a", "", &time).await.problem(403);
    assert_eq!(bob.ask("PROPPATCH", "/shared/alice/docs/write/", "", &time).await.status, 207);
    bob.ask("PROPPATCH", "/shared/alice/docs/other", "", &time).await.problem(404);
}

async fn a_client_sets_the_time_of_modification_and_nothing_else(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "a").await;
    let win32 = "Z:Win32LastModifiedTime xmlns:Z=\"urn:schemas-microsoft-com:\"";
    for (property, date) in [
        (
            "<D:getlastmodified>Sun, 13 Sep 2020 12:26:40 GMT</D:getlastmodified>",
            "Sun, 13 Sep 2020 12:26:40 GMT",
        ),
        (
            &*format!("<{win32}>Mon, 14 Sep 2020 12:26:40 GMT</Z:Win32LastModifiedTime>"),
            "Mon, 14 Sep 2020 12:26:40 GMT",
        ),
        ("<D:lastmodified>1600000000</D:lastmodified>", "Sun, 13 Sep 2020 12:26:40 GMT"),
    ] {
        let changed = alice.ask("PROPPATCH", "/files/a", "", &set(property)).await;
        assert_eq!((changed.status, values(&changed, "D:status")), (207, vec!["HTTP/1.1 200 OK".to_owned()]));
        let found = propfind(&mut alice, "/files/a", ZERO, &prop(&["getlastmodified"])).await;
        assert_eq!(values(&found, "D:getlastmodified"), [date]);
    }
    let time = "<D:lastmodified>1</D:lastmodified>";
    for (properties, statuses) in [
        ("<x xmlns=\"urn:x\">kept?</x>", &["HTTP/1.1 403 Forbidden"][..]),
        ("<D:getetag>\"x\"</D:getetag>", &["HTTP/1.1 403 Forbidden"]),
        ("<D:getlastmodified>yesterday</D:getlastmodified>", &["HTTP/1.1 409 Conflict"]),
        (&*format!("{time}<x/>"), &["HTTP/1.1 403 Forbidden", "HTTP/1.1 424 Failed Dependency"]),
        (
            &*format!("<D:getetag/><x/>{time}"),
            &["HTTP/1.1 403 Forbidden", "HTTP/1.1 403 Forbidden", "HTTP/1.1 424 Failed Dependency"],
        ),
    ] {
        let refused = alice.ask("PROPPATCH", "/files/a", "", &set(properties)).await;
        assert_eq!(refused.status, 207, "{properties}");
        assert_eq!(values(&refused, "D:status"), statuses, "{properties}");
        let is_protected = refused.text().contains("<D:cannot-modify-protected-property/>");
        assert_eq!(is_protected, properties.contains("getetag"), "{properties}");
    }
    let found = propfind(&mut alice, "/files/a", ZERO, &prop(&["getlastmodified"])).await;
    assert_eq!(values(&found, "D:getlastmodified"), ["Sun, 13 Sep 2020 12:26:40 GMT"]);
    let removed = update("<D:remove><D:prop><x xmlns=\"urn:x\"/></D:prop></D:remove>");
    let removed = alice.ask("PROPPATCH", "/files/a", "", &removed).await;
    assert_eq!(values(&removed, "D:status"), ["HTTP/1.1 200 OK"]);
    alice.ask("PROPPATCH", "/files/none", "", &set(time)).await.problem(404);
    alice.ask("PROPPATCH", "/files/a", "", "").await.problem(400);
}

async fn a_change_that_names_a_lock_is_refused(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "a").await;
    let locked = "If: (<urn:uuid:181d4fae-7d8c-11d0-a765-00a0c91e6bf2>)\r\n";
    for (method, fields) in [("PUT", ""), ("DELETE", ""), ("MOVE", "Destination: /files/b\r\n")] {
        alice.ask(method, "/files/a", &format!("{locked}{fields}"), "").await.problem(412);
    }
    assert_eq!(scene.home("alice").keys().collect::<Vec<_>>(), ["a"]);
}

async fn only_a_folder_with_its_entries_is_recorded_as_a_listing(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "a").await;
    let before = scene.accounts().lines().len();
    propfind(&mut alice, "/files/", ZERO, "").await;
    propfind(&mut alice, "/files/a", ONE, "").await;
    assert_eq!(scene.accounts().lines().len(), before);
    propfind(&mut alice, "/files/", ONE, "").await;
    alice.ask("PROPFIND", "/files/none/", ONE, "").await.problem(404);
    let lines = &scene.accounts().lines()[before..];
    let shown = |line: &serde_json::Value| [line["operation"].clone(), line["path"].clone()];
    let recorded: Vec<_> = lines.iter().map(shown).collect();
    assert_eq!(recorded, [["list", "/"], ["list", "/none"]]);
}

behaviours!(scenario and remote and tls;
    a_client_finds_the_class_the_methods_and_the_way,
    the_properties_of_a_file_are_those_of_its_download,
    a_folder_shows_itself_and_its_entries,
    a_client_selects_properties,
    a_body_that_is_no_propfind_is_refused,
    a_long_response_is_sent_while_the_folder_is_read,
    shares_are_found_with_the_rights_that_they_give,
    a_client_sets_the_time_of_modification_and_nothing_else,
    a_change_that_names_a_lock_is_refused,
    only_a_folder_with_its_entries_is_recorded_as_a_listing,
);
