//! The licences of the libraries that are linked into the program, with their texts, for the packages.
//!
//! It judges no licence: `cargo xtask check` does. Invariant: each text is printed once, below the names of
//! all libraries that have it. A library without a text of its own is listed with the name of its licence.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::house;

/// The package whose libraries are listed.
const PROGRAM: &str = "plimsoll";
/// The beginnings of the names of files with a licence's text, in upper case.
const TEXTS: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT"];

/// Prints the notices.
pub(crate) fn run() -> Result<()> {
    let metadata = house::all_packages()?;
    let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in linked(&metadata)? {
        let part = |key: &str| package[key].as_str().unwrap_or_default();
        let name = format!("{} {} ({})", part("name"), part("version"), part("license"));
        let folder = Path::new(part("manifest_path")).parent().context("a manifest is in a folder")?;
        for text in texts(folder)? {
            owners.entry(text).or_default().push(name.clone());
        }
    }
    for (text, names) in owners {
        println!("{}\n\n{}\n\n{}\n", names.join("\n"), text.trim_end(), "-".repeat(72));
    }
    Ok(())
}

/// Returns the packages of others that the program links, by the graph of dependencies.
fn linked(metadata: &Value) -> Result<Vec<&Value>> {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let packages = metadata["packages"].as_array().context("no packages")?;
    let program = packages.iter().find(|package| package["name"] == PROGRAM).context("no such package")?;
    let nodes = list(&metadata["resolve"]["nodes"]);
    let mut found = BTreeSet::new();
    let mut next = vec![program["id"].clone()];
    while let Some(id) = next.pop() {
        if found.insert(id.as_str().unwrap_or_default().to_owned()) {
            let node = nodes.iter().find(|node| node["id"] == id);
            let dependencies = node.map(|node| list(&node["deps"])).unwrap_or_default();
            let is_linked = |dependency: &Value| list(&dependency["dep_kinds"]).iter().any(is_normal);
            next.extend(dependencies.iter().filter(|one| is_linked(one)).map(|one| one["pkg"].clone()));
        }
    }
    let is_found = |package: &&Value| package["id"].as_str().is_some_and(|id| found.contains(id));
    Ok(packages.iter().filter(is_found).filter(|package| !package["source"].is_null()).collect())
}

/// Returns whether a dependency is linked: those of tests and build scripts are not.
fn is_normal(dependency: &Value) -> bool {
    dependency["kind"].is_null()
}

/// Returns the texts in a package's folder, or an empty one.
fn texts(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if TEXTS.iter().any(|text| name.starts_with(text)) && entry.file_type()?.is_file() {
            found.push(String::from_utf8_lossy(&std::fs::read(entry.path())?).into_owned());
        }
    }
    if found.is_empty() {
        found.push("No text of its own; its licence is named above.".to_owned());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn libraries_are_listed_and_those_of_tests_and_the_project_are_not() {
        let normal = json!([{"kind": null}]);
        let metadata = json!({
            "packages": [
                {"id": "p", "name": "plimsoll", "source": null},
                {"id": "o", "name": "own", "source": null},
                {"id": "a", "name": "linked", "source": "registry"},
                {"id": "b", "name": "for tests", "source": "registry"},
                {"id": "c", "name": "of another program", "source": "registry"},
            ],
            "resolve": {"nodes": [
                {"id": "p", "deps": [{"pkg": "o", "dep_kinds": normal}]},
                {"id": "o", "deps": [
                    {"pkg": "a", "dep_kinds": normal}, {"pkg": "b", "dep_kinds": [{"kind": "dev"}]}
                ]},
            ]},
        });
        let names: Vec<_> = linked(&metadata).unwrap().iter().map(|package| &package["name"]).collect();
        assert_eq!(names, ["linked"]);
    }

    #[test]
    fn a_library_without_a_text_is_listed_all_the_same() {
        let folder = std::env::temp_dir().join(format!("notices-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("lib.rs"), "").unwrap();
        assert!(texts(&folder).unwrap()[0].starts_with("No text"));
        std::fs::write(folder.join("LICENSE-MIT"), "free").unwrap();
        assert_eq!(texts(&folder).unwrap(), ["free"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
