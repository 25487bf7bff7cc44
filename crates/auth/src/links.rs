//! Public links: the right to a path that an account gives to everyone who has the link's token.
//!
//! It does not know whether the path exists; callers check that. Invariants: a token is in the response to
//! the creation of its link only. A link's id is a hash of the token, which reveals nothing of it. A grant
//! is valid for one link and one purpose only: for its password, or for the download of one version of a
//! file.

use std::time::SystemTime;

use plimsoll_io::Io;
use plimsoll_rpc::Secret;
use plimsoll_rpc::time::{Millis, millis, time};
use plimsoll_wire::hex;
use serde::{Deserialize, Serialize};

use crate::account::{Account, Permissions};
use crate::directory::StoredLink;
use crate::limits::LINK_GRANT_TIME;
use crate::sessions::Identity;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 16;
/// Bytes of the token's hash that are the link's id: as many as the token has.
const ID_BYTES: usize = TOKEN_BYTES;

/// The operations that a link permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkPermission {
    /// List and download.
    Read,
    /// Upload new files, without seeing those that are there.
    Upload,
}

/// A link to be created.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewLink {
    /// A path of the owner's home, with `/` between its parts; empty is the whole home.
    pub path: Vec<u8>,
    /// The permitted operations.
    pub permission: LinkPermission,
    /// When it expires.
    pub expires: Option<SystemTime>,
    /// The password that visitors need.
    pub password: Option<Secret>,
    /// How many downloads it permits, or how many uploads.
    pub uses_max: Option<u64>,
    /// How many bytes it permits to upload.
    pub bytes_max: Option<u64>,
}

/// A link, without its token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Its id: a hash of the token.
    pub id: String,
    /// The name of the account that gave it.
    pub owner: String,
    /// The path in the owner's home: no `/` at either end; empty is the whole home.
    pub path: Vec<u8>,
    /// The permitted operations.
    pub permission: LinkPermission,
    /// When it was created, in whole milliseconds.
    pub created: SystemTime,
    /// When it expires, in whole milliseconds.
    pub expires: Option<SystemTime>,
    /// Whether visitors need a password.
    pub has_password: bool,
    /// How many downloads it permits, or how many uploads.
    pub uses_max: Option<u64>,
    /// How many of them there were. Only those of a limited link are counted.
    pub uses: u64,
    /// How many bytes it permits to upload.
    pub bytes_max: Option<u64>,
    /// How many bytes were uploaded.
    pub bytes: u64,
}

/// A file that a visitor of a link downloads or uploads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVersion {
    /// The path of the file.
    pub path: Vec<u8>,
    /// Its entity tag; empty for an upload. A grant for one version is not valid for the next.
    pub etag: String,
}

/// A link, as one visitor may use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkAccess {
    /// The account that gave it.
    pub owner: Account,
    /// The link.
    pub link: Link,
    /// Whether the visitor lacks the password.
    pub is_locked: bool,
    /// When the visitor has to be checked again: the link expires, or the proof of its password does.
    pub until: Option<SystemTime>,
}

/// A link that was presented, and the proof of its password, if it has one.
#[derive(Clone, Debug)]
pub struct PresentedLink {
    /// The link.
    pub link: Link,
    pub(crate) grant: Option<String>,
}

impl Link {
    /// Whether it has permitted all that it may.
    pub fn is_used_up(&self) -> bool {
        self.uses_max.is_some_and(|max| self.uses >= max)
    }
}

impl LinkAccess {
    /// Returns the owner's account with the rights that the link gives.
    pub(crate) fn account(&self) -> Account {
        let may = self.owner.permissions;
        let is_upload = self.link.permission == LinkPermission::Upload;
        // An operator who takes the permission to share from an account closes what it has published.
        let (read, write) = (may.share && may.read && !is_upload, may.share && may.write && is_upload);
        Account { permissions: Permissions { read, write, ..Permissions::NONE }, ..self.owner.clone() }
    }

    /// Returns an access that gives the rights of a visitor who was verified before.
    pub(crate) fn of_visitor(visitor: &Identity) -> Option<LinkAccess> {
        let until = Some(visitor.verified.until).filter(|until| *until != Millis::MAX).map(time);
        let mut owner = (*visitor.account).clone();
        // [`LinkAccess::account`] asks for it, and the visitor's rights are what it has returned.
        owner.permissions.share = true;
        let link = visitor.link.as_deref()?.link.clone();
        Some(LinkAccess { owner, link, is_locked: false, until })
    }
}

impl StoredLink {
    /// Returns the link, of the account `owner`.
    pub(crate) fn link(&self, owner: &str) -> Link {
        let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
        Link {
            id: self.id.clone(),
            owner: owner.to_owned(),
            path: self.path.clone(),
            permission: if self.uploads { LinkPermission::Upload } else { LinkPermission::Read },
            created: time(unsigned(self.created)),
            expires: self.expires.map(|expires| time(unsigned(expires))),
            has_password: !self.password.is_empty(),
            uses_max: self.uses_max.map(unsigned),
            uses: unsigned(self.uses),
            bytes_max: self.bytes_max.map(unsigned),
            bytes: unsigned(self.bytes),
        }
    }

