//! Rule `prose`: comments and Markdown use the field's terms, and name the subject of a sentence.
//!
//! `xtask/words/house_words.txt` lists the phrases. A sentence or clause must not begin with a pronoun
//! such as `who` or `whatever` in place of a noun; questions, headings and table cells
//! may. The rule reads no code:
//! neither fenced blocks nor text in backticks.

use super::allowed::Allowed;
use super::source::{Finding, Source, SourceLine};

pub(super) const RULE: &str = "prose";

const HOUSE_WORDS: &str = include_str!("../../words/house_words.txt");

/// Pronouns that hide the subject at the start of a clause.
const HIDDEN: [&str; 11] = [
    "who",
    "whom",
    "whose",
    "whoever",
    "whatever",
    "whichever",
    "anyone",
    "everyone",
    "someone",
    "anybody",
    "everybody",
];
/// `what` begins a clause that hides its subject, except before these words, which begin a plain one.
const PLAIN_AFTER_WHAT: [&str; 3] = ["follows", "happens", "is"];

/// A phrase in lower case, as words, and its replacement. No replacement: the phrase is permitted.
pub(super) struct Phrase {
    words: Vec<String>,
    instead: Option<String>,
}

/// Reads the list of phrases.
pub(super) fn house_words() -> Vec<Phrase> {
    HOUSE_WORDS.lines().filter_map(phrase).collect()
}

fn phrase(line: &str) -> Option<Phrase> {
    let line = line.trim();
    let words = |text: &str| text.split_whitespace().map(str::to_lowercase).collect();
    match line.strip_prefix('!') {
        Some(permitted) => Some(Phrase { words: words(permitted), instead: None }),
        None if line.starts_with('#') => None,
        None => {
            let (phrase, instead) = line.split_once(": ")?;
            Some(Phrase { words: words(phrase), instead: Some(instead.to_owned()) })
        }
    }
}

/// Finds house words and hidden subjects in every file that has prose.
pub(super) fn check(sources: &[Source], allowed: &mut Allowed) -> Vec<Finding> {
    let phrases = house_words();
    let found = sources.iter().flat_map(|source| check_one(source, &phrases));
    found.filter(|finding| !allowed.permits_prose(&finding.path)).collect()
}

/// Finds house words and hidden subjects in one line of text, such as a message.
pub(super) fn faults_of_text(
    source: &Source,
    (line, text): (usize, &str),
    phrases: &[Phrase],
) -> Vec<Finding> {
    let mut block = Block::new();
    append(&mut block, line, text.trim());
    faults(source, &block, phrases)
}

fn check_one(source: &Source, phrases: &[Phrase]) -> Vec<Finding> {
    blocks(source).iter().flat_map(|block| faults(source, block, phrases)).collect()
}

/// A word in lower case, the end of a sentence, or the end of a clause.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    /// `.`, or the start of a list item or a block.
    Stop,
    /// `;` or `:`.
    Clause,
    Question,
    /// Other punctuation, and code in backticks.
    Other,
}

type Block = Vec<(usize, Token)>;

/// Returns the paragraphs of a file: of Rust its comments, of Markdown its text without headings.
fn blocks(source: &Source) -> Vec<Block> {
    let is_markdown = source.path.ends_with(".md");
    if !is_markdown && !source.is_rust() {
        return Vec::new();
    }
    let (mut blocks, mut is_code) = (vec![Block::new()], false);
    for line in &source.lines {
        let text = if is_markdown { Some(line.raw.trim()) } else { comment(line) };
        let is_fence = text.is_some_and(|text| text.starts_with("```"));
        is_code ^= is_fence;
        let is_heading = text.is_some_and(|text| text.starts_with('#'));
        match text.filter(|text| !text.is_empty() && !is_fence && !is_code && !is_heading) {
            Some(text) => blocks.last_mut().into_iter().for_each(|block| append(block, line.number, text)),
            None => blocks.push(Block::new()),
        }
    }
    blocks
}

fn comment(line: &SourceLine) -> Option<&str> {
    let comment = line.comment.trim();
    let text = comment.strip_prefix("//")?.trim_start_matches(['/', '!']).trim();
    Some(text)
}

