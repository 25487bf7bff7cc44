//! Makes every transition of the documented table, on a simulated disk.

use std::path::Path as Folder;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plimsoll_io::sim::{Call, Faults, Sim, SimDisk};
use plimsoll_io::{Instant, Lease};

use super::*;
use crate::owner::HomeOwner;
use crate::path::Path;
use crate::store::{Common, Settings, WeakStore};
use crate::usage::Quota;
use crate::volumes::StagingName;
use crate::write::commit::{CommitGuard, Terms};
use crate::write::resumable::NewUpload;
use crate::write::staging::Retention;
use crate::write::upload::SharedUpload;

const STATES: [&str; 5] = ["Receiving", "Prepared", "Paused", "Committed", "Aborted"];

/// The retention of an upload, by which some events have different outcomes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UploadKind {
    Resumable,
    ResumableByPath,
    NotResumable,
}

/// An upload of three bytes, in some state.
struct Scene {
    disk: Arc<SimDisk>,
    home: LocalHome,
    id: UploadId,
    upload: Arc<SharedUpload>,
}

/// The outcome of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// It was carried out, with or without an error; the upload has its next state.
    Done,
    /// It was refused, because the upload has ended.
    Refused,
    /// It is not an event of this upload object, but of its files; the next state is this.
    Files(&'static str),
}

type Event = fn(&Scene) -> Outcome;

/// Events that an ended upload ignores; it refuses all others.
const IGNORED: [&str; 3] = ["abort, resumable", "abort, not resumable", "take over, resumable"];

/// The events by their names in the table.
const EVENTS: [(&str, UploadKind, Event); 20] = [
    ("write", UploadKind::Resumable, |scene| outcome(&scene.write())),
    ("append", UploadKind::Resumable, |scene| {
        let result = scene.upload.lock().append(&*scene.disk, |staging| staging.append(&*scene.disk, b"d"));
        outcome(&result)
    }),
    ("prepare", UploadKind::Resumable, |scene| {
        let result = scene.upload.lock().prepare(&*scene.disk, &scene.upload.buffer);
        outcome(&result)
    }),
    ("prepare, sync fails", UploadKind::Resumable, |scene| {
        scene.disk.fail_next(Call::Sync, std::io::ErrorKind::Other);
        let result = scene.upload.lock().prepare(&*scene.disk, &scene.upload.buffer);
        outcome(&result)
    }),
    ("record", UploadKind::Resumable, |scene| {
        let result = scene.upload.lock().record(&*scene.disk, &scene.upload.buffer);
        outcome(&result)
    }),
    ("commit", UploadKind::Resumable, |scene| scene.commit("a", |_| ())),
    ("commit, with a modification time", UploadKind::Resumable, |scene| {
        scene.commit("a", |request| request.modified = Some(Duration::from_secs(1)))
    }),
    ("commit, sync fails", UploadKind::Resumable, Scene::commit_with_failing_sync),
    (
        "commit, sync fails, resumable by path, not recorded",
        UploadKind::ResumableByPath,
        Scene::commit_with_failing_sync,
    ),
    ("commit, guard refuses", UploadKind::Resumable, |scene| {
        scene.commit("a", |request| request.guard = Some(CommitGuard::new(|| false)))
    }),
    ("commit, digest of the whole file differs", UploadKind::Resumable, |scene| {
        scene.commit("a", |request| request.digests = vec![(Algorithm::Sha256, vec![0; 32])])
    }),
    ("pause", UploadKind::Resumable, |scene| {
        let result = scene.upload.lock().pause(&*scene.disk, &scene.upload.buffer, 3);
        outcome(&result)
    }),
    ("error, resumable", UploadKind::Resumable, |scene| scene.commit("missing/a", |_| ())),
    ("error, not resumable", UploadKind::NotResumable, |scene| scene.commit("missing/a", |_| ())),
    ("refused, resumable by path", UploadKind::ResumableByPath, |scene| scene.commit("missing/a", |_| ())),
    ("abort, resumable", UploadKind::ResumableByPath, Scene::abort),
    ("abort, not resumable", UploadKind::NotResumable, Scene::abort),
    ("take over, resumable", UploadKind::Resumable, |scene| {
        scene.upload.lock().take_over(&*scene.disk);
        Outcome::Done
    }),
    ("resume", UploadKind::Resumable, |scene| {
        let paused = Paused::of(&scene.home, scene.id);
        let resumed = paused.resume(&*scene.disk, Offset::Exactly(3), &[], SystemTime::UNIX_EPOCH);
        resumed.map_or(Outcome::Refused, |(Receiving(_), _)| Outcome::Files("Receiving"))
    }),
    ("discard", UploadKind::Resumable, |scene| {
        let discarded = Paused::of(&scene.home, scene.id).discard(&*scene.disk);
        discarded.map_or(Outcome::Refused, |()| Outcome::Files("Aborted"))
    }),
];

