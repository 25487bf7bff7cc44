//! Certificates ordered from a real ACME server, and renewed while it misbehaves.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod answers;
#[allow(unreachable_pub, reason = "other tests have this file, too")]
#[path = "../../../../tests/src/binary/ports.rs"]
mod ports;
#[allow(dead_code, reason = "the tests of the binary have this file, too")]
mod server;

use std::fs::{self, File, TryLockError};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use answers::Answers;
use plimsoll_acme::{
    Attempts, Certificate, DomainName, ExternalAccount, Lock, Names, Network, Proof, Renewer, Report,
    Settings, StateFolder,
};
use plimsoll_engine::{EngineKind, block_on};
use plimsoll_io::{Either, Io, select};
use plimsoll_tls::{Clock, Connector, Roots};
use ports::free_port;
use server::{Behaviour, EXTERNAL, Pebble};
use zeroize::Zeroizing;

const CA: &[u8] = include_bytes!("../../../../tests/data/tls/ca.pem");
const OTHER_CA: &[u8] = include_bytes!("../../../../tests/data/tls/other.pem");
const NAME: &str = "files.example.org";
const TWO_SECONDS: Duration = Duration::from_secs(2);
/// How long a test waits for something.
const PATIENCE: Duration = Duration::from_secs(60);

/// The lock of a state folder.
struct FolderLock(PathBuf);

