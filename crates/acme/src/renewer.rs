//! The renewer of one certificate: it waits until an order is due, takes the lock, orders, and stores.
//!
//! It serves no challenge and no certificate: the server reads the first from the state folder, and gets the
//! second by [`Renewer::run`]. Invariants: without the lock it orders nothing. A failure changes no file but
//! the failed attempts, so that the old certificate stays in use. It ends only when the server stops.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use plimsoll_client::http::Resolve;
use plimsoll_io::{Fs, Io, select};
use plimsoll_tls::Connector;
use zeroize::Zeroizing;

use crate::certificate::Certificate;
use crate::challenge::Proof;
use crate::external::ExternalAccount;
use crate::folder::StateFolder;
use crate::limits::{FOLDER_POLL_TIME, RENEWAL_INFO_TIME, RENEWAL_INFO_TIME_MAX};
use crate::machine::{Attempts, Event, Failure, Machine};
use crate::mailbox::{Mailbox, Sending, deliver};
use crate::names::{DomainName, Names};
use crate::order::{Ordering, on_disk};
use crate::schedule::{Position, Validity};

/// The settings of a certificate that renews itself.
#[derive(Clone)]
pub struct Settings {
    /// The URL of the ACME server's directory.
    pub directory: String,
    /// The certificate's names.
    pub names: Names,
    /// Where the server may write to: `mailto:` URLs.
    pub contacts: Vec<String>,
    /// The account at the operator of the server that the new account is bound to.
    pub external_account: Option<ExternalAccount>,
    /// How the names are proved to lead here.
    pub proof: Proof,
}

/// An exclusive lock on a state folder: at most one of the fronts that share the folder has it. Dropping the
/// guard releases it.
pub trait Lock: Send + Sync {
    /// Takes the lock; `None` if another front has it.
    ///
    /// # Errors
    /// Any error of the file system.
    fn try_lock(&self) -> io::Result<Option<Box<dyn Send>>>;
}

/// The means to reach the ACME server.
pub struct Network {
    /// Encrypts connections, and verifies the server.
    pub tls: Connector,
    /// Resolves names.
    pub resolve: Resolve,
}

/// The state of renewals, for metrics and operators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The time in which the certificate is valid; none if there is no certificate.
    pub certificate: Option<Validity>,
    /// The time of the next attempt.
    pub next_attempt: Option<SystemTime>,
    /// Certificates stored by this process.
    pub renewals: u64,
    /// Failed attempts of this process.
    pub failures: u64,
    /// The reason of the last failure since the last certificate.
    pub last_failure: Option<String>,
}

/// The renewer of one certificate.
pub struct Renewer {
    settings: Settings,
    folder: StateFolder,
    lock: Arc<dyn Lock>,
    report: Mutex<Report>,
}

/// The state of a run.
struct Run {
    machine: Machine,
    certificate: Option<Certificate>,
    /// The certificate's file as it was last read or written, even if it cannot be used.
    file: Option<Zeroizing<Vec<u8>>>,
    /// The failed attempts as they were last read or written.
    attempts: Attempts,
    /// The time of the next request for renewal information.
    informed_until: SystemTime,
    /// Whether the server knows the certificate by its identifier.
    is_known: bool,
    /// A certificate that was issued, but could not be stored: servers count what they issue.
    unstored: Option<Certificate>,
}

impl Renewer {
    /// Creates a renewer. `lock` is that of the folder.
    pub fn new(settings: Settings, folder: StateFolder, lock: Arc<dyn Lock>) -> Renewer {
        Renewer { settings, folder, lock, report: Mutex::default() }
    }

