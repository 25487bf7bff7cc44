//! Public links: made, ended, listed, visited.
//!
//! The rights of a link are in [`crate::permit`]: its visitor is a caller with the account of its owner, the
//! rights of the link, and its path. Invariants: only an existing path gets a link, and only from the owner
//! of its home. A password is taken over a protected connection only.

use plimsoll_auth::{Error as AuthError, FileVersion, Link, LinkPermission, LinkVisit, NewLink, Secret};
use plimsoll_io::FileKind;
use plimsoll_store::Path;

use crate::Operations;
use crate::caller::{Caller, Visitor};
use crate::error::Error;
use crate::home_path::HomePath;
use crate::operation::Operation;
use crate::permit::AccessRight;
use crate::sharing::is_there;

/// A client that has presented the token of a link.
pub enum LinkVisitor {
    /// It may use the link.
    Open(Box<Caller>),
    /// It has to enter the password first.
    Locked(Box<Link>),
}

impl Operations {
    /// Makes a link to a path of the caller's home. Returns it and its token, which cannot be read again.
    ///
    /// # Errors
    /// [`Error::NOT_FOUND`] if the path does not exist; as [`plimsoll_auth::Auth::add_link`].
    pub async fn link(&self, caller: &Caller, new: NewLink) -> Result<(Link, Secret), Error> {
        let place = HomePath::own(Path::parse(&new.path).map_err(plimsoll_store::Error::from)?);
        let audit = self.begin_at(caller, Operation::Link, &place);
        audit.end(self.make_link(caller, &place, new).await)
    }

    async fn make_link(
        &self,
        caller: &Caller,
        place: &HomePath,
        new: NewLink,
    ) -> Result<(Link, Secret), Error> {
        let (auth, io, peer) = (&self.0.auth, caller.io(), &caller.visitor.peer);
        if !auth.has_links() {
            return Err(AuthError::NoLinks.into());
        }
        if !caller.identity.account.permissions.share {
            return Err(Error::NotPermitted("share files"));
        }
        if new.password.is_some() {
            self.check_password_channel(&caller.visitor)?;
        }
        let permitted = self.permit(caller, place, &[AccessRight::Read]).await?;
        let stat = permitted.home.stat(io, &permitted.path).await?;
        if new.permission == LinkPermission::Upload {
            if !caller.identity.account.permissions.write {
                return Err(Error::NotPermitted("write files"));
            }
            if stat.kind != FileKind::Folder {
                return Err(plimsoll_store::Error::NotFolder.into());
            }
        }
        let new = NewLink { path: place.path.as_bytes().to_vec(), ..new };
        let made = auth.add_link(io, &caller.identity, new, peer).await.map_err(unknown_as_none)?;
        // A removal that ran meanwhile may not have seen the new link.
        if let Err(error) = is_there(io, &permitted).await {
            auth.end_link(io, &caller.identity, &made.0.id).await?;
            return Err(error);
        }
        Ok(made)
    }

    /// Ends a link.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::end_link`].
    pub async fn unlink(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let audit = self.begin_at(caller, Operation::Unlink, &"");
        audit.end(self.0.auth.end_link(caller.io(), &caller.identity, id).await)
    }

    /// Returns the caller's links, the newest first.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::links`].
    pub async fn links(&self, caller: &Caller) -> Result<Vec<Link>, Error> {
        let audit = self.begin_at(caller, Operation::ListLinks, &"");
        audit.end(self.0.auth.links(caller.io(), &caller.identity).await.map_err(unknown_as_none))
    }

    /// Returns the visitor that presents the token of the link of this id. It is not an operation of its
    /// own: the request that follows is.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::visit_link`].
    pub async fn visit_link(
        &self,
        visitor: &Visitor,
        id: &str,
        grant: Option<&str>,
    ) -> Result<LinkVisitor, Error> {
        Ok(match self.0.auth.visit_link(&visitor.io, id, grant).await? {
            LinkVisit::Open(identity) => LinkVisitor::Open(Box::new(Caller::new(visitor.clone(), identity))),
            LinkVisit::Locked(link) => LinkVisitor::Locked(Box::new(link)),
        })
    }

    /// Checks the password of a link. Returns a grant for the visitor's requests.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::unlock_link`], and [`Operations::check_password_channel`]. A refusal has
    /// its line in the transfer log, as a login.
    pub async fn unlock_link(&self, visitor: &Visitor, id: &str, password: &Secret) -> Result<String, Error> {
        self.check_password_channel(visitor)?;
        let unlocked = self.0.auth.unlock_link(&visitor.io, id, password, &visitor.peer).await;
        match unlocked {
            Ok(grant) => Ok(grant),
            Err(error) => self.begin(visitor, Operation::LogIn, &format!("link:{id}")).end(Err(error)),
        }
    }

    /// Counts a download of a visitor of a link, unless `grant` proves that it is one that was counted.
    /// Returns a grant to continue one that was not.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::use_link`].
    pub async fn count_download(
        &self,
        caller: &Caller,
        (path, etag): (&Path, &str),
        grant: Option<&str>,
    ) -> Result<Option<String>, Error> {
        let link = caller.identity.link().ok_or(Error::NOT_FOUND)?;
        let file = FileVersion { path: path.as_bytes().to_vec(), etag: etag.to_owned() };
        Ok(self.0.auth.use_link(caller.io(), &link.id, (file, 0), grant).await?)
    }
}

/// Reports an authentication server of another system, which knows no links. The permission was checked.
fn unknown_as_none(error: AuthError) -> AuthError {
    match error {
        AuthError::NotAllowed => AuthError::NoLinks,
        error => error,
    }
}
