//! Finds the known word that a mistyped one probably was.
//!
//! It is not a spelling checker. Invariant: a word that resembles no known one has no suggestion.

/// Returns the word of `known` with the least edit distance from `word`, of at most a third of its length.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let far = word.len().div_ceil(3).max(1);
    let (distance, found) = known.map(|other| (distance(word, other), other)).min()?;
    (distance <= far).then_some(found)
}

/// Returns the edit distance between `a` and `b` (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (above, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (at, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_its_word_and_another_word_finds_none() {
        let near = |word| nearest(word, ["http", "data", "limits.head_time", "access_log"].into_iter());
        assert_eq!(near("htpp"), Some("http"));
        assert_eq!(near("limits.headtime"), Some("limits.head_time"));
        assert_eq!(near("access-log"), Some("access_log"));
        assert_eq!(near("colour"), None);
    }
}
