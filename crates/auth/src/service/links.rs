//! Requests about public links.
//!
//! It does not know whether a path exists. Invariants: of a link that has ended, and of one that never was,
//! a visitor learns the same. A link whose owner is disabled does not exist. A download is counted in one
//! transaction before its first byte.

use std::borrow::Cow;
use std::cmp::Reverse;

use plimsoll_io::Io;

use super::AccountService;
use crate::account::Account;
use crate::attempts::Standing;
use crate::changes::Topic;
use crate::directory::StoredLink;
use crate::error::Error;
use crate::hash_queue::Lane;
use crate::limits::{
    LINK_GRANT_BYTES_MAX, LINK_UPLOAD_BYTES_DEFAULT, LINK_UPLOADS_DEFAULT, LINKS_PER_ACCOUNT_MAX,
    PASSWORD_BYTES_MAX,
};
use crate::links::{
    FileVersion, Link, LinkAccess, LinkPermission, NewLink, Proof, check_grant, draw_token, grant,
};
use crate::names::check_password;
use crate::passwords::{Weighed, weigh};
use crate::remembered::draw_key;
use crate::request::AuthResponse;
use crate::shares::shared_path;
use plimsoll_rpc::time::{self, Millis};
use plimsoll_rpc::{Secret, Source};

fn bad_link<T>(why: &'static str) -> Result<T, Error> {
    Err(Error::BadShare(Cow::Borrowed(why)))
}

