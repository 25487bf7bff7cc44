//! TLS of a server: its certificates, their files, and their replacement while the server runs.
//!
//! It performs no handshake ([`plimsoll_tls`] does). Invariants: certificates are replaced all together, and
//! only by ones that can be used; new connections have the new ones. Keys are never logged.

mod acme;
mod facts;
mod files;
mod private_file;
mod self_signed;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::{Context as _, ensure};
use plimsoll_acme::Proof;
use plimsoll_cli::WrongUsage;
use plimsoll_io::{Cells, Current};
use plimsoll_tls::{Certificates, ChallengeCertificates, Clock, Handshakes, Roots, ServerTls, TicketSecret};

pub(crate) use acme::{Renewals, attempts, challenges, start as start_acme};
pub(crate) use facts::{Facts, facts_of, metrics_of, status_of};
use files::CertificateFiles;
pub(crate) use files::{FilesWatch, Stamps, key_files, read_key};

use crate::config::{AuthAt, Config, FtpTls, ServerCommand, StoreAt};
use crate::tiers::read_secret;
use crate::trusted_certificates;

/// The protocol over HTTPS, as clients name it (ALPN).
const HTTP: &str = "http/1.1";
/// The protocol over FTPS.
const FTP: &str = "ftp";

/// The TLS settings of a server, with what a reload replaces.
pub(crate) struct Encryption {
    https: Option<Arc<Current<ServerTls>>>,
    /// Those of FTP, while there is a certificate: a reload can add one.
    ftp: Mutex<Option<Arc<Current<ServerTls>>>>,
    facts: Arc<Current<Vec<Facts>>>,
    handshakes: Arc<Handshakes>,
    watch: FilesWatch,
    tickets: TicketSecret,
    clock: Arc<Clock>,
    /// Whether clients have got a certificate that was ordered: no self-signed one replaces it.
    has_ordered: AtomicBool,
    /// The certificates by which an ACME server validates names; `None` if it does so by HTTP.
    challenges: Option<Arc<ChallengeCertificates>>,
}

/// Certificates that were read, and can be used.
pub(crate) struct Usable {
    https: Option<ServerTls>,
    ftp: Option<ServerTls>,
    facts: Vec<Facts>,
    stamps: Stamps,
    is_ordered: bool,
}

impl Encryption {
    /// Reads the certificates of the configuration. Creates a self-signed one if that is wanted and missing.
    pub(crate) fn of(config: &Config, handshakes: Cells) -> anyhow::Result<Encryption> {
        let encryption = Encryption {
            https: None,
            ftp: Mutex::default(),
            facts: Current::new(Vec::new()),
            handshakes: Handshakes::in_cells(handshakes),
            watch: FilesWatch::default(),
            tickets: ticket_secret(config)?,
            clock: Clock::new(),
            challenges: acme::challenge_certificates(config),
            has_ordered: AtomicBool::new(false),
        };
        let Usable { https, ftp, facts, stamps, is_ordered } = encryption.read(config)?;
        encryption.replace_ftp(ftp);
        encryption.has_ordered.store(is_ordered, Ordering::Relaxed);
        encryption.facts.replace(facts);
        encryption.watch.note_used(stamps);
        Ok(Encryption { https: https.map(Current::new), ..encryption })
    }

    /// Returns the settings of new connections to HTTPS, also of operators; `None` without a listener.
    pub(crate) fn https(&self) -> Option<&Arc<Current<ServerTls>>> {
        self.https.as_ref()
    }

    /// Returns the handshakes of all listeners.
    pub(crate) fn handshakes(&self) -> &Arc<Handshakes> {
        &self.handshakes
    }

    /// Returns the settings of new sessions over FTP; `None` without a certificate.
    pub(crate) fn ftp(&self) -> Option<Arc<Current<ServerTls>>> {
        self.ftp.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace_ftp(&self, settings: Option<ServerTls>) {
        let mut ftp = self.ftp.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*ftp, settings) {
            (Some(current), Some(settings)) => current.replace(settings),
            (_, settings) => *ftp = settings.map(Current::new),
        }
    }

    /// Returns how an order proves that its names lead here.
    pub(crate) fn proof(&self) -> Proof {
        self.challenges.clone().map_or(Proof::Http, Proof::Tls)
    }

    /// Returns the facts about the certificates of new connections.
    pub(crate) fn facts(&self) -> &Arc<Current<Vec<Facts>>> {
        &self.facts
    }

    /// Reads the certificates again. Until [`Encryption::replace`] has them, polling tries them again.
    pub(crate) fn read(&self, config: &Config) -> anyhow::Result<Usable> {
        self.read_found(config, &find(config)?)
    }

