//! A folder as a page: its first entries, and links to the others.
//!
//! It lists nothing itself. Invariant: the page shows the entries that the API would list, and no others.

use maud::{Markup, html};
use plimsoll_auth::{Account, Permissions};
use plimsoll_content::ListingRow;
use plimsoll_content::page::{FolderFrame, FolderWords};
use plimsoll_proto::http::Request;
use plimsoll_proto::http::site::{FramedPage, RequestPath};
use plimsoll_wire::http::form_urlencoded::value_of;
use plimsoll_wire::http::target::encoded_path;

use super::frame::{Frame, Section};
use super::texts::Language;
use super::{notice, search};
use crate::limits::FOLDER_PAGE_ENTRIES;

/// The frame of a folder of an account.
struct AccountFolder {
    frame: Frame,
    /// The key of the name of the folder at the top.
    root: &'static str,
    /// The folder's path, percent-encoded.
    href: String,
    may: Permissions,
    notice: Markup,
}

/// Returns the page around a folder that the account lists, with these permissions there.
pub(crate) fn of_account(
    request: &Request<'_>,
    path: &RequestPath<'_>,
    account: &Account,
    may: Permissions,
) -> FramedPage {
    let is_shared = path.path.starts_with(b"/shared");
    let (section, root) = if is_shared { (Section::Shares, "shared") } else { (Section::Files, "files") };
    let frame = Frame::new(request, section, Some(account));
    let fields = frame.fields();
    let from = path.query.and_then(|query| value_of(query, "from"));
    let from = from.and_then(|from| std::str::from_utf8(&from).ok()?.parse::<usize>().ok()).unwrap_or(0);
    let notice = notice(&frame, path.query);
    let href = encoded_path(&path.path);
    let window = from..from.saturating_add(FOLDER_PAGE_ENTRIES);
    FramedPage { frame: Box::new(AccountFolder { frame, root, href, may, notice }), fields, window }
}

/// Returns the words of a folder's table. `root` is the name of the folder at the top.
pub(super) fn words<'a>(language: &'a Language, root: &'a str) -> FolderWords<'a> {
    FolderWords {
        root,
        breadcrumbs: language.text("breadcrumbs"),
        empty: language.text("empty"),
        folders: [language.text("count.folder"), language.text("count.folders")],
        files: [language.text("count.file"), language.text("count.files")],
        name: language.text("name"),
        size: language.text("size"),
        modified: language.text("modified"),
        parent: language.text("parent"),
        previous: language.text("previous"),
        next: language.text("next"),
    }
}

impl FolderFrame for AccountFolder {
    fn words(&self) -> FolderWords<'_> {
        words(self.frame.language, self.frame.language.text(self.root))
    }

    fn document(&self, title: &str, content: &Markup) -> String {
        self.frame.document(title, content)
    }

    fn tools(&self) -> Markup {
        let language = self.frame.language;
        html! {
            (self.notice)
            @if self.may.read { (search::form(language, &self.href, "")) }
            div.tools data-may=(self.rights()) {
                @if self.may.write { (self.upload_form()) (self.folder_form()) }
                @if self.may.read { a.button href="?archive=zip" { (language.text("download.zip")) } }
                (self.filter())
            }
            @if self.has_details() {
                form #entry action="/app/entry" aria-label=(language.text("entry")) {}
            }
        }
    }

    fn tool_column(&self) -> Option<&str> {
        self.has_details().then(|| self.frame.language.text("entry"))
    }

    fn row_tools(&self, row: &ListingRow) -> Markup {
        let label = self.frame.language.fill("entry.of", &[("name", &row.page_text())]);
        html! {
            // A button of a form, because crawlers follow links.
            button.more form="entry" name="at" value={ (self.href) (row.href()) } aria-label=(label) { "⋯" }
        }
    }
}

impl AccountFolder {
    /// Whether an entry has a form on the page of its details.
    fn has_details(&self) -> bool {
        self.may.delete || self.may.share
    }

    /// Returns what the account may do here, for the scripts.
    fn rights(&self) -> String {
        let Permissions { write, delete, share, .. } = self.may;
        let rights = [(write, "write"), (delete, "delete"), (share, "share")];
        let rights: Vec<&str> = rights.into_iter().filter(|(may, _)| *may).map(|(_, right)| right).collect();
        rights.join(" ")
    }

    /// Returns the field that filters the rows. The style shows it only where scripts run.
    fn filter(&self) -> Markup {
        let language = self.frame.language;
        html! {
            label.filter {
                span.unseen { (language.text("filter")) }
                input #filter type="search" placeholder=(language.text("filter")) autocomplete="off"
                    spellcheck="false";
            }
        }
    }

    fn upload_form(&self) -> Markup {
        let language = self.frame.language;
        html! {
            details name="tool" {
                summary.button.primary { (language.text("upload")) }
                form.card method="post" enctype="multipart/form-data" action="?clash=rename" {
                    label { (language.text("upload.files"))
                        input type="file" name="file" multiple required;
                    }
                    p.quiet { (language.text("upload.clash")) }
                    button.primary { (language.text("upload")) }
                    @if self.may.delete {
                        " " button formaction="?clash=replace" { (language.text("upload.replace")) }
                    }
                }
            }
        }
    }

    fn folder_form(&self) -> Markup {
        let language = self.frame.language;
        html! {
            details name="tool" {
                summary.button { (language.text("folder.new")) }
                form.card method="post" action="/app/do" {
                    input type="hidden" name="at" value=(self.href);
                    input type="hidden" name="next" value=(self.frame.target);
                    label { (language.text("name")) input name="name" autocomplete="off" required; }
                    button.primary name="action" value="mkdir" { (language.text("folder.make")) }
                }
            }
        }
    }
}
