//! Ranges of files that the engine transfers itself.

use std::io;
use std::path::Path;

use plimsoll_io::sim::{Faults, PER_MILLE, seeds};
use plimsoll_io::{File, FileRange, Fs, Segment};

use crate::{bytes, collect, converse, owned, receive_all, two_hosts};

fn with_files(faults: Faults) -> Faults {
    Faults { takes_files: PER_MILLE, ..faults }
}

fn open(disk: &dyn Fs, name: &str) -> File {
    let root = disk.open_root(Path::new("/srv")).unwrap();
    disk.open_beneath(&root, name.as_bytes()).unwrap()
}

#[test]
fn a_range_leaves_in_its_place_among_other_segments() {
    for seed in seeds(50) {
        let (sim, near, far) = two_hosts(seed, with_files(Faults::splits()));
        near.disk().write("/srv/a.bin", bytes(10_000)).unwrap();
        let file = open(&**near.disk(), "a.bin");
        near.disk().remove("/srv/a.bin").unwrap();
        let ((), (received, _)) = converse(
            &sim,
            (&near, &far),
            async move |mut stream| {
                assert!(stream.tx.takes_files());
                stream.tx.push(owned(b"head "));
                stream.tx.push(Segment::File(FileRange { file, range: 100..9000 }));
                stream.tx.push(owned(b" tail"));
                stream.finish().await.unwrap();
            },
            async |stream| collect(stream).await.unwrap(),
        );
        assert_eq!(received, [b"head ", &bytes(10_000)[100..9000], b" tail"].concat());
    }
}

#[test]
fn a_file_that_became_shorter_aborts_the_connection() {
    for seed in seeds(50) {
        let (sim, near, far) = two_hosts(seed, with_files(Faults::splits()));
        let disk = near.disk();
        disk.write("/srv/a.bin", bytes(1000)).unwrap();
        let file = open(&**disk, "a.bin");
        disk.truncate("/srv/a.bin", 999).unwrap();
        let (sent, received) = converse(
            &sim,
            (&near, &far),
            async move |mut stream| {
                stream.tx.push(Segment::File(FileRange { file, range: 0..1000 }));
                stream.finish().await
            },
            async |mut stream| receive_all(&mut stream.rx).await,
        );
        assert_eq!(sent.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(received.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }
}

#[test]
fn some_streams_take_files_and_some_do_not() {
    let takes = |seed| {
        let (sim, near, far) = two_hosts(seed, Faults::splits());
        let (near, far) =
            converse(&sim, (&near, &far), async |s| s.tx.takes_files(), async |s| s.tx.takes_files());
        [near, far]
    };
    let taken = (0..50).flat_map(takes).filter(|takes| *takes).count();
    assert!((20..80).contains(&taken), "{taken} of 100");
}

#[test]
#[should_panic(expected = "takes no files")]
fn pushing_a_file_where_none_is_taken_fails_the_test() {
    let (sim, near, far) = two_hosts(0, Faults { takes_files: 0, ..Faults::none() });
    near.disk().write("/srv/a", "a").unwrap();
    let file = open(&**near.disk(), "a");
    let push = async move |mut stream: plimsoll_io::Stream| {
        stream.tx.push(Segment::File(FileRange { file, range: 0..1 }));
    };
    converse(&sim, (&near, &far), push, async |_| {});
}
