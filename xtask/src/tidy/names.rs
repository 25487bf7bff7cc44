//! Rule `names`: the name alone says what a type, module, function or local variable is.
//!
//! `xtask/words/empty_names.txt` lists the names that say nothing, each with a replacement. The rule reads
//! declarations, not uses, and whole names: `ToldError` is not `Told`.

use super::allowed::Allowed;
use super::lexer::{line_of, words};
use super::locals;
use super::source::{Finding, Source};

pub(super) const RULE: &str = "names";

const EMPTY_NAMES: &str = include_str!("../../words/empty_names.txt");
const TYPES: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// A name that says nothing, and its replacement.
struct Empty {
    kind: &'static str,
    name: &'static str,
    instead: &'static str,
}

/// A name that a file declares.
struct Declared<'a> {
    line: usize,
    kind: &'static str,
    name: &'a str,
}

/// Finds names without meaning, except those that are still allowed.
pub(super) fn check(sources: &[Source], allowed: &mut Allowed) -> Vec<Finding> {
    let empty: Vec<Empty> = EMPTY_NAMES.lines().filter_map(empty).collect();
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let code = source.code();
        for declared in declared(source).into_iter().chain(bound(&code)) {
            let found = empty.iter().find(|e| e.kind == declared.kind && e.name == declared.name);
            if let Some(found) = found
                && !allowed.permits_name(&source.path, found.kind, found.name)
            {
                let advice = format!("{} `{}` says nothing: {}", found.kind, found.name, found.instead);
                findings.push(source.finding(declared.line, RULE, advice));
            }
        }
    }
    findings
}

fn empty(line: &'static str) -> Option<Empty> {
    let (declaration, instead) = line.split_once(": ")?;
    let (kind, name) = declaration.split_once(' ')?;
    let kinds = ["type", "module", "function", "local"];
    kinds.contains(&kind).then_some(Empty { kind, name, instead })
}

fn declared(source: &Source) -> Vec<Declared<'_>> {
    let path = source.path.trim_end_matches(".rs").split('/');
    let of_path = path.map(|name| Declared { line: 1, kind: "module", name });
    let of_lines = source.lines.iter().filter_map(|line| {
        let (kind, name) = declaration(&line.code)?;
        Some(Declared { line: line.number, kind, name })
    });
    of_path.chain(of_lines).collect()
}

/// Returns the local variables, and the parameters of functions and closures.
fn bound(code: &str) -> Vec<Declared<'_>> {
    let names = locals::bound(code).into_iter();
    let declared = names.map(|(at, name)| Declared { line: line_of(code, at), kind: "local", name });
    declared.collect()
}

/// Returns the kind and the name of the item that a line of code declares.
fn declaration(code: &str) -> Option<(&'static str, &str)> {
    let mut words = words(code).map(|(_, word)| word);
    let kind = words.find_map(|word| match word {
        "mod" => Some("module"),
        "fn" => Some("function"),
        _ => TYPES.contains(&word).then_some("type"),
    })?;
    Some((kind, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let sources = [Source::new(path.to_owned(), text)];
        let found = check(&sources, &mut Allowed::new(&sources));
        found.into_iter().map(|finding| finding.advice).collect()
    }

    #[test]
    fn finds_an_empty_name_in_path_and_text() {
        let path = "crates/io/src/lib.rs";
        assert_eq!(findings("crates/io/src/util.rs", ""), ["module `util` says nothing: its contents"]);
        assert_eq!(findings("crates/io/src/common/mod.rs", "").len(), 1);
        assert_eq!(findings(path, "pub(crate) mod helpers;").len(), 1);
        assert_eq!(findings(path, "pub struct Told<'a> {").len(), 1);
        assert_eq!(
            findings(path, "    async fn go_on(self) {"),
            ["function `go_on` says nothing: resume, continue_…"]
        );
    }

    #[test]
    fn finds_an_empty_local_name() {
        let path = "tests/tests/behaviours/uploads.rs";
        for text in ["let told = a();", "for who in a {", "a(|way| way.b())", "fn a(what: &str) {}"] {
            assert_eq!(findings(path, text).len(), 1, "{text}");
        }
    }

    #[test]
    fn leaves_other_names_and_uses_alone() {
        for text in
            ["mod utility;", "// mod util;", "struct ToldError;", "let whole = told();", "type Meta = Told;"]
        {
            assert_eq!(findings("crates/io/src/lib.rs", text), [""; 0], "{text}");
        }
    }
}
