//! Pages of other origins: access to responses, and the responses to their preflight requests.

use plimsoll_proto::http::{Cors, Limits};
use plimsoll_tests::accounts::settings;
use plimsoll_tests::{Answer, Client, Person, Scenario, Scene, Tree, behaviours};

const APP: &str = "https://app.example";
const OTHER: &str = "https://other.example";

fn scenario() -> Scenario {
    let tree = Tree::new().file("a.txt", "hello");
    let cors = Cors::new(vec!["http://localhost:3000".to_owned(), APP.to_owned()]);
    let limits = Limits { body_bytes_max: 100_000, ..Limits::default() };
    Scenario { tree, accounts: Some(settings()), cors, limits, ..Scenario::default() }
}

fn without_origins() -> Scenario {
    Scenario { cors: Cors::default(), ..scenario() }
}

/// Returns the origin that may read an answer. The answer must say that it depends on that.
fn readable_by(answer: &Answer) -> Option<&str> {
    assert!(answer.fields.iter().any(|(name, value)| name == "Vary" && value == "Origin"));
    assert_eq!(answer.field("Access-Control-Allow-Credentials"), None, "the browser's own are not for pages");
    answer.field("Access-Control-Allow-Origin")
}

async fn preflight(client: &mut Client, target: &str, origin: &str) -> Answer {
    let fields = format!(
        "Origin: {origin}\r\nAccess-Control-Request-Method: PATCH\r\n\
         Access-Control-Request-Headers: authorization,tus-resumable,upload-offset\r\n"
    );
    client.ask("OPTIONS", target, &fields, "").await
}

async fn a_page_of_a_named_origin_uploads_by_tus(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut browser = scene.connect().await;
    let response = preflight(&mut browser, "/uploads", APP).await;
    assert_eq!((response.status, readable_by(&response)), (204, Some(APP)));
    let names = "authorization,tus-resumable,upload-offset";
    assert_eq!(response.field("Access-Control-Allow-Headers"), Some(names));
    let methods = response.field("Access-Control-Allow-Methods").unwrap();
    for method in ["POST", "HEAD", "PATCH", "DELETE"] {
        assert!(methods.split(", ").any(|allowed| allowed == method), "{method}");
    }
    let page = format!("Origin: {APP}\r\nSec-Fetch-Site: cross-site\r\nTus-Resumable: 1.0.0\r\n");
    let create = format!("{page}Upload-Length: 5\r\nUpload-Metadata: path YQ==\r\n");
    let created = alice.ask("POST", "/uploads", &create, "").await;
    assert_eq!((created.status, readable_by(&created)), (201, Some(APP)));
    let exposed = created.field("Access-Control-Expose-Headers").unwrap();
    for field in ["Location", "Upload-Offset", "Tus-Resumable", "Upload-Expires"] {
        assert!(exposed.split(", ").any(|name| name == field), "{field}");
    }
    let at = created.field("Location").unwrap().to_owned();
    let patch = format!("{page}Content-Type: application/offset+octet-stream\r\nUpload-Offset: 0\r\n");
    let done = alice.ask("PATCH", &at, &patch, "hello").await;
    assert_eq!((done.status, readable_by(&done)), (204, Some(APP)));
    assert_eq!(alice.get("/files/a").await.text(), "hello");
}

async fn a_refusal_can_be_read_by_the_page_too(scene: Scene) {
    let mut client = scene.connect().await;
    let origin = format!("Origin: {APP}\r\n");
    for (method, target, fields, status) in [
        ("GET", "/missing", "", 404),
        ("GET", "/files/a", "", 401),
        ("GET", "/api/status", "", 403),
        ("POST", "/a.txt", "", 405),
        ("GET", "/%zz", "", 400),
        ("GET", "//a.txt", "", 308),
        ("GET", "/a.txt", "Range: bytes=9-\r\n", 416),
        ("HEAD", "/uploads/x", "", 412),
    ] {
        let with_body = format!("{origin}{fields}");
        let answer = match method {
            "HEAD" => client.head_with(target, &with_body).await,
            _ => client.ask(method, target, &with_body, "").await,
        };
        assert_eq!((answer.status, readable_by(&answer)), (status, Some(APP)), "{method} {target}");
    }
    client.push(format!("PUT /files/a HTTP/1.1\r\nHost: test\r\n{origin}Content-Length: 100001\r\n\r\n"));
    let too_long = client.answer().await;
    assert_eq!((too_long.status, readable_by(&too_long)), (413, Some(APP)));
}

