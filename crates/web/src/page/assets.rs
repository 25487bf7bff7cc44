//! The page's own files: under a path with their hash, so that a browser keeps them for good.
//!
//! They are part of the program. Invariant: a path with another hash is not found, so that a browser never
//! combines the files of two versions.

use std::sync::{Arc, LazyLock};

use plimsoll_content::page::{STYLE, TOKENS};
use plimsoll_proto::http::{Answer, Body};
use plimsoll_wire::http::status::Status;

use crate::refusal::Refusal;

/// A file of the page.
struct Asset {
    name: &'static str,
    media: &'static str,
    bytes: Arc<[u8]>,
}

struct Assets {
    hash: String,
    files: [Asset; 1],
}

static ASSETS: LazyLock<Assets> = LazyLock::new(Assets::new);

/// Digits of the hash: enough to tell versions apart.
const HASH_DIGITS: usize = 12;

impl Assets {
    fn new() -> Assets {
        let style = [TOKENS, STYLE, include_str!("../../assets/css/page.css")].concat();
        let files =
            [Asset { name: "page.css", media: "text/css; charset=utf-8", bytes: style.into_bytes().into() }];
        let mut hasher = blake3::Hasher::new();
        files.iter().for_each(|file| {
            hasher.update(file.name.as_bytes()).update(&file.bytes);
        });
        let mut hash = hasher.finalize().to_hex().to_string();
        hash.truncate(HASH_DIGITS);
        Assets { hash, files }
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
    Ok(Answer::new(Status::OK)
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
        for file in &ASSETS.files {
            let text = String::from_utf8_lossy(&file.bytes).replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("@import"));
        }
    }
}
