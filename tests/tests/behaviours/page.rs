//! The web page, as a browser without scripts uses it: log-in, account, folders, and the defence against
//! pages of other sites.

use plimsoll_auth::{Permissions, Quota, Settings};
use plimsoll_tests::accounts::{PASSWORD, settings};
use plimsoll_tests::{Answer, Client, Person, Scenario, Scene, behaviours};
use plimsoll_web::limits::FORM_BYTES_MAX;

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

fn without_sign_up() -> Scenario {
    Scenario {
        accounts: Some(Settings { sign_up: plimsoll_auth::SignUp::Closed, ..settings() }),
        ..scenario()
    }
}

const ACCEPT: &str = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

/// A browser, with its cookie.
pub(super) struct Browser {
    pub(super) client: Client,
    origin: String,
    /// The cookie of the session, as `NAME=VALUE`.
    cookie: Option<String>,
}

impl Browser {
    pub(super) async fn new(scene: &Scene) -> Browser {
        let origin = format!("{}://test", scene.scheme());
        Browser { client: scene.connect().await, origin, cookie: None }
    }

    /// Logs in as an account with the usual password.
    pub(super) async fn logged_in(scene: &Scene, name: &str) -> Browser {
        let mut browser = Browser::new(scene).await;
        let answer =
            browser.submit("/app/login", &format!("name={name}&password={}", encoded(PASSWORD))).await;
        assert_eq!(answer.status, 303, "{}", answer.text());
        browser
    }

    fn fields(&self) -> String {
        let cookie = self.cookie.as_ref().map(|cookie| format!("Cookie: a=b; {cookie}\r\n"));
        format!("{ACCEPT}{}", cookie.unwrap_or_default())
    }

    pub(super) async fn open(&mut self, target: &str) -> Answer {
        let fields = format!("Upgrade-Insecure-Requests: 1\r\n{}", self.fields());
        self.client.get_with(target, &fields).await
    }

    /// Submits a form of the page, and stores the cookie of the response.
    pub(super) async fn submit(&mut self, target: &str, form: &str) -> Answer {
        let fields = format!("{FORM}Origin: {}\r\n{}", self.origin, self.fields());
        let answer = self.client.ask("POST", target, &fields, form).await;
        if let Some(cookie) = answer.field("Set-Cookie") {
            let (pair, _) = cookie.split_once(';').expect("attributes");
            self.cookie = (!pair.ends_with('=')).then(|| pair.to_owned());
        }
        answer
    }
}

fn encoded(value: &str) -> String {
    value.replace(' ', "+")
}

async fn a_person_logs_in_opens_its_files_and_logs_out(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a.txt", "hello").await;
    let mut browser = Browser::new(&scene).await;
    let start = browser.open("/app/").await;
    assert_eq!(start.status, 200);
    assert!(start.text().contains("action=\"/app/login\"") && !start.text().contains("/app/logout"));
    let form = format!("name=alice&password={}&next=%2Ffiles%2F%3Fsort%3Dsize", encoded(PASSWORD));
    let answer = browser.submit("/app/login", &form).await;
    assert_eq!((answer.status, answer.field("Location")), (303, Some("/files/?sort=size")));
    let cookie = answer.field("Set-Cookie").unwrap();
    assert!(cookie.contains("; Path=/; HttpOnly; SameSite=Lax") && !cookie.contains("Max-Age"), "{cookie}");
    let is_secure = scene.scheme() == "https";
    assert_eq!((cookie.starts_with("__Host-plimsoll="), cookie.contains("; Secure")), (is_secure, is_secure));
    let page = browser.open("/files/").await;
    assert_eq!(page.status, 200);
    for part in ["href=\"a.txt\"", ">alice</a>", "action=\"/app/logout\"", "<html lang=\"en\">"] {
        assert!(page.text().contains(part), "{part}: {}", page.text());
    }
    assert_eq!(browser.open("/files/a.txt").await.text(), "hello");
    assert_eq!(browser.open("/app/").await.field("Location"), Some("/files/"));
    let left = browser.cookie.clone().unwrap();
    let answer = browser.submit("/app/logout", "").await;
    assert_eq!((answer.status, answer.field("Location")), (303, Some("/app/")));
    assert!(browser.cookie.is_none() && answer.field("Set-Cookie").unwrap().contains("Max-Age=0"));
    browser.cookie = Some(left);
    assert_eq!(browser.open("/files/a.txt").await.status, 401, "the session has ended on the server");
}

