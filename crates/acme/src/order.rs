//! One order: an account, an order, its validations, and the certificate.
//!
//! It does not decide when to order: [`crate::machine`] does. Invariants: every wait is bounded, by the
//! order's time if the server names none. A certificate is returned only with its own key and all its names.
//! An answer is published, and durable, before the server is asked to validate; the caller removes all
//! answers.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use instant_acme::{
    Account, AccountBuilder, AccountCredentials, AuthorizationState, AuthorizationStatus,
    CertificateIdentifier, ChallengeHandle, ChallengeType, Error, ExternalAccountKey, Identifier, NewAccount,
    NewOrder, Order, OrderStatus, Problem,
};
use plimsoll_io::{Elapsed, Fs, Io, NotDone, Work};
use rustls_pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::certificate::Certificate;
use crate::challenge::{ChallengeCertificate, Proof};
use crate::folder::{StateFolder, Token};
use crate::limits::{
    NONCE_TRIES_MAX, ORDER_TIME_MAX, POLL_TIME_MAX, POLL_TIME_MIN, RENEWAL_INFO_TIME_MAX,
    RENEWAL_INFO_TIME_MIN,
};
use crate::machine::{Event, Failure};
use crate::mailbox::{Mailbox, Sender};
use crate::names::DomainName;
use crate::renewer::Settings;
use crate::schedule::Window;

/// The types of problems by which a server reports a failed validation (RFC 8555, section 6.7).
const VALIDATION_ERRORS: [&str; 6] = ["caa", "connection", "dns", "incorrectResponse", "tls", "unauthorized"];
/// The type of the problem of a refused nonce.
const BAD_NONCE: &str = "urn:ietf:params:acme:error:badNonce";
/// The type of the problem of an account that the server does not know.
const NO_ACCOUNT: &str = "urn:ietf:params:acme:error:accountDoesNotExist";

type Result<T> = std::result::Result<T, Failure>;

/// The means of an order.
pub(crate) struct Ordering<'a> {
    pub(crate) io: &'a Io,
    pub(crate) settings: &'a Settings,
    pub(crate) folder: &'a StateFolder,
    pub(crate) mailbox: &'a Arc<Mailbox>,
}

