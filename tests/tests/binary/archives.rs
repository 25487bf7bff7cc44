//! Zip archives of folders, downloaded by curl and read by programs that people have.

use std::path::Path;
use std::process::Command;

use plimsoll_tests::binary::{Done, EngineKind, Member, Server, tool};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Tree, on_each_engine};

const LARGE_BYTES: usize = 3 << 20;
/// Prints the names of a zip archive, after a check of all checksums.
const ZIPFILE: &str = "import sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
assert archive.testzip() is None
print('\\n'.join(sorted(archive.namelist())))";

fn programs_read_an_archive(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::on_data(kind, &data, &[]);
    let mut alice = Member::new(&server, "alice");
    assert_eq!(alice.put("/files/first", b"").status, 201);
    let tree = Tree::new().file("docs/large", noise(5, LARGE_BYTES)).file("docs/grüße/a.txt", "a");
    let tree =
        (0..300).fold(tree, |tree, number| tree.file(format!("docs/many/{number}"), vec![b'x'; number]));
    tree.plant(&data.join("accounts/alice/files"));
    let zip = folder.path().join("docs.zip");
    let bearer = format!("Authorization: Bearer {}", alice.token);
    let mut curl = tool("curl");
    curl.args(["-q", "--silent", "--show-error", "--fail", "-H", &bearer, "-o"]).arg(&zip);
    tool::run(curl.arg(server.url("/files/docs/?archive=zip"))).well();

    let tested = well(tool("unzip").arg("-t").arg(&zip)).text();
    assert!(tested.contains("No errors detected"), "{tested}");
    let names = well(tool("python3").args(["-c", ZIPFILE]).arg(&zip)).text();
    assert_eq!(names.lines().count(), 304, "{names}");
    assert!(names.lines().any(|name| name == "grüße/a.txt"), "{names}");
    // As a file, and as a stream without its directory.
    for (program, args) in
        [("unzip", &["-q"][..]), ("bsdtar", &["-xf"]), ("sh", &["-c", "bsdtar -xf - < \"$0\""])]
    {
        let out = folder.path().join(format!("{program}{}", args.len()));
        std::fs::create_dir(&out).unwrap();
        well(tool(program).args(args).arg(&zip).current_dir(&out));
        assert_same(&data.join("accounts/alice/files/docs"), &out);
    }
}

fn well(command: &mut Command) -> Done {
    tool::run(command).well()
}

fn assert_same(folder: &Path, other: &Path) {
    well(tool("diff").arg("-r").args([folder, other]));
    let modified = |path: &Path| std::fs::metadata(path.join("large")).unwrap().modified().unwrap();
    let apart = modified(folder).duration_since(modified(other)).unwrap_or_default();
    assert!(apart.as_secs() < 2, "{apart:?}");
}

on_each_engine!(programs_read_an_archive);
