//! Rule `sizes`: a file, a function and a line have a maximum size, so that they are easy to read.
//!
//! A function extends from its `fn` to the closing brace at the same indent, so the text must be
//! formatted. Tests have the same caps. The cap of a file has no escape.

use super::source::{Finding, Source};

pub(super) const RULE: &str = "sizes";

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_WIDTH_MAX: usize = 110;

/// Finds sizes over a cap.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = long_lines(source);
    findings.extend(long_functions(source));
    let lines = source.lines.len();
    if lines > FILE_LINES_MAX {
        let advice =
            format!("{lines} lines, {FILE_LINES_MAX} at most: give each noun a file, or the tests one");
        findings.push(source.finding(1, RULE, advice));
    }
    findings
}

fn long_lines(source: &Source) -> Vec<Finding> {
    let wide = source.lines.iter().filter(|line| line.raw.chars().count() > LINE_WIDTH_MAX);
    wide.map(|line| {
        source.finding(line.number, RULE, format!("break the line before column {LINE_WIDTH_MAX}"))
    })
    .collect()
}

fn long_functions(source: &Source) -> Vec<Finding> {
    let starts = (0..source.lines.len()).filter(|at| is_function(&source.lines[*at].code));
    starts
        .map(|at| (at, function_length(source, at)))
        .filter(|(_, length)| *length > FUNCTION_LINES_MAX)
        .map(|(at, length)| {
            (at + 1, format!("{length} lines, {FUNCTION_LINES_MAX} at most: name a part of it"))
        })
        .map(|(line, advice)| source.finding(line, RULE, advice))
        .collect()
}

/// Whether a line begins a function: `fn`, preceded by qualifiers only.
fn is_function(code: &str) -> bool {
    let qualifiers = ["default", "const", "async", "unsafe", "extern", "pub"];
    let mut words = code.split_whitespace().skip_while(|word| {
        qualifiers.contains(word) || word.starts_with("pub(") || word.ends_with(')') && !word.contains("fn")
    });
    words.next() == Some("fn")
}

/// Returns one for a declaration or a one-liner, else the number of lines down to the brace at the same
/// indent.
fn function_length(source: &Source, start: usize) -> usize {
    let indent = indent(&source.lines[start].code);
    let below = &source.lines[start..];
    let end = below.iter().position(|line| {
        let code = line.code.trim();
        let at_home = indent == self::indent(&line.code) && !code.is_empty();
        at_home
            && (code.starts_with('}') && !code.ends_with('{') || code.ends_with(';') || closes_itself(code))
    });
    end.map_or(below.len(), |end| end + 1)
}

fn closes_itself(code: &str) -> bool {
    code.contains('{') && code.ends_with('}')
}

fn indent(code: &str) -> usize {
    code.len() - code.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<usize> {
        let source = Source::new("crates/io/src/lib.rs".to_owned(), text);
        check(&source).into_iter().map(|finding| finding.line).collect()
    }

    fn function(lines: usize) -> String {
        format!(
            "impl A {{\n    pub(crate) async fn a()\n    where\n        A: B,\n    {{\n{}    }}\n}}\n",
            "        b();\n".repeat(lines - 5)
        )
    }

    #[test]
    fn caps_a_function_at_its_last_brace() {
        assert!(findings(&function(FUNCTION_LINES_MAX)).is_empty());
        assert_eq!(findings(&function(FUNCTION_LINES_MAX + 1)), [2]);
    }

    #[test]
    fn a_declaration_is_one_line() {
        let text = format!("trait A {{\n    fn a();\n    fn b() {{}}\n{}}}\n", "    // c\n".repeat(100));
        assert!(findings(&text).is_empty());
    }

    #[test]
    fn caps_a_file_and_a_line() {
        assert_eq!(findings(&"//\n".repeat(FILE_LINES_MAX + 1)), [1]);
        assert!(findings(&"//\n".repeat(FILE_LINES_MAX)).is_empty());
        assert_eq!(findings(&"é".repeat(LINE_WIDTH_MAX + 1)), [1]);
        assert!(findings(&"é".repeat(LINE_WIDTH_MAX)).is_empty());
    }
}