async fn a_page_of_another_origin_reads_nothing(scene: Scene) {
    let mut client = scene.connect().await;
    for origin in
        [OTHER, "null", "*", "https://app.example.evil", "http://app.example", "https://app.example:444"]
    {
        let got = client.get_with("/a.txt", &format!("Origin: {origin}\r\n")).await;
        assert_eq!((got.status, readable_by(&got)), (200, None), "{origin}");
        let response = preflight(&mut client, "/uploads", origin).await;
        assert_eq!(readable_by(&response), None, "{origin}");
        assert_eq!(response.field("Access-Control-Allow-Methods"), None, "{origin}");
    }
    let twice = format!("Origin: {APP}\r\nOrigin: {OTHER}\r\n");
    assert_eq!(readable_by(&client.get_with("/a.txt", &twice).await), None);
    assert_eq!(readable_by(&client.get("/a.txt").await), None);
}

async fn a_form_of_a_named_origin_is_taken_and_no_other(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let body = "--x\r\nContent-Disposition: form-data; name=f; filename=b\r\n\r\nhello\r\n--x--\r\n";
    let form = "Content-Type: multipart/form-data; boundary=x\r\nSec-Fetch-Site: cross-site\r\n";
    for (origin, status) in [(OTHER, 403), (APP, 201)] {
        let fields = format!("{form}Origin: {origin}\r\n");
        assert_eq!(alice.ask("POST", "/files/", &fields, body).await.status, status, "{origin}");
    }
}

/// A browser adds a stored password to a form without a preflight request.
async fn a_stored_password_is_refused_in_a_form_of_a_named_origin(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let body = "--x\r\nContent-Disposition: form-data; name=f; filename=b\r\n\r\nhello\r\n--x--\r\n";
    let page = format!(
        "Authorization: Basic YWxpY2U6Y29ycmVjdCBob3JzZQ==\r\nSec-Fetch-Site: cross-site\r\nOrigin: {APP}\r\n"
    );
    let form = format!("{page}Content-Type: multipart/form-data; boundary=x\r\n");
    alice.client.ask("POST", "/files/", &form, body).await.problem(403);
    assert_eq!(alice.client.ask("PUT", "/files/b", &page, "hello").await.status, 201, "after a preflight");
}

async fn without_named_origins_responses_do_not_depend_on_the_page(scene: Scene) {
    let mut client = scene.connect().await;
    let got = client.get_with("/a.txt", &format!("Origin: {APP}\r\n")).await;
    assert_eq!((got.status, got.field("Access-Control-Allow-Origin")), (200, None));
    assert!(!got.fields.iter().any(|(_, value)| value == "Origin"));
    let response = preflight(&mut client, "/uploads", APP).await;
    assert_eq!((response.status, response.field("Access-Control-Allow-Origin")), (204, None));
    assert_eq!(response.field("Tus-Version"), Some("1.0.0"));
}

behaviours!(scenario and tls;
    a_page_of_a_named_origin_uploads_by_tus,
    a_refusal_can_be_read_by_the_page_too,
    a_page_of_another_origin_reads_nothing,
    a_form_of_a_named_origin_is_taken_and_no_other,
    a_stored_password_is_refused_in_a_form_of_a_named_origin,
);

mod unnamed {
    use super::*;

    behaviours!(without_origins and tls;
        without_named_origins_responses_do_not_depend_on_the_page,
    );
}