/// The password prevails over the cookie, but is no session.
async fn a_log_out_ends_the_session_of_the_cookie_beside_a_stored_password(scene: Scene) {
    let (_alice, _bob) = (Person::new(&scene, "alice").await, Person::new(&scene, "bob").await);
    let mut bob = Browser::logged_in(&scene, "bob").await;
    let cookie = bob.cookie.clone().unwrap();
    // `alice` with the usual password, in base64.
    let fields = format!("{FORM}Origin: {}\r\n{}", bob.origin, bob.fields());
    let fields = format!("{fields}Authorization: Basic YWxpY2U6Y29ycmVjdCBob3JzZQ==\r\n");
    assert_eq!(bob.client.ask("POST", "/app/logout", &fields, "").await.status, 303);
    bob.cookie = Some(cookie);
    assert_eq!(bob.open("/files/").await.status, 401, "the session has ended on the server");
}

async fn a_page_that_needs_an_account_asks_for_it_and_is_then_opened(scene: Scene) {
    let _alice = Person::new(&scene, "alice").await;
    let mut browser = Browser::new(&scene).await;
    let asked = browser.open("/files/a%20b/?sort=size").await;
    assert_eq!(asked.status, 401);
    assert!(asked.text().contains("name=\"next\" value=\"/files/a%20b/?sort=size\""), "{}", asked.text());
    let ways: Vec<&String> =
        asked.fields.iter().filter(|(name, _)| name == "WWW-Authenticate").map(|(_, value)| value).collect();
    assert!(ways.len() == 1 && ways[0].starts_with("Bearer"), "no dialog of the browser: {ways:?}");
    let wrong = browser.submit("/app/login", "name=alice&password=wrong+one&next=//evil.example").await;
    assert_eq!((wrong.status, wrong.field("Set-Cookie")), (401, None));
    assert!(
        wrong.text().contains("The name or the password is wrong.")
            && wrong.text().contains("value=\"alice\"")
    );
    assert!(!wrong.text().contains("wrong one") && !wrong.text().contains("evil"), "{}", wrong.text());
    assert_eq!(browser.open("/app/login").await.status, 200, "the page of a refused form is reloaded");
    let form = format!("name=alice&password={}&next=//evil.example&stay=yes", encoded(PASSWORD));
    let answer = browser.submit("/app/login", &form).await;
    assert_eq!((answer.status, answer.field("Location")), (303, Some("/files/")));
    assert!(answer.field("Set-Cookie").unwrap().contains("Max-Age="));
}

/// Browsers add the cookie to some requests of any page of the same site, such as another port.
async fn a_cookie_changes_nothing_for_a_page_of_another_origin(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "hello").await;
    let browser = Browser::logged_in(&scene, "alice").await;
    let (cookie, origin) = (browser.fields(), &browser.origin);
    let mut client = scene.connect().await;
    for sender in [
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        &format!("Sec-Fetch-Site: same-site\r\nOrigin: {origin}\r\n"),
        &format!("Origin: {origin}:81\r\n"),
        "Origin: null\r\n",
        "",
    ] {
        for (method, target) in [
            ("PUT", "/files/a"),
            ("DELETE", "/files/a"),
            ("MKCOL", "/files/b"),
            ("MOVE", "/files/a"),
            ("COPY", "/files/a"),
            ("POST", "/files/"),
            ("POST", "/uploads"),
            ("PATCH", "/uploads/x"),
            ("DELETE", "/uploads/x"),
            ("PUT", "/api/password"),
            ("POST", "/api/shares"),
            ("DELETE", "/api/shares/x"),
            ("DELETE", "/api/sessions/current"),
            ("POST", "/app/login"),
            ("POST", "/app/signup"),
            ("POST", "/app/logout"),
            ("POST", "/app/password"),
            ("POST", "/app/language"),
            ("POST", "/app/do"),
        ] {
            let answer = client.ask(method, target, &format!("{cookie}{sender}{FORM}"), "").await;
            assert_eq!(answer.status, 403, "{method} {target} {sender}");
        }
    }
    assert_eq!(client.get_with("/files/a", &cookie).await.text(), "hello");
    let put = client.ask("PUT", "/files/a", &format!("{cookie}Sec-Fetch-Site: same-origin\r\n"), "new").await;
    assert_eq!(put.status, 204);
}

