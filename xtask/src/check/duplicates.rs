//! Crates that the build contains in more than one version.
//!
//! A warning, not a failure: the fix is mostly in the manifest of another project.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::Value;

use crate::house;

/// Prints one line for each crate with several versions.
pub(super) fn run() -> Result<()> {
    for (name, versions) in duplicates(&house::all_packages()?) {
        println!("warning: {name} is built {} times: {}", versions.len(), versions.join(", "));
    }
    Ok(())
}

fn duplicates(metadata: &Value) -> Vec<(&str, Vec<&str>)> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        if let (Some(name), Some(version)) = (package["name"].as_str(), package["version"].as_str()) {
            versions.entry(name).or_default().insert(version);
        }
    }
    versions.retain(|_, versions| versions.len() > 1);
    versions.into_iter().map(|(name, versions)| (name, versions.into_iter().collect())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tells_a_crate_of_two_versions_and_no_other() {
        let metadata = json!({"packages": [
            {"name": "syn", "version": "1.0.0"},
            {"name": "syn", "version": "2.0.0"},
            {"name": "quote", "version": "1.0.0"},
        ]});
        assert_eq!(duplicates(&metadata), [("syn", vec!["1.0.0", "2.0.0"])]);
    }
}
