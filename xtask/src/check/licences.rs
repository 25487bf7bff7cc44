//! Checks each dependency's licence against the list of accepted licences.
//!
//! Every package of the build counts, including those that only tests need. A package without an SPDX
//! expression is an offender, not a pass.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::spdx;
use crate::house;

/// The licences that require no more than the preservation of their own text.
///
/// The last one requires less than MIT: BSL-1.0 (`xxhash-rust`, of Redis's driver) asks for its text in
/// copies of the source, not in programs.
const ACCEPTED: [&str; 12] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "CC0-1.0",
    "0BSD",
    "Unlicense",
    "BSL-1.0",
];

/// Prints the count, and each offender.
pub(super) fn run() -> Result<()> {
    let metadata = house::all_packages()?;
    let offenders = offenders(&metadata);
    for (package, licence) in &offenders {
        println!(
            "{package}: licence `{licence}` is not accepted: choose another crate, or argue for the licence"
        );
    }
    println!("licences: {} dependencies, {} not accepted", dependencies(&metadata).count(), offenders.len());
    ensure!(offenders.is_empty(), "a dependency's licence is not accepted");
    Ok(())
}

/// Returns the packages of others: those with a source.
fn dependencies(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten().filter(|package| !package["source"].is_null())
}

fn offenders(metadata: &Value) -> Vec<(String, &str)> {
    dependencies(metadata)
        .map(|package| (package, package["license"].as_str().unwrap_or("none stated")))
        .filter(|(_, licence)| !spdx::satisfiable(licence, &ACCEPTED))
        .map(|(package, licence)| (name_and_version(package), licence))
        .collect()
}

fn name_and_version(package: &Value) -> String {
    let part = |key: &str| package[key].as_str().unwrap_or("?").to_owned();
    format!("{} {}", part("name"), part("version"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tells_a_refused_and_an_unstated_licence() {
        let metadata = json!({"packages": [
            {"name": "fine", "version": "1.0.0", "source": "registry", "license": "MIT OR Apache-2.0"},
            {"name": "viral", "version": "1.0.0", "source": "registry", "license": "GPL-3.0-only"},
            {"name": "silent", "version": "1.0.0", "source": "registry", "license": null},
            {"name": "ours", "version": "0.1.0", "source": null, "license": null},
        ]});
        let names: Vec<String> = offenders(&metadata).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["viral 1.0.0", "silent 1.0.0"]);
    }
}
