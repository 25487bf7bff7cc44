//! Rule `unsafety`: unsafe code is in two crates only, and each of its blocks has a comment on why it is
//! sound.
//!
//! Every other crate forbids it at its root: the compiler enforces that, and this rule only checks that
//! the attribute is there. A reason is a `SAFETY:` comment that ends within three lines above the block.

use super::lexer::words;
use super::source::{Finding, Source};

pub(super) const RULE: &str = "unsafety";

const PLACES: [&str; 2] = ["crates/engine", "crates/channel"];
const FORBID: &str = "#![forbid(unsafe_code)]";
const REASON_LINES_ABOVE_MAX: usize = 3;

/// Finds unsafe code in the wrong crate, a root that permits it, and a block without its reason.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    if source.is_under(&PLACES) {
        return unexplained(source);
    }
    let advice = "move it to crates/engine or crates/channel, behind a safe function";
    let mut findings: Vec<Finding> =
        unsafe_lines(source).map(|at| source.finding(at + 1, RULE, advice)).collect();
    if is_root(&source.path) && !source.lines.iter().any(|line| line.code.trim() == FORBID) {
        findings.push(source.finding(1, RULE, format!("add `{FORBID}`")));
    }
    findings
}

/// Returns the indexes of the lines with the keyword.
fn unsafe_lines(source: &Source) -> impl Iterator<Item = usize> {
    let numbered = source.lines.iter().enumerate();
    numbered.filter(|(_, line)| words(&line.code).any(|(_, word)| word == "unsafe")).map(|(at, _)| at)
}

/// Whether a path is a crate's root, `main` or `lib`. Fuzz targets are roots too, but their macro is not
/// ours.
fn is_root(path: &str) -> bool {
    let ours = ["crates/", "tests/", "xtask/"].iter().any(|place| path.starts_with(place));
    ours && (path.ends_with("src/lib.rs") || path.ends_with("src/main.rs"))
}

fn unexplained(source: &Source) -> Vec<Finding> {
    let opens = |at: &usize| opens_a_duty(&source.lines[*at].code);
    let bare = unsafe_lines(source).filter(opens).filter(|at| !is_explained(source, *at));
    bare.map(|at| source.finding(at + 1, RULE, "write `// SAFETY:` above it: why this is sound here"))
        .collect()
}

/// Whether a line claims soundness, as blocks and impls do. An `unsafe fn` passes the duty to its
/// caller.
fn opens_a_duty(code: &str) -> bool {
    code.match_indices("unsafe").any(|(at, keyword)| {
        let after = code[at + keyword.len()..].trim_start();
        after.is_empty() || after.starts_with('{') || after.starts_with("impl")
    })
}

fn is_explained(source: &Source, at: usize) -> bool {
    let nearest = (at.saturating_sub(REASON_LINES_ABOVE_MAX)..=at).rev();
    let comments = nearest.filter(|at| !source.lines[*at].comment.trim().is_empty());
    comments.into_iter().next().is_some_and(|last| comment_block(source, last).contains("SAFETY:"))
}

/// Returns the comment that ends on this line, from its first line on.
fn comment_block(source: &Source, last: usize) -> String {
    let upwards = source.lines[..=last].iter().rev();
    upwards
        .map_while(|line| Some(line.comment.as_str()).filter(|comment| !comment.trim().is_empty()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<usize> {
        check(&Source::new(path.to_owned(), text)).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn finds_it_outside_the_two_crates() {
        assert_eq!(findings("crates/wire/src/ftp.rs", "fn a() {\n    unsafe { b() }\n}\n"), [2]);
        assert!(findings("crates/wire/src/ftp.rs", "// unsafe\nlet unsafe_code = \"unsafe\";\n").is_empty());
    }

    #[test]
    fn a_root_must_forbid_it() {
        assert_eq!(findings("crates/wire/src/lib.rs", "//! Wire.\n"), [1]);
        assert!(findings("crates/wire/src/lib.rs", "//! Wire.\n#![forbid(unsafe_code)]\n").is_empty());
        assert_eq!(findings("crates/wire/src/lib.rs", "// #![forbid(unsafe_code)]\n"), [1]);
        assert!(findings("crates/engine/src/lib.rs", "//! Engines.\n").is_empty());
    }

    #[test]
    fn a_block_says_why() {
        let path = "crates/engine/src/ring/mod.rs";
        assert_eq!(findings(path, "fn a() {\n    unsafe { b() }\n}\n"), [2]);
        assert!(findings(path, "// SAFETY: the ring outlives it.\nlet c = unsafe { b() };\n").is_empty());
        assert!(
            findings(
                path,
                "// SAFETY: one\n// two\n// three\n// four\n// five\nlet c =\n    unsafe { b() };\n"
            )
            .is_empty()
        );
        assert_eq!(findings(path, "// SAFETY: far\n\n\n\n\nunsafe impl Send for A {}\n"), [6]);
        assert!(findings(path, "unsafe fn a();\n").is_empty());
    }
}
