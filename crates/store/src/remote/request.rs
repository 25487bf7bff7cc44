//! The requests of a front to a storage server, and the properties of each.
//!
//! It does not define the operations ([`crate::backend`] does). Invariant: another version of the requests
//! has another number in each path, so that a server of that version refuses them.

use plimsoll_io::{Entry, JobOwner, ListingPage, Stat};
use plimsoll_rpc::{ConnectionClass, Method, Request};
use serde::{Deserialize, Serialize};

use crate::backend::HomeRequest;
use crate::json::{Encoded, StatFields, percent_encoded};
use crate::limits::{STORE_ANSWER_TIME, STORE_COUNT_TIME, STORE_LONG_ANSWER_TIME};
use crate::owner::HomeOwner;
use crate::path::Path;

/// The URL path of operations on homes. The number is the version of the requests.
pub const REQUESTS: &str = "/api/store/3/requests";
/// The URL path of listings.
pub const LISTINGS: &str = "/api/store/3/listings";
/// The URL path of file transfers.
pub const FILES: &str = "/api/store/3/files";
/// The URL path of the readiness check.
pub const READY: &str = "/api/store/3/ready";

/// A request about a home: an operation, a listing, the path of a file, or the start of an upload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoreRequest<T> {
    /// The home's account.
    pub owner: HomeOwner,
    /// The caller, as [`JobOwner::number`]; 0 is the home's account.
    #[serde(default)]
    pub caller: u64,
    /// The request itself.
    pub request: T,
}

impl<T> StoreRequest<T> {
    /// The owner of the work that the caller requests.
    pub(super) fn job_owner(&self) -> JobOwner {
        let account = JobOwner::account(self.owner.account);
        let caller = if self.caller == 0 { account.number() } else { self.caller };
        JobOwner::of_directory(caller, &self.owner.directory)
    }
}

/// A request to list a folder. Response: a list of names, percent-encoded, each with its metadata.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListRequest {
    /// The folder.
    pub path: Path,
    /// The largest number of entries; a larger folder is an error.
    pub entries_max: usize,
    /// Only these entries, and one more if the page is not the last.
    pub page: Option<PageJson>,
}

/// A [`ListingPage`] as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PageJson {
    after: Option<Encoded>,
    limit: usize,
}

impl From<&ListingPage> for PageJson {
    fn from(page: &ListingPage) -> PageJson {
        PageJson { after: page.after.clone().map(Encoded), limit: page.limit }
    }
}

impl From<PageJson> for ListingPage {
    fn from(page: PageJson) -> ListingPage {
        ListingPage { after: page.after.map(|Encoded(name)| name), limit: page.limit }
    }
}

/// An entry of a folder.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct EntryJson(#[serde(with = "EntryFields")] pub(crate) Entry);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Entry")]
struct EntryFields {
    #[serde(with = "percent_encoded")]
    name: Vec<u8>,
    #[serde(with = "StatFields")]
    stat: Stat,
}

/// A lookup: it may be repeated.
const READ: Method = Method {
    path: REQUESTS,
    deadline: STORE_ANSWER_TIME,
    is_idempotent: true,
    class: ConnectionClass::Unbounded,
};
/// A lookup that takes as long as a file or a tree is large.
const LONG_READ: Method = Method { deadline: STORE_LONG_ANSWER_TIME, ..READ };
/// A change: after an unknown outcome, it must not be repeated.
const CHANGE: Method = Method { is_idempotent: false, ..READ };
/// A change that may wait until the home is counted.
const COUNTED_CHANGE: Method = Method { deadline: STORE_COUNT_TIME, ..CHANGE };
/// A change that takes as long as a file or a tree is large.
const LONG_CHANGE: Method = Method { deadline: STORE_LONG_ANSWER_TIME, ..CHANGE };
/// The readiness check.
pub(super) const CHECK: Method = Method { path: READY, ..READ };

impl Request for StoreRequest<HomeRequest> {
    fn method(&self) -> Method {
        match &self.request {
            HomeRequest::Stat(_)
            | HomeRequest::CheckRemoval(_)
            | HomeRequest::CheckRename(..)
            | HomeRequest::CheckCopy(..)
            | HomeRequest::ResumableUpload(_)
            | HomeRequest::CompletedUpload(_)
            | HomeRequest::PendingAt(_)
            | HomeRequest::ResumableUploads
            | HomeRequest::EndOf { .. } => READ,
            HomeRequest::Usage | HomeRequest::TrashInfo | HomeRequest::Trash(_) | HomeRequest::Digest(..) => {
                LONG_READ
            }
            HomeRequest::SetModified { .. }
            | HomeRequest::SetUploadLength { .. }
            | HomeRequest::DiscardUpload(_) => CHANGE,
            HomeRequest::MakeFolder { .. } | HomeRequest::CreateResumable(_) => COUNTED_CHANGE,
            HomeRequest::Remove(_)
            | HomeRequest::Restore { .. }
            | HomeRequest::DropTrashed(_)
            | HomeRequest::Rename(..)
            | HomeRequest::Copy(..) => LONG_CHANGE,
        }
    }
}

impl Request for StoreRequest<ListRequest> {
    fn method(&self) -> Method {
        Method { path: LISTINGS, ..LONG_READ }
    }
}