impl Ordering<'_> {
    /// Orders a certificate. `reached` gets the events on the way.
    pub(crate) async fn order(
        &self,
        replaced: Option<&Certificate>,
        reached: &mut dyn FnMut(Event),
    ) -> Result<Certificate> {
        let deadline = self.io.deadline();
        deadline.after(ORDER_TIME_MAX);
        let ordered = deadline.within(self.order_in_time(replaced, reached)).await;
        ordered.unwrap_or_else(|Elapsed| {
            let minutes = ORDER_TIME_MAX.as_secs() / 60;
            Err(Failure::new(format!("the order was not complete after {minutes} minutes")))
        })
    }

    async fn order_in_time(
        &self,
        replaced: Option<&Certificate>,
        reached: &mut dyn FnMut(Event),
    ) -> Result<Certificate> {
        let names = self.settings.names.iter();
        let names: Vec<_> = names.map(|name| Identifier::Dns(name.to_string())).collect();
        let mut new = NewOrder::new(&names);
        if let Some(id) = replaced.and_then(identifier) {
            new = new.replaces(id);
        }
        let mut order = self.new_order(&new).await?;
        if order.state().status == OrderStatus::Pending && self.answer_challenges(&mut order).await? {
            reached(Event::Challenged);
        }
        self.wait_until_validated(&mut order).await?;
        reached(Event::Validated);
        let key = Zeroizing::new(self.retried(async || order.finalize().await).await?);
        let chain = self.wait_for_certificate(&mut order).await?;
        reached(Event::Issued);
        let pem = Certificate::issued_by(&self.settings.directory, &chain, &key);
        let certificate =
            Certificate::read(pem).map_err(|bad| Failure::new(format!("the server sent {bad}")))?;
        if !certificate.covers(&self.settings.names) {
            return Err(Failure::new("the server sent a certificate without all names"));
        }
        Ok(certificate)
    }

    /// Creates an order, by a new account if the server has forgotten the stored one.
    async fn new_order(&self, new: &NewOrder<'_>) -> Result<Order> {
        let account = self.account().await?;
        match self.attempted(async || account.new_order(new).await).await {
            Err(Error::Api(problem)) if problem.r#type.as_deref() == Some(NO_ACCOUNT) => {
                tracing::warn!("the ACME server does not know the account any more; creating another");
                let account = self.create_account().await?;
                self.retried(async || account.new_order(new).await).await
            }
            ordered => self.result(ordered),
        }
    }

    /// Requests the window in which the server suggests to renew a certificate, and returns the time after
    /// which that is to be repeated. No window if the server has no renewal information.
    pub(crate) async fn renewal_info(&self, of: &Certificate) -> Result<(Option<Window>, Duration)> {
        let (Some((account, _)), Some(id)) = (self.stored_account().await?, identifier(of)) else {
            return Ok((None, RENEWAL_INFO_TIME_MAX));
        };
        match account.renewal_info(&id).await {
            Ok((info, after)) => {
                let (begins, ends) = (info.suggested_window.start, info.suggested_window.end);
                let window = Window { begins: SystemTime::from(begins), ends: SystemTime::from(ends) };
                Ok((Some(window), after.clamp(RENEWAL_INFO_TIME_MIN, RENEWAL_INFO_TIME_MAX)))
            }
            Err(Error::Unsupported(_)) => Ok((None, RENEWAL_INFO_TIME_MAX)),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Returns the account with the contacts of the settings, created if there is none at this directory.
    async fn account(&self) -> Result<Account> {
        let Some((account, json)) = self.stored_account().await? else { return self.create_account().await };
        if contacts_of(&json) != self.settings.contacts {
            self.change_contacts(&account, &json).await;
        }
        Ok(account)
    }

    /// Returns the account at this directory, and its file.
    async fn stored_account(&self) -> Result<Option<(Account, Zeroizing<Vec<u8>>)>> {
        let (folder, directory) = (self.folder.clone(), self.settings.directory.clone());
        let stored = self.on_disk(move |fs| folder.account(fs, &directory)).await?;
        let Some(json) = stored else { return Ok(None) };
        match serde_json::from_slice(&json) {
            Ok(credentials) => {
                let account = self.result(self.builder().from_credentials(credentials).await)?;
                Ok(Some((account, json)))
            }
            Err(_) => Ok(None),
        }
    }

    async fn store_account(&self, credentials: &AccountCredentials) -> Result<()> {
        let contacts = &self.settings.contacts;
        let json = serde_json::to_vec(&StoredAccount { credentials, contacts }).map(Zeroizing::new);
        let json = json.map_err(|error| Failure::new(format!("the account cannot be written: {error}")))?;
        let (folder, directory) = (self.folder.clone(), self.settings.directory.clone());
        self.on_disk(move |fs| folder.store_account(fs, &directory, &json)).await
    }

    /// Changes the contacts at the server, and in the account's file. A failure ends no order: the next one
    /// tries again.
    async fn change_contacts(&self, account: &Account, json: &[u8]) {
        let contacts: Vec<&str> = self.settings.contacts.iter().map(String::as_str).collect();
        let changed = match self.retried(async || account.update_contacts(&contacts).await).await {
            Ok(()) => match serde_json::from_slice(json) {
                Ok(credentials) => self.store_account(&credentials).await,
                Err(error) => Err(Failure::new(error.to_string())),
            },
            Err(failure) => Err(failure),
        };
        match changed {
            Ok(()) => tracing::info!("changed the contacts of the account for certificates"),
            Err(Failure { reason, .. }) => {
                tracing::warn!(reason, "the contacts of the account for certificates could not be changed");
            }
        }
    }

    fn builder(&self) -> AccountBuilder {
        Account::builder_with_http(Box::new(Sender(Arc::clone(self.mailbox))))
    }

    async fn create_account(&self) -> Result<Account> {
        let Settings { contacts, directory, external_account, .. } = self.settings;
        let contacts: Vec<&str> = contacts.iter().map(String::as_str).collect();
        let new =
            NewAccount { contact: &contacts, terms_of_service_agreed: true, only_return_existing: false };
        let external = external_account.as_ref();
        let external = external.map(|account| ExternalAccountKey::new(account.id.clone(), &account.key));
        let create = async || self.builder().create(&new, directory.clone(), external.as_ref()).await;
        let (account, credentials) = self.retried(create).await?;
        self.store_account(&credentials).await?;
        tracing::info!(account = account.id(), "created an account for certificates");
        Ok(account)
    }

    /// Publishes the answers to all pending challenges, and tells the server. Returns whether there were
    /// any.
    async fn answer_challenges(&self, order: &mut Order) -> Result<bool> {
        self.retried(async || fetch_authorizations(order).await).await?;
        let mut authorizations = order.authorizations();
        let mut is_any_pending = false;
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = self.result(authorization)?;
            match authorization.status {
                AuthorizationStatus::Pending => {}
                AuthorizationStatus::Valid => continue,
                status => return Err(Failure::new(format!("the server has a name as {status:?}"))),
            }
            let name = authorization.identifier().to_string();
            let (kind, method) = match self.settings.proof {
                Proof::Http => (ChallengeType::Http01, "HTTP (HTTP-01)"),
                Proof::Tls(_) => (ChallengeType::TlsAlpn01, "TLS (TLS-ALPN-01)"),
            };
            let Some(mut challenge) = authorization.challenge(kind) else {
                return Err(Failure::new(format!("the server offers no validation of {name} by {method}")));
            };
            self.publish(&name, &challenge).await?;
            let error = self.retried(async || early_error(challenge.set_ready().await)).await?;
            if let Some(error) = error {
                return Err(not_validated(&name, &error));
            }
            is_any_pending = true;
        }
        Ok(is_any_pending)
    }

    /// Publishes the answer to a challenge for a name.
    async fn publish(&self, name: &str, challenge: &ChallengeHandle<'_>) -> Result<()> {
        let answer = challenge.key_authorization();
        let Proof::Tls(challenges) = &self.settings.proof else {
            let token = Token::parse(&challenge.token)
                .ok_or_else(|| Failure::new("the ACME server sent a malformed challenge token"))?;
            let folder = self.folder.clone();
            return self.on_disk(move |fs| folder.publish(fs, &token, answer.as_str())).await;
        };
        let name =
            DomainName::parse(name).map_err(|_| Failure::new("the server sent a name that is none"))?;
        let made = ChallengeCertificate::new(&name, answer.digest().as_ref());
        let made = made.map_err(|error| Failure::new(format!("the challenge's certificate: {error}")))?;
        let published = challenges.publish(name.as_str(), made.chain.as_bytes(), made.key.as_bytes());
        published.map_err(|error| Failure::new(format!("the challenge's certificate: {error}")))
    }

    async fn wait_until_validated(&self, order: &mut Order) -> Result<()> {
        let mut patience = Patience::new();
        loop {
            match order.state().status {
                OrderStatus::Ready => return Ok(()),
                OrderStatus::Pending => {}
                _ => return Err(self.refusal(order).await),
            }
            self.io.sleep(patience.next(self.mailbox.take_retry_after())).await;
            self.retried(async || order.refresh().await.map(drop)).await?;
        }
    }

    async fn wait_for_certificate(&self, order: &mut Order) -> Result<String> {
        let mut patience = Patience::new();
        loop {
            match order.state().status {
                OrderStatus::Processing => {}
                OrderStatus::Valid => break,
                _ => return Err(self.refusal(order).await),
            }
            self.io.sleep(patience.next(self.mailbox.take_retry_after())).await;
            self.retried(async || order.refresh().await.map(drop)).await?;
        }
        let chain = self.retried(async || order.certificate().await).await?;
        chain.ok_or_else(|| Failure::new("the server has the certificate, but does not send it"))
    }

    /// Returns the reason why an order is invalid: an error of its validations, or its own.
    async fn refusal(&self, order: &mut Order) -> Failure {
        let own = order.state().error.as_ref().map(Problem::to_string);
        let mut authorizations = order.authorizations();
        while let Some(Ok(mut authorization)) = authorizations.next().await {
            let name = authorization.identifier().to_string();
            let error = self.retried(async || authorization.refresh().await.map(validation_error)).await;
            if let Ok(Some(error)) = error {
                return not_validated(&name, &error);
            }
        }
        Failure::new(own.unwrap_or_else(|| "the server refused the order, without a reason".to_owned()))
    }

    /// Makes a request, and again if the server refuses its nonce: "the client SHOULD retry the request after
    /// receiving a new nonce" (RFC 8555, section 6.5). The server has done nothing then.
    async fn attempted<T>(
        &self,
        mut request: impl AsyncFnMut() -> std::result::Result<T, Error>,
    ) -> std::result::Result<T, Error> {
        for _ in 1..NONCE_TRIES_MAX {
            match request().await {
                Err(Error::Api(problem)) if problem.r#type.as_deref() == Some(BAD_NONCE) => {}
                answered => return answered,
            }
        }
        request().await
    }

    /// As [`Ordering::attempted`], with the failure for an operator.
    async fn retried<T>(&self, request: impl AsyncFnMut() -> std::result::Result<T, Error>) -> Result<T> {
        self.result(self.attempted(request).await)
    }

    fn result<T>(&self, result: std::result::Result<T, Error>) -> Result<T> {
        result.map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &Error) -> Failure {
        Failure { retry_after: self.mailbox.take_retry_after(), ..Failure::new(error.to_string()) }
    }

    /// Runs work on files, where it may block.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Fs) -> io::Result<T> + Send + 'static,
    ) -> Result<T> {
        on_disk(self.io, work).await.map_err(|error| Failure::new(format!("the state folder: {error}")))
    }
}

