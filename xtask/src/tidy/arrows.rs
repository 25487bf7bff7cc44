//! Rule `arrows`: a crate depends only on those below it, as ARCHITECTURE.md draws them.
//!
//! Only dependencies that cargo links count, not dev-dependencies: a test may use any crate. A crate
//! must be in the table before it may depend on another of the workspace. Only the crate with the clients of
//! databases may depend on tokio and on their drivers, and a build without these must remain possible.

use serde_json::Value;

use super::source::{Finding, Source};

pub(super) const RULE: &str = "arrows";

const PREFIX: &str = "plimsoll-";

/// Each crate, and the crates of the workspace that it may link.
const ARROWS: [(&str, &[&str]); 18] = [
    ("io", &[]),
    ("wire", &[]),
    ("engine", &["io"]),
    ("channel", &["io"]),
    ("tls", &["io"]),
    ("client", &["tls", "wire", "io"]),
    ("rpc", &["client", "wire", "io"]),
    ("auth", &["rpc", "tls", "wire", "io"]),
    ("store", &["rpc", "wire", "io"]),
    ("acme", &["client", "tls", "wire", "io"]),
    ("content", &["store", "wire", "io"]),
    ("operations", &["auth", "store", "wire", "io"]),
    ("proto", &["content", "client", "operations", "auth", "store", "rpc", "tls", "wire", "io"]),
    ("web", &["proto", "content", "client", "operations", "auth", "store", "rpc", "wire", "io"]),
    ("proxy", &["proto", "channel", "content", "client", "auth", "store", "tls", "wire", "io"]),
    ("cli", &["client", "tls", "wire", "io"]),
    ("load", &["engine", "client", "tls", "wire", "io"]),
    ("lab", &["load", "wire", "io"]),
];

/// Tokio, and the drivers of databases that need it: optional dependencies of [`HOST`] only.
const GUESTS: [&str; 4] = ["redis", "tokio", "tokio-postgres", "tokio-rustls"];

/// The package with the clients of databases.
const HOST: &str = "plimsoll-auth";

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
    let names =
        linked.filter_map(|dependency| Some((dependency["name"].as_str()?, dependency["optional"] == true)));
    names
        .filter_map(|(dependency, is_optional)| {
            let advice = guest_advice(name, dependency, is_optional).or_else(|| advice(name, dependency));
            Some((dependency, advice?))
        })
        .map(|(dependency, advice)| at_manifest(package, sources, dependency, advice))
        .collect()
}

fn guest_advice(package: &str, dependency: &str, is_optional: bool) -> Option<String> {
    if !GUESTS.contains(&dependency) {
        return None;
    }
    match (package == HOST, is_optional) {
        (true, true) => None,
        (true, false) => Some(format!("make `{dependency}` optional, for builds without databases")),
        (false, _) => Some("no tokio in the core: use the executor, or a process of its own".to_owned()),
    }
}

fn advice(package: &str, dependency: &str) -> Option<String> {
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
        findings_of(package, &json!({"name": dependency, "kind": kind}))
    }

    fn findings_of(package: &str, dependency: &Value) -> Vec<usize> {
        let metadata = json!({"packages": [{
            "name": package,
            "manifest_path": "/a/crates/b/Cargo.toml",
            "dependencies": [dependency],
        }]});
        let dependency = dependency["name"].as_str().unwrap();
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
    fn tests_may_depend_on_any_crate() {
        assert!(findings("plimsoll-proto", "plimsoll-engine", Some("dev")).is_empty());
        assert!(findings("plimsoll-proto", "tokio", Some("dev")).is_empty());
    }

    #[test]
    fn a_driver_is_an_optional_dependency_of_one_crate() {
        for name in GUESTS {
            assert_eq!(findings("plimsoll", name, None), [2], "{name}");
            assert_eq!(findings(HOST, name, None), [2], "{name}");
            for (package, expected) in [(HOST, &[][..]), ("plimsoll-store", &[2])] {
                let optional = json!({"name": name, "kind": null, "optional": true});
                assert_eq!(findings_of(package, &optional), expected, "{name} in {package}");
            }
        }
    }
}
