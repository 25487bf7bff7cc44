//! Reads callgrind's files (the callgrind format, version 1, of valgrind's manual).
//!
//! It needs neither source lines nor addresses. Invariants: the costs of a file are complete, or the file is
//! refused: its own sum at its end must be the sum of its lines.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context as _, Result, bail, ensure};

use super::{Profile, file_name, profile};

/// The names of lines that change the position of the next costs, and concern no function.
const OTHER_SPECIFICATIONS: [&str; 9] = ["fl", "fi", "fe", "cfi", "cfl", "cob", "jump", "jcnd", "jfi"];

/// The costs of all functions, of one or more files.
#[derive(Debug, Default)]
pub(super) struct Costs {
    total: u64,
    /// By the name of the function and of its object: the own cost and the inclusive cost.
    functions: BTreeMap<(String, String), (u64, u64)>,
}

/// The position in a file.
#[derive(Default)]
struct Reader {
    functions: Names,
    objects: Names,
    function: String,
    object: String,
    called: String,
    /// Whether the next line has the cost of a call.
    is_call: bool,
    /// The numbers of positions before the costs of a line.
    positions: usize,
    own: u64,
    /// The sum that the file states; none before its end.
    stated: Option<u64>,
}

/// Names that a file states once, with a number: `(3) main`, and then `(3)`.
#[derive(Default)]
struct Names(HashMap<u64, String>);

impl Costs {
    /// Adds the costs of a file.
    ///
    /// # Errors
    /// The file is damaged or incomplete: with the number of the line.
    pub(super) fn add(&mut self, text: &str) -> Result<()> {
        let mut reader = Reader { positions: 1, ..Reader::default() };
        for (number, line) in (1..).zip(text.lines()) {
            reader.line(line, self).with_context(|| format!("line {number} of a callgrind file"))?;
        }
        ensure!(
            reader.stated == Some(reader.own) && text.ends_with('\n'),
            "a callgrind file is incomplete: the server was killed before it was written"
        );
        self.total = self.total.saturating_add(reader.own);
        Ok(())
    }

    /// Returns the profile of all files.
    #[allow(clippy::cast_precision_loss, reason = "counts below 2^52")]
    pub(super) fn profile(self) -> Profile {
        let whole = self.total.max(1) as f64;
        let share = |(own, inclusive): (u64, u64)| (own as f64 / whole, inclusive as f64 / whole);
        profile(self.total, self.functions.into_iter().map(|(name, costs)| (name, share(costs))).collect())
    }
}

impl Reader {
    fn line(&mut self, line: &str, costs: &mut Costs) -> Result<()> {
        let Some(first) = line.bytes().next() else { return Ok(()) };
        if first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'*') {
            return self.cost(line, costs);
        }
        if first == b'#' {
            return Ok(());
        }
        if let Some((name, value)) = line.split_once('=').filter(|(name, _)| !name.contains(':')) {
            return self.specification(name, value);
        }
        let (key, value) = line.split_once(':').context("it is no line of such a file")?;
        self.header(key, value.trim())
    }

    fn header(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            "positions" => self.positions = value.split_whitespace().count(),
            // Other events, such as cache misses, would follow the first.
            "events" => ensure!(value.split_whitespace().next() == Some("Ir"), "it counts no instructions"),
            "totals" => {
                let first = value.split_whitespace().next().unwrap_or_default();
                let stated: u64 = first.parse().context("`totals` is no number")?;
                self.stated = Some(self.stated.unwrap_or(0) + stated);
            }
            _ => {}
        }
        Ok(())
    }

    fn specification(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "fn" => self.function = self.functions.resolve(value)?,
            "cfn" => self.called = self.functions.resolve(value)?,
            "ob" => self.object = file_name(&self.objects.resolve(value)?).to_owned(),
            // The number of an object may be stated by the first call into it.
            "cob" => drop(self.objects.resolve(value)?),
            "calls" => self.is_call = true,
            other => ensure!(OTHER_SPECIFICATIONS.contains(&other), "{other:?} is unknown"),
        }
        Ok(())
    }

    fn cost(&mut self, line: &str, costs: &mut Costs) -> Result<()> {
        let cost = line.split_whitespace().nth(self.positions);
        // A line without a number has the cost 0.
        let cost: u64 = cost.map_or(Ok(0), str::parse).context("its cost is no number")?;
        let function = costs.functions.entry((self.function.clone(), self.object.clone())).or_default();
        if std::mem::take(&mut self.is_call) {
            // A function that calls itself has the cost already.
            if self.called != self.function {
                function.1 = function.1.saturating_add(cost);
            }
        } else {
            function.0 = function.0.saturating_add(cost);
            function.1 = function.1.saturating_add(cost);
            self.own = self.own.saturating_add(cost);
        }
        Ok(())
    }
}

