//! The number of workers.

use plimsoll_tests::binary::{Visitor, among_others, process, until};

use super::{SMALL, assert_small, start};

const WORKERS: usize = 3;
const VISITORS: usize = 40;

#[test]
fn there_are_as_many_workers_as_were_asked_for_whatever_comes() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), WORKERS, &["--limits-linger-time", "1h"]);
    let (workers, threads) =
        (|| process::threads_named(server.pid(), "worker-"), || process::threads(server.pid()));
    // The server prints its address before it serves; an answer shows that all workers were started.
    assert_small(server.visit().get("/small.txt").unwrap());
    let before = threads();
    assert_eq!(workers(), WORKERS);
    // No connection ends: there are more connections than workers.
    let mut visitors: Vec<Visitor> = (0..VISITORS).map(|_| server.visit()).collect();
    visitors.iter_mut().for_each(|visitor| visitor.send(SMALL).unwrap());
    for visitor in &mut visitors {
        assert_small(visitor.reply().expect("an answer"));
        assert_eq!((workers(), threads()), (WORKERS, before));
    }
    let status = server.status();
    assert_eq!((&status["engine"], &status["threads"]), (&"pool".into(), &WORKERS.into()));
    assert_eq!(status["load"]["connections_panicked"], 0, "{status}");
    drop(visitors);
    until("the last has gone", || server.status()["load"]["connections_open"] == 1);
    assert_eq!((workers(), threads()), (WORKERS, before));
}
