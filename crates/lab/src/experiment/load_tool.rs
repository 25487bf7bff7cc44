//! The load tool of a contender: a command that puts load on it instead of `plimsoll load`, such as iperf3.
//!
//! It runs nothing. Invariants: a tool has bytes and seconds, and no requests. Its trials are compared with
//! others by bytes a second alone, and are in no curve.

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::template::{Values, fill};

/// The command of a tool, and the places of its figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadTool {
    /// The command, which runs on the machine of the generator and prints a JSON document.
    pub command: Vec<String>,
    /// The JSON pointer (RFC 6901) of the number of received bytes.
    pub bytes: String,
    /// The JSON pointer of the seconds that they took.
    pub seconds: String,
}

impl LoadTool {
    /// Refuses a tool without a command, and a text that is no pointer.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(!self.command.is_empty(), "`load_tool` has an empty `command`");
        for (name, pointer) in [("bytes", &self.bytes), ("seconds", &self.seconds)] {
            ensure!(
                pointer.starts_with('/'),
                "`load_tool.{name}` is {pointer:?}: write a JSON pointer such as /end/sum_received/{name}"
            );
        }
        Ok(())
    }

    /// Returns the command with the values of its variables.
    ///
    /// # Errors
    /// An unknown variable.
    pub fn words(&self, values: &Values) -> Result<Vec<String>> {
        self.command.iter().map(|word| fill(word, values)).collect()
    }

    /// Reads the received bytes and the seconds from the output.
    ///
    /// # Errors
    /// The output is no JSON, has an `error`, or a figure is missing or not above 0.
    pub fn read(&self, output: &str) -> Result<(u64, f64)> {
        let document: Value = serde_json::from_str(output).context("the load tool printed no JSON")?;
        // iperf3 has its errors there, and ends with success.
        if let Some(error) = document.get("error").and_then(Value::as_str) {
            bail!("the load tool failed: {error}");
        }
        let figure = |pointer: &str| {
            let figure = document.pointer(pointer).and_then(Value::as_f64);
            figure
                .filter(|figure| figure.is_finite() && *figure > 0.0)
                .with_context(|| format!("the output of the load tool has no number above 0 at {pointer}"))
        };
        let bytes = figure(&self.bytes)?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "above 0, and it saturates"
        )]
        Ok((bytes.round() as u64, figure(&self.seconds)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = r#"{"end": {"sum": {"seconds": 2.5, "bytes": 1000, "none": 0, "text": "5"}}}"#;

    fn tool(bytes: &str, seconds: &str) -> LoadTool {
        let (bytes, seconds) = (bytes.to_owned(), seconds.to_owned());
        LoadTool { command: vec!["tool".to_owned(), "{port}".to_owned()], bytes, seconds }
    }

    #[test]
    fn figures_are_read_from_where_the_pointers_point() {
        let whole = tool("/end/sum/bytes", "/end/sum/seconds");
        whole.check().unwrap();
        assert_eq!(whole.read(OUTPUT).unwrap(), (1000, 2.5));
        let values = [("port".to_owned(), "80".to_owned())].into();
        assert_eq!(whole.words(&values).unwrap(), ["tool", "80"]);
    }

    #[test]
    fn a_missing_figure_and_a_figure_of_zero_are_errors_that_name_the_pointer() {
        for pointer in ["/end/sum/none", "/end/sum/text", "/end/sum", "/start"] {
            for refused in [tool(pointer, "/end/sum/seconds"), tool("/end/sum/bytes", pointer)] {
                let error = refused.read(OUTPUT).unwrap_err().to_string();
                assert!(error.ends_with(&format!("no number above 0 at {pointer}")), "{error}");
            }
        }
        assert!(tool("end", "/end").check().unwrap_err().to_string().contains("`load_tool.bytes`"));
    }

    #[test]
    fn the_error_of_a_tool_is_passed_on() {
        let busy = r#"{"start": {}, "end": {}, "error": "error - the server is busy running a test"}"#;
        let error = tool("/end/bytes", "/end/seconds").read(busy).unwrap_err().to_string();
        assert_eq!(error, "the load tool failed: error - the server is busy running a test");
    }

    #[test]
    fn output_that_was_cut_anywhere_has_no_figures() {
        for cut in 0..OUTPUT.len() {
            assert!(tool("/end/sum/bytes", "/end/sum/seconds").read(&OUTPUT[..cut]).is_err());
        }
    }
}