async fn a_form_of_another_site_starts_no_session(scene: Scene) {
    let _alice = Person::new(&scene, "alice").await;
    let mut client = scene.connect().await;
    let form = format!("name=alice&password={}", encoded(PASSWORD));
    for sender in ["Origin: https://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n", ""] {
        let answer = client.ask("POST", "/app/login", &format!("{FORM}{sender}"), &form).await;
        assert_eq!((answer.status, answer.field("Set-Cookie")), (403, None), "{sender}");
    }
}

async fn only_the_cookie_of_the_scheme_is_read(scene: Scene) {
    let alice = Person::new(&scene, "alice").await;
    let (own, other) = match scene.scheme() {
        "https" => ("__Host-plimsoll", "plimsoll"),
        _ => ("plimsoll", "__Host-plimsoll"),
    };
    let mut client = scene.connect().await;
    for (cookies, status) in [
        (format!("{own}={}", alice.token), 200),
        (format!("{other}={}", alice.token), 401),
        (format!("{own}={0}; {own}={0}", alice.token), 401),
        (format!("{own}="), 401),
        (format!("{own}=pls_{}", "0".repeat(32)), 401),
    ] {
        let answer = client.get_with("/api/whoami", &format!("Cookie: {cookies}\r\n")).await;
        assert_eq!(answer.status, status, "{cookies}");
    }
    let both = format!("Cookie: {own}={}\r\nAuthorization: Bearer pls_x\r\n", alice.token);
    assert_eq!(client.get_with("/api/whoami", &both).await.status, 401, "Authorization prevails");
}

async fn no_other_page_embeds_the_page_and_nothing_runs_in_it(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "x").await;
    let mut browser = Browser::logged_in(&scene, "alice").await;
    for target in ["/app/account", "/app/shares", "/files/", "/shared/", "/files/missing", "/app/missing"] {
        let page = browser.open(target).await;
        let policy = page.field("Content-Security-Policy").expect("a policy").to_owned();
        for part in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"]
        {
            assert!(policy.contains(part), "{target}: {policy}");
        }
        // Each file of an account is of this origin: 'self' would admit it as a script.
        let sources: Vec<&str> = policy.split("; ").filter(|part| part.starts_with("script-src")).collect();
        assert!(!policy.contains("unsafe") && sources.len() <= 1, "{policy}");
        let (nonces, scripts) = (sources.join(""), page.text().matches("<script").count());
        assert_eq!(scripts, sources.len(), "{target}");
        if scripts == 1 {
            let nonce = nonces.strip_prefix("script-src 'nonce-").and_then(|rest| rest.strip_suffix('\''));
            let nonce = nonce.unwrap_or_else(|| panic!("{policy}"));
            assert!(page.text().contains(&format!(".js\" nonce=\"{nonce}\"></script>")), "{target}");
            assert!(policy.contains("require-trusted-types-for 'script'; trusted-types 'none'"), "{policy}");
        }
        assert_eq!(page.field("X-Frame-Options"), Some("DENY"), "{target}");
        assert_eq!(page.field("Cross-Origin-Opener-Policy"), Some("same-origin"), "{target}");
        assert_eq!(page.field("Referrer-Policy"), Some("same-origin"), "{target}");
        assert!(page.field("Cache-Control").unwrap().contains("no-store"), "{target}");
        assert!(!page.text().contains("<script>") && !page.text().contains(" style="), "{target}");
    }
}

