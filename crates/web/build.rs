//! Compresses the page's scripts, so that the program and each first visit have a fifth of their bytes.
//!
//! Only comments and indentation are left out: there is no other step between the sources and a browser.

use std::io::{self, Write as _};
use std::path::PathBuf;

use flate2::{Compression, GzBuilder};

#[allow(clippy::print_stdout, reason = "cargo reads it")]
fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs\ncargo::rerun-if-changed=assets/js");
    let entries = std::fs::read_dir("assets/js")?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
    files.sort();
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let mut table = String::from("[");
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = out.join(format!("{name}.gz"));
        std::fs::write(&path, compress(without_comments(&std::fs::read_to_string(&file)?).as_bytes())?)?;
        table += &format!("({name:?}, include_bytes!({path:?}).as_slice()),");
    }
    std::fs::write(out.join("scripts.rs"), table + "]")
}

/// Leaves out the lines that are comments, and indentation. No text of a script has several lines: a test of
/// the page's files makes sure.
fn without_comments(source: &str) -> String {
    let mut kept = String::new();
    let mut is_in_comment = false;
    for line in source.lines().map(str::trim) {
        let begins = line.starts_with("/**");
        let end = line.split_once("*/").map(|(_, after)| after);
        let is_comment = is_in_comment || line.starts_with("//") || begins && end.is_none_or(str::is_empty);
        is_in_comment = (is_in_comment || begins) && end.is_none();
        if !is_comment && !line.is_empty() {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Compresses to gzip. Without a name and a time in it, equal sources give equal bytes.
fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}
