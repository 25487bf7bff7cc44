//! HTML pages: a folder's listing, an error, and the start page of a server without accounts.
//!
//! They need no script and no external content, so that a policy may forbid both. Not here: the selection and
//! order of entries (`listing`), and the pages of accounts, which use the same styles. Invariant: no name or
//! detail becomes markup.

mod folder;
mod size;

#[cfg(test)]
mod tests;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use plimsoll_wire::http::status::Status;

pub(crate) use self::folder::{Folder, around_rows, row};
pub use self::folder::{FolderFrame, FolderWords, time};
pub use self::size::rounded as rounded_size;

/// Colours, spaces and sizes, in light and dark.
pub const TOKENS: &str = include_str!("page/tokens.css");
/// The style of listings and plain text.
pub const STYLE: &str = include_str!("page/listing.css");

/// Plimsoll's mark, placed so that its line lies on the page's.
pub const MARK: PreEscaped<&str> = PreEscaped(
    r#"<svg class="mark" viewBox="0 0 64 48" aria-hidden="true">
<path d="M0 24h64M49 24a17 17 0 1 1-34 0 17 17 0 1 1 34 0"/></svg>"#,
);

/// The same for the browser's tab, where no style of ours reaches.
pub const ICON: &str = "data:image/svg+xml,\
    <svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='none' stroke='%233a8fd0'>\
    <path stroke-width='2' d='M0 8h16M13 8a5 5 0 1 1-10 0 5 5 0 1 1 10 0'/></svg>";

/// The frame of a public folder.
pub struct PublicFolder;

impl FolderFrame for PublicFolder {
    fn words(&self) -> FolderWords<'_> {
        FolderWords {
            root: "Files",
            breadcrumbs: "Breadcrumbs",
            empty: "This folder is empty.",
            folders: ["folder", "folders"],
            files: ["file", "files"],
            name: "Name",
            size: "Size",
            modified: "Modified",
            parent: "Parent folder",
            previous: "Previous",
            next: "Next",
        }
    }

    fn document(&self, title: &str, content: &Markup) -> String {
        page(title, content)
    }
}

/// Returns the page of an error. `detail` tells the reader how to proceed.
pub fn error(status: Status, detail: &str) -> Vec<u8> {
    let content = html! {
        h1 { (status.code()) " " (status.reason()) }
        p { (detail) }
        @if status == Status::NOT_FOUND { p { a href="/" { "Go to the start page" } } }
    };
    page(&status.to_string(), &content).into_bytes()
}

/// Returns the start page of a server with neither accounts nor a site under `/`.
pub fn start() -> Vec<u8> {
    let content = html! {
        h1 { "plimsoll" }
        p { "This is a plimsoll file server. No folder is served under this address itself." }
    };
    page("start", &content).into_bytes()
}

fn page(title: &str, content: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " – plimsoll" }
                link rel="icon" href=(ICON);
                style { (PreEscaped(TOKENS)) (PreEscaped(STYLE)) }
            }
            body { main { (MARK) (content) } }
        }
    };
    page.into_string()
}
