//! Rule `names`: no file, folder or module has a name without meaning, such as `util`.
//!
//! Such a module collects unrelated code. The rule reads whole names, and not those of types.

use super::source::{Finding, Source};

pub(super) const RULE: &str = "names";

const EMPTY: [&str; 9] = ["util", "utils", "helper", "helpers", "common", "misc", "manager", "data", "info"];

/// Finds a name without meaning in the file's path and among the modules that it declares.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut parts = source.path.trim_end_matches(".rs").split('/');
    let of_path = parts.find(|part| EMPTY.contains(part)).map(|part| (1, part));
    let of_modules = source.lines.iter().filter_map(|line| Some((line.number, module(&line.code)?)));
    let found = of_path.into_iter().chain(of_modules.filter(|(_, name)| EMPTY.contains(name)));
    found
        .map(|(line, name)| source.finding(line, RULE, format!("`{name}` says nothing: name what is in it")))
        .collect()
}

fn module(code: &str) -> Option<&str> {
    let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    words.find(|word| *word == "mod")?;
    words.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&Source::new(path.to_owned(), text)).len()
    }

    #[test]
    fn finds_an_empty_name_in_path_and_text() {
        assert_eq!(findings("crates/io/src/util.rs", ""), 1);
        assert_eq!(findings("crates/io/src/common/mod.rs", ""), 1);
        assert_eq!(findings("crates/io/src/lib.rs", "pub(crate) mod helpers;"), 1);
        assert_eq!(findings("crates/io/src/lib.rs", "mod utility;\n// mod util;\nstruct Info;"), 0);
    }
}
