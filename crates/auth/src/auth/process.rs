//! Answers the processes of this server that each serve one connection, and whose caches are never
//! trusted.
//!
//! It is not the RPC server for fronts, which cache and have to learn of changes. Invariants: the cache
//! and the counts of attempts are those of this process, so that all connections share them. Whether
//! sign-up is open is decided here too: a connection's process that started before a reload has old
//! settings. Operator requests are rejected.

use plimsoll_io::Io;

use super::Auth;
use super::linking::LinkVisit;
use crate::error::Error;
use crate::links::LinkAccess;
use crate::request::{AuthRequest, AuthResponse};
use crate::sessions::{Credential, Identity};
use crate::settings::SignUp;
use plimsoll_rpc::time;

impl Auth {
    /// Answers a process whose own handle is [`Auth::of_main_process`].
    ///
    /// # Errors
    /// The errors of the request; [`Error::NotAllowed`] for operator requests. [`Error::SignUpClosed`] by
    /// this handle's settings, also if a remote server answers.
    pub async fn respond_to_process(&self, io: &Io, question: AuthRequest) -> Result<AuthResponse, Error> {
        match question {
            AuthRequest::Operator(_) => Err(Error::NotAllowed),
            AuthRequest::SignUp { .. } if self.settings().sign_up == SignUp::Closed => {
                Err(Error::SignUpClosed)
            }
            AuthRequest::Session(session) => {
                let identity = self.by_session(io, session).await?;
                let until = time::time(identity.verified.until);
                Ok(AuthResponse::Session(((*identity.account).clone(), until)))
            }
            AuthRequest::Password { name, password, from, .. } => {
                by_password(&self.by_name(io, name, password, from).await?)
            }
            AuthRequest::Link { id, grant, needs_counts: false } => {
                // Only an open link is cached.
                match self.visit_link(io, &id, grant.as_deref()).await? {
                    LinkVisit::Open(visitor) => {
                        LinkAccess::of_visitor(&visitor).map(AuthResponse::LinkAccess).ok_or(Error::NotFound)
                    }
                    LinkVisit::Locked(_) => {
                        self.answer(io, AuthRequest::Link { id, grant, needs_counts: true }).await
                    }
                }
            }
            AuthRequest::UnlockLink { id, password, from } => {
                Ok(AuthResponse::LinkGrant(self.unlock_link_from(io, &id, &password, from).await?))
            }
            AuthRequest::LogIn { name, password, from, .. } => {
                Ok(AuthResponse::LogIn(self.begin(io, name, password, from).await?))
            }
            // From the cache of this process: connection processes request it at each change.
            AuthRequest::Locks(owner) => {
                Ok(AuthResponse::Locks(self.home_locks(io, owner).await?.locks_if_known()?))
            }
            other => self.answer(io, other).await,
        }
    }
}

fn by_password(identity: &Identity) -> Result<AuthResponse, Error> {
    match identity.credential {
        Credential::Password(version) => Ok(AuthResponse::Password(((*identity.account).clone(), version))),
        // A password check never yields a session.
        Credential::Session(_) | Credential::Link => Err(Error::Unavailable),
    }
}