    fn read_found(&self, config: &Config, found: &CertificateFiles) -> anyhow::Result<Usable> {
        let (stamps, is_stand_in) = (Stamps::of_found(found, config), found.is_stand_in(config));
        ensure!(
            !is_stand_in || !self.has_ordered.load(Ordering::Relaxed),
            "no ordered certificate in the state folder of ACME can be used; look whether the folder is there"
        );
        let is_ordered = config.fixed.acme().is_some() && !is_stand_in;
        let Some(certificates) = read_found(config, found)? else {
            return Ok(Usable { https: None, ftp: None, facts: Vec::new(), stamps, is_ordered });
        };
        let facts = Facts::of_all(&certificates);
        log_days_left(&facts);
        let clients = clients(config)?;
        let min = config.fixed.tls_min_version.0;
        let settings = |protocol: &str| {
            let (certificates, clock) = (certificates.clone(), Arc::clone(&self.clock));
            match &clients {
                None => {
                    let tickets = self.tickets.tickets(protocol, Arc::clone(&clock));
                    ServerTls::new(certificates, &[protocol], min, tickets, clock)
                }
                Some(roots) => ServerTls::for_clients_of(roots, certificates, &[protocol], min, clock),
            }
        };
        let has_https = !config.fixed.https.is_empty() || !config.fixed.metrics_tls.is_empty();
        let https = has_https.then(|| settings(HTTP)).transpose()?;
        let https = https.map(|https| match &self.challenges {
            Some(challenges) => https.with_challenges(Arc::clone(challenges)),
            None => https,
        });
        let ftp = config.fixed.has_ftp().then(|| settings(FTP)).transpose()?;
        Ok(Usable { https, ftp, facts, stamps, is_ordered })
    }

    /// Uses certificates for new connections.
    pub(crate) fn replace(&self, usable: Usable) {
        if let (Some(current), Some(https)) = (&self.https, usable.https) {
            current.replace(https);
        }
        self.replace_ftp(usable.ftp);
        self.facts.replace(usable.facts);
        self.has_ordered.fetch_or(usable.is_ordered, Ordering::Relaxed);
        self.watch.note_used(usable.stamps);
    }

    /// Notes an error that was reported, so that polling does not report it again.
    pub(crate) fn note_error(&self, error: &anyhow::Error) {
        self.watch.note_error(error);
    }

    /// Uses the certificates again if one of their files has changed, or the self-signed one is due. If the
    /// new ones cannot be used, the old ones stay, and the log says once why.
    pub(crate) fn refresh(&self, config: &Config) -> bool {
        let found = find(config);
        if found.as_ref().is_ok_and(|found| is_current(config, found, &self.watch)) {
            return true;
        }
        match found.and_then(|found| self.read_found(config, &found)) {
            Ok(usable) => {
                self.replace(usable);
                tracing::info!("the certificates were read again; new connections have them");
                true
            }
            Err(error) => {
                log_unusable(&self.watch, &error);
                false
            }
        }
    }
}

/// Logs that changed certificates cannot be used, unless the last try failed for the same reason.
fn log_unusable(watch: &FilesWatch, error: &anyhow::Error) {
    if !watch.note_error(error) {
        return;
    }
    let error = format!("{error:#}");
    tracing::error!(error, "the changed certificates cannot be used; the server keeps the ones that it has");
}

/// Like [`Encryption::refresh`], for the main process of the engine `process`, which has no connections:
/// `order` has the fork master refresh its certificates, and returns whether it did.
pub(crate) fn refresh_elsewhere(config: &Config, watch: &FilesWatch, order: impl FnOnce() -> bool) -> bool {
    let found = find(config);
    if found.as_ref().is_ok_and(|found| is_current(config, found, watch)) {
        return false;
    }
    let checked = found.and_then(|found| {
        let stamps = Stamps::of_found(&found, config);
        check_found(config, &found).map(|()| stamps)
    });
    match checked.inspect_err(|error| log_unusable(watch, error)) {
        Ok(stamps) if order() => {
            watch.note_used(stamps);
            true
        }
        _ => false,
    }
}

/// Returns whether the certificates in use are those of the files, and none is due to be made anew.
fn is_current(config: &Config, found: &CertificateFiles, watch: &FilesWatch) -> bool {
    let is_due = found.is_self_signed && self_signed::is_due(config);
    watch.has_used(&Stamps::of_found(found, config)) && !is_due
}

/// Returns the file of the self-signed certificate, if the configuration wants one.
pub(crate) fn self_signed_certificate(config: &Config) -> Option<PathBuf> {
    config.live.tls.self_signed.then(|| self_signed::pair(config).certificate)
}

/// Reads the certificates of the configuration; `None` if it has none. Creates a self-signed one if that is
/// wanted and missing.
pub(crate) fn read(config: &Config) -> anyhow::Result<Option<Certificates>> {
    read_found(config, &find(config)?)
}

