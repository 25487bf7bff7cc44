//! Exceptions, each next to the line that it excuses: `tidy-allow(rule): reason` in a plain comment.
//!
//! It covers its own line and the next one. It must name a rule, give a reason, and excuse a finding: an
//! escape that outlives its cause is a finding, and has no escape of its own.

use super::source::{Finding, Source, SourceLine};

const RULE: &str = "escape";
const MARK: &str = "tidy-allow(";

struct Escape<'a> {
    source: &'a Source,
    line: usize,
    rule: String,
    reason: String,
}

/// Returns the findings that no escape covers, and those about the escapes themselves.
pub(super) fn apply(sources: &[Source], findings: Vec<Finding>, rules: &[&str]) -> Vec<Finding> {
    let escapes: Vec<Escape<'_>> = sources.iter().flat_map(escapes).collect();
    let idle: Vec<Finding> = escapes.iter().filter_map(|escape| fault(escape, &findings, rules)).collect();
    let mut left: Vec<Finding> = findings
        .into_iter()
        .filter(|finding| !escapes.iter().any(|escape| covers(escape, finding)))
        .collect();
    left.extend(idle);
    left
}

fn escapes(source: &Source) -> Vec<Escape<'_>> {
    source.lines.iter().filter_map(|line| escape(source, line)).collect()
}

fn escape<'a>(source: &'a Source, line: &SourceLine) -> Option<Escape<'a>> {
    let (before, after) = line.comment.split_once(MARK)?;
    let before = before.trim_end();
    let opens = before.ends_with('#') || before.ends_with("<!--") || (before.trim_start() == "//");
    let (rule, reason) = after.split_once(')')?;
    let reason = reason.trim_end_matches("-->").trim_start_matches(':').trim();
    opens.then(|| Escape { source, line: line.number, rule: rule.to_owned(), reason: reason.to_owned() })
}

fn covers(escape: &Escape<'_>, finding: &Finding) -> bool {
    let near = escape.line == finding.line || escape.line + 1 == finding.line;
    near && escape.source.path == finding.path && escape.rule == finding.rule
}

fn fault(escape: &Escape<'_>, findings: &[Finding], rules: &[&str]) -> Option<Finding> {
    let advice = if !rules.contains(&escape.rule.as_str()) {
        format!("there is no rule `{}`; name one of: {}", escape.rule, rules.join(", "))
    } else if escape.reason.is_empty() {
        "say why after a colon".to_owned()
    } else if !findings.iter().any(|finding| covers(escape, finding)) {
        "it excuses nothing any more; remove it".to_owned()
    } else {
        return None;
    };
    Some(escape.source.finding(escape.line, RULE, advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str, line: usize) -> Vec<&'static str> {
        let source = Source::new("crates/io/src/lib.rs".to_owned(), text);
        let findings = vec![source.finding(line, "words", "")];
        apply(&[source], findings, &["words"]).iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn covers_its_line_and_the_next() {
        assert!(left("// tidy-allow(words): quoted from the RFC\nbad\n", 2).is_empty());
        assert!(left("bad // tidy-allow(words): quoted from the RFC\n", 1).is_empty());
        assert_eq!(left("// tidy-allow(words): quoted from the RFC\n\nbad\n", 3), ["words", "escape"]);
    }

    #[test]
    fn needs_a_rule_a_reason_and_a_plain_comment() {
        assert_eq!(left("bad // tidy-allow(wrods): typing error\n", 1), ["words", "escape"]);
        assert_eq!(left("bad // tidy-allow(words)\n", 1), ["escape"]);
        assert_eq!(left("//! tidy-allow(words): prose about it\nbad\n", 2), ["words"]);
    }
}
