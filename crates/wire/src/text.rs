//! Text shown on a terminal: which characters must not reach it unescaped.
//!
//! Not here: the escaping itself, which depends on the destination of the text.

/// Returns whether a character can command a terminal or change how the characters around it are read:
/// control characters (C1 among them: U+009B begins a sequence as ESC `[` does), marks and overrides of
/// direction (Unicode Standard Annex 9), and characters without width.
#[must_use]
pub fn is_unsafe_to_show(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_and_direction_marks_are_unsafe_to_display() {
        for character in ['\n', '\u{1b}', '\u{7f}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}']
        {
            assert!(is_unsafe_to_show(character), "{character:?}");
        }
        for character in ['a', ' ', '"', 'ä', '\u{a0}', '日', '\u{2010}', '\u{1f600}'] {
            assert!(!is_unsafe_to_show(character), "{character:?}");
        }
    }
}
