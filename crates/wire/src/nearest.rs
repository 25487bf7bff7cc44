//! Finds the known word that a mistyped one probably was.
//!
//! It is not a spelling checker. Invariant: a word that resembles no known one has no suggestion.

use std::cmp::Reverse;

/// Returns the word of `known` with the least edit distance from `word`, of at most a third of its length.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance_max = word.chars().count().div_ceil(3);
    let known = known.into_iter().map(|other| (edit_distance(word, other), other));
    // Of words at the same distance, that with the same beginning is more likely.
    let rank = |(distance, other): &(usize, &str)| (*distance, Reverse(common_prefix(word, other)));
    known.min_by_key(rank).filter(|(distance, _)| *distance <= distance_max).map(|(_, other)| other)
}

fn common_prefix(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
}

/// Returns `did you mean "WORD"?` for the nearest of the known words, or the list of all.
#[must_use]
pub fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("there are {}", known.join(", ")),
    }
}

/// Returns the edit distance (Levenshtein): each step inserts, removes or replaces a character.
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (at, removed) in (1..).zip(from.chars()) {
        let mut row = vec![at];
        for (column, inserted) in to.iter().enumerate() {
            let replaced = last[column] + usize::from(removed != *inserted);
            row.push(replaced.min(last[column + 1] + 1).min(row[column] + 1));
        }
        last = row;
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_word_finds_its_word_and_another_word_gets_the_list() {
        let known = ["repetitions", "gap", "saturation-http"];
        assert_eq!(nearest("repetitons", known), Some("repetitions"));
        assert_eq!(nearest("usres", ["cores", "users"]), Some("users"));
        let keys = ["http", "data", "limits.head_time", "access_log"];
        assert_eq!(nearest("limits.headtime", keys), Some("limits.head_time"));
        assert_eq!((nearest("access-log", keys), nearest("colour", keys)), (Some("access_log"), None));
        assert_eq!(nearest("saturation-htp", known), Some("saturation-http"));
        assert_eq!(suggestion("colour", known), "there are repetitions, gap, saturation-http");
        assert_eq!((edit_distance("kitten", "sitting"), edit_distance("", "ab")), (3, 2));
    }
}