async fn the_files_of_the_page_are_kept_for_good_under_their_hash(scene: Scene) {
    let mut browser = Browser::new(&scene).await;
    let start = browser.open("/app/").await.text();
    let (_, rest) = start.split_once("rel=\"stylesheet\" href=\"").expect("a stylesheet");
    let (path, _) = rest.split_once('"').unwrap();
    let style = browser.client.get(path).await;
    assert_eq!((style.status, style.field("Content-Type")), (200, Some("text/css; charset=utf-8")));
    assert!(style.field("Cache-Control").unwrap().contains("immutable"));
    let (_, rest) = path.strip_prefix("/app/").unwrap().split_once('/').unwrap();
    assert_eq!(browser.client.get(&format!("/app/000000000000/{rest}")).await.status, 404);
    let script = browser.client.get(&path.replace("page.css", "main.js")).await;
    assert_eq!((script.status, script.field("Content-Type")), (200, Some("text/javascript; charset=utf-8")));
    assert_eq!(script.field("Content-Encoding"), Some("gzip"));
    let texts = browser.client.get(&path.replace("page.css", "de.json")).await;
    assert_eq!(texts.json()["delete"], "Löschen");
}

async fn a_person_signs_up_and_changes_the_password(scene: Scene) {
    let mut browser = Browser::new(&scene).await;
    assert!(browser.open("/app/").await.text().contains("href=\"/app/signup\""));
    assert!(browser.open("/app/signup").await.text().contains("action=\"/app/signup\""));
    let form = format!("name=carol&password={}", encoded(PASSWORD));
    let answer = browser.submit("/app/signup", &form).await;
    assert_eq!((answer.status, answer.field("Location")), (303, Some("/files/")));
    let mut other = Browser::logged_in(&scene, "carol").await;
    let taken = Browser::new(&scene).await.submit("/app/signup", &form).await;
    assert!(taken.status == 409 && taken.text().contains("This name is taken."), "{}", taken.text());
    let account = browser.open("/app/account").await.text();
    assert!(account.contains("carol") && account.contains("action=\"/app/password\""), "{account}");
    let wrong = browser.submit("/app/password", "old=wrong&new=correct+horse+battery").await;
    assert!(wrong.status == 403 && wrong.text().contains("The old password is wrong."), "{}", wrong.text());
    assert_eq!(browser.open("/app/password").await.status, 200, "the page of a refused form is reloaded");
    let form = format!("old={}&new=correct+horse+battery", encoded(PASSWORD));
    let changed = browser.submit("/app/password", &form).await;
    assert_eq!((changed.status, changed.field("Location")), (303, Some("/app/account?done=password")));
    assert!(browser.open("/app/account?done=password").await.text().contains("The password is changed."));
    assert!(!browser.open("/app/account?done=%3Cb%3E").await.text().contains("role=\"status\""));
    assert_eq!(other.open("/files/").await.status, 401, "other sessions end");
}

async fn a_form_that_is_too_long_is_refused(scene: Scene) {
    let mut browser = Browser::new(&scene).await;
    let form = format!("name={}", "a".repeat(FORM_BYTES_MAX));
    assert_eq!(browser.submit("/app/login", &form).await.status, 413);
    let fields = format!("Origin: {}\r\nContent-Type: text/plain\r\n", browser.origin);
    browser.client.ask("POST", "/app/login", &fields, "name=a").await.problem(415);
}

async fn without_sign_up_no_page_offers_it(scene: Scene) {
    let mut browser = Browser::new(&scene).await;
    assert!(!browser.open("/app/").await.text().contains("signup"));
    assert_eq!(browser.open("/app/signup").await.status, 403);
    let form = format!("name=carol&password={}", encoded(PASSWORD));
    assert_eq!(browser.submit("/app/signup", &form).await.status, 403);
}

