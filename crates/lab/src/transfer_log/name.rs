//! The experiment that a file name carries, in the manner of document 001: five fields with periods between
//! them, `SIZE.TYPE.REPETITION.CONNECTIONS.NUMBER`, such as `1MB.different.7.4.2`.
//!
//! It opens no file. Invariant: a name is an experiment only if all five fields are valid; the folder before
//! it does not matter.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether the connections of an experiment transfer the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransferType {
    /// All connections transfer one file.
    Same,
    /// Each connection transfers a file of its own.
    Different,
}

/// The fields of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExperimentName {
    /// The length of the file in bytes.
    pub size: u64,
    /// The type of the experiment.
    pub transfer_type: TransferType,
    /// The number of the repetition.
    pub repetition: u32,
    /// The number of simultaneous connections, at least 1.
    pub connections: u32,
    /// The number of the file within the repetition.
    pub number: u32,
}

/// The units of a size, each 1024 of the next.
const UNITS: [(&str, u32); 5] = [("TB", 40), ("GB", 30), ("MB", 20), ("KB", 10), ("B", 0)];

impl ExperimentName {
    /// Parses the last component of a path. Returns `None` if it carries no experiment.
    pub fn parse(path: &str) -> Option<ExperimentName> {
        let mut fields = path.rsplit('/').next()?.split('.');
        let name = ExperimentName {
            size: parse_size(fields.next()?)?,
            transfer_type: match fields.next()? {
                "same" => TransferType::Same,
                "different" => TransferType::Different,
                _ => return None,
            },
            repetition: number(fields.next()?)?,
            connections: number(fields.next()?).filter(|connections| *connections > 0)?,
            number: number(fields.next()?)?,
        };
        fields.next().is_none().then_some(name)
    }
}

impl fmt::Display for ExperimentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transfer_type = self.transfer_type.name();
        let (size, repetition) = (size_label(self.size), self.repetition);
        write!(f, "{size}.{transfer_type}.{repetition}.{}.{}", self.connections, self.number)
    }
}

impl TransferType {
    /// Returns the field of a name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TransferType::Same => "same",
            TransferType::Different => "different",
        }
    }

    /// Returns the title of the document's row.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            TransferType::Same => "Same file",
            TransferType::Different => "Different files",
        }
    }
}

/// Parses digits; `str::parse` would also take a sign.
fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// Parses a size above zero, such as `256KB`. One KB is 1024 bytes.
fn parse_size(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let (_, power) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number::<u64>(digits)?.checked_mul(1 << power).filter(|size| *size > 0)
}

/// Formats a size in the largest unit of which it is a multiple: `256KB`.
pub(super) fn size_label(size: u64) -> String {
    let unit = UNITS.iter().find(|(_, power)| size.is_multiple_of(1 << power));
    let (name, power) = unit.copied().unwrap_or(("B", 0));
    format!("{}{name}", size >> power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_carries_its_experiment_whatever_folder_it_is_in() {
        let name = ExperimentName {
            size: 256 * 1024,
            transfer_type: TransferType::Different,
            repetition: 7,
            connections: 24,
            number: 3,
        };
        for path in ["256KB.different.7.24.3", "/256KB.different.7.24.3", "/a.b/c_d/256KB.different.07.24.3"]
        {
            assert_eq!(ExperimentName::parse(path), Some(name), "{path}");
        }
        assert_eq!(name.to_string(), "256KB.different.7.24.3");
    }

    #[test]
    fn another_name_carries_no_experiment() {
        for path in [
            "",
            "/",
            "/1MB.same.1.2.3/",
            "index.html",
            "1MB.same.1.2",
            "1MB.same.1.2.3.4",
            "1MB.same.1.2.",
            "1MB.same.+1.2.3",
            "1MB.same.1.0.3",
            "1MB.same.1.4294967296.3",
            "1MB.equal.1.2.3",
            "MB.same.1.2.3",
            "1.same.1.2.3",
            "0KB.same.1.2.3",
            "1mb.same.1.2.3",
            "16777216TB.same.1.2.3",
        ] {
            assert_eq!(ExperimentName::parse(path), None, "{path}");
        }
    }

    #[test]
    fn a_size_is_shown_in_the_largest_unit_that_divides_it() {
        for (size, label) in [(1, "1B"), (1000, "1000B"), (1024, "1KB"), (16 << 20, "16MB"), (1536, "1536B")]
        {
            assert_eq!(size_label(size), label);
            assert_eq!(parse_size(label), Some(size));
        }
    }
}
