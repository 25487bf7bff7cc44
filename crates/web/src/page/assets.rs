//! The page's own files: under a path with their hash, so that a browser keeps them for good.
//!
//! They are part of the program. Invariants: a path with another hash is not found, so that a browser never
//! combines the files of two versions. A script imports its neighbours by relative paths, so under that hash.

use std::sync::{Arc, LazyLock};

use maud::{Markup, html};
use plimsoll_content::page::{STYLE, TOKENS};
use plimsoll_proto::http::{Answer, Body};
use plimsoll_wire::http::status::Status;

use super::texts::LANGUAGES;
use crate::refusal::Refusal;

/// The scripts, each with its name, in gzip: build.rs compresses them. A browser that runs modules accepts
/// gzip, so there is no other form of them.
const SCRIPTS: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/scripts.rs"));

/// The script that a page loads. It imports the others.
const MAIN: &str = "main.js";

/// A file of the page.
struct Asset {
    name: String,
    media: &'static str,
    coding: Option<&'static str>,
    bytes: Arc<[u8]>,
}

struct Assets {
    hash: String,
    files: Vec<Asset>,
    /// The paths of the scripts that the main one imports.
    imported: Vec<String>,
}

static ASSETS: LazyLock<Assets> = LazyLock::new(Assets::new);

/// Digits of the hash: enough to tell versions apart.
const HASH_DIGITS: usize = 12;

impl Assets {
    fn new() -> Assets {
        let own = [include_str!("../../assets/css/page.css"), include_str!("../../assets/css/scripted.css")];
        let style = [&[TOKENS, STYLE], &own[..]].concat().concat();
        let media = "text/css; charset=utf-8";
        let style =
            Asset { name: "page.css".to_owned(), media, coding: None, bytes: style.into_bytes().into() };
        let texts = LANGUAGES.iter().map(|language| Asset {
            name: format!("{}.json", language.code),
            media: "application/json",
            coding: None,
            bytes: language.json.as_bytes().into(),
        });
        let scripts = SCRIPTS.iter().map(|(name, bytes)| Asset {
            name: (*name).to_owned(),
            media: "text/javascript; charset=utf-8",
            coding: Some("gzip"),
            bytes: (*bytes).into(),
        });
        let files: Vec<Asset> = std::iter::once(style).chain(texts).chain(scripts).collect();
        let mut hasher = blake3::Hasher::new();
        files.iter().for_each(|file| {
            hasher.update(file.name.as_bytes()).update(&file.bytes);
        });
        let mut hash = hasher.finalize().to_hex().to_string();
        hash.truncate(HASH_DIGITS);
        let imported = SCRIPTS.iter().filter(|(name, _)| *name != MAIN);
        let imported = imported.map(|(name, _)| format!("/app/{hash}/{name}")).collect();
        Assets { hash, files, imported }
    }
}

/// Loads the files before the first request, and before a process forks.
pub(crate) fn load() {
    LazyLock::force(&ASSETS);
}

/// Returns the path of a file.
pub(crate) fn path_of(name: &str) -> String {
    format!("/app/{}/{name}", ASSETS.hash)
}

/// Returns the elements that load the scripts, with the number that admits them. The imports are named too,
/// so that a browser need not read one script to find the next.
pub(crate) fn scripts(nonce: &str) -> Markup {
    html! {
        @for path in &ASSETS.imported { link rel="modulepreload" href=(path) nonce=(nonce); }
        script type="module" src=(path_of(MAIN)) nonce=(nonce) {}
    }
}

/// Returns the response with the file at a path below `/app/`.
///
/// # Errors
/// There is no such file, or not with this hash.
pub(crate) fn answer(path: &str) -> Result<Answer, Refusal> {
    let name = path.strip_prefix(&*ASSETS.hash).and_then(|rest| rest.strip_prefix('/'));
    let file = name.and_then(|name| ASSETS.files.iter().find(|file| file.name == name));
    let file = file.ok_or_else(|| {
        Refusal::new(
            Status::NOT_FOUND,
            "The page has no such part. If the server was updated, reload the page.",
        )
    })?;
    let answer = Answer::new(Status::OK);
    let answer =
        file.coding.into_iter().fold(answer, |answer, coding| answer.field("Content-Encoding", coding));
    Ok(answer
        .field("Content-Type", file.media)
        .field("Cache-Control", "public, max-age=31536000, immutable")
        .field("X-Content-Type-Options", "nosniff")
        .field("Cross-Origin-Resource-Policy", "same-origin")
        .body(Body::Shared(Arc::clone(&file.bytes))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ASSET_BYTES_MAX;

    #[test]
    fn the_files_are_small_and_load_nothing_from_elsewhere() {
        assert!(ASSETS.files.iter().map(|file| file.bytes.len()).sum::<usize>() < ASSET_BYTES_MAX);
        let sources = sources().into_iter();
        let texts = ASSETS.files.iter().filter(|file| file.coding.is_none());
        let texts = texts.map(|file| (file.name.clone(), String::from_utf8_lossy(&file.bytes).into_owned()));
        for (name, text) in texts.chain(sources) {
            let text = text.replace("http://www.w3.org/2000/svg", "").replace("https://,", "");
            assert!(!text.contains("http:") && !text.contains("https:"), "{name}");
            // In a script, it is part of a comment about types.
            assert!(!text.contains("@import") || name.ends_with(".js"), "{name}");
        }
    }

    /// Returns the scripts as they are written.
    fn sources() -> Vec<(String, String)> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/js");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.map(|file| (file.display().to_string(), std::fs::read_to_string(file).unwrap())).collect()
    }

    #[test]
    fn no_script_makes_markup_or_code_of_a_text() {
        let forbidden = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "createContextualFragment",
            "eval(",
            "Function(",
            "setHTMLUnsafe",
        ];
        let sources = sources();
        assert_eq!(sources.len(), SCRIPTS.len());
        for (file, source) in sources {
            for word in forbidden {
                assert!(!source.contains(word), "{file} has {word}");
            }
            assert!(source.lines().count() < 300, "{file} is too long to read at once");
            // build.rs leaves out comments by their lines.
            let is_whole = |line: &str| line.matches('`').count().is_multiple_of(2);
            assert!(source.lines().all(is_whole), "{file} has a text of several lines");
        }
    }
}