async fn the_page_is_in_the_readers_language(scene: Scene) {
    let mut browser = Browser::new(&scene).await;
    let german =
        browser.client.get_with("/app/", &format!("{ACCEPT}Accept-Language: de-AT,en;q=0.5\r\n")).await;
    assert!(german.text().contains("<html lang=\"de\">") && german.text().contains("Anmelden"));
    let answer = browser.submit("/app/language", "language=de&next=%2Fapp%2F").await;
    assert_eq!((answer.status, answer.field("Location")), (303, Some("/app/")));
    assert!(browser.open("/app/").await.text().contains("Anmelden"), "the browser sends the choice");
    assert_eq!(browser.submit("/app/language", "language=xx").await.status, 400);
}

async fn a_large_folder_is_shown_in_pages(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/first", "").await;
    for number in 0..201 {
        scene.write_home("alice", &format!("f{number}"), b"x");
    }
    let mut browser = Browser::logged_in(&scene, "alice").await;
    let page = browser.open("/files/").await.text();
    assert!(page.contains("href=\"f0\"") && !page.contains("href=\"f200\""), "200 entries of 202");
    assert!(page.contains("202 files") && page.contains("from=200"), "{page}");
    for from in ["203", "18446744073709551615"] {
        for folder in ["files", "shared"] {
            let beyond = browser.open(&format!("/{folder}/?from={from}")).await;
            assert!(beyond.status == 200 && !beyond.text().contains("href=\"f"), "{from}: {}", beyond.text());
        }
    }
    let rest = browser.open("/files/?sort=name&order=asc&from=200").await.text();
    assert!(
        rest.contains("href=\"f200\"") && rest.contains("href=\"first\"") && !rest.contains("href=\"f0\"")
    );
}

const MULTIPART: &str = "Content-Type: multipart/form-data; boundary=XX\r\n";

fn files(files: &[(&str, &str)]) -> String {
    let part = |(name, bytes): &(&str, &str)| {
        format!(
            "--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n{bytes}\r\n"
        )
    };
    files.iter().map(part).collect::<String>() + "--XX--\r\n"
}

async fn a_form_of_a_folder_uploads_files_and_keeps_those_that_are_there(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a.tar.gz", "old").await;
    let mut browser = Browser::logged_in(&scene, "alice").await;
    let page = browser.open("/files/").await.text();
    assert!(page.contains("enctype=\"multipart/form-data\" action=\"?clash=rename\""), "{page}");
    let fields = format!("{MULTIPART}Origin: {}\r\n{}", browser.origin, browser.fields());
    let body = files(&[("a.tar.gz", "new"), ("a.tar.gz", "newer"), (".x", "1"), ("b", "2")]);
    let stored = browser.client.ask("POST", "/files/?clash=rename", &fields, &body).await;
    assert_eq!((stored.status, stored.field("Location")), (303, Some("/files/?done=uploaded")));
    assert!(browser.open("/files/?done=uploaded").await.text().contains("Uploaded."));
    for (target, text) in [
        ("/files/a.tar.gz", "old"),
        ("/files/a.tar%20(2).gz", "new"),
        ("/files/a.tar%20(3).gz", "newer"),
        ("/files/.x", "1"),
    ] {
        assert_eq!(alice.get(target).await.text(), text, "{target}");
    }
    let body = files(&[("a.tar.gz", "newest")]);
    let replaced = browser.client.ask("POST", "/files/?clash=replace", &fields, &body).await;
    assert_eq!(replaced.status, 303);
    assert_eq!(alice.get("/files/a.tar.gz").await.text(), "newest");
}

