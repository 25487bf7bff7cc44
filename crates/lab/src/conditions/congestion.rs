//! The congestion control of new connections, of a namespace or of the machine.
//!
//! It changes no open connection. Invariant: each value of the machine is recorded before it changes; that
//! of a namespace ends with the namespace.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::journal::Journal;
use super::link::in_namespace;
use super::setting::{CongestionOf, KernelSetting};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Returns the congestion controls that the kernel has loaded.
pub(super) fn available() -> Vec<String> {
    let names = fs::read_to_string(AVAILABLE).unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

/// Returns whether the kernel has a congestion control, or can load its module.
pub(super) fn is_available(name: &str) -> bool {
    available().iter().any(|one| one == name) || has_module(name)
}

fn has_module(name: &str) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let folder = Path::new("/lib/modules").join(release.trim()).join("kernel/net/ipv4");
    let start = format!("tcp_{name}.ko");
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name().to_string_lossy().starts_with(&start))
}

/// Sets the congestion control of a namespace, or of the machine if there is none.
///
/// # Errors
/// The kernel's error.
pub(super) fn set(name: &str, namespace: Option<&str>, journal: &mut Journal) -> Result<()> {
    if let Some(namespace) = namespace {
        allow(name, journal)?;
        let file = CongestionOf::NewConnections.file();
        let write = || fs::write(file, name).with_context(|| format!("congestion control {name:?}"));
        return in_namespace(namespace, write);
    }
    let before = read(CongestionOf::NewConnections)?;
    if before == name {
        return Ok(());
    }
    change(CongestionOf::NewConnections, name, before, journal)
}

/// Permits a congestion control to namespaces: the kernel restricts all but a few to the machine itself.
fn allow(name: &str, journal: &mut Journal) -> Result<()> {
    let before = read(CongestionOf::Namespaces)?;
    let allowed: Vec<&str> = before.split_whitespace().collect();
    if allowed.contains(&name) {
        return Ok(());
    }
    // In the order of the kernel, so that the value that it shows is the written one.
    let mut with_name = available();
    with_name.retain(|one| one == name || allowed.contains(&one.as_str()));
    if !with_name.iter().any(|one| one == name) {
        with_name.push(name.to_owned());
    }
    change(CongestionOf::Namespaces, &with_name.join(" "), before, journal)
}

fn read(of: CongestionOf) -> Result<String> {
    let text = fs::read_to_string(of.file()).with_context(|| format!("{}", of.file().display()))?;
    Ok(text.trim().to_owned())
}

fn change(of: CongestionOf, algorithms: &str, before: String, journal: &mut Journal) -> Result<()> {
    let (algorithms, before) = (algorithms.to_owned().try_into(), before.try_into());
    let algorithms = algorithms.map_err(anyhow::Error::msg)?;
    let before = before.map_err(anyhow::Error::msg)?;
    journal.set_congestion(of, &KernelSetting::Congestion { of, algorithms, before })
}
