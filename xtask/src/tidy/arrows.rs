//! Rule `arrows`: a crate depends only on those below it, as ARCHITECTURE.md draws them.
//!
//! Only dependencies that cargo links count, not dev-dependencies: a test may use any crate. A crate
//! must be in the table before it may depend on another of the workspace, and no crate may depend on
//! tokio.

use serde_json::Value;

use super::source::{Finding, Source};

pub(super) const RULE: &str = "arrows";

const PREFIX: &str = "plimsoll-";

/// Each crate, and the crates of the workspace that it may link.
const ARROWS: [(&str, &[&str]); 17] = [
    ("io", &[]),
    ("wire", &[]),
    ("engine", &["io"]),
    ("channel", &["io"]),
    ("tls", &["io"]),
    ("client", &["tls", "wire", "io"]),
    ("rpc", &["client", "wire", "io"]),
    ("auth", &["rpc", "wire", "io"]),
    ("store", &["rpc", "wire", "io"]),
    ("acme", &["client", "tls", "wire", "io"]),
    ("content", &["store", "wire", "io"]),
    ("operations", &["auth", "store", "wire", "io"]),
    ("proto", &["content", "client", "operations", "auth", "store", "rpc", "tls", "wire", "io"]),
    ("web", &["proto", "content", "client", "operations", "auth", "store", "rpc", "wire", "io"]),
    ("proxy", &["proto", "channel", "content", "client", "auth", "store", "tls", "wire", "io"]),
    ("cli", &["client", "tls", "wire", "io"]),
    ("lab", &["engine", "client", "auth", "store", "tls", "wire", "io"]),
];

/// Packages that may link any crate.
const FREE: [&str; 3] = ["plimsoll", "plimsoll-tests", "xtask"];

/// Finds a dependency that the table does not permit, and a crate that the table does not have.
pub(super) fn check(metadata: &Value, sources: &[Source]) -> Vec<Finding> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages.flat_map(|package| check_package(package, sources)).collect()
}

fn check_package(package: &Value, sources: &[Source]) -> Vec<Finding> {
    let name = package["name"].as_str().unwrap_or_default();
    let linked = package["dependencies"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|dependency| dependency["kind"] != "dev");
    let names = linked.filter_map(|dependency| dependency["name"].as_str());
    names
        .filter_map(|dependency| Some((dependency, advice(name, dependency)?)))
        .map(|(dependency, advice)| at_manifest(package, sources, dependency, advice))
        .collect()
}

fn advice(package: &str, dependency: &str) -> Option<String> {
    if dependency == "tokio" {
        return Some("no tokio in the core: use the executor, or a process of its own".to_owned());
    }
    let dependency = if dependency == "plimsoll" { dependency } else { dependency.strip_prefix(PREFIX)? };
    if FREE.contains(&package) {
        return None;
    }
    let package = package.strip_prefix(PREFIX).unwrap_or(package);
    let Some((_, below)) = ARROWS.iter().find(|(name, _)| *name == package) else {
        return Some(format!("say in xtask/src/tidy/arrows.rs what `{package}` may depend on"));
    };
    let allowed = if below.is_empty() { "nothing of ours".to_owned() } else { below.join(", ") };
    (!below.contains(&dependency))
        .then(|| format!("`{package}` may depend on {allowed}; not on `{dependency}`"))
}

/// Creates the finding, at the line of the manifest that names the dependency.
fn at_manifest(package: &Value, sources: &[Source], dependency: &str, advice: String) -> Finding {
    let manifest = package["manifest_path"].as_str().unwrap_or_default();
    let is_it = |source: &&Source| source.path.ends_with("/Cargo.toml") && manifest.ends_with(&source.path);
    let Some(source) = sources.iter().find(is_it) else {
        return Finding { path: manifest.to_owned(), line: 1, rule: RULE, advice };
    };
    let line = source.lines.iter().find(|line| line.raw.contains(dependency)).map_or(1, |line| line.number);
    source.finding(line, RULE, advice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn findings(package: &str, dependency: &str, kind: Option<&str>) -> Vec<usize> {
        let metadata = json!({"packages": [{
            "name": package,
            "manifest_path": "/a/crates/b/Cargo.toml",
            "dependencies": [{"name": dependency, "kind": kind}],
        }]});
        let text = format!("[dependencies]\n{dependency}.workspace = true\n");
        let sources = [Source::new("crates/b/Cargo.toml".to_owned(), &text)];
        check(&metadata, &sources).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn an_arrow_points_down() {
        assert_eq!(findings("plimsoll-proto", "plimsoll-engine", None), [2]);
        assert_eq!(findings("plimsoll-wire", "plimsoll-io", None), [2]);
        assert_eq!(findings("plimsoll-io", "plimsoll", None), [2]);
        assert!(findings("plimsoll-proto", "plimsoll-io", None).is_empty());
        assert!(findings("plimsoll", "plimsoll-engine", None).is_empty());
    }

    #[test]
    fn a_new_crate_comes_into_the_table_first() {
        assert_eq!(findings("plimsoll-novel", "plimsoll-io", None), [2]);
        assert!(findings("plimsoll-novel", "serde", None).is_empty());
    }

    #[test]
    fn tests_are_free_and_no_crate_has_tokio() {
        assert!(findings("plimsoll-proto", "plimsoll-engine", Some("dev")).is_empty());
        assert_eq!(findings("plimsoll", "tokio", None), [2]);
    }
}
