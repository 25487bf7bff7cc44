//! The operator's page, as a browser without scripts uses it: accounts, their limits, permissions, sessions,
//! shares and public links.

use plimsoll_auth::limits::ACCOUNTS_PER_PAGE_MAX;
use plimsoll_auth::{Permissions, Quota, Secret};
use plimsoll_tests::accounts::{PASSWORD, settings};
use plimsoll_tests::{Person, Scenario, Scene, behaviours};
use serde_json::json;

use super::page::Browser;

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

/// The page of alice.
const PAGE: &str = "/app/operate?account=alice";

/// The forms about an account, with all of their fields but the account.
const FORMS: [&str; 7] = [
    "action=account-quota&bytes=1GiB&files=7",
    "action=account-permissions&read=yes",
    "action=account-disable",
    "action=account-enable",
    "action=account-sessions",
    "action=account-unshare&id=x",
    "action=account-unlink&id=x",
];

/// Creates olga, who administers, and logs in on the page.
async fn operator(scene: &Scene) -> Browser {
    let may = Permissions { administer: true, ..Permissions::default() };
    Person::with(scene, "olga", Quota::default(), may).await;
    Browser::logged_in(scene, "olga").await
}

/// Submits a form about alice, and returns the page to which it leads.
async fn submitted(browser: &mut Browser, form: &str) -> String {
    let next = "next=%2Fapp%2Foperate%3Faccount%3Dalice";
    let answer = browser.submit("/app/do", &format!("{form}&account=alice&{next}")).await;
    assert_eq!(answer.status, 303, "{form}: {}", answer.text());
    let target = answer.field("Location").unwrap().to_owned();
    assert!(target.starts_with(&format!("{PAGE}&done=")), "{target}");
    let page = browser.open(&target).await;
    assert!(page.status == 200 && page.text().contains("role=\"status\""), "{form}: {}", page.text());
    page.text()
}

async fn only_an_account_with_the_right_has_the_operators_page_and_its_forms(scene: Scene) {
    let (mut alice, _bob) = (Person::new(&scene, "alice").await, Person::new(&scene, "bob").await);
    let mut bob = Browser::logged_in(&scene, "bob").await;
    assert!(!bob.open("/files/").await.text().contains("/app/operate"));
    assert!(!bob.open("/app/account").await.text().contains("/app/operate"));
    for target in ["/app/operate", PAGE, "/app/operate?account=bob", "/app/operate?account=missing"] {
        let page = bob.open(target).await;
        assert!(page.status == 403 && !page.text().contains("<bdi>"), "{target}: {}", page.text());
        assert_eq!(Browser::new(&scene).await.open(target).await.status, 401, "{target}");
    }
    for form in FORMS {
        let refused = bob.submit("/app/do", &format!("{form}&account=alice")).await;
        assert_eq!(refused.status, 403, "{form}: {}", refused.text());
    }
    assert_eq!(alice.get("/api/whoami").await.json()["quota"], json!({ "bytes": null, "files": null }));
    let lines = scene.accounts().lines();
    let refused = |line: &&serde_json::Value| line["account"] == "bob" && line["result"] == "not allowed";
    assert_eq!(lines.iter().filter(refused).count(), 4 + FORMS.len(), "{lines:?}");
}

async fn the_right_ends_for_the_open_page_too(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut olga = operator(&scene).await;
    assert!(olga.open("/files/").await.text().contains("href=\"/app/operate\""));
    assert!(olga.open("/app/account").await.text().contains("href=\"/app/operate\""));
    assert_eq!(olga.open(PAGE).await.status, 200);
    let auth = &scene.accounts().auth;
    auth.set_permissions(&scene.io, "olga", Permissions::default()).await.unwrap();
    for form in FORMS {
        assert_eq!(olga.submit("/app/do", &format!("{form}&account=alice")).await.status, 403, "{form}");
    }
    assert_eq!(olga.open(PAGE).await.status, 403);
    assert_eq!(alice.get("/api/whoami").await.status, 200);
}

