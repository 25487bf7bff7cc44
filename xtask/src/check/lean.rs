//! Lints the builds that leave out clients of databases.
//!
//! The other checks build with all of them. It is a task of its own, because it compiles many crates once
//! more, which the build machine has no time for.

use anyhow::Result;

use super::succeed;
use crate::house;

/// The features of the program that it may be built without.
const DATABASES: [&str; 3] = ["mysql", "postgres", "redis"];

/// Lints a build without databases, and one with each of them alone.
pub(crate) fn run() -> Result<()> {
    [None].into_iter().chain(DATABASES.map(Some)).try_for_each(|database| {
        println!("lean: {}", database.unwrap_or("no database"));
        let package = ["clippy", "--quiet", "--locked", "-p", "plimsoll", "-p", "plimsoll-auth"];
        let features =
            database.map(|name| format!("plimsoll/{name},plimsoll-auth/{name}")).unwrap_or_default();
        let mut command = house::cargo();
        command.args(package).args(["--no-default-features", "--features", &features]);
        succeed(command.args(["--", "-D", "warnings"]), "a build with fewer databases has findings")
    })
}
