//! QR codes as inline SVG.
//!
//! `qrcodegen` computes the modules. Invariant: the picture needs no style and no script, and is black on
//! white in dark pages, too, because cameras expect that.

use std::fmt::Write as _;

use maud::{Markup, html};
use qrcodegen::{QrCode, QrCodeEcc};

use crate::limits::QR_BYTES_MAX;

/// Modules of the quiet zone on each side (ISO/IEC 18004).
const QUIET: i32 = 4;

/// Returns the QR code of a text; nothing if the text is too long for a camera.
pub(super) fn code(text: &str, label: &str) -> Markup {
    let code = Some(text).filter(|text| text.len() <= QR_BYTES_MAX);
    let code = code.and_then(|text| QrCode::encode_text(text, QrCodeEcc::Medium).ok());
    let Some(code) = code else { return html! {} };
    let side = code.size() + 2 * QUIET;
    html! {
        svg.qr viewBox={ "0 0 " (side) " " (side) } width="196" height="196" role="img" aria-label=(label)
            shape-rendering="crispEdges" {
            rect width=(side) height=(side) fill="#fff" {}
            path fill="#000" d=(modules(&code)) {}
        }
    }
}

/// Returns the dark modules as a path: a rectangle for each row of them.
fn modules(code: &QrCode) -> String {
    let mut path = String::new();
    for y in 0..code.size() {
        let mut x = 0;
        while x < code.size() {
            let length = (x..code.size()).take_while(|at| code.get_module(*at, y)).count();
            let length = i32::try_from(length).unwrap_or(0);
            if length > 0 {
                // Writing to a string cannot fail.
                let _ = write!(path, "M{} {}h{length}v1h-{length}z", x + QUIET, y + QUIET);
            }
            x += length + 1;
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_its_finder_patterns_in_a_quiet_zone() {
        let svg = code("https://files.example/s/00112233445566778899aabbccddeeff", "label").into_string();
        assert!(svg.contains("viewBox=\"0 0 41 41\"") && svg.contains("aria-label=\"label\""), "{svg}");
        // The first row has the upper edges of two patterns, seven modules long.
        assert!(svg.contains("d=\"M4 4h7v1h-7z") && svg.contains("M30 4h7v1h-7z"), "{svg}");
        assert_eq!(code(&"a".repeat(QR_BYTES_MAX + 1), "").into_string(), "");
    }
}
