//! Reads the output of `perf report` with its fields separated by tabs.
//!
//! It does not read perf's own files, whose format depends on the version. Invariant: a line that is neither
//! a comment nor a function is refused.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};

use super::{Profile, profile};

/// Reads the outputs for the files of a process. There is one, because perf follows children.
pub(super) fn read(outputs: &[String]) -> Result<Profile> {
    ensure!(outputs.len() == 1, "there are {} files of perf instead of one", outputs.len());
    let (mut total, mut costs) = (0, BTreeMap::new());
    for (number, line) in (1..).zip(outputs[0].lines()) {
        if let Some(samples) = line.strip_prefix("# Samples: ") {
            total = count(samples).with_context(|| format!("line {number} of perf report: {line:?}"))?;
        } else if !line.starts_with('#') && !line.trim().is_empty() {
            let (name, shares) = function(line)
                .with_context(|| format!("line {number} of perf report is no function: {line:?}"))?;
            let known: &mut (f64, f64) = costs.entry(name).or_default();
            *known = (known.0 + shares.0, known.1 + shares.1);
        }
    }
    ensure!(total > 0, "perf took no sample");
    Ok(profile(total, costs))
}

/// Parses the function of a line, and its own and inclusive share: `65.58%  0.96%  object  [k] name`.
fn function(line: &str) -> Option<((String, String), (f64, f64))> {
    let mut fields = line.splitn(4, '\t').map(str::trim);
    let [inclusive, own, object, symbol] = [(); 4].map(|()| fields.next());
    let symbol = symbol?;
    // `[k]` stands for the kernel, `[.]` for the process itself.
    let name = symbol.split_once("] ").filter(|_| symbol.starts_with('[')).map_or(symbol, |(_, name)| name);
    Some(((name.trim().to_owned(), object?.to_owned()), (share(own?)?, share(inclusive?)?)))
}

fn share(text: &str) -> Option<f64> {
    let percent: f64 = text.strip_suffix('%')?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

/// Parses a number of samples such as `523` or `12K`.
fn count(text: &str) -> Result<u64> {
    let word = text.split_whitespace().next().unwrap_or_default();
    let (digits, factor) = match word.strip_suffix(['K', 'M']) {
        Some(digits) => (digits, if word.ends_with('K') { 1_000 } else { 1_000_000 }),
        None => (word, 1),
    };
    let count: u64 = digits.parse().context("the number of samples is no number")?;
    count.checked_mul(factor).context("the number of samples is too large")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
# To display the perf.data header info, please use --header/--header-only options.
#
# Samples: 12K of event 'cpu-clock:ppp'
# Event count (approx.): 1048096184
#
# Children\tOverhead\tShared Object\tSymbol
  65.58%\t   0.96%\t[kernel.kallsyms]\t[k] do_syscall_64
  35.95%\t  12.15%\tplimsoll\t[.] <[u8; 4] as core::Trait>::send
   2.00%\t   1.00%\tlibc.so.6\t0x00000000000a1234

";

    fn read_one(output: &str) -> Result<Profile> {
        read(&[output.to_owned()])
    }

    #[test]
    fn functions_have_their_shares_with_the_largest_own_one_first() {
        let profile = read_one(OUTPUT).unwrap();
        assert_eq!((profile.total, profile.functions.len()), (12_000, 3));
        let first = &profile.functions[0];
        assert_eq!(
            (first.name.as_str(), first.object.as_str()),
            ("<[u8; 4] as core::Trait>::send", "plimsoll")
        );
        assert!((first.own - 0.1215).abs() < 1e-12 && (first.inclusive - 0.3595).abs() < 1e-12);
        assert_eq!(profile.functions[1].name, "0x00000000000a1234");
    }

    #[test]
    fn an_output_that_was_cut_or_changed_is_refused_or_read_without_a_panic() {
        for cut in 0..OUTPUT.len() {
            let _ = read_one(&OUTPUT[..cut]);
        }
        for (from, to) in [
            ("65.58%", "65.58"),
            ("0.96%", "many%"),
            ("0.96%", "196%"),
            ("12K", "K"),
            ("12K", "18446744073709551615M"),
            ("\tplimsoll\t", " "),
            ("# Samples: 12K", "# No samples"),
        ] {
            assert!(read_one(&OUTPUT.replace(from, to)).is_err(), "{to}");
        }
        assert!(read(&[]).is_err());
    }
}