/// Fetches all authorizations of an order, which keeps them.
async fn fetch_authorizations(order: &mut Order) -> std::result::Result<(), Error> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        authorization?;
    }
    Ok(())
}

fn not_validated(name: &str, error: &str) -> Failure {
    let reason = format!("the server could not validate {name}: {error}");
    Failure { is_validation: true, ..Failure::new(reason) }
}

/// Returns the error of a validation that failed before the server answered that it begins. `instant-acme`
/// returns such an error as it returns a refusal of the request.
fn early_error(answered: std::result::Result<(), Error>) -> std::result::Result<Option<String>, Error> {
    match answered {
        Err(Error::Api(problem)) if is_of_validation(&problem) => Ok(Some(problem.to_string())),
        answered => answered.map(|()| None),
    }
}

fn is_of_validation(problem: &Problem) -> bool {
    let kind = problem.r#type.as_deref().and_then(|kind| kind.strip_prefix("urn:ietf:params:acme:error:"));
    kind.is_some_and(|kind| VALIDATION_ERRORS.contains(&kind))
}

/// Returns the error of an authorization's challenge, if one has failed.
fn validation_error(authorization: &AuthorizationState) -> Option<String> {
    authorization.challenges.iter().find_map(|challenge| challenge.error.as_ref()).map(Problem::to_string)
}