/// Converts a number for the directory.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl AccountService {
    pub(super) async fn add_link(
        &self,
        io: &Io,
        owner: i64,
        new: NewLink,
        from: Source,
    ) -> Result<AuthResponse, Error> {
        if !self.settings().links {
            return Err(Error::NoLinks);
        }
        let (path, created) = (shared_path(&new.path)?, time::now(io));
        let expires = new.expires.map(time::since_1970);
        if expires.is_some_and(|expires| expires <= created) {
            return bad_link("The link would have ended already. Give a time that is to come.");
        }
        if new.uses_max == Some(0) || new.bytes_max == Some(0) {
            return bad_link("The link would permit nothing. Give a limit of at least 1, or none.");
        }
        let giver = self.directory(io, move |directory, _| directory.account_of(owner)).await?;
        let may_share = |account: &Account| account.enabled && account.permissions.share;
        let giver = giver.map(|row| row.account).filter(may_share).ok_or(Error::NotAllowed)?;
        let password = match new.password {
            Some(password) => self.hash_of_link(io, &giver.name, password, from).await?,
            None => String::new(),
        };
        let (token, id) = draw_token(io);
        // Without limits, strangers could fill the disk.
        let uploads = new.permission == LinkPermission::Upload;
        let row = StoredLink {
            id,
            owner,
            path,
            uploads,
            created: stored(created),
            expires: expires.map(stored),
            password,
            secret: draw_key(io).to_vec(),
            uses_max: new.uses_max.or(uploads.then_some(LINK_UPLOADS_DEFAULT)).map(stored),
            uses: 0,
            bytes_max: new.bytes_max.or(uploads.then_some(LINK_UPLOAD_BYTES_DEFAULT)).map(stored),
            bytes: 0,
        };
        let link = row.link(&giver.name);
        let added = self.directory(io, move |directory, _| directory.add_link(&row, LINKS_PER_ACCOUNT_MAX));
        if !added.await? {
            return bad_link("This account has as many links as it may. End one that is no longer needed.");
        }
        Ok(AuthResponse::NewLink((link, Secret::from(&*token))))
    }

    async fn hash_of_link(
        &self,
        io: &Io,
        owner: &str,
        password: Secret,
        from: Source,
    ) -> Result<String, Error> {
        check_password(owner, &password)?;
        // The account has a session.
        let permit = self.hash_permit(io, Some(owner), (from, Lane::Known)).await?;
        self.hash(io, password, permit).await
    }

    pub(super) async fn links(&self, io: &Io, owner: i64) -> Result<AuthResponse, Error> {
        let now = time::now(io);
        let found = self.directory(io, move |directory, _| {
            let Some(owner) = directory.account_of(owner)? else { return Ok(Vec::new()) };
            let rows = directory.links(owner.account.id)?;
            let held = rows.iter().filter(|row| row.holds(now));
            Ok(held.map(|row| row.link(&owner.account.name)).collect())
        });
        let mut links: Vec<Link> = found.await?;
        links.sort_by(|one, other| (Reverse(one.created), &one.id).cmp(&(Reverse(other.created), &other.id)));
        Ok(AuthResponse::Links(links))
    }

    pub(super) async fn end_link(&self, io: &Io, owner: i64, id: String) -> Result<AuthResponse, Error> {
        let ended = self.directory(io, move |directory, changes| {
            let ended = directory.end_link(owner, &id);
            changes.note(Topic::Shares(owner));
            ended
        });
        if ended.await? { Ok(AuthResponse::Done(())) } else { Err(Error::NotFound) }
    }

    /// Looks up a link that has not ended, and its owner.
    async fn stored_link(&self, io: &Io, id: String, now: Millis) -> Result<(StoredLink, Account), Error> {
        if !self.settings().links {
            return Err(Error::NotFound);
        }
        let found = self.directory(io, move |directory, _| {
            let Some(link) = directory.link(&id)?.filter(|link| link.holds(now)) else { return Ok(None) };
            let owner = directory.account_of(link.owner)?.map(|row| row.account);
            Ok(owner.filter(|owner| owner.enabled).map(|owner| (link, owner)))
        });
        found.await?.ok_or(Error::NotFound)
    }

    pub(super) async fn link(
        &self,
        io: &Io,
        id: String,
        grant: Option<String>,
    ) -> Result<AuthResponse, Error> {
        let now = time::now(io);
        let (row, owner) = self.stored_link(io, id, now).await?;
        let unlocked = is_unlocked(&row, grant.as_deref(), now);
        let link = row.link(&owner.name);
        let ends = [link.expires, unlocked.flatten().map(time::time)];
        let until = ends.into_iter().flatten().min();
        Ok(AuthResponse::LinkAccess(LinkAccess { owner, link, is_locked: unlocked.is_none(), until }))
    }

    pub(super) async fn unlock_link(
        &self,
        io: &Io,
        id: String,
        password: Secret,
        from: Source,
    ) -> Result<AuthResponse, Error> {
        let now = time::now(io);
        let (row, _) = self.stored_link(io, id, now).await?;
        if row.password.is_empty() || self.is_password(io, &row, password, from).await? {
            return Ok(AuthResponse::LinkGrant(grant(&row.secret, Proof::Password, now)));
        }
        Err(Error::WrongCredentials)
    }

    /// Checks a password under the limits of log-ins: for each link, and for each network.
    async fn is_password(
        &self,
        io: &Io,
        row: &StoredLink,
        password: Secret,
        from: Source,
    ) -> Result<bool, Error> {
        if password.bytes().len() > PASSWORD_BYTES_MAX {
            return Ok(false);
        }
        // No account has a name with a slash.
        let name = format!("/s/{}", row.id);
        let Some(limits) = self.settings().attempts else {
            return self.weigh_link(io, row, password, None).await;
        };
        self.counts.check(io, limits, (&name, from, Standing::Stranger))?;
        let lane = if self.counts.has_failed(io, from) { Lane::Others } else { Lane::Clean };
        let permit = self.hash_permit(io, Some(&name), (from, lane)).await?;
        let attempt = self.counts.begin(io, limits, (&name, from, Standing::Stranger))?;
        let is_right = self.weigh_link(io, row, password, permit).await;
        match is_right {
            Ok(false) => Err(Error::WrongCredentialsAfter { wait: attempt.failed() }),
            checked => {
                attempt.not_failed();
                checked
            }
        }
    }

    async fn weigh_link(
        &self,
        io: &Io,
        row: &StoredLink,
        password: Secret,
        permit: Option<crate::hash_queue::HashPermit>,
    ) -> Result<bool, Error> {
        let stored = row.password.clone();
        let weighed =
            self.hashing(io, permit, move |settings, salt| weigh(settings, Some(&stored), &password, salt));
        Ok(weighed.await? != Weighed::Wrong)
    }

    /// Counts a use, unless it continues a download that was counted.
    pub(super) async fn use_link(
        &self,
        io: &Io,
        id: String,
        (file, bytes): (FileVersion, u64),
        shown: Option<String>,
    ) -> Result<AuthResponse, Error> {
        let now = time::now(io);
        let (row, _) = self.stored_link(io, id, now).await?;
        let proof = Proof::Download(&file);
        let shown = shown.filter(|shown| shown.len() <= LINK_GRANT_BYTES_MAX);
        if shown.is_some_and(|shown| check_grant(&row.secret, proof, &shown, now).is_some()) {
            // No new one: a counted download would then have no end.
            return Ok(AuthResponse::DownloadGrant(None));
        }
        let id = row.id.clone();
        let counted = self.directory(io, move |directory, _| directory.use_link(&id, bytes, now));
        if !counted.await? {
            return Err(Error::LinkUsedUp);
        }
        Ok(AuthResponse::DownloadGrant(Some(grant(&row.secret, proof, now))))
    }
}

/// Returns until when a visitor needs no password; `None` if it needs one now.
fn is_unlocked(row: &StoredLink, grant: Option<&str>, now: Millis) -> Option<Option<Millis>> {
    if row.password.is_empty() {
        return Some(None);
    }
    let grant = grant.filter(|grant| grant.len() <= LINK_GRANT_BYTES_MAX)?;
    check_grant(&row.secret, Proof::Password, grant, now).map(Some)
}