async fn folders_are_made_and_entries_renamed_moved_and_deleted(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a%20b", "hello").await;
    let mut browser = Browser::logged_in(&scene, "alice").await;
    let made =
        browser.submit("/app/do", "action=mkdir&at=%2Ffiles%2F&name=in&next=%2Ffiles%2F%3Fsort%3Dsize").await;
    assert_eq!((made.status, made.field("Location")), (303, Some("/files/?sort=size&done=made")));
    let details = browser.open("/app/entry?at=%2Ffiles%2Fa%2520b").await;
    for part in ["href=\"/files/a%20b\" download", "value=\"rename\"", "value=\"delete\"", "value=\"share\""]
    {
        assert!(details.status == 200 && details.text().contains(part), "{part}: {}", details.text());
    }
    let form = "action=rename&at=%2Ffiles%2Fa%2520b&name=c&folder=%2Fin%2F&next=%2Ffiles%2F";
    assert_eq!(browser.submit("/app/do", form).await.status, 303);
    assert_eq!(alice.get("/files/in/c").await.text(), "hello");
    alice.put("/files/d", "other").await;
    for (form, status) in [
        ("action=rename&at=%2Ffiles%2Fd&name=c&folder=%2Fin", 409),
        ("action=rename&at=%2Ffiles%2Fd&name=x%2Fy&folder=%2F", 400),
        ("action=rename&at=%2Ffiles%2Fd&name=..&folder=%2F", 400),
        ("action=rename&at=%2Ffiles%2Fd&name=&folder=%2F", 400),
        ("action=rename&at=%2Ffiles%2Fd&name=d&folder=%2Fmissing", 409),
        ("action=mkdir&at=%2Ffiles%2F&name=in", 409),
        ("action=delete&sure=yes&at=%2Ffiles%2Fmissing", 404),
        ("action=delete&sure=yes&at=%2Ffiles%2Fd%2F", 404),
        ("action=delete&sure=yes&at=%2Ffiles%2F", 403),
        ("action=delete&sure=yes&at=%2Fapi%2Fwhoami", 404),
        ("action=delete&at=%2Ffiles%2Fd", 400),
        ("action=delete&sure=yes&etag=%22other%22&at=%2Ffiles%2Fd", 412),
        ("action=delete&sure=yes&etag=%22%0D%0A&at=%2Ffiles%2Fd", 400),
        ("action=other&at=%2Ffiles%2Fd", 400),
    ] {
        let refused = browser.submit("/app/do", form).await;
        assert_eq!(refused.status, status, "{form}: {}", refused.text());
    }
    assert_eq!(alice.get("/files/d").await.text(), "other");
    let form = "action=delete&sure=yes&at=%2Ffiles%2Fin%2F&next=%2F%2Fevil.example";
    let deleted = browser.submit("/app/do", form).await;
    let next = deleted.field("Location").unwrap_or_default().to_owned();
    assert!(deleted.status == 303 && next.starts_with("/files/?done=trashed&trashed="), "{next}");
    assert_eq!(alice.get("/files/in/c").await.status, 404);
}

async fn a_deleted_file_is_restored_by_undo_or_from_the_trash(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a%20%3Cb%3E", "hello").await;
    let mut browser = Browser::logged_in(&scene, "alice").await;
    let form = "action=delete&sure=yes&at=%2Ffiles%2Fa%2520%253Cb%253E&next=%2Ffiles%2F%3Fsort%3Dsize";
    let next = browser.submit("/app/do", form).await.field("Location").unwrap().to_owned();
    let (_, id) = next.split_once("/files/?sort=size&done=trashed&trashed=").expect("the entry");
    let page = browser.open(&next).await.text();
    assert!(page.contains("Moved to the trash.") && page.contains(&format!("value=\"{id}\"")), "{page}");
    let back = format!("%2Ffiles%2F%3Fsort%3Dsize%26done%3Dtrashed%26trashed%3D{id}");
    let undo = format!("action=restore&id={id}&next={back}");
    let undone = browser.submit("/app/do", &undo).await;
    assert_eq!(undone.field("Location"), Some("/files/?sort=size&done=restored"));
    assert_eq!(alice.get("/files/a%20%3Cb%3E").await.text(), "hello");
    assert_eq!(browser.submit("/app/do", &undo).await.status, 404);
    let next = browser.submit("/app/do", form).await.field("Location").unwrap().to_owned();
    let (_, id) = next.split_once("&trashed=").unwrap();
    let trash = browser.open("/app/trash").await.text();
    assert!(trash.contains("/a &lt;b&gt;") && trash.contains("value=\"restore\""), "{trash}");
    alice.put("/files/a%20%3Cb%3E", "new").await;
    let taken = browser.submit("/app/do", &format!("action=restore&id={id}&next=%2Fapp%2Ftrash")).await;
    assert_eq!(taken.status, 409);
    let for_good = format!("action=delete-trashed&id={id}&next=%2Fapp%2Ftrash");
    for _ in 0..2 {
        let dropped = browser.submit("/app/do", &for_good).await;
        assert_eq!((dropped.status, dropped.field("Location")), (303, Some("/app/trash?done=dropped")));
    }
    browser.submit("/app/do", form).await;
    let unsure = browser.submit("/app/do", "action=empty-trash&next=%2Fapp%2Ftrash").await;
    assert_eq!(unsure.status, 400);
    let emptied = browser.submit("/app/do", "action=empty-trash&sure=yes&next=%2Fapp%2Ftrash").await;
    assert_eq!(emptied.field("Location"), Some("/app/trash?done=emptied"));
    assert!(browser.open("/app/trash").await.text().contains("The trash is empty."));
    assert_eq!(browser.submit("/app/do", "action=restore&id=x").await.status, 400);
}

