//! The frame of every page: its head, navigation, foot, and the fields of its response.
//!
//! Invariants: nothing runs and nothing loads but the page's own files; no text becomes code; no other page
//! embeds it; no cache stores it.

use maud::{DOCTYPE, Markup, html};
use plimsoll_auth::Account;
use plimsoll_content::page::{ICON, MARK};
use plimsoll_proto::http::{Answer, Request, site};
use plimsoll_wire::hex;
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;

use super::local_target::LocalTarget;
use super::texts::{LANGUAGES, Language};
use super::{assets, cookie, operate};

/// Bytes of the number that admits the page's own style and scripts, so that markup in the page cannot add
/// others. 'self' would not do: it admits every file of every account.
const NONCE_BYTES: usize = 16;

/// The part of the page that a view belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// The account's own files.
    Files,
    /// The account's shares, given and received.
    Shares,
    /// The account's trash.
    Trash,
    /// The server and all accounts, for operators.
    Operate,
    /// The account itself.
    Account,
    /// None of them.
    Other,
}

/// The frame of a page for one request.
pub(crate) struct Frame {
    pub(crate) language: &'static Language,
    pub(super) section: Section,
    account: Option<String>,
    /// The operator's page that the account may open.
    operators_page: Option<&'static str>,
    /// Whether the browser has a session that it can end.
    has_session: bool,
    nonce: String,
    /// Whether it is a page of a public link, for visitors without an account.
    is_of_link: bool,
    /// The page itself, to return to.
    pub(crate) target: String,
}

impl Frame {
    /// Creates the frame of a page. Without an account, it has no navigation.
    pub(crate) fn new(request: &Request<'_>, section: Section, account: Option<&Account>) -> Frame {
        let mut nonce = [0; NONCE_BYTES];
        request.io.entropy(&mut nonce);
        let target = match request.method() {
            Method::Get | Method::Head => LocalTarget::of(request.target()),
            _ => LocalTarget::default(),
        };
        Frame {
            language: Language::of(request),
            section,
            account: account.map(|account| account.name.clone()),
            operators_page: account.and_then(|account| operate::start_page(account.permissions)),
            has_session: cookie::token(request).is_some(),
            nonce: hex::encode(&nonce),
            is_of_link: false,
            target: target.into_text(),
        }
    }

    /// Creates the frame of a page of a public link. It leads to no page that needs an account.
    pub(crate) fn of_link(request: &Request<'_>) -> Frame {
        Frame { is_of_link: true, ..Frame::new(request, Section::Other, None) }
    }

    /// Returns the response with this page.
    pub(crate) fn answer(&self, status: Status, title: &str, content: &Markup) -> Answer {
        let fields = self.fields().into_iter();
        let answer = fields.fold(Answer::new(status), |answer, (name, value)| answer.field(name, value));
        site::page_with(answer, self.document(title, content).into_bytes())
    }

    /// Returns the fields of the response.
    pub(crate) fn fields(&self) -> Vec<(&'static str, String)> {
        let nonce = &self.nonce;
        // Trusted Types: a script cannot make markup of a text either, even by mistake.
        let script = format!(
            "script-src 'nonce-{nonce}'; connect-src 'self'; media-src 'self'; frame-src 'self'; \
             require-trusted-types-for 'script'; trusted-types 'none'; "
        );
        let policy = format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; img-src 'self' data:; {}form-action 'self'; \
             base-uri 'none'; frame-ancestors 'none'",
            if self.has_script() { &script } else { "" }
        );
        // Without a referrer, a browser reports no origin of a form. A link's token is in its path, which
        // goes to no other page.
        let referrer = (!self.is_of_link).then(|| ("Referrer-Policy", "same-origin".to_owned()));
        let mut fields = vec![
            ("Cache-Control", "no-store".to_owned()),
            ("Content-Security-Policy", policy),
            ("Cross-Origin-Opener-Policy", "same-origin".to_owned()),
            ("Cross-Origin-Resource-Policy", "same-origin".to_owned()),
            ("X-Frame-Options", "DENY".to_owned()),
        ];
        fields.extend(referrer);
        fields
    }

    /// Whether the page has scripts: with an account only, so that the log-in page runs none.
    fn has_script(&self) -> bool {
        self.account.is_some()
    }

    /// Returns the whole page around its content.
    pub(crate) fn document(&self, title: &str, content: &Markup) -> String {
        let page = html! {
            (DOCTYPE)
            html lang=(self.language.code) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (title) " – plimsoll" }
                    link rel="icon" href=(ICON);
                    link rel="stylesheet" href=(assets::path_of("page.css")) nonce=(self.nonce);
                    @if self.has_script() { (assets::scripts(&self.nonce)) }
                }
                body {
                    a.skip href="#content" { (self.language.text("skip")) }
                    @if let Some(account) = &self.account { (self.navigation(account)) }
                    main #content { (MARK) (content) }
                    @if !self.is_of_link { (self.foot()) }
                }
            }
        };
        page.into_string()
    }

    fn navigation(&self, account: &str) -> Markup {
        let link = |section, href: &str, text: &str| {
            let current = (self.section == section).then_some("true");
            html! { a href=(href) aria-current=[current] { (text) } }
        };
        html! {
            header {
                nav aria-label=(self.language.text("navigation")) {
                    (link(Section::Files, "/files/", self.language.text("files")))
                    (link(Section::Shares, "/app/shares", self.language.text("shares")))
                    (link(Section::Trash, "/app/trash", self.language.text("trash")))
                    @if let Some(href) = self.operators_page {
                        @let current = (self.section == Section::Operate).then_some("true");
                        a.operate href=(href) aria-current=[current] { (self.language.text("operate")) }
                    }
                    span.space {}
                    (link(Section::Account, "/app/account", account))
                }
                @if self.has_session {
                    form.log-out method="post" action="/app/logout" {
                        button { (self.language.text("log-out")) }
                    }
                }
            }
        }
    }

    fn foot(&self) -> Markup {
        html! {
            footer {
                form method="post" action="/app/language" aria-label=(self.language.text("language")) {
                    input type="hidden" name="next" value=(self.target);
                    @for language in &*LANGUAGES {
                        @let code = language.code;
                        @let current = (code == self.language.code).then_some("true");
                        button name="language" value=(code) lang=(code) aria-current=[current] {
                            (language.name)
                        }
                    }
                }
            }
        }
    }
}