impl Scene {
    /// Sends three bytes of a new upload, and brings it to `state`.
    fn new(kind: UploadKind, state: &str) -> Scene {
        let sim = Sim::new(0, Faults::none());
        let host = sim.host("server");
        let disk = host.disk().clone();
        let folder = |name: &str| {
            disk.mkdir(name).unwrap();
            disk.open_root(Folder::new(name)).unwrap()
        };
        let owner = HomeOwner { account: 1, name: "alice".to_owned(), directory: String::new() };
        let common = Arc::new(Common::new(Settings::default(), WeakStore::default()));
        let (folders, name) = ((folder("/files"), folder("/pending")), StagingName::draw(&host.io()));
        let home = LocalHome::open(&*disk, owner, folders, name, &common).unwrap();
        let (id, now) = (UploadId::parse(&[b'1'; 32]).unwrap(), SystemTime::UNIX_EPOCH);
        let (to, quota) = (Path::parse(b"a").unwrap(), Quota::default());
        let receiving = if kind == UploadKind::Resumable {
            let terms = Terms::any(to, quota);
            let new = NewUpload { terms, bytes: None, metadata: String::new() };
            home.create_now(&*disk, id, new, now).unwrap();
            Paused::of(&home, id).resume(&*disk, Offset::Exactly(0), &[], now).unwrap().0
        } else {
            let staged = (id, home.pending().clone());
            let claim = Claim::reserve(&home, &mut home.lock(), staged, quota, 0).unwrap();
            let retention = match kind {
                UploadKind::ResumableByPath => Retention::Unrecorded(UploadDescription::new_by_path(to, now)),
                _ => Retention::Removed,
            };
            Receiving::new(StagingFile::new(claim, &[], retention))
        };
        let scene = Scene { disk, home, id, upload: SharedUpload::new(receiving) };
        scene.write().unwrap();
        match state {
            "Prepared" => scene.upload.lock().prepare(&*scene.disk, &scene.upload.buffer).unwrap(),
            "Paused" => scene.upload.lock().take_over(&*scene.disk),
            "Committed" => assert_eq!(scene.commit("a", |_| ()), Outcome::Done),
            "Aborted" => {
                scene.commit("a", |request| request.digests = vec![(Algorithm::Sha256, vec![0; 32])]);
            }
            _ => {}
        }
        scene
    }

    fn state(&self) -> &'static str {
        match *self.upload.lock() {
            UploadState::Receiving(_) => "Receiving",
            UploadState::Prepared(_) => "Prepared",
            UploadState::Paused => "Paused",
            UploadState::Committed => "Committed",
            UploadState::Aborted => "Aborted",
        }
    }

    fn write(&self) -> Result<()> {
        self.upload.buffer.push(Lease::owned(b"abc".to_vec()), Instant::default(), Quota::default());
        self.upload.lock().write(&*self.disk, &self.upload.buffer)
    }

    fn commit(&self, to: &str, change: impl FnOnce(&mut CommitRequest)) -> Outcome {
        let terms = Terms::any(Path::parse(to.as_bytes()).unwrap(), Quota::default());
        let mut request = CommitRequest {
            terms,
            digests: Vec::new(),
            modified: None,
            spare_name: None,
            cancel: None,
            guard: None,
            parts: None,
        };
        change(&mut request);
        let committed = self.upload.lock().commit(&*self.disk, &self.upload.buffer, 3, &request);
        outcome(&committed)
    }

    fn commit_with_failing_sync(&self) -> Outcome {
        self.disk.fail_next(Call::Sync, std::io::ErrorKind::Other);
        self.commit("a", |_| ())
    }

    fn abort(&self) -> Outcome {
        self.upload.lock().abort(&*self.disk, &self.upload.buffer);
        Outcome::Done
    }

    fn has_file(&self) -> bool {
        let folder = self.disk.open_root(Folder::new("/files")).unwrap();
        self.disk.open_beneath(&folder, b"a").is_ok()
    }
}

