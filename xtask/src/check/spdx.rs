//! Parses an SPDX licence expression far enough to decide whether a list of licences satisfies it.
//!
//! `OR` needs one side, `AND` both, and binds tighter; `WITH` makes a licence of its own, `/` is cargo's
//! old `OR`. Names are not checked against SPDX's list: only the accepted ones matter. An expression
//! that cannot be parsed is not satisfied.

/// Whether the accepted licences suffice for the expression.
pub(super) fn satisfiable(expression: &str, accepted: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, accepted };
    reader.any() == Some(true) && reader.words.is_empty()
}

struct Reader<'a> {
    words: &'a [&'a str],
    accepted: &'a [&'a str],
}

impl<'a> Reader<'a> {
    fn any(&mut self) -> Option<bool> {
        let mut result = self.all()?;
        while self.takes("OR") {
            result |= self.all()?;
        }
        Some(result)
    }

    fn all(&mut self) -> Option<bool> {
        let mut result = self.one()?;
        while self.takes("AND") {
            result &= self.one()?;
        }
        Some(result)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("(") {
            let inner = self.any()?;
            return self.takes(")").then_some(inner);
        }
        let mut licence = self.next()?.to_owned();
        if self.takes("WITH") {
            licence = format!("{licence} WITH {}", self.next()?);
        }
        Some(self.accepted.contains(&licence.as_str()))
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.words = &self.words[1..];
        }
        found
    }

    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::satisfiable;

    const ACCEPTED: [&str; 3] = ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];

    #[test]
    fn accepts_what_the_list_satisfies() {
        for expression in [
            "MIT",
            "MIT OR GPL-3.0-only",
            "MIT/Apache-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0",
        ] {
            assert!(satisfiable(expression, &ACCEPTED), "{expression}");
        }
    }

    #[test]
    fn refuses_what_it_does_not() {
        for expression in [
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "GPL-3.0-only OR MIT AND AGPL-3.0-only",
            "Apache-2.0 WITH Classpath-exception-2.0",
            "(MIT",
            "MIT MIT",
            "",
        ] {
            assert!(!satisfiable(expression, &ACCEPTED), "{expression}");
        }
    }
}