fn read_found(config: &Config, found: &CertificateFiles) -> anyhow::Result<Option<Certificates>> {
    if found.is_self_signed {
        self_signed::ensure(config)?;
    }
    files::read(&found.pairs)
}

/// Returns whether clients get a self-signed certificate, because none was ordered yet.
pub(crate) fn is_stand_in(config: &Config) -> bool {
    files::find(config).is_ok_and(|found| found.is_stand_in(config))
}

/// Checks the certificates of the configuration. Creates nothing.
pub(crate) fn check(config: &Config) -> anyhow::Result<()> {
    check_found(config, &find(config)?)
}

fn check_found(config: &Config, found: &CertificateFiles) -> anyhow::Result<()> {
    clients(config)?;
    acme::check(config)?;
    if found.is_self_signed { Ok(()) } else { files::read(&found.pairs).map(drop) }
}

/// Finds the certificates, and checks them against the other settings.
fn find(config: &Config) -> anyhow::Result<CertificateFiles> {
    let found = files::find(config).map_err(WrongUsage)?;
    if config.fixed.https.is_empty() && config.live.tls.http_redirect {
        const ADVICE: &str = "--http-redirect needs HTTPS to redirect to: give --https ADDR";
        return Err(WrongUsage(ADVICE.to_owned()).into());
    }
    if !config.fixed.ftps.is_empty() && config.live.ftp.ftp_tls == FtpTls::Off {
        const ADVICE: &str = "--ftps begins with TLS: leave it out, or --ftp-tls off";
        return Err(WrongUsage(ADVICE.to_owned()).into());
    }
    check_client_ca(config, !found.pairs.is_empty())?;
    if let Some(flag) = wants_certificate(config).filter(|_| found.pairs.is_empty()) {
        const ADVICE: &str = "needs a certificate: give --certificate FILE and --key FILE, --acme DOMAIN to \
                              order one, or --self-signed for development";
        return Err(WrongUsage(format!("{flag} {ADVICE}")).into());
    }
    Ok(found)
}

/// Returns the setting that needs a certificate, if there is one.
fn wants_certificate(config: &Config) -> Option<String> {
    let Config { fixed, live } = config;
    let of_ftp = fixed.has_ftp() && live.ftp.ftp_tls == FtpTls::Require;
    let listeners = [
        ("https", fixed.https.is_empty()),
        ("ftps", fixed.ftps.is_empty()),
        ("metrics_tls", fixed.metrics_tls.is_empty()),
    ];
    let mut wanting =
        listeners.iter().filter(|(_, is_empty)| !is_empty).map(|(id, _)| fixed.command.flag(id));
    wanting.next().or_else(|| of_ftp.then(|| "--ftp-tls require".to_owned()))
}

/// Returns whether the configuration has a certificate.
pub(crate) fn has_certificate(config: &Config) -> bool {
    files::find(config).is_ok_and(|found| !found.pairs.is_empty())
}

/// Returns the certificates that vouch for clients, if each must have one.
fn clients(config: &Config) -> anyhow::Result<Option<Roots>> {
    let [path] = config.live.tls.client_ca.as_slice() else { return Ok(None) };
    trusted_certificates::read(path, "--client-ca").map(Some)
}

/// Refuses `--client-ca` where it has no effect.
fn check_client_ca(config: &Config, has_certificate: bool) -> Result<(), WrongUsage> {
    let is_tier = matches!(config.fixed.command, ServerCommand::Auth | ServerCommand::Store);
    match config.live.tls.client_ca.as_slice() {
        [] => Ok(()),
        _ if !is_tier => Err(WrongUsage("--client-ca is for plimsoll auth and plimsoll store".to_owned())),
        [_] if has_certificate => Ok(()),
        [_] => Err(WrongUsage("--client-ca needs --certificate FILE and --key FILE".to_owned())),
        _ => {
            Err(WrongUsage("give one --client-ca FILE, with the certificates of all authorities".to_owned()))
        }
    }
}

/// Returns the secret of the tickets. Fronts of the same tiers open each other's.
fn ticket_secret(config: &Config) -> anyhow::Result<TicketSecret> {
    let fixed = &config.fixed;
    if fixed.auth != AuthAt::Embedded || fixed.store != StoreAt::Local {
        return Ok(TicketSecret::of_shared(read_secret(fixed)?.bytes()));
    }
    TicketSecret::draw().context("cannot draw the secret of session tickets")
}

fn log_days_left(facts: &[Facts]) {
    for certificate in facts {
        let (name, days) = (certificate.name(), certificate.days_left(SystemTime::now()));
        if days < 0 {
            tracing::warn!(name, days, "a certificate has expired: clients refuse it; renew it");
        } else if certificate.is_near_its_end(days) {
            tracing::warn!(name, days, "a certificate expires soon; renew it");
        } else {
            tracing::info!(name, days, "a certificate is in use");
        }
    }
}
