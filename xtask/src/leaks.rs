//! The conformance suite under LeakSanitizer, on the stable toolchain.
//!
//! Rust's allocator is the C library's malloc, so LeakSanitizer sees every allocation once its archive
//! is linked in whole, by its path. (gcc's version in Debian 12 does not survive thousands of short
//! threads.) A canary that leaks on purpose runs first, and must be detected.
//!
//! This is not a memory checker: it detects leaks only. It does not work under a debugger, which holds
//! ptrace.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::house;

/// LeakSanitizer's exit code where it has found something.
const CAUGHT: i32 = 23;
/// Few: the simulator's seeds look for ordering bugs, and a leak appears in any order.
const SEEDS: &str = "2";
/// A process for each: LeakSanitizer does not survive a few thousand threads in one.
const ENGINES: [&str; 4] = ["epoll", "thread", "uring", "simulator"];
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
    for engine in ENGINES {
        let status = house::cargo()
            .args(["test", "--package", "plimsoll-tests", "--test", "behaviours"])
            // With an explicit target, cargo does not pass the flags to build scripts and macros.
            .args(["--target", &house::host()?])
            .args(["--", &format!("{engine}::")])
            .env("CARGO_TARGET_DIR", &folder)
            .env("RUSTFLAGS", flags.join(" "))
            .env("PLIMSOLL_SEEDS", SEEDS)
            .status()?;
        ensure!(status.success(), "the suite failed or leaked under {engine} ({status})");
    }
    println!("leaks: none under {}", ENGINES.join(", "));
    Ok(())
}

fn canary_is_caught(folder: &Path, flags: &[String]) -> Result<bool> {
    let (source, binary) = (folder.join("canary.rs"), folder.join("canary"));
    std::fs::write(&source, CANARY)?;
    house::output(Command::new("rustc").arg(&source).arg("-o").arg(&binary).args(flags))?;
    let output = Command::new(&binary).output()?;
    Ok(output.status.code() == Some(CAUGHT))
}

/// Returns the flags that link rustc's own LeakSanitizer. The stable toolchain ships it, though its
/// option is unstable.
fn flags() -> Result<Vec<String>> {
    let libraries = house::output(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let archive = Path::new(libraries.trim()).join("librustc-stable_rt.lsan.a");
    ensure!(archive.is_file(), "this toolchain has no {}; use a stable one of rustup", archive.display());
    Ok(vec![
        format!("-Clink-arg=-Wl,--push-state,--whole-archive,{},--pop-state", archive.display()),
        "-Clink-arg=-Wl,--export-dynamic".to_owned(),
        "-Clink-arg=-lm".to_owned(),
    ])
}