/// Runs work on files, where it may block.
pub(crate) async fn on_disk<T: Send + 'static>(
    io: &Io,
    work: impl FnOnce(&dyn Fs) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    io.offload(Work::Chores, work).await.map_err(|not_done: NotDone| io::Error::from(not_done))?
}

/// The time between two requests for the state of an order.
struct Patience(Duration);

impl Patience {
    fn new() -> Patience {
        Patience(POLL_TIME_MIN)
    }

    /// Returns the time to wait now.
    fn next(&mut self, requested: Option<Duration>) -> Duration {
        let time = requested.unwrap_or(self.0).clamp(POLL_TIME_MIN, ORDER_TIME_MAX);
        self.0 = (self.0 * 2).min(POLL_TIME_MAX);
        time
    }
}

/// Returns the identifier by which a server finds a certificate (RFC 9773); none if it has none.
fn identifier(certificate: &Certificate) -> Option<CertificateIdentifier<'static>> {
    let leaf = CertificateDer::from(certificate.leaf());
    CertificateIdentifier::try_from(&leaf).ok().map(CertificateIdentifier::into_owned)
}

/// The contents of an account's file.
#[derive(Serialize)]
struct StoredAccount<'a> {
    #[serde(flatten)]
    credentials: &'a AccountCredentials,
    contacts: &'a [String],
}

/// The part of them that is not the credentials.
#[derive(Default, Deserialize)]
struct StoredContacts {
    #[serde(default)]
    contacts: Vec<String>,
}

fn contacts_of(account: &[u8]) -> Vec<String> {
    serde_json::from_slice::<StoredContacts>(account).unwrap_or_default().contacts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_unless_the_server_names_one() {
        let mut patience = Patience::new();
        let seconds = |requested: Option<u64>, patience: &mut Patience| {
            patience.next(requested.map(Duration::from_secs)).as_secs()
        };
        assert_eq!([0; 6].map(|_| seconds(None, &mut patience)), [1, 2, 4, 8, 15, 15]);
        assert_eq!(seconds(Some(40), &mut patience), 40);
        assert_eq!(seconds(Some(0), &mut patience), 1);
    }
}
