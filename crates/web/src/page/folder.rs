//! A folder as a page: its first entries, and links to the others.
//!
//! It lists nothing itself. Invariant: the page shows the entries that the API would list, and no others.

use maud::{Markup, html};
use plimsoll_content::page::{FolderFrame, FolderWords};
use plimsoll_proto::http::Request;
use plimsoll_proto::http::site::{FramedPage, RequestPath};
use plimsoll_wire::http::form_urlencoded::value_of;

use super::frame::{Frame, Section};
use super::notice;
use crate::limits::FOLDER_PAGE_ENTRIES;

/// The frame of a folder of an account.
struct AccountFolder {
    frame: Frame,
    /// The key of the name of the folder at the top.
    root: &'static str,
    notice: Markup,
}

/// Returns the page around a folder that the account `name` lists.
pub(crate) fn of_account(request: &Request<'_>, path: &RequestPath<'_>, name: &str) -> FramedPage {
    let is_shared = path.path.starts_with(b"/shared");
    let (section, root) = if is_shared { (Section::Shared, "shared") } else { (Section::Files, "files") };
    let frame = Frame::new(request, section, Some(name));
    let fields = frame.fields();
    let from = path.query.and_then(|query| value_of(query, "from"));
    let from = from.and_then(|from| std::str::from_utf8(&from).ok()?.parse::<usize>().ok()).unwrap_or(0);
    let notice = notice(&frame, path.query);
    let window = from..from.saturating_add(FOLDER_PAGE_ENTRIES);
    FramedPage { frame: Box::new(AccountFolder { frame, root, notice }), fields, window }
}

impl FolderFrame for AccountFolder {
    fn words(&self) -> FolderWords<'_> {
        let language = self.frame.language;
        FolderWords {
            root: language.text(self.root),
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

    fn document(&self, title: &str, content: &Markup) -> String {
        self.frame.document(title, content)
    }

    fn tools(&self) -> Markup {
        html! { (self.notice) }
    }
}