impl Lock for FolderLock {
    fn try_lock(&self) -> io::Result<Option<Box<dyn Send>>> {
        let file = File::create(&self.0)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// A front that renews a certificate.
struct Front {
    state: PathBuf,
    settings: Settings,
    trusted: &'static [u8],
}

/// The certificates and the report of a front.
struct Observed {
    /// The certificates in use, in their order.
    used: Vec<Vec<u8>>,
    report: Report,
}

impl Front {
    fn new(pebble: &Pebble, state: &Path) -> Front {
        let names = [NAME, "www.example.org"].map(|name| DomainName::parse(name).unwrap());
        let settings = Settings {
            directory: pebble.directory(),
            names: Names::new(names).unwrap(),
            contacts: vec!["mailto:admin@example.org".to_owned()],
            external_account: None,
            proof: Proof::Http,
        };
        Front { state: state.to_owned(), settings, trusted: CA }
    }

    /// Runs until `is_done`.
    fn run_until(self, is_done: impl Fn(&Observed) -> bool + 'static) -> Observed {
        block_on("auto".parse::<EngineKind>().unwrap(), move |io| self.run(io, is_done)).unwrap()
    }

    async fn run(self, io: Io, is_done: impl Fn(&Observed) -> bool) -> Observed {
        let Front { state, settings, trusted } = self;
        let folder = {
            let state = state.clone();
            io.offload(plimsoll_io::Work::Chores, move |fs| StateFolder::open(fs, &state))
                .await
                .unwrap()
                .unwrap()
        };
        let renewer = Renewer::new(settings, folder, Arc::new(FolderLock(state.join("lock"))));
        let tls = Connector::new(&Roots::read(trusted).unwrap(), &["http/1.1"], Clock::new()).unwrap();
        let resolve = Rc::new(|_: &str, port| -> plimsoll_client::http::Resolving {
            Box::pin(async move { Ok(vec![(Ipv4Addr::LOCALHOST, port).into()]) })
        });
        let used = Mutex::new(Vec::new());
        let uses = |certificate: &Certificate| used.lock().unwrap().push(certificate.pem().to_vec());
        let seen = || Observed { used: used.lock().unwrap().clone(), report: renewer.report() };
        let running = renewer.run(&io, Network { tls, resolve }, &uses, &|_| {});
        let began = io.now();
        let done = async {
            while !is_done(&seen()) {
                assert!(io.now() < began + PATIENCE, "not done: {:?}", seen().report);
                io.sleep(Duration::from_millis(50)).await;
            }
        };
        assert!(matches!(select(running, done).await, Either::Right(())));
        seen()
    }
}

fn state() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn read(pem: &[u8]) -> Certificate {
    Certificate::read(Zeroizing::new(pem.to_vec())).unwrap()
}

fn files_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Returns the file of the account at a server.
fn account_file(state: &Path, pebble: &Pebble) -> PathBuf {
    let directory = pebble.directory().replace("https://", "").replace(':', "_3A").replace('/', "_2F");
    state.join(format!("account-{directory}.json"))
}

fn json_of(file: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

fn attempts(state: &Path) -> Attempts {
    serde_json::from_slice(&fs::read(state.join("attempts.json")).unwrap()).unwrap()
}

#[test]
fn a_certificate_is_ordered_and_renewed_by_a_server_with_bad_nonces_and_slow_validations() {
    let state = state();
    let behaviour = Behaviour { valid_seconds: 15, bad_nonces: 20, slow_seconds: 2, ..Behaviour::default() };
    let answers = Answers::serve(state.path());
    let pebble = Pebble::start(&behaviour, answers.port);
    let seen = Front::new(&pebble, state.path()).run_until(|seen| seen.report.renewals == 2);
    let [first, second] = &seen.used[..] else { panic!("{} certificates", seen.used.len()) };
    assert_ne!(first, second);
    let (first, second) = (read(first), read(second));
    let names = Names::new([NAME, "www.example.org"].map(|name| DomainName::parse(name).unwrap())).unwrap();
    assert!(first.covers(&names) && second.covers(&names));
    let age = second.validity().begins.duration_since(first.validity().begins).unwrap();
    assert!(age >= Duration::from_secs(9), "it was renewed after two thirds of its lifetime, not {age:?}");
    assert_eq!((seen.report.failures, seen.report.last_failure), (0, None));
    let file = state.path().join(format!("certificates/{NAME}.pem"));
    assert_eq!(fs::read(&file).unwrap(), second.pem());
    for file in [file, account_file(state.path(), &pebble)] {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(files_in(&state.path().join("challenges")), Vec::<String>::new());
    assert!(!pebble.log().contains("There are now 2 accounts"), "{}", pebble.log());
}

#[test]
fn a_failed_validation_is_reported_and_not_repeated_for_a_minute_by_any_process() {
    let state = state();
    let answers = Answers::serve(state.path());
    let pebble = Pebble::start(&Behaviour { valid_seconds: 3600, ..Behaviour::default() }, answers.port);
    answers.are_wrong.store(true, Ordering::Relaxed);
    let seen = Front::new(&pebble, state.path()).run_until(|seen| seen.report.failures == 1);
    let reason = seen.report.last_failure.unwrap();
    assert!(reason.contains("could not validate") && reason.contains("example.org"), "{reason}");
    assert_eq!(files_in(&state.path().join("challenges")), Vec::<String>::new());
    let failed = attempts(state.path());
    assert_eq!((failed.failures, failed.failed_validations.len()), (1, 1));
    let wait = failed.not_before.unwrap().duration_since(failed.failed_validations[0]).unwrap();
    assert_eq!(wait, Duration::from_secs(60));
    // A process that starts again waits, too.
    answers.are_wrong.store(false, Ordering::Relaxed);
    let began = SystemTime::now();
    let seen = Front::new(&pebble, state.path())
        .run_until(move |seen| seen.report.next_attempt.is_some() && began.elapsed().unwrap() > TWO_SECONDS);
    assert_eq!((seen.report.next_attempt, seen.used.len()), (failed.not_before, 0));
    // An operator who has fixed the cause need not wait.
    fs::remove_file(state.path().join("attempts.json")).unwrap();
    let seen = Front::new(&pebble, state.path()).run_until(|seen| seen.report.renewals == 1);
    assert_eq!(seen.used.len(), 1);
}

#[test]
fn of_two_fronts_that_share_a_folder_one_orders_and_both_use_the_certificate() {
    let state = state();
    let behaviour = Behaviour { valid_seconds: 3600, slow_seconds: 1, ..Behaviour::default() };
    let answers = Answers::serve(state.path());
    let pebble = Pebble::start(&behaviour, answers.port);
    let seen: Vec<Observed> = std::thread::scope(|scope| {
        let fronts = [(); 2].map(|()| {
            let front = Front::new(&pebble, state.path());
            // The report follows the use.
            scope.spawn(|| front.run_until(|seen| seen.report.certificate.is_some()))
        });
        fronts.map(|front| front.join().unwrap()).into()
    });
    assert_eq!(seen[0].used, seen[1].used);
    assert_eq!(seen[0].report.renewals + seen[1].report.renewals, 1);
}

#[test]
fn a_server_that_requires_an_external_account_gets_its_key() {
    let state = state();
    let behaviour = Behaviour { valid_seconds: 3600, requires_external: true, ..Behaviour::default() };
    let answers = Answers::serve(state.path());
    let pebble = Pebble::start(&behaviour, answers.port);
    let seen = Front::new(&pebble, state.path()).run_until(|seen| seen.report.failures == 1);
    let reason = seen.report.last_failure.unwrap();
    assert!(reason.contains("externalAccountRequired"), "{reason}");
    fs::remove_file(state.path().join("attempts.json")).unwrap();
    let mut front = Front::new(&pebble, state.path());
    front.settings.external_account = ExternalAccount::parse(EXTERNAL.0, EXTERNAL.1.as_bytes());
    assert_eq!(front.run_until(|seen| seen.report.renewals == 1).used.len(), 1);
}

#[test]
fn an_unverified_server_gets_no_account() {
    let state = state();
    let answers = Answers::serve(state.path());
    let pebble = Pebble::start(&Behaviour { valid_seconds: 3600, ..Behaviour::default() }, answers.port);
    let front = Front { trusted: OTHER_CA, ..Front::new(&pebble, state.path()) };
    let seen = front.run_until(|seen| seen.report.failures == 1);
    let reason = seen.report.last_failure.unwrap();
    assert!(reason.contains("certificate"), "{reason}");
    assert!(!account_file(state.path(), &pebble).exists());
}

#[test]
fn an_account_stays_when_another_server_is_used_and_is_replaced_when_its_server_has_forgotten_it() {
    let state = state();
    let answers = Answers::serve(state.path());
    let behaviour = Behaviour { valid_seconds: 3600, ..Behaviour::default() };
    let [first, second] = [(); 2].map(|()| Pebble::start(&behaviour, answers.port));
    let order_at = |pebble: &Pebble| {
        let seen = Front::new(pebble, state.path()).run_until(|seen| seen.report.renewals == 1);
        assert_eq!(seen.report.failures, 0);
    };
    order_at(&first);
    let of_first = fs::read(account_file(state.path(), &first)).unwrap();
    // The second server does not know the account that its file has.
    let [of, at] = [&first, &second].map(|pebble| pebble.directory().replace("/dir", ""));
    let unknown = String::from_utf8(of_first.clone()).unwrap().replace(&of, &at);
    fs::write(account_file(state.path(), &second), &unknown).unwrap();
    order_at(&second);
    assert_ne!(
        json_of(&account_file(state.path(), &second))["key_pkcs8"],
        json_of(&account_file(state.path(), &first))["key_pkcs8"]
    );
    assert_eq!(fs::read(account_file(state.path(), &first)).unwrap(), of_first);
    // Back at the first one, without another account.
    order_at(&first);
    assert!(!first.log().contains("There are now 2 accounts"), "{}", first.log());
}

#[test]
fn a_changed_contact_is_sent_with_the_next_order() {
    let state = state();
    let answers = Answers::serve(state.path());
    let pebble = Pebble::start(&Behaviour { valid_seconds: 3600, ..Behaviour::default() }, answers.port);
    for contact in ["mailto:admin@example.org", "mailto:other@example.org"] {
        let mut front = Front::new(&pebble, state.path());
        front.settings.contacts = vec![contact.to_owned()];
        assert_eq!(front.run_until(|seen| seen.report.renewals == 1).report.failures, 0);
        let stored = json_of(&account_file(state.path(), &pebble));
        assert_eq!(stored["contacts"], serde_json::json!([contact]));
        fs::remove_file(state.path().join(format!("certificates/{NAME}.pem"))).unwrap();
    }
    assert!(!pebble.log().contains("There are now 2 accounts"), "{}", pebble.log());
}
