//! Rule `glossary`: one word for each thing, in text for readers.
//!
//! GLOSSARY.md has the list: in its tables, a word in backticks in the third column is banned. The rule
//! reads README, ARCHITECTURE and docs/. It skips code in fences and in backticks, because a program's
//! own words cannot be changed here.

use super::source::{Finding, Source};

pub(super) const RULE: &str = "glossary";

const GLOSSARY: &str = "GLOSSARY.md";
const READ: [&str; 3] = ["README.md", "ARCHITECTURE.md", "docs"];

/// A banned word, and its replacement.
struct Banned {
    word: String,
    instead: String,
}

/// Finds banned words in the documents.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let banned: Vec<Banned> =
        sources.iter().filter(|source| source.path == GLOSSARY).flat_map(banned).collect();
    let documents = sources.iter().filter(|source| source.is_under(&READ) && source.path.ends_with(".md"));
    documents.flat_map(|document| check_document(document, &banned)).collect()
}

fn banned(glossary: &Source) -> Vec<Banned> {
    glossary.lines.iter().flat_map(|line| banned_by_row(&line.raw)).collect()
}

fn banned_by_row(row: &str) -> Vec<Banned> {
    let cells: Vec<&str> = row.trim().trim_matches('|').split('|').map(str::trim).collect();
    let [word, _, not] = cells[..] else { return Vec::new() };
    let quoted = not.split('`').skip(1).step_by(2);
    quoted.map(|banned| Banned { word: banned.to_lowercase(), instead: word.to_owned() }).collect()
}

fn check_document(document: &Source, banned: &[Banned]) -> Vec<Finding> {
    let mut is_code = false;
    let mut findings = Vec::new();
    for line in &document.lines {
        let is_fence = line.raw.trim_start().starts_with("```");
        is_code ^= is_fence;
        if !is_code && !is_fence {
            let said = banned.iter().filter(|banned| says(&line.raw, &banned.word));
            findings.extend(
                said.map(|b| {
                    document.finding(line.number, RULE, format!("`{}`: we say {}", b.word, b.instead))
                }),
            );
        }
    }
    findings
}

/// Whether a line of prose contains a word, or several in a row.
fn says(line: &str, word: &str) -> bool {
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" . ").to_lowercase();
    prose.match_indices(word).any(|(at, _)| {
        let touches = |c: char| c.is_alphanumeric() || c == '_';
        !prose[..at].ends_with(touches) && !prose[at + word.len()..].starts_with(touches)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "
| word | means | not |
| --- | --- | --- |
| answer | what goes back | `reply`, `temp file` |
| hot set | kept files | cache |
";

    fn findings(path: &str, text: &str) -> Vec<String> {
        let sources = [Source::new(GLOSSARY.to_owned(), TABLE), Source::new(path.to_owned(), text)];
        check(&sources).into_iter().map(|finding| finding.advice).collect()
    }

    #[test]
    fn finds_a_banned_word_and_says_ours() {
        assert_eq!(findings("README.md", "The Reply is late."), ["`reply`: we say answer"]);
        assert_eq!(findings("docs/write.md", "no temp file"), ["`temp file`: we say answer"]);
    }

    #[test]
    fn leaves_code_other_words_and_other_files_alone() {
        for text in ["replying", "`reply`", "```\nreply\n```\n", "the cache"] {
            assert!(findings("README.md", text).is_empty(), "{text}");
        }
        assert!(findings("CHANGELOG.md", "reply").is_empty());
    }
}