    /// The state of the renewals.
    pub fn report(&self) -> Report {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Renews the certificate until the server stops. `uses` gets each certificate in the folder, at the
    /// start and after each change, also by another front. `reports` gets the state after each look at the
    /// folder. Boxed: its code is compiled in this crate, for size.
    pub fn run<'a>(
        &'a self,
        io: &'a Io,
        network: Network,
        uses: &'a dyn Fn(&Certificate),
        reports: &'a dyn Fn(&Report),
    ) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(async move {
            let mailbox = Arc::<Mailbox>::default();
            let Network { tls, resolve } = network;
            let sending = Sending { io: io.clone(), tls, resolve };
            let renewing = select(self.renew(io, &mailbox, uses, reports), deliver(&mailbox, &sending));
            select(io.stopping(), renewing).await;
        })
    }

    async fn renew(
        &self,
        io: &Io,
        mailbox: &Arc<Mailbox>,
        uses: &dyn Fn(&Certificate),
        reports: &dyn Fn(&Report),
    ) -> Infallible {
        let mut random = [0; 4];
        io.entropy(&mut random);
        let mut run = Run {
            machine: Machine::new(Attempts::default(), Position::new(random)),
            certificate: None,
            file: None,
            attempts: Attempts::default(),
            informed_until: SystemTime::UNIX_EPOCH,
            is_known: false,
            unstored: None,
        };
        let ordering = Ordering { io, settings: &self.settings, folder: &self.folder, mailbox };
        loop {
            if let Err(error) = self.turn(&mut run, &ordering, uses).await {
                tracing::error!(%error, "the state folder cannot be used; nothing is renewed");
            }
            self.note(&run);
            reports(&self.report());
            let until_due = run.machine.next_attempt().duration_since(io.wall()).unwrap_or_default();
            io.sleep(until_due.clamp(Duration::from_secs(1), FOLDER_POLL_TIME)).await;
        }
    }

    /// Looks at the folder, and orders if that is due.
    async fn turn(
        &self,
        run: &mut Run,
        ordering: &Ordering<'_>,
        uses: &dyn Fn(&Certificate),
    ) -> io::Result<()> {
        run.machine.forget_later_than_possible(ordering.io.wall());
        self.look(run, ordering.io, uses).await?;
        self.inform(run, ordering).await;
        if !run.machine.is_due(ordering.io.wall()) {
            return Ok(());
        }
        let lock = Arc::clone(&self.lock);
        let Some(_guard) = on_disk(ordering.io, move |_| lock.try_lock()).await? else { return Ok(()) };
        // Another front may have ordered, or failed, just before it released the lock.
        self.look(run, ordering.io, uses).await?;
        if !run.machine.is_due(ordering.io.wall()) {
            return Ok(());
        }
        self.attempt(run, ordering, uses).await
    }

    /// Reads the certificate and the failed attempts, which other fronts may have changed.
    async fn look(&self, run: &mut Run, io: &Io, uses: &dyn Fn(&Certificate)) -> io::Result<()> {
        let (folder, name) = (self.folder.clone(), self.name().clone());
        let read = move |fs: &dyn Fs| Ok((folder.certificate(fs, &name)?, folder.attempts(fs)?));
        let (pem, attempts) = on_disk(io, read).await?;
        if attempts != run.attempts {
            run.machine.set_attempts(attempts.clone());
            run.attempts = attempts;
        }
        if pem == run.file {
            return Ok(());
        }
        run.file.clone_from(&pem);
        let Some(pem) = pem else {
            tracing::warn!("the stored certificate was removed, and is ordered again");
            lose(run, io);
            return Ok(());
        };
        match Certificate::read(pem) {
            Ok(found)
                if found.covers(&self.settings.names) && found.may_be_from(&self.settings.directory) =>
            {
                advance(run, Event::Found(found.validity()), io);
                self.take(run, found, uses);
            }
            Ok(_) => tracing::info!(
                "the stored certificate lacks a name or is of another ACME server, and is ordered again"
            ),
            Err(error) => {
                tracing::warn!(%error, "the stored certificate cannot be used, and is ordered again");
                lose(run, io);
            }
        }
        Ok(())
    }

    fn take(&self, run: &mut Run, certificate: Certificate, uses: &dyn Fn(&Certificate)) {
        uses(&certificate);
        run.file = Some(Zeroizing::new(certificate.pem().to_vec()));
        run.certificate = Some(certificate);
        (run.informed_until, run.is_known) = (SystemTime::UNIX_EPOCH, false);
    }

    /// Requests the server's renewal information, if that is due.
    async fn inform(&self, run: &mut Run, ordering: &Ordering<'_>) {
        let now = ordering.io.wall();
        // Later than possible: the clock was ahead.
        let is_due = run.informed_until <= now || run.informed_until > now + RENEWAL_INFO_TIME_MAX;
        let Some(certificate) = run.certificate.as_ref().filter(|_| is_due) else { return };
        let after = match ordering.renewal_info(certificate).await {
            Ok((window, after)) => {
                run.is_known = window.is_some();
                advance(run, Event::Informed(window), ordering.io);
                after
            }
            Err(Failure { reason, .. }) => {
                tracing::info!(reason, "cannot fetch the renewal information; trying again later");
                RENEWAL_INFO_TIME
            }
        };
        run.informed_until = now + after;
    }

    /// Orders a certificate and stores it. The caller has the lock.
    async fn attempt(
        &self,
        run: &mut Run,
        ordering: &Ordering<'_>,
        uses: &dyn Fn(&Certificate),
    ) -> io::Result<()> {
        let io = ordering.io;
        advance(run, Event::Due, io);
        // A disk that cannot take this could not take the certificate.
        let recorded = self.store_attempts(run, io).await;
        // A server that knows the old certificate may prefer its renewal.
        let replaced = run.certificate.take();
        let known = replaced.as_ref().filter(|_| run.is_known && run.machine.attempts().failures == 0);
        let ordered = match (recorded, run.unstored.take()) {
            (Ok(()), Some(issued)) => {
                advance(run, Event::Validated, io);
                advance(run, Event::Issued, io);
                Ok(issued)
            }
            (Ok(()), None) => ordering.order(known, &mut |event| advance(run, event, io)).await,
            (Err(error), unstored) => {
                run.unstored = unstored;
                Err(Failure::new(format!("the state folder: {error}")))
            }
        };
        run.certificate = replaced;
        self.clear_answers(io).await;
        let stored = match ordered {
            Ok(certificate) => self.store(certificate, run, io).await,
            Err(failure) => Err(failure),
        };
        let failure = match stored {
            Ok(certificate) => {
                advance(run, Event::Stored(certificate.validity()), io);
                self.take(run, certificate, uses);
                tracing::info!(name = %self.name(), "a new certificate is stored");
                None
            }
            Err(failure) => {
                tracing::warn!(reason = failure.reason, "the certificate could not be ordered");
                advance(run, Event::Failed(failure.clone()), io);
                Some(failure.reason)
            }
        };
        let recorded = self.store_attempts(run, io).await;
        self.count(|report| {
            *if failure.is_some() { &mut report.failures } else { &mut report.renewals } += 1;
            report.last_failure = failure;
        });
        recorded
    }

    async fn clear_answers(&self, io: &Io) {
        if let Proof::Tls(challenges) = &self.settings.proof {
            challenges.clear();
        }
        let folder = self.folder.clone();
        if let Err(error) = on_disk(io, move |fs| folder.clear_answers(fs)).await {
            tracing::warn!(%error, "the answers to challenges could not be removed");
        }
    }

    async fn store_attempts(&self, run: &mut Run, io: &Io) -> io::Result<()> {
        let (folder, attempts) = (self.folder.clone(), run.machine.attempts().clone());
        let stored = attempts.clone();
        on_disk(io, move |fs| folder.store_attempts(fs, &stored)).await?;
        run.attempts = attempts;
        Ok(())
    }

    /// Stores a certificate. One that cannot be stored is kept in memory for the next attempt.
    async fn store(&self, certificate: Certificate, run: &mut Run, io: &Io) -> Result<Certificate, Failure> {
        let (folder, name) = (self.folder.clone(), self.name().clone());
        let pem = Zeroizing::new(certificate.pem().to_vec());
        let stored = on_disk(io, move |fs| folder.store_certificate(fs, &name, &pem)).await;
        match stored {
            Ok(()) => Ok(certificate),
            Err(error) => {
                run.unstored = Some(certificate);
                Err(Failure::new(format!("the certificate cannot be stored: {error}")))
            }
        }
    }

    /// The name of the certificate's file.
    fn name(&self) -> &DomainName {
        self.settings.names.first()
    }

    fn note(&self, run: &Run) {
        let certificate = run.certificate.as_ref().map(Certificate::validity);
        let next_attempt = Some(run.machine.next_attempt());
        self.count(|report| (report.certificate, report.next_attempt) = (certificate, next_attempt));
    }

    fn count(&self, change: impl FnOnce(&mut Report)) {
        change(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Notes that the state folder has no certificate any more.
fn lose(run: &mut Run, io: &Io) {
    run.certificate = None;
    advance(run, Event::Lost, io);
}

fn advance(run: &mut Run, event: Event, io: &Io) {
    if let Err(unexpected) = run.machine.advance(event, io.wall()) {
        tracing::error!(%unexpected, "a bug in the renewal of certificates");
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::Path;

    use base64::Engine as _;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    use bytes::Bytes;
    use plimsoll_io::sim::{Faults, Sim};
    use serde_json::{Value, json};

    use super::*;
    use crate::mailbox::respond;

    const DIRECTORY: &str = "https://acme.test/directory";
    const NAME: &str = "files.example.org";
    /// A certificate of a century, and its key.
    const CERTIFICATE: &str = concat!(
        include_str!("../../../tests/data/tls/server.pem"),
        include_str!("../../../tests/data/tls/server.key")
    );
    /// A key that was made for this test.
    const ACCOUNT_KEY: &str = concat!(
        "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgpPXNuUV5DSL3IPNFzPbjekZtXSjLEG5p",
        "nA895yenynyhRANCAAQ4XVgHXaYlMSTTeRtlPNob0WC3aSXeUgQKGUXHT6AGezPe5dMlJbyFBW4-Mag-",
        "gVAgF4awaumShUMwR-BXx6Ca",
    );
    const MINUTE: Duration = Duration::from_secs(60);
    /// The window of the renewal information: from 10 to 30 minutes after the start of a simulation.
    const WINDOW: (&str, &str) = ("2026-01-01T00:10:00Z", "2026-01-01T00:30:00Z");
    /// The time after which it is to be requested again: 20 minutes.
    const RETRY_AFTER: &str = "1200";

    /// A request: its path, and what its signed payload has.
    type Requested = (String, Value);

    /// Answers a request as a server with renewal information does that refuses all orders.
    fn answer(parts: &http::request::Parts, body: &[u8], has_information: bool) -> http::Response<Bytes> {
        let url = |path: &str| format!("https://acme.test/{path}");
        let (status, json) = match parts.uri.path() {
            "/directory" => {
                let information = has_information.then(|| url("renewal-info"));
                let orders = json!({
                    "newNonce": url("nonce"), "newAccount": url("account"), "newOrder": url("order"),
                    "renewalInfo": information,
                });
                (200, orders)
            }
            "/nonce" => (200, Value::Null),
            "/order" => {
                (503, json!({"type": "urn:ietf:params:acme:error:serverInternal", "detail": "a test"}))
            }
            _ => (200, json!({"suggestedWindow": {"start": WINDOW.0, "end": WINDOW.1}})),
        };
        assert!(body.is_empty() || parts.uri.path() == "/order");
        let response = http::Response::builder().status(status);
        let response = response.header("Replay-Nonce", "nonce").header("Retry-After", RETRY_AFTER);
        response.body(Bytes::from(json.to_string())).unwrap()
    }

    fn payload(body: &[u8]) -> Value {
        let signed: Value = serde_json::from_slice(body).unwrap_or_default();
        let payload = BASE64_URL_SAFE_NO_PAD.decode(signed["payload"].as_str().unwrap_or_default());
        serde_json::from_slice(&payload.unwrap()).unwrap_or_default()
    }

    /// Renews a stored certificate for some time. Returns the last report, and the requests.
    fn renew(time: Duration, has_information: bool) -> (Report, Vec<Requested>) {
        let sim = Sim::new(0, Faults::none());
        let host = sim.host("server");
        host.disk().mkdir("/acme").unwrap();
        let folder = StateFolder::open(&**host.disk(), Path::new("/acme")).unwrap();
        let name = DomainName::parse(NAME).unwrap();
        folder.store_certificate(&**host.disk(), &name, CERTIFICATE.as_bytes()).unwrap();
        let account = json!({"id": "https://acme.test/1", "key_pkcs8": ACCOUNT_KEY, "directory": DIRECTORY});
        folder.store_account(&**host.disk(), DIRECTORY, account.to_string().as_bytes()).unwrap();
        let names = Names::new([name]).unwrap();
        let (directory, contacts) = (DIRECTORY.to_owned(), Vec::new());
        let (external_account, proof) = (None, Proof::Http);
        let settings = Settings { directory, names, contacts, external_account, proof };
        let renewer = Renewer::new(settings, folder, Arc::new(Free));
        let (io, mailbox) = (host.io(), Arc::<Mailbox>::default());
        sim.run(&host, async move {
            let requested = RefCell::new(Vec::new());
            let responding = respond(&mailbox, |parts, body| {
                requested.borrow_mut().push((parts.uri.path().to_owned(), payload(body)));
                answer(parts, body, has_information)
            });
            let renewing = select(renewer.renew(&io, &mailbox, &|_| {}, &|_| {}), responding);
            select(renewing, io.sleep(time)).await;
            (renewer.report(), requested.take())
        })
    }

    /// A lock that no other front has.
    struct Free;

    impl Lock for Free {
        fn try_lock(&self) -> io::Result<Option<Box<dyn Send>>> {
            Ok(Some(Box::new(())))
        }
    }

    fn after_start(time: Duration) -> SystemTime {
        SystemTime::UNIX_EPOCH + plimsoll_io::sim::START + time
    }

    fn count(requested: &[Requested], path: &str) -> usize {
        requested.iter().filter(|(requested, _)| requested.starts_with(path)).count()
    }

    #[test]
    fn the_next_attempt_is_in_the_window_of_the_servers_renewal_information() {
        let (report, requested) = renew(MINUTE * 5, true);
        let next = report.next_attempt.unwrap();
        assert!((after_start(MINUTE * 10)..=after_start(MINUTE * 30)).contains(&next), "{next:?}");
        assert_eq!((count(&requested, "/renewal-info/"), count(&requested, "/order")), (1, 0));
    }

    #[test]
    fn the_renewal_information_is_requested_again_when_the_server_says() {
        // After 0, 20 and 40 minutes; the orders of the window fail.
        assert_eq!(count(&renew(MINUTE * 50, true).1, "/renewal-info/"), 3);
    }

    #[test]
    fn an_order_in_the_window_names_the_certificate_that_it_replaces() {
        let (report, requested) = renew(MINUTE * 31, true);
        let path = requested.iter().find_map(|(path, _)| path.strip_prefix("/renewal-info/")).unwrap();
        let orders: Vec<&Value> =
            requested.iter().filter(|(path, _)| path == "/order").map(|(_, payload)| payload).collect();
        assert_eq!(orders[0]["replaces"], path);
        assert_eq!(orders[0]["identifiers"][0]["value"], NAME);
        assert!(report.failures > 0 && report.last_failure.unwrap().contains("a test"));
    }

    #[test]
    fn a_server_without_renewal_information_gets_orders_after_two_thirds_of_the_lifetime() {
        let (report, requested) = renew(MINUTE * 5, false);
        assert!(report.next_attempt.unwrap() > after_start(MINUTE * 60 * 24 * 365 * 50));
        assert_eq!(count(&requested, "/renewal-info/"), 0);
    }
}
