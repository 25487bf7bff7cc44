//! File writes: every engine's `Fs` gives the same results for the same calls.
//!
//! The server runs each case where it may block, over a separate folder that the client names.

mod contents;
mod folders;
mod names;

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_io::{File, Fs, Handler, Io, Segment, Stream, Want, Work};
use plimsoll_tests::service::Each;
use plimsoll_tests::{Protocol, Scenario, Scene, Tree, behaviours};

/// A case: it panics if a result violates the contract.
type Case = fn(&dyn Fs, &File);

fn scenario() -> Scenario {
    let tree = Tree::new()
        .file("file", "text")
        .file("other", "other text")
        .folder("empty")
        .file("folder/inner", "inner text")
        .link("link", "file")
        .link("dangling", "nowhere")
        .link("to-folder", "folder")
        .pipe("pipe");
    Scenario { tree, protocol: Protocol::Of(handler), ..Scenario::default() }
}

fn handler(io: Io) -> Rc<dyn Handler> {
    Rc::new(Each(io, run))
}

/// Runs the case that the client names, over the folder that it names.
async fn run(io: Io, mut stream: Stream) {
    let mut received = Vec::new();
    while !received.ends_with(b"\n") {
        match stream.rx.recv(Want::Head).await {
            Ok(Some(lease)) => received.extend_from_slice(&lease),
            _ => return,
        }
    }
    let line = String::from_utf8(received).unwrap();
    let (name, root) = line.trim_end().split_once(' ').unwrap();
    let (_, case) = CASES.iter().find(|(known, _)| *known == name).unwrap();
    let root = PathBuf::from(root);
    let done = io.offload(Work::Writes, move |fs| case(fs, &fs.open_root(&root).unwrap())).await;
    stream.tx.push(Segment::Static(if done.is_ok() { b"y" } else { b"n" }));
    let _ = stream.finish().await;
}

async fn ask(scene: Scene, name: &str) {
    let mut client = scene.connect().await;
    let root = scene.root();
    client.send([name.as_bytes(), b" ", root.as_os_str().as_bytes(), b"\n"].concat()).await;
    assert_eq!(client.body(1).await.unwrap(), b"y", "the server's message is above");
    client.expect_end().await;
}

/// Declares the cases, each a behaviour.
macro_rules! cases {
    ($($module:ident: $($name:ident),*;)*) => {
        const CASES: &[(&str, Case)] = &[$($((stringify!($name), $module::$name)),*),*];
        $($(async fn $name(scene: Scene) {
            ask(scene, stringify!($name)).await;
        })*)*
        behaviours!(scenario; $($($name),*),*);
    };
}

cases! {
    contents:
        a_new_file_is_empty_and_takes_bytes_anywhere,
        a_file_is_cut_and_lengthened_with_zeros,
        a_copy_is_whole_and_leaves_what_is_behind_it,
        a_set_modification_time_is_reported,
        a_file_opened_for_reading_cannot_be_written,
        an_open_file_outlives_its_name,
        every_open_file_and_folder_can_be_synced;
    names:
        a_name_that_is_taken_is_not_given_again,
        a_path_that_is_no_single_name_is_refused_by_every_call,
        a_name_may_have_255_bytes_of_any_kind,
        only_files_are_opened_to_be_written,
        a_link_is_removed_and_moved_itself,
        a_link_is_made_and_its_target_read,
        a_file_replaces_a_file_only_if_that_was_asked_for,
        a_file_and_a_folder_never_replace_each_other,
        a_folder_replaces_an_empty_one_only_and_never_goes_into_itself,
        a_moved_file_keeps_its_inode_size_and_time;
    folders:
        names_are_listed_with_their_own_kind_also_links,
        names_are_bounded,
        only_an_empty_folder_is_removed_and_only_as_a_folder,
        a_folder_is_below_itself_and_the_folders_around_it,
        nothing_is_made_in_a_folder_that_is_gone,
        a_file_is_no_place_for_names,
        there_is_room_on_the_disk;
}

/// Returns the kind of a call's error.
fn refused<T>(answer: std::io::Result<T>) -> std::io::ErrorKind {
    match answer {
        Ok(_) => panic!("it was done"),
        Err(error) => error.kind(),
    }
}

fn write_all(fs: &dyn Fs, file: &File, bytes: &[u8], offset: u64) {
    let mut written = 0;
    while written < bytes.len() {
        let more = fs.write_at(file, &bytes[written..], offset + written as u64).unwrap();
        assert!(more > 0, "a write of nothing");
        written += more;
    }
}

fn read_all(fs: &dyn Fs, file: &File) -> Vec<u8> {
    let (mut all, mut some) = (Vec::new(), [0; 4096]);
    loop {
        let count = fs.read_at(file, &mut some, all.len() as u64).unwrap();
        if count == 0 {
            return all;
        }
        all.extend_from_slice(&some[..count]);
    }
}

/// Returns the contents of the file `name` in `folder`.
fn read(fs: &dyn Fs, folder: &File, name: &str) -> Vec<u8> {
    read_all(fs, &fs.open_beneath(folder, name.as_bytes()).unwrap())
}
