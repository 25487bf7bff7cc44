//! Search by name below a folder, for the API and the page.
//!
//! Invariants: a search visits a bounded number of entries in a bounded time, then reports where it
//! stopped, so that a further request continues there. Folders are listed in turns with other accounts, and
//! no longer than the client waits.

use plimsoll_content::{Walk, WalkEntry};
use plimsoll_operations::{Caller, Error, HomePath, Operation, ReadAccess, VisibleEntries};
use plimsoll_proto::http::Request;
use plimsoll_store::Error as StoreError;
use plimsoll_wire::http::form_urlencoded::value_of;
use unicode_normalization::UnicodeNormalization as _;

use crate::Web;
use crate::limits::{SEARCH_ENTRIES_MAX, SEARCH_NAME_BYTES_MAX, SEARCH_RESULTS_MAX, SEARCH_TIME_MAX};
use crate::refusal::Refusal;

/// A text that names are searched for. Case does not matter, nor the Unicode form of accents.
pub(crate) struct Search {
    folded: String,
    /// The path after which the search continues, below the folder.
    after: Option<Vec<u8>>,
    results_max: usize,
}

/// The result of a search.
pub(crate) struct Found {
    /// The entries, with paths below the folder.
    pub(crate) entries: Vec<WalkEntry>,
    /// The path after which a further search continues, unless all entries were visited.
    pub(crate) next: Option<Vec<u8>>,
}

impl Search {
    /// Parses `name=TEXT&after=PATH&limit=NUMBER`.
    pub(crate) fn from_query(query: Option<&[u8]>) -> Result<Search, Refusal> {
        let value = |name| query.and_then(|query| value_of(query, name));
        let name = value("name").filter(|name| (1..=SEARCH_NAME_BYTES_MAX).contains(&name.len()));
        let name = name.ok_or_else(|| Refusal::bad("\"name\" must be a text of 1 to 255 bytes."))?;
        let limit = match value("limit") {
            None => Some(SEARCH_RESULTS_MAX),
            Some(limit) => std::str::from_utf8(&limit).ok().and_then(|limit| limit.parse().ok()),
        };
        let results_max =
            limit.filter(|limit| (1..=SEARCH_RESULTS_MAX).contains(limit)).ok_or_else(|| {
                Refusal::bad(format!("\"limit\" must be a whole number from 1 to {SEARCH_RESULTS_MAX}."))
            })?;
        Ok(Search { folded: fold(&name), after: value("after"), results_max })
    }

    /// Whether an entry's name has the text.
    fn is_in(&self, name: &[u8]) -> bool {
        fold(name).contains(&self.folded)
    }

    /// Runs the search. Returns `None` if the client has disconnected.
    pub(crate) async fn run(
        &self,
        web: &Web,
        request: &mut Request<'_>,
        caller: &Caller,
        place: &HomePath,
    ) -> Result<Option<Found>, Error> {
        let (access, audit) = web.operations.read(caller, place, Operation::List).await?;
        let found = request.body.while_connected_or_recently(self.found(caller, access)).await;
        match found {
            None => Ok(None),
            Some(found) => audit.end(found).map(Some),
        }
    }

    async fn found(&self, caller: &Caller, access: ReadAccess) -> Result<Found, Error> {
        if access.shown != VisibleEntries::All {
            return Err(Error::NotShared);
        }
        let io = caller.io();
        let until = io.now() + SEARCH_TIME_MAX;
        let mut walk = Walk::begin(io.clone(), access.location, None).await?;
        if let Some(after) = &self.after {
            walk.skip_to(after).await?;
        }
        let (mut entries, mut visited) = (Vec::new(), 0);
        loop {
            let entry = match walk.next().await {
                Ok(Some(entry)) => entry,
                Ok(None) => return Ok(Found { entries, next: None }),
                // A folder that was removed meanwhile, or that the server may not read, has no results.
                Err(StoreError::NotFound | StoreError::Denied(_)) => {
                    walk.leave();
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            visited += 1;
            let path = entry.path.clone();
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            if self.is_in(name) {
                entries.push(entry);
            }
            if entries.len() >= self.results_max || visited >= SEARCH_ENTRIES_MAX || io.now() >= until {
                return Ok(Found { entries, next: Some(path) });
            }
        }
    }
}

/// Returns a name in lower case and normalised (NFC), so that names which read alike are alike.
fn fold(name: &[u8]) -> String {
    if name.is_ascii() {
        return String::from_utf8_lossy(name).to_ascii_lowercase();
    }
    String::from_utf8_lossy(name).nfc().flat_map(char::to_lowercase).nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_read_alike_are_found_whatever_their_case_and_form() {
        let is_found = |query: &str, name: &str| {
            Search::from_query(Some(query.as_bytes())).ok().unwrap().is_in(name.as_bytes())
        };
        for (query, name) in [
            ("name=TAX", "my taxes.pdf"),
            ("name=gr%C3%BC", "GRU\u{308}SSE.txt"),
            ("name=u%CC%88", "\u{dc}bung"),
            ("name=.PDF", "a.pdf"),
            ("name=%CE%A3", "\u{3c3}"),
        ] {
            assert!(is_found(query, name), "{query} {name}");
        }
        assert!(!is_found("name=ab", "a b") && !is_found("name=u", "\u{fc}"));
    }

    #[test]
    fn a_query_without_a_name_or_with_a_wrong_limit_is_refused() {
        for query in ["", "name=", "name=a&limit=0", "name=a&limit=x", "name=a&limit=100000"] {
            assert!(Search::from_query(Some(query.as_bytes())).is_err(), "{query}");
        }
    }
}