async fn an_operator_limits_an_account_and_changes_its_permissions_on_the_page(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "hello").await;
    let mut olga = operator(&scene).await;
    let list = olga.open("/app/operate").await.text();
    assert!(list.contains("href=\"/app/operate?account=alice\"") && list.contains("no limit"), "{list}");
    let page = olga.open("/app/operate?account=ALICE").await.text();
    assert!(page.contains("1 file") && page.contains("name=\"bytes\" placeholder"), "{page}");
    let page = submitted(&mut olga, "action=account-quota&bytes=+1+MiB&files=7").await;
    assert!(page.contains("name=\"bytes\" value=\"1MiB\"") && page.contains("value=\"7\""), "{page}");
    let quota = alice.get("/api/whoami").await.json()["quota"].clone();
    assert_eq!(quota, json!({ "bytes": 1 << 20, "files": 7 }));
    submitted(&mut olga, "action=account-quota&bytes=&files=").await;
    let page = submitted(&mut olga, "action=account-permissions&read=yes&parents=yes").await;
    assert_eq!(page.matches(" checked").count(), 2, "{page}");
    let known = alice.get("/api/whoami").await.json();
    assert_eq!(known["quota"], json!({ "bytes": null, "files": null }));
    let may = known["permissions"].as_object().unwrap();
    let mut given: Vec<&String> =
        may.iter().filter(|(_, is_given)| **is_given == true).map(|(name, _)| name).collect();
    given.sort_unstable();
    assert_eq!(given, ["parents", "read"]);
    alice.put("/files/b", "x").await.problem(403);
}

async fn an_operator_disables_an_account_ends_its_sessions_and_enables_it_on_the_page(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut olga = operator(&scene).await;
    let page = submitted(&mut olga, "action=account-sessions").await;
    assert!(
        page.contains("value=\"account-disable\"") && !page.contains("value=\"account-enable\""),
        "{page}"
    );
    alice.get("/files/").await.problem(401);
    let mut alice = Person::again(&scene, "alice").await;
    let page = submitted(&mut olga, "action=account-disable").await;
    assert!(page.contains("This account is disabled") && page.contains("value=\"account-enable\""), "{page}");
    assert!(olga.open("/app/operate").await.text().contains("disabled, "));
    alice.get("/files/").await.problem(401);
    let auth = &scene.accounts().auth;
    let refused = auth.log_in(&scene.io, "alice", &Secret::from(PASSWORD), &plimsoll_io::Peer::Unix).await;
    assert!(refused.is_err());
    submitted(&mut olga, "action=account-enable").await;
    assert_eq!(Person::again(&scene, "alice").await.get("/files/").await.status, 200);
}

async fn an_operator_ends_shares_and_links_on_the_page(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut bob = Person::new(&scene, "bob").await;
    alice.put("/files/%3Cb%3Ea", "hello").await;
    let share = alice.share("/<b>a", "bob", "read").await;
    let link = json!({ "path": "/<b>a", "permission": "read" });
    let made = alice.send("POST", "/api/links", &link).await.json();
    let token = made["url"].as_str().unwrap().rsplit_once("/s/").unwrap().1.to_owned();
    let id = made["id"].as_str().unwrap();
    let mut olga = operator(&scene).await;
    let page = olga.open(PAGE).await.text();
    assert_eq!((page.matches("&lt;b&gt;a").count(), page.contains("<b>a")), (2, false), "{page}");
    assert!(!page.contains(&token) && page.contains(&share) && page.contains(id), "{page}");
    for form in [format!("action=account-unshare&id={share}"), format!("action=account-unlink&id={id}")] {
        // Of another account, it is not found, and stays.
        let other = olga.submit("/app/do", &format!("{form}&account=bob")).await;
        assert_eq!(other.status, 303);
        assert!(olga.open(PAGE).await.text().contains(form.rsplit('=').next().unwrap()));
        let page = submitted(&mut olga, &form).await;
        assert!(!page.contains(form.rsplit('=').next().unwrap()), "{page}");
        submitted(&mut olga, &form).await;
    }
    bob.get("/shared/alice/%3Cb%3Ea").await.problem(404);
    assert_eq!(bob.client.get(&format!("/s/{token}")).await.status, 404);
}

