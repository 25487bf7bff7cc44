//! Rule `links`: a relative link of a document leads to a file of the repository, and to a heading that
//! it has.
//!
//! It reads Markdown, and paths of documents in comments (`docs/design/uploads.md`). It requests nothing
//! from the network: links with a scheme are not checked.

use super::source::{Finding, Source};

pub(super) const RULE: &str = "links";

/// Finds links that lead nowhere.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        for (line, target) in links(source) {
            if let Some(advice) = fault(sources, source, &target) {
                findings.push(source.finding(line, RULE, format!("`{target}`: {advice}")));
            }
        }
    }
    findings
}

/// Returns the relative links of a document, or the documents that a file of Rust mentions.
fn links(source: &Source) -> Vec<(usize, String)> {
    let is_markdown = source.path.ends_with(".md");
    let mut links = Vec::new();
    for line in &source.lines {
        let targets: Vec<&str> = if is_markdown {
            line.raw.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect()
        } else if source.is_rust() {
            let words = line.comment.split(|c: char| c.is_whitespace() || "()[]`,;:\"".contains(c));
            words.filter(|word| word.starts_with("docs/") && word.contains(".md")).collect()
        } else {
            Vec::new()
        };
        let relative = targets.into_iter().filter(|target| !target.contains("://"));
        links.extend(relative.map(|target| (line.number, target.trim_end_matches('.').to_owned())));
    }
    links
}

fn fault(sources: &[Source], source: &Source, target: &str) -> Option<&'static str> {
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let folder = if source.is_rust() { "" } else { source.path.rsplit_once('/').map_or("", |(f, _)| f) };
    let path = if file.is_empty() { source.path.clone() } else { join(folder, file) };
    let is_folder = sources.iter().any(|other| other.path.starts_with(&format!("{path}/")));
    let Some(found) = sources.iter().find(|other| other.path == path) else {
        return (!is_folder).then_some("there is no such file");
    };
    let has_anchor = |anchor: &str| found.lines.iter().any(|line| heading(&line.raw) == Some(slug(anchor)));
    anchor.filter(|anchor| !has_anchor(anchor)).map(|_| "the file has no such heading")
}

/// Resolves `..` in a relative path.
fn join(folder: &str, file: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in file.trim_end_matches('/').split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            other => parts.push(other),
        }
    }
    parts.join("/")
}

/// Returns the anchor of a heading.
fn heading(line: &str) -> Option<String> {
    line.strip_prefix('#').map(|rest| slug(rest.trim_start_matches('#').trim()))
}

/// Returns a heading's anchor by the rules of GitHub: lower case, without punctuation, blanks as dashes.
fn slug(text: &str) -> String {
    let kept = text.chars().filter(|&c| c.is_alphanumeric() || c == ' ' || c == '-' || c == '_');
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        let document =
            Source::new("docs/design/uploads.md".to_owned(), "# Uploads\n\n## On disk, and in `memory`\n");
        check(&[document, Source::new(path.to_owned(), text)]).len()
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        assert_eq!(findings("README.md", "[a](docs/design/none.md)"), 1);
        assert_eq!(findings("docs/a.md", "[a](design/uploads.md#off-disk) [b](../docs/none.md)"), 2);
        assert_eq!(findings("crates/io/src/lib.rs", "//! See docs/design/none.md."), 1);
    }

    #[test]
    fn a_link_to_a_file_a_heading_or_a_folder_is_right() {
        for text in
            ["[a](docs/design/uploads.md#on-disk-and-in-memory)", "[a](docs/design/)", "[a](https://x.y/z)"]
        {
            assert_eq!(findings("README.md", text), 0, "{text}");
        }
        assert_eq!(findings("docs/design/b.md", "[a](../design/uploads.md) [b](#here)\n# Here\n"), 0);
        assert_eq!(findings("crates/io/src/lib.rs", "//! (docs/design/uploads.md)"), 0);
    }
}
