//! Media types by file extension.
//!
//! It reads no contents. Invariants: a file of unknown type is sent as bytes; text types have the charset
//! UTF-8, except XML, which declares its own.

/// Returns the media type for a file's name.
pub(crate) fn media_type(name: &[u8]) -> &'static str {
    const UNKNOWN: &str = "application/octet-stream";
    let file_name = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
    let Some(dot) = file_name.iter().rposition(|&byte| byte == b'.') else { return UNKNOWN };
    let Ok(ending) = str::from_utf8(&file_name[dot + 1..]) else { return UNKNOWN };
    match mime_guess::from_ext(ending).first_raw() {
        Some("text/html") => "text/html; charset=utf-8",
        Some("text/css") => "text/css; charset=utf-8",
        Some("text/javascript" | "application/javascript") => "text/javascript; charset=utf-8",
        Some("text/markdown") => "text/markdown; charset=utf-8",
        Some("text/csv") => "text/csv; charset=utf-8",
        Some("text/xml") => "text/xml",
        Some("text/plain") => "text/plain; charset=utf-8",
        Some(known) => known,
        None => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_known_by_the_last_ending() {
        assert_eq!(media_type(b"a/b.HTML"), "text/html; charset=utf-8");
        assert_eq!(media_type(b"x.tar.gz"), "application/gzip");
        assert_eq!(media_type(b"photo.jpeg"), "image/jpeg");
        assert_eq!(media_type(b"notes.txt"), "text/plain; charset=utf-8");
    }

    #[test]
    fn an_unknown_extension_is_octet_stream() {
        for name in [&b"f1"[..], b"a.b/file", b"x.zzz", b"x.\xff", b"x."] {
            assert_eq!(media_type(name), "application/octet-stream");
        }
    }
}