fn append(block: &mut Block, number: usize, text: &str) {
    let is_item = text.starts_with(['*', '-']) || text.starts_with(|c: char| c.is_ascii_digit());
    if block.is_empty() || is_item {
        block.push((number, Token::Stop));
    }
    for (place, part) in text.split('`').enumerate() {
        if place % 2 == 1 {
            block.push((number, Token::Other));
        } else {
            tokens(part, |token| block.push((number, token)));
        }
    }
}

fn tokens(text: &str, mut push: impl FnMut(Token)) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
        let (token, length) = match first {
            _ if length > 0 => (Some(Token::Word(rest[..length].to_lowercase())), length),
            '.' | '!' => (Some(Token::Stop), 1),
            ';' | ':' => (Some(Token::Clause), 1),
            '?' => (Some(Token::Question), 1),
            ' ' | '*' | '_' => (None, 1),
            other => (Some(Token::Other), other.len_utf8()),
        };
        token.into_iter().for_each(&mut push);
        rest = &rest[length..];
    }
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || ['\'', '-', '/'].contains(&character)
}

fn faults(source: &Source, block: &Block, phrases: &[Phrase]) -> Vec<Finding> {
    let house = (0..block.len()).filter_map(|start| {
        let found: Vec<&Phrase> = phrases.iter().filter(|p| begins_with(&block[start..], &p.words)).collect();
        let instead = found.iter().map(|phrase| phrase.instead.as_ref()).collect::<Option<Vec<_>>>()?;
        let phrase = found.first()?.words.join(" ");
        Some(source.finding(block[start].0, RULE, format!("`{phrase}`: write {}", instead.first()?)))
    });
    let hidden = (1..block.len()).filter(|&at| hides_its_subject(block, at)).map(|at| {
        let advice = "this clause hides its subject: name it (the client, the caller, the task, the file)";
        source.finding(block[at].0, RULE, advice)
    });
    house.chain(hidden).collect()
}

fn begins_with(block: &[(usize, Token)], words: &[String]) -> bool {
    words.len() <= block.len()
        && words.iter().zip(block).all(|(word, (_, token))| matches!(token, Token::Word(w) if w == word))
}

/// Whether the word at `at` begins a clause that is no question, and stands for its subject.
fn hides_its_subject(block: &Block, at: usize) -> bool {
    let begins = matches!(block[at - 1].1, Token::Stop | Token::Clause);
    let Token::Word(word) = &block[at].1 else { return false };
    let next = match block.get(at + 1) {
        Some((_, Token::Word(next))) => next.as_str(),
        _ => return false,
    };
    let is_hidden = HIDDEN.contains(&word.as_str())
        || (word == "what" && !PLAIN_AFTER_WHAT.contains(&next))
        || (word == "those" && next == "who");
    let end = block[at..].iter().find(|(_, token)| matches!(token, Token::Stop | Token::Question));
    begins && is_hidden && !matches!(end, Some((_, Token::Question)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let source = Source::new(path.to_owned(), text);
        check_one(&source, &house_words()).into_iter().map(|finding| finding.advice).collect()
    }

    #[test]
    fn a_house_word_is_found_and_replaced() {
        let path = "crates/io/src/lib.rs";
        assert_eq!(findings(path, "// It is broken off."), ["`broken off`: write aborted, interrupted"]);
        assert_eq!(findings(path, "/// Is told\n").len(), 1);
        assert_eq!(findings(path, "// What comes is at\n// hand.\n").len(), 2);
        assert_eq!(findings("docs/a.md", "| a | the Desk |\n"), ["`desk`: write RPC server"]);
    }

    #[test]
    fn a_hidden_subject_is_found() {
        for text in [
            "Who asks waits.",
            "It waits; whoever comes waits too.",
            "* What comes is kept.",
            "Rules: those who wait are served.",
        ] {
            assert!(!findings("docs/a.md", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn plain_sentences_and_code_are_left_alone() {
        for text in [
            "The client, who waits, is served.",
            "Who decides that?",
            "What happens then is logged.",
            "What is left is sent.",
            "# Who may sign up\n",
            "Call `told` and `the desk`.",
            "```\nwho asks\n```\n",
            "It is served to anyone.",
            "The system call fails.",
            "A helpdesk, as foretold.",
            "| what it does | who may do it |",
        ] {
            assert_eq!(findings("docs/a.md", text), [""; 0], "{text}");
        }
        assert!(findings("crates/io/src/lib.rs", "let told = \"nobody\";").is_empty());
        assert!(findings("packaging/nginx.conf", "# nobody").is_empty());
    }
}
