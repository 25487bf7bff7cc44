//! Listings in pages: `?after=NAME&limit=NUMBER`, in the order of the names' bytes.

use plimsoll_tests::accounts::settings;
use plimsoll_tests::{Answer, Client, Person, Scenario, Scene, Tree, behaviours};
use serde_json::Value;

/// In byte order.
const NAMES: [&str; 7] = ["10", "2", "B", "a b+c&d=e%", "b", "z", "\u{fc}ber"];

fn scenario() -> Scenario {
    let tree = NAMES.iter().fold(Tree::new().file("f/.hidden", ""), |tree, name| {
        if *name == "b" { tree.folder("f/b") } else { tree.file(format!("f/{name}"), *name) }
    });
    let tree = tree.file(b"odd/a\xff", "").file(b"odd/a\xfe", "").file("odd/b", "");
    Scenario { tree, accounts: Some(settings()), ..Scenario::default() }
}

fn names(listing: &Value) -> Vec<String> {
    let entries = listing["entries"].as_array().expect("entries").iter();
    entries.map(|entry| entry["name"].as_str().expect("a name").to_owned()).collect()
}

fn ok(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// Encodes a name as a form sends it.
fn encoded(name: &str) -> String {
    name.bytes().map(|byte| if byte == b' ' { "+".to_owned() } else { format!("%{byte:02x}") }).collect()
}

/// Reads a folder page by page, following `next`, and returns the names of each page.
async fn pages(client: &mut Client, folder: &str, fields: &str, limit: usize) -> Vec<Vec<String>> {
    let (mut pages, mut after) = (Vec::new(), String::new());
    loop {
        let target = format!("{folder}?format=json&limit={limit}{after}");
        let page = ok(&client.get_with(&target, fields).await);
        pages.push(names(&page));
        let Some(next) = page.get("next") else { return pages };
        assert_eq!(pages.last().expect("a page").last().expect("an entry"), next, "it is the last name");
        after = format!("&after={}", encoded(next.as_str().expect("a name")));
    }
}

async fn a_folder_is_read_page_by_page(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    assert_eq!(alice.ask("MKCOL", "/files/f/", "", "").await.status, 201);
    for name in NAMES {
        let path = format!("/files/f/{}", encoded(name).replace('+', "%20"));
        let method = if name == "b" { "MKCOL" } else { "PUT" };
        assert_eq!(alice.ask(method, &path, "", "").await.status, 201, "{name}");
    }
    let field = alice.field();
    for (folder, fields) in [("/f/", ""), ("/files/f/", field.as_str())] {
        let mut client = scene.connect().await;
        let by_three: Vec<Vec<String>> =
            NAMES.chunks(3).map(|page| page.iter().map(ToString::to_string).collect()).collect();
        assert_eq!(pages(&mut client, folder, fields, 3).await, by_three, "{folder}");
        assert_eq!(pages(&mut client, folder, fields, 7).await, [NAMES], "{folder}");
        // Entries equal those of the whole listing.
        let whole = ok(&client.get_with(&format!("{folder}?format=json"), fields).await);
        let page = ok(&client.get_with(&format!("{folder}?format=json&after=B&limit=1"), fields).await);
        let entry = whole["entries"].as_array().unwrap().iter().find(|entry| entry["name"] == NAMES[3]);
        assert_eq!(page["entries"].as_array().unwrap().first(), entry);
        assert!(entry.is_some() && whole.get("next").is_none());
        // The name after which a page begins need not exist.
        let page = ok(&client.get_with(&format!("{folder}?format=json&after=C"), fields).await);
        assert_eq!(names(&page), NAMES[3..]);
        assert!(
            names(&ok(&client.get_with(&format!("{folder}?format=json&after=%FF"), fields).await)).is_empty()
        );
    }
}

async fn the_link_to_the_next_page_is_exact_whatever_the_name(scene: Scene) {
    let mut client = scene.connect().await;
    let (mut hrefs, mut query) = (Vec::new(), "?format=json&limit=1".to_owned());
    loop {
        let page = ok(&client.get(&format!("/odd/{query}")).await);
        hrefs.push(page["entries"][0]["href"].as_str().unwrap().to_owned());
        let Some(next) = page.get("next_href") else { break };
        query = next.as_str().unwrap().to_owned();
    }
    assert_eq!(hrefs, ["a%FE", "a%FF", "b"]);
}

async fn a_page_that_cannot_be_is_refused_and_says_why(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for (query, words) in [
        ("limit=0", "from 1 to 10000"),
        ("limit=10001", "from 1 to 10000"),
        ("limit=many", "from 1 to 10000"),
        ("after=%zz", "percent-encoded"),
        ("limit=1&limit=2", "once"),
        ("limit=1&sort=size", "in order of name"),
    ] {
        for folder in ["/files/", "/f/", "/shared/"] {
            let answer = alice.get(&format!("{folder}?format=json&{query}")).await;
            let detail = answer.problem(400);
            assert!(detail.contains(words), "{folder}?{query}: {detail}");
        }
    }
}

behaviours!(scenario and remote and tls;
    a_folder_is_read_page_by_page,
    the_link_to_the_next_page_is_exact_whatever_the_name,
    a_page_that_cannot_be_is_refused_and_says_why,
);