    /// Returns whether it has not expired.
    pub(crate) fn holds(&self, now: Millis) -> bool {
        self.expires.is_none_or(|expires| u64::try_from(expires).unwrap_or(0) > now)
    }
}

/// Draws a new token. Returns its text and its link's id.
pub(crate) fn draw_token(io: &Io) -> (String, String) {
    let mut drawn = [0; TOKEN_BYTES];
    io.entropy(&mut drawn);
    (hex::encode(&drawn), id_of(&drawn))
}

/// Returns the id of the link of a token; `None` if the text does not have the form of a token.
pub fn link_of_token(token: &[u8]) -> Option<String> {
    let drawn: [u8; TOKEN_BYTES] = hex::decode(token)?.try_into().ok()?;
    Some(id_of(&drawn))
}

fn id_of(drawn: &[u8; TOKEN_BYTES]) -> String {
    hex::encode(&blake3::hash(drawn).as_bytes()[..ID_BYTES])
}

/// The proof that a grant is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Proof<'a> {
    /// The visitor has entered the password.
    Password,
    /// A download of this version of a file was counted, and may be continued.
    Download(&'a FileVersion),
}

/// Returns a grant: its end, and a keyed hash of all that it is for. The key is the link's own secret, so
/// that every server of the directory can check it, and none has to store it.
pub(crate) fn grant(secret: &[u8], proof: Proof<'_>, now: Millis) -> String {
    let until = now.saturating_add(millis(LINK_GRANT_TIME));
    format!("{until:x}-{}", grant_hash(secret, proof, until).to_hex())
}

/// Returns the end of a grant, if it is valid.
pub(crate) fn check_grant(secret: &[u8], proof: Proof<'_>, grant: &str, now: Millis) -> Option<Millis> {
    let (until, hash) = grant.split_once('-')?;
    let until = Millis::from_str_radix(until, 16).ok()?;
    // Hashes are compared in constant time.
    let is_valid = blake3::Hash::from_hex(hash).ok()? == grant_hash(secret, proof, until);
    (is_valid && until > now).then_some(until)
}

fn grant_hash(secret: &[u8], proof: Proof<'_>, until: Millis) -> blake3::Hash {
    let key = blake3::derive_key("plimsoll 2026-11-28 grant of a public link", secret);
    let mut hasher = blake3::Hasher::new_keyed(&key);
    hasher.update(&until.to_le_bytes());
    match proof {
        Proof::Password => hasher.update(&[0]),
        Proof::Download(FileVersion { path, etag }) => {
            // No path has a byte of zero.
            hasher.update(&[1]).update(path).update(&[0]).update(etag.as_bytes())
        }
    };
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_the_form_of_a_token_names_no_link() {
        let good = "0a".repeat(16);
        let id = link_of_token(good.as_bytes()).unwrap();
        assert_eq!(id.len(), 32);
        assert_ne!(id, good);
        for bad in ["", "0a", &good[1..], &format!("{good}00"), &"zz".repeat(16)] {
            assert_eq!(link_of_token(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_grant_is_for_one_link_one_version_one_kind_and_a_time() {
        let (one, other) = ([1; 32], [2; 32]);
        let version = |path: &str, etag: &str| FileVersion { path: path.into(), etag: etag.to_owned() };
        let (a, newer, b) = (version("a", "1"), version("a", "2"), version("b", "1"));
        let unlocked = grant(&one, Proof::Password, 1000);
        let download = grant(&one, Proof::Download(&a), 1000);
        let end = 1000 + millis(LINK_GRANT_TIME);
        assert_eq!(check_grant(&one, Proof::Password, &unlocked, 1000), Some(end));
        assert_eq!(check_grant(&one, Proof::Download(&a), &download, end - 1), Some(end));
        assert_eq!(check_grant(&one, Proof::Password, &unlocked, end), None);
        assert_eq!(check_grant(&other, Proof::Password, &unlocked, 1000), None);
        assert_eq!(check_grant(&one, Proof::Download(&FileVersion::default()), &unlocked, 1000), None);
        assert_eq!(check_grant(&one, Proof::Password, &download, 1000), None);
        for another in [&b, &newer, &version("a\0", "1"), &version("", "a1")] {
            assert_eq!(check_grant(&one, Proof::Download(another), &download, 1000), None);
        }
        let later = unlocked.replacen(&format!("{end:x}"), &format!("{:x}", end + 1), 1);
        for forged in ["", "-", "1", &later, &unlocked[..unlocked.len() - 1], "ffffffffffffffff-00"] {
            assert_eq!(check_grant(&one, Proof::Password, forged, 1000), None, "{forged}");
        }
    }
}