async fn an_operator_keeps_its_right_and_a_form_that_is_not_understood_changes_nothing(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut olga = operator(&scene).await;
    let own = olga.open("/app/operate?account=olga").await.text();
    assert!(own.contains("type=\"hidden\" name=\"administer\" value=\"yes\""), "{own}");
    assert!(!own.contains("value=\"account-disable\"") && own.contains("It is your own account"), "{own}");
    for (form, status) in [
        ("action=account-disable&account=olga", 409),
        ("action=account-permissions&read=yes&account=olga", 409),
        ("action=account-quota&bytes=much&files=&account=alice", 400),
        ("action=account-quota&bytes=&files=-1&account=alice", 400),
        ("action=account-quota&bytes=1&files=1&account=missing", 404),
        ("action=account-sessions&account=", 404),
        ("action=account-fly&account=alice", 400),
    ] {
        let refused = olga.submit("/app/do", form).await;
        assert_eq!(refused.status, status, "{form}: {}", refused.text());
    }
    assert_eq!(olga.open("/app/operate?account=missing").await.status, 404);
    assert_eq!(olga.open("/app/operate").await.status, 200);
    assert_eq!(alice.get("/api/whoami").await.json()["quota"], json!({ "bytes": null, "files": null }));
}

async fn an_account_that_may_read_status_sees_the_servers_figures_on_the_page(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "hello").await;
    let refused = Browser::logged_in(&scene, "alice").await.open("/app/status").await;
    assert!(refused.status == 403 && !refused.text().contains("<th"), "{}", refused.text());
    assert_eq!(Browser::new(&scene).await.open("/app/status").await.status, 401);
    let may = Permissions { operate: true, ..Permissions::default() };
    Person::with(&scene, "monitor", Quota::default(), may).await;
    let mut monitor = Browser::logged_in(&scene, "monitor").await;
    let page = monitor.open("/app/status").await;
    assert_eq!(page.status, 200, "{}", page.text());
    let page = page.text();
    for part in ["<th scope=\"row\">upload</th><td>1</td><td>0</td>", "href=\"/app/status\"", "1 open of 2;"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("/app/operate") && !page.contains("Recent errors"), "{page}");
    let wrong = Browser::new(&scene).await.submit("/app/login", "name=mallory&password=wrong+one").await;
    assert_eq!(wrong.status, 401);
    let page = operator(&scene).await.open("/app/status").await;
    let text = page.text();
    let shown = "<bdi>mallory</bdi> <span class=\"quiet\" lang=\"en\">login: not authenticated, http, ";
    assert!(text.contains("Recent errors") && text.contains(shown), "{text}");
    assert!(page.status == 200 && page.text().contains("href=\"/app/operate\""), "{}", page.text());
    let auth = &scene.accounts().auth;
    auth.set_permissions(&scene.io, "monitor", Permissions::default()).await.unwrap();
    assert_eq!(monitor.open("/app/status").await.status, 403);
}

behaviours!(scenario and remote and tls;
    an_account_that_may_read_status_sees_the_servers_figures_on_the_page,
    only_an_account_with_the_right_has_the_operators_page_and_its_forms,
    the_right_ends_for_the_open_page_too,
    an_operator_limits_an_account_and_changes_its_permissions_on_the_page,
    an_operator_disables_an_account_ends_its_sessions_and_enables_it_on_the_page,
    an_operator_ends_shares_and_links_on_the_page,
    an_operator_keeps_its_right_and_a_form_that_is_not_understood_changes_nothing,
);

/// Of many accounts: the simulator runs it with fewer seeds.
mod many {
    use super::*;

    fn scenario() -> Scenario {
        Scenario { is_large: true, ..super::scenario() }
    }

    async fn many_accounts_are_shown_in_pages(scene: Scene) {
        let mut olga = operator(&scene).await;
        let auth = &scene.accounts().auth;
        for number in 0..ACCOUNTS_PER_PAGE_MAX {
            let (name, password) = (format!("a{number:03}+"), Secret::from(PASSWORD));
            auth.add(&scene.io, &name, &password, Quota::default(), Permissions::default()).await.unwrap();
        }
        let first = olga.open("/app/operate").await.text();
        assert!(first.contains("href=\"/app/operate?account=a000%2B\""), "{first}");
        assert_eq!(first.matches("?account=").count(), ACCOUNTS_PER_PAGE_MAX);
        let last = format!("/app/operate?after=a{:03}%2B", ACCOUNTS_PER_PAGE_MAX - 1);
        assert!(first.contains(&format!("href=\"{last}\"")), "{first}");
        let second = olga.open(&last).await.text();
        assert!(second.matches("?account=").count() == 1 && second.contains("?account=olga"), "{second}");
        assert!(!second.contains("href=\"/app/operate?after="), "{second}");
        assert_eq!(olga.open("/app/operate?account=a000%2B").await.status, 200);
    }

    behaviours!(scenario; many_accounts_are_shown_in_pages);
}
