//! The conformance suite under LeakSanitizer, on the stable toolchain.
//!
//! Rust's allocator is the C library's malloc, so gcc's own liblsan sees every allocation once it is linked
//! in. It must be linked whole and by name: rustc links with `-nodefaultlibs`, under which
//! `-fsanitize=leak` alone adds nothing and then finds nothing. So a canary that leaks on purpose is run
//! first, and must be caught.
//!
//! Not a memory checker: it knows leaks only. It does not work under a debugger, which holds ptrace.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::house;

/// LeakSanitizer's exit code where it has found something.
const CAUGHT: i32 = 23;
/// Few: the simulator's seeds look for bugs of order, and a leak shows in any order.
const SEEDS: &str = "2";
/// Leaks from a thread that ends, so that no stack still holds the address.
const CANARY: &str = "fn main() {
    let leak = || for _ in 0..10 { std::mem::forget(std::hint::black_box(vec![7u8; 4096])); };
    std::thread::spawn(leak).join().expect(\"the canary's thread\");
}
";

/// Builds and runs the suite in a target folder of its own.
pub(crate) fn run() -> Result<()> {
    let folder = house::root().join("target/leaks");
    std::fs::create_dir_all(&folder)?;
    let flags = flags()?;
    ensure!(
        canary_is_caught(&folder, &flags)?,
        "LeakSanitizer missed a leak made on purpose; is a debugger attached?"
    );
    println!("leaks: the canary leaks and is caught; now the suite");
    let status = house::cargo()
        .args(["test", "--package", "plimsoll-tests", "--test", "behaviours"])
        // With a target named, cargo keeps the flags away from build scripts and macros.
        .args(["--target", &house::host()?])
        .env("CARGO_TARGET_DIR", &folder)
        .env("RUSTFLAGS", flags.join(" "))
        .env("PLIMSOLL_SEEDS", SEEDS)
        .status()?;
    ensure!(status.success(), "the suite failed or leaked ({status})");
    println!("leaks: none");
    Ok(())
}

fn canary_is_caught(folder: &Path, flags: &[String]) -> Result<bool> {
    let (source, binary) = (folder.join("canary.rs"), folder.join("canary"));
    std::fs::write(&source, CANARY)?;
    house::output(Command::new("rustc").arg(&source).arg("-o").arg(&binary).args(flags))?;
    let output = Command::new(&binary).output()?;
    Ok(output.status.code() == Some(CAUGHT))
}

fn flags() -> Result<Vec<String>> {
    let start = part("liblsan_preinit.o")?;
    let archive = part("liblsan.a")?;
    Ok(vec![
        format!("-Clink-arg={}", start.display()),
        format!("-Clink-arg=-Wl,--push-state,--whole-archive,{},--pop-state", archive.display()),
        "-Clink-arg=-Wl,--export-dynamic".to_owned(),
        "-Clink-arg=-lm".to_owned(),
        "-Clink-arg=-lstdc++".to_owned(),
    ])
}

/// Where gcc keeps a part of its sanitizer; gcc repeats the bare name when it has none.
fn part(name: &str) -> Result<PathBuf> {
    let path = house::output(Command::new("gcc").arg(format!("-print-file-name={name}")))?;
    let path = PathBuf::from(path.trim());
    path.is_absolute().then_some(path).with_context(|| format!("gcc has no {name}; run tests/install"))
}
