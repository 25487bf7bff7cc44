//! Texts with variables in braces: `{port}`, `{users}`, `{port.auth}`.
//!
//! It is not a template language: a variable is replaced by its value. Invariants: other braces
//! stay as they are, because configuration files have braces of their own. An unknown variable is an error
//! before anything is started.

use std::collections::BTreeMap;

use anyhow::Result;

/// The values of variables, by name.
pub type Values = BTreeMap<String, String>;

/// A variable without a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no variable {{{name}}}; there are {}", listed(.known))]
pub struct UnknownVariable {
    /// Its name.
    pub name: String,
    /// The names of those with values.
    pub known: Vec<String>,
}

impl UnknownVariable {
    /// Returns the message for a text of a contender, with the remedy.
    pub(super) fn in_contender(&self) -> String {
        let name = &self.name;
        match name.as_str() {
            "file" => {
                "there is no variable {file}, because there are no files: add a [[files]] table".to_owned()
            }
            _ => format!("{self}; set it in the contender: variables = {{ {name} = \"VALUE\" }}"),
        }
    }
}

/// Returns the names of the variables in `text`, in order; a name may occur several times.
pub fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('{').filter_map(|(at, _)| {
        let rest = &text[at + 1..];
        rest.find('}').map(|end| &rest[..end]).filter(|name| is_name(name))
    })
}

/// Returns `text` with every variable replaced by its value.
///
/// # Errors
/// An unknown variable; the message lists the known ones.
pub fn fill(text: &str, values: &Values) -> Result<String> {
    let (mut filled, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('{') {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        match rest[1..].find('}').map(|end| &rest[1..=end]).filter(|name| is_name(name)) {
            Some(name) => {
                let known = || values.keys().cloned().collect();
                let value = values.get(name);
                let value = value.ok_or_else(|| UnknownVariable { name: name.to_owned(), known: known() })?;
                filled.push_str(value);
                rest = &rest[name.len() + 2..];
            }
            None => {
                filled.push('{');
                rest = &rest[1..];
            }
        }
    }
    Ok(filled + rest)
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(" ")
}

/// Returns whether `name` may name a variable: lower-case letters, digits, `_` and `.`, first a letter.
pub fn is_name(name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.');
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> Values {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn variables_are_replaced_and_other_braces_stay() {
        let values = values(&[("port", "80"), ("port.auth", "81"), ("root", "/a")]);
        let text = "http { server { listen {port}; root {root}; } } {} { a: {port.auth}, {A} {";
        let filled = "http { server { listen 80; root /a; } } {} { a: 81, {A} {";
        assert_eq!(fill(text, &values).unwrap(), filled);
        assert_eq!(variables(text).collect::<Vec<_>>(), ["port", "root", "port.auth"]);
    }

    #[test]
    fn a_value_is_not_searched_for_variables() {
        assert_eq!(fill("{a}{b}", &values(&[("a", "{b}"), ("b", "1")])).unwrap(), "{b}1");
    }

    #[test]
    fn an_unknown_variable_is_refused_with_the_known_ones() {
        let error = fill("{prot}", &values(&[("port", "80"), ("dir", "/d")])).unwrap_err();
        assert_eq!(error.to_string(), "there is no variable {prot}; there are {dir} {port}");
        let unknown = error.downcast_ref::<UnknownVariable>().unwrap();
        let remedy = "; set it in the contender: variables = { prot = \"VALUE\" }";
        assert_eq!(unknown.in_contender(), format!("{error}{remedy}"));
    }

    #[test]
    fn text_without_variables_is_unchanged_wherever_it_is_cut() {
        let text = "a{b c}{é}{{1}}}{";
        for (at, _) in text.char_indices() {
            assert_eq!(fill(&text[..at], &Values::new()).unwrap(), &text[..at]);
        }
    }
}