async fn a_name_that_is_not_utf8_is_renamed_from_and_to_its_own_bytes(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/caf%E9", "hello").await;
    alice.ask("MKCOL", "/files/in", "", "").await;
    let mut browser = Browser::logged_in(&scene, "alice").await;
    let form = "action=rename&at=%2Ffiles%2Fcaf%25E9&name=caf%EF%BF%BD&folder=%2Fin";
    assert_eq!(browser.submit("/app/do", form).await.status, 303);
    assert_eq!(alice.get("/files/in/caf%E9").await.text(), "hello");
    let at = "action=rename&at=%2Ffiles%2Fin%2Fcaf%25E9";
    for incomplete in ["&name=caf%EF%BF%BD.txt&folder=%2Fin", "&name=caf%EF%BF%BD", "&name=&folder=%2Fin"] {
        assert_eq!(browser.submit("/app/do", &format!("{at}{incomplete}")).await.status, 400, "{incomplete}");
    }
    assert_eq!(alice.get("/files/in/caf%E9").await.text(), "hello");
}

async fn a_share_is_given_seen_and_ended_on_the_page(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut bob = Person::new(&scene, "bob").await;
    alice.put("/files/%3Cb%3E", "hello").await;
    let mut page = Browser::logged_in(&scene, "alice").await;
    for (form, status) in [
        ("with=nobody&permission=read", 404),
        ("with=bob&permission=all", 400),
        ("with=bob&permission=read&expires=2001-01-01", 400),
    ] {
        let form = format!("action=share&at=%2Ffiles%2F%253Cb%253E&{form}");
        assert_eq!(page.submit("/app/do", &form).await.status, status, "{form}");
    }
    let form = "action=share&at=%2Ffiles%2F%253Cb%253E&with=+bob&permission=read&expires=2999-12-31\
                &next=%2Fapp%2Fshares";
    let given = page.submit("/app/do", form).await;
    assert_eq!((given.status, given.field("Location")), (303, Some("/app/shares?done=shared")));
    let shares = page.open("/app/shares").await.text();
    assert!(shares.contains("&lt;b&gt;") && shares.contains("until 2999-12-31"), "{shares}");
    let mut other = Browser::logged_in(&scene, "bob").await;
    let received = other.open("/app/shares").await.text();
    assert!(received.contains("href=\"/shared/alice/%3Cb%3E\""), "{received}");
    assert_eq!(other.open("/shared/alice/%3Cb%3E").await.text(), "hello");
    // A folder above a share shows no forms, and of a share that is read only, nothing can be changed.
    for target in ["/shared/", "/shared/alice/"] {
        let folder = other.open(target).await.text();
        assert!(!folder.contains("/app/do") && !folder.contains("/app/entry"), "{target}: {folder}");
    }
    assert_eq!(
        other.submit("/app/do", "action=delete&sure=yes&at=%2Fshared%2Falice%2F%253Cb%253E").await.status,
        403
    );
    let share = "action=share&at=%2Fshared%2Falice%2F%253Cb%253E&with=alice&permission=read";
    assert_eq!(other.submit("/app/do", share).await.status, 403);
    let id = alice.get("/api/shares").await.json()["shares"][0]["id"].as_str().unwrap().to_owned();
    other.submit("/app/do", &format!("action=unshare&id={id}")).await;
    assert_eq!(bob.get("/shared/alice/%3Cb%3E").await.status, 200, "only its owner ends a share");
    assert_eq!(page.submit("/app/do", &format!("action=unshare&id={id}")).await.status, 303);
    assert_eq!(bob.get("/shared/alice/%3Cb%3E").await.status, 404);
}

