//! The handle's methods for public links.
//!
//! It decides nothing: the account service does. Invariants: a visitor of a link is cached like a session,
//! until a share or link of the owner changes. Where links are turned off, there are none.

use std::sync::Arc;

use plimsoll_io::{Io, Peer};
use plimsoll_rpc::time;
use plimsoll_rpc::{Secret, Source};

use super::{Auth, Moment};
use crate::error::Error;
use crate::links::{FileVersion, Link, LinkAccess, NewLink, PresentedLink};
use crate::remembered::{Recall, Remembered};
use crate::request::AuthRequest;
use crate::sessions::{Credential, Identity};
use plimsoll_rpc::time::Millis;

/// A visitor of a public link.
#[derive(Clone, Debug)]
pub enum LinkVisit {
    /// It may use the link.
    Open(Identity),
    /// It has to enter the password first.
    Locked(Link),
}

impl Auth {
    /// Whether there are public links here.
    pub fn has_links(&self) -> bool {
        self.settings().links
    }

    /// Creates a public link. Returns it and its token, which cannot be read again.
    ///
    /// # Errors
    /// [`Error::NoLinks`], [`Error::NotAllowed`], [`Error::BadShare`], [`Error::BadPassword`].
    pub async fn add_link(
        &self,
        io: &Io,
        owner: &Identity,
        new: NewLink,
        from: &Peer,
    ) -> Result<(Link, Secret), Error> {
        if !self.has_links() {
            return Err(Error::NoLinks);
        }
        self.ask(io, AuthRequest::AddLink { owner: owner.account.id, new, from: Source::from(from) }).await
    }

    /// Lists the public links of this account, the newest first.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Unavailable`].
    pub async fn links(&self, io: &Io, owner: &Identity) -> Result<Vec<Link>, Error> {
        self.ask(io, AuthRequest::Links(owner.account.id)).await
    }

    /// Ends a public link. It is no longer valid at the next request.
    ///
    /// # Errors
    /// [`Error::NotFound`] if this account has no link of this id.
    pub async fn end_link(&self, io: &Io, owner: &Identity, id: &str) -> Result<(), Error> {
        self.ask(io, AuthRequest::EndLink { owner: owner.account.id, id: id.to_owned() }).await
    }

    /// Returns the visitor of the link of this id. `grant` is from [`Auth::unlock_link`].
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such link, or it has ended.
    pub async fn visit_link(&self, io: &Io, id: &str, grant: Option<&str>) -> Result<LinkVisit, Error> {
        if !self.has_links() {
            return Err(Error::NotFound);
        }
        let lookup = self.recall(io, Remembered::link_key(id, grant)).await?;
        if let Recall::Fresh(identity) = lookup.recall {
            return Ok(LinkVisit::Open(identity));
        }
        let request =
            AuthRequest::Link { id: id.to_owned(), grant: grant.map(str::to_owned), needs_counts: false };
        let access: LinkAccess = self.ask(io, request).await.map_err(|error| match error {
            // Another system's authentication server knows no links.
            Error::NotAllowed => Error::NotFound,
            error => error,
        })?;
        if access.is_locked {
            return Ok(LinkVisit::Locked(access.link));
        }
        // A visitor may present any grant to a link without a password: those are not worth a place.
        let is_cached = grant.is_none() || access.link.has_password;
        let identity = lookup.moment.link(access, grant);
        Ok(LinkVisit::Open(if is_cached { self.remember(&lookup, identity) } else { identity }))
    }

    /// Returns the link of a visitor as it is now, with its present counts: these are not cached.
    ///
    /// # Errors
    /// [`Error::NoSession`] if it has ended.
    pub async fn present_link(&self, io: &Io, caller: &Identity) -> Result<Link, Error> {
        let presented = caller.link.as_deref().ok_or(Error::NoSession)?;
        let (id, grant) = (presented.link.id.clone(), presented.grant.clone());
        let request = AuthRequest::Link { id, grant, needs_counts: true };
        let access: LinkAccess = self.ask(io, request).await.map_err(|error| match error {
            Error::NotFound | Error::NotAllowed => Error::NoSession,
            error => error,
        })?;
        if access.is_locked { Err(Error::NoSession) } else { Ok(access.link) }
    }

    /// As [`Auth::renew`], for a visitor of a link.
    pub(super) async fn renew_link(&self, io: &Io, caller: &Identity) -> Result<Identity, Error> {
        let presented = caller.link.as_deref().ok_or(Error::NoSession)?;
        match self.visit_link(io, &presented.link.id, presented.grant.as_deref()).await? {
            LinkVisit::Open(identity) => Ok(identity),
            LinkVisit::Locked(_) => Err(Error::NoSession),
        }
    }

    /// Checks the password of a link. Returns a grant for later requests of the visitor.
    ///
    /// # Errors
    /// [`Error::WrongCredentials`], [`Error::TooManyAttempts`], [`Error::NotFound`].
    pub async fn unlock_link(
        &self,
        io: &Io,
        id: &str,
        password: &Secret,
        from: &Peer,
    ) -> Result<String, Error> {
        self.unlock_link_from(io, id, password, Source::from(from)).await
    }

    /// As [`Auth::unlock_link`]. A client that presents the same password with each request, as curl does,
    /// has it hashed once: the grant is cached, as the identity of an account is.
    pub(super) async fn unlock_link_from(
        &self,
        io: &Io,
        id: &str,
        password: &Secret,
        from: Source,
    ) -> Result<String, Error> {
        // No account has a name with a slash.
        let name = format!("/s/{id}");
        let mut lookup = self.lookup(io, &name, password, from).await?;
        let mut flight = None;
        if !matches!(lookup.recall, Recall::Fresh(_)) {
            flight = self.shared.flights.begin_or_wait(lookup.key).await;
            if flight.is_none() {
                lookup = self.lookup(io, &name, password, from).await?;
            }
        }
        if let Recall::Fresh(Identity { link: Some(presented), .. }) = &lookup.recall
            && let Some(grant) = &presented.grant
        {
            return Ok(grant.clone());
        }
        let (id, password) = (id.to_owned(), password.clone());
        let unlocked = self.ask(io, AuthRequest::UnlockLink { id: id.clone(), password, from });
        let grant: String = self.noting_misses(io, from, unlocked.await)?;
        if let LinkVisit::Open(identity) = self.visit_link(io, &id, Some(&grant)).await? {
            self.remember(&lookup, identity);
        }
        // Only after the result is cached.
        drop(flight);
        Ok(grant)
    }

    /// Counts a download of a file, or an upload of so many bytes. Returns a grant to continue it. A
    /// download that `grant` proves to be counted is free, and gets no further grant.
    ///
    /// # Errors
    /// [`Error::LinkUsedUp`], [`Error::NotFound`].
    pub async fn use_link(
        &self,
        io: &Io,
        id: &str,
        (file, bytes): (FileVersion, u64),
        grant: Option<&str>,
    ) -> Result<Option<String>, Error> {
        let (id, grant) = (id.to_owned(), grant.map(str::to_owned));
        self.ask(io, AuthRequest::UseLink { id, file, bytes, grant }).await
    }
}

impl Moment {
    /// The identity for a link, from a response to a request sent at this moment.
    fn link(self, access: LinkAccess, grant: Option<&str>) -> Identity {
        let until = access.until.map_or(Millis::MAX, time::since_1970);
        let identity = self.identity(access.account(), Credential::Link, until);
        let presented = PresentedLink { link: access.link, grant: grant.map(str::to_owned) };
        Identity { link: Some(Arc::new(presented)), ..identity }
    }
}