impl Names {
    /// Returns a name that is stated as it is, with a number, or by its number.
    fn resolve(&mut self, value: &str) -> Result<String> {
        let Some(rest) = value.strip_prefix('(') else { return Ok(value.to_owned()) };
        let (number, name) = rest.split_once(')').context("a name has no closing parenthesis")?;
        let Ok(number) = number.parse::<u64>() else {
            // A name such as `(below main)`.
            return Ok(value.to_owned());
        };
        let name = name.trim();
        if !name.is_empty() {
            self.0.insert(number, name.to_owned());
            return Ok(name.to_owned());
        }
        match self.0.get(&number) {
            Some(name) => Ok(name.clone()),
            None => bail!("no name has the number {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `main` calls `serve` twice, which calls itself and `copy` of another object.
    const FILE: &str = "\
# callgrind format
version: 1
creator: callgrind-3.19.0
cmd:  server --site /=/srv
part: 1

desc: Trigger: Program termination

positions: line
events: Ir
summary: 100

ob=(1) /usr/bin/server
fl=(1) main.rs
fn=(1) <core::Main as core::Run>::main
16 4
cfn=(2) (below main)
cfi=(2) serve.rs
calls=2 50
+1 96

fn=(2)
50 30
* 6
cfn=(2)
calls=1 50
-3 40
cob=(2) /lib/libc.so.6
cfi=(3) copy.c
cfn=(3) copy
calls=3 5
+2 60

ob=(2)
fl=(3)
fn=(3)
5 60

totals: 100
";

    fn read(text: &str) -> Result<Profile> {
        let mut costs = Costs::default();
        costs.add(text)?;
        Ok(costs.profile())
    }

    #[test]
    fn functions_have_their_own_and_their_inclusive_shares() {
        let profile = read(FILE).unwrap();
        let found: Vec<(&str, &str, f64, f64)> = profile
            .functions
            .iter()
            .map(|one| (one.name.as_str(), one.object.as_str(), one.own, one.inclusive))
            .collect();
        let expected = [
            ("copy", "libc.so.6", 0.60, 0.60),
            ("(below main)", "server", 0.36, 0.96),
            ("<core::Main as core::Run>::main", "server", 0.04, 1.0),
        ];
        assert_eq!((found, profile.total), (expected.to_vec(), 100));
    }

    #[test]
    fn the_files_of_several_processes_are_added() {
        let mut costs = Costs::default();
        costs.add(FILE).unwrap();
        costs.add(FILE).unwrap();
        let profile = costs.profile();
        assert_eq!((profile.total, profile.functions[0].own), (200, 0.60));
    }

    #[test]
    fn a_file_that_was_cut_anywhere_is_refused() {
        for cut in 0..FILE.len() {
            assert!(read(&FILE[..cut]).is_err(), "{}", &FILE[..cut]);
        }
    }

    #[test]
    fn a_malformed_line_is_refused_with_its_number() {
        for (from, to, why) in [
            ("16 4", "16 four", "line 16 of a callgrind file"),
            ("fn=(3)\n5", "fn=(4)\n5", "no name has the number 4"),
            ("cfn=(3) copy", "cfn=(3 copy", "closing parenthesis"),
            ("events: Ir", "events: Cy", "no instructions"),
            ("totals: 100", "totals: all", "no number"),
            ("totals: 100", "totals: 101", "incomplete"),
            ("5 60", "5 18446744073709551616", "no number"),
            ("cob=(2)", "xob=(2)", "\"xob\" is unknown"),
            ("part: 1", "part 1", "no line of such a file"),
        ] {
            let refused = format!("{:#}", read(&FILE.replace(from, to)).unwrap_err());
            assert!(refused.contains(why), "{refused}");
        }
        assert!(read(&FILE.replace("5 60", "5 18446744073709551615")).is_err());
    }

    #[test]
    fn every_replaced_byte_is_refused_or_read_without_a_panic() {
        for at in 0..FILE.len() {
            for byte in [b'(', b')', b'=', b':', b'9', b'\n', b'-', 0] {
                let mut bytes = FILE.as_bytes().to_vec();
                bytes[at] = byte;
                let _ = read(&String::from_utf8(bytes).unwrap());
            }
        }
    }
}