fn outcome<T>(result: &Result<T>) -> Outcome {
    if let Err(Error::InUse) = result { Outcome::Refused } else { Outcome::Done }
}

/// The rows of the table in the module's documentation.
fn table() -> Vec<Vec<&'static str>> {
    let lines = include_str!("../state.rs").lines().filter_map(|line| line.strip_prefix("//! |"));
    let rows = lines.map(|line| line.trim_end_matches('|').split('|').map(str::trim).collect());
    rows.filter(|row: &Vec<&str>| row[0] != "---").collect()
}

#[test]
fn an_upload_makes_the_transitions_of_the_documented_table_and_no_others() {
    let table = table();
    assert_eq!(table[0][1..], STATES);
    let names: Vec<&str> = EVENTS.iter().map(|(name, ..)| *name).collect();
    assert_eq!(table[1..].iter().map(|row| row[0]).collect::<Vec<_>>(), names);
    for (row, (name, kind, event)) in table[1..].iter().zip(EVENTS) {
        for (documented, state) in row[1..].iter().zip(STATES) {
            // An upload that is not resumable is never paused: any paused one refuses the event.
            let kind = if state == "Paused" { UploadKind::Resumable } else { kind };
            let scene = Scene::new(kind, state);
            assert_eq!(scene.state(), state, "before `{name}`");
            let outcome = event(&scene);
            let next = if let Outcome::Files(next) = outcome { next } else { scene.state() };
            let is_refused = *documented == "-" && !IGNORED.contains(&name);
            assert_eq!(outcome == Outcome::Refused, is_refused, "`{name}` in {state}");
            let expected = if *documented == "-" { state } else { documented };
            assert_eq!(next, expected, "`{name}` in {state}");
        }
    }
}

#[test]
fn a_prepared_upload_has_all_its_bytes_on_the_disk_after_a_power_cut() {
    let scene = Scene::new(UploadKind::Resumable, "Prepared");
    let after = scene.disk.after_power_cut(plimsoll_io::sim::Unsynced::Lost);
    let folder = after.open_root(Folder::new("/pending")).unwrap();
    let file = after.open_beneath(&folder, &scene.id.data_name()).unwrap();
    assert_eq!(after.stat(&file).unwrap().size, 3);
}

#[test]
fn a_prepared_upload_is_not_committed_after_a_failed_sync() {
    let scene = Scene::new(UploadKind::Resumable, "Prepared");
    scene.disk.fail_next(Call::Sync, std::io::ErrorKind::Other);
    let recorded = scene.upload.lock().record(&*scene.disk, &scene.upload.buffer);
    assert!(matches!(recorded, Err(Error::Failed(_))));
    assert_eq!(scene.state(), "Prepared");
    scene.commit("a", |_| ());
    assert_eq!((scene.state(), scene.has_file()), ("Paused", false));
}

/// An event that must not succeed.
type End = fn(&Scene);

#[test]
fn an_upload_is_neither_committed_nor_paused_after_a_recording_met_the_only_error_of_the_disk() {
    let ends: [(&str, End); 3] = [
        ("prepare", |scene| {
            let prepared = scene.upload.lock().prepare(&*scene.disk, &scene.upload.buffer);
            assert!(matches!(prepared, Err(Error::Failed(_))));
        }),
        ("pause", |scene| {
            let paused = scene.upload.lock().pause(&*scene.disk, &scene.upload.buffer, 3);
            assert!(matches!(paused, Err(Error::Failed(_))));
        }),
        ("commit", |scene| {
            scene.commit("a", |_| ());
        }),
    ];
    for (name, end) in ends {
        let scene = Scene::new(UploadKind::Resumable, "Receiving");
        let recording = scene.upload.lock().staging().unwrap().begin_recording(&*scene.disk);
        let recording = recording.unwrap().unwrap();
        scene.disk.fail_next(Call::Sync, std::io::ErrorKind::Other);
        // Its thread has not yet noted the error when the upload ends.
        assert!(recording.sync(&*scene.disk).is_err());
        end(&scene);
        assert_eq!((scene.state(), scene.has_file()), ("Paused", false), "{name}");
        let resumed = Paused::of(&scene.home, scene.id).resume(
            &*scene.disk,
            Offset::Exactly(3),
            &[],
            SystemTime::UNIX_EPOCH,
        );
        assert!(resumed.is_err(), "{name}: the three bytes may be lost");
    }
}