async fn the_page_offers_only_what_the_account_may_do(scene: Scene) {
    let reader = Permissions { read: true, ..Permissions::NONE };
    let _carol = Person::with(&scene, "carol", Quota::default(), reader).await;
    let mut browser = Browser::logged_in(&scene, "carol").await;
    assert_eq!(browser.open("/files/").await.status, 200, "the home is there from now on");
    scene.write_home("carol", "a", b"x");
    let page = browser.open("/files/").await.text();
    assert!(
        page.contains("href=\"a\"") && !page.contains("/app/do") && !page.contains("name=\"at\""),
        "{page}"
    );
    let details = browser.open("/app/entry?at=%2Ffiles%2Fa").await.text();
    assert!(details.contains("href=\"/files/a\" download") && !details.contains("/app/do"), "{details}");
}

async fn an_error_is_in_the_readers_language_with_the_servers_own_words(scene: Scene) {
    let _alice = Person::new(&scene, "alice").await;
    let mut browser = Browser::logged_in(&scene, "alice").await;
    let german = format!("Accept-Language: de\r\n{}", browser.fields());
    let missing = browser.client.get_with("/files/missing", &german).await;
    assert!(missing.text().contains("Es ist nicht mehr da"), "{}", missing.text());
    assert!(missing.text().contains("There is no such thing here."), "{}", missing.text());
    let english = browser.open("/files/missing").await.text();
    assert!(english.contains("There is no such thing here.") && !english.contains("any more"), "{english}");
}

async fn a_program_gets_the_listing_of_programs(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "x").await;
    let page = alice.get("/files/").await;
    assert!(
        page.text().contains("href=\"a\"") && !page.text().contains("/app/"),
        "no links that a crawler follows"
    );
    let wget2 = format!("{ACCEPT}User-Agent: Wget/2.1.0\r\n");
    let page = alice.ask("GET", "/files/", &wget2, "").await;
    assert!(page.text().contains("href=\"a\"") && !page.text().contains("/app/"), "{}", page.text());
}

behaviours!(scenario and tls;
    a_person_logs_in_opens_its_files_and_logs_out,
    a_log_out_ends_the_session_of_the_cookie_beside_a_stored_password,
    a_page_that_needs_an_account_asks_for_it_and_is_then_opened,
    a_form_of_another_site_starts_no_session,
    only_the_cookie_of_the_scheme_is_read,
    no_other_page_embeds_the_page_and_nothing_runs_in_it,
    the_files_of_the_page_are_kept_for_good_under_their_hash,
    a_person_signs_up_and_changes_the_password,
    a_form_that_is_too_long_is_refused,
    the_page_is_in_the_readers_language,
    a_form_of_a_folder_uploads_files_and_keeps_those_that_are_there,
    folders_are_made_and_entries_renamed_moved_and_deleted,
    a_deleted_file_is_restored_by_undo_or_from_the_trash,
    a_name_that_is_not_utf8_is_renamed_from_and_to_its_own_bytes,
    a_share_is_given_seen_and_ended_on_the_page,
    the_page_offers_only_what_the_account_may_do,
    an_error_is_in_the_readers_language_with_the_servers_own_words,
    a_program_gets_the_listing_of_programs,
);

/// Of many requests: the simulator runs them with fewer seeds.
mod many {
    use super::*;

    fn scenario() -> Scenario {
        Scenario { is_large: true, ..super::scenario() }
    }

    behaviours!(scenario and tls;
        a_cookie_changes_nothing_for_a_page_of_another_origin,
        a_large_folder_is_shown_in_pages,
    );
}

mod closed {
    use super::*;

    behaviours!(without_sign_up; without_sign_up_no_page_offers_it);
}
