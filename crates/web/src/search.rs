//! Search by name below a folder, for the API and the page.
//!
//! Invariants: a search visits a bounded number of entries in a bounded time, then reports where it
//! stopped, so that a further request continues there. Folders are listed in turns with other accounts, and
//! no longer than the client waits.

use plimsoll_content::{Walk, WalkEntry};
use plimsoll_io::Io;
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
        let walk = Walk::begin(caller.io().clone(), access.location, None).await?;
        Ok(self.visit(caller.io(), walk).await?)
    }

    /// Visits entries until one of the limits is reached.
    async fn visit(&self, io: &Io, mut walk: Walk) -> Result<Found, StoreError> {
        let until = io.now() + SEARCH_TIME_MAX;
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
                Err(error) => return Err(error),
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
    use std::path::Path;
    use std::time::Duration;

    use plimsoll_io::Fs as _;
    use plimsoll_io::sim::{Faults, Sim};
    use plimsoll_store::Location;

    use super::*;

    #[test]
    fn names_that_read_alike_are_found_whatever_their_case_and_form() {
        let is_found = |query: &str, name: &str| search(query).is_in(name.as_bytes());
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

    fn search(query: &str) -> Search {
        Search::from_query(Some(query.as_bytes())).ok().unwrap()
    }

    /// Searches a disk with these files, page by page. Returns the results of each page, and its time.
    fn pages(search: Search, faults: Faults, files: &[String]) -> Vec<(Vec<String>, Duration)> {
        let sim = Sim::new(0, faults);
        let host = sim.host("server");
        for file in files {
            let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
            host.disk().mkdir(format!("/{folder}")).unwrap();
            host.disk().write(format!("/{file}"), "").unwrap();
        }
        let (io, root) = (host.io(), host.disk().open_root(Path::new("/")).unwrap());
        let pages = sim.run(&host, async move {
            let (mut search, mut pages) = (search, Vec::new());
            loop {
                let top = Location::in_folder(root.clone(), Vec::new(), None);
                let (begin, walk) = (io.now(), Walk::begin(io.clone(), top, None).await.unwrap());
                let found = search.visit(&io, walk).await.unwrap();
                let names = found.entries.into_iter().map(|entry| String::from_utf8(entry.path).unwrap());
                pages.push((names.collect(), io.now() - begin));
                search.after = found.next;
                if search.after.is_none() {
                    return pages;
                }
            }
        });
        assert!(sim.panics().is_empty(), "{:?}", sim.panics());
        pages
    }

    #[test]
    fn a_search_that_visits_many_entries_stops_and_continues() {
        const FOLDER_ENTRIES: usize = 5_000;
        let files: Vec<_> = (0..SEARCH_ENTRIES_MAX)
            .map(|number| format!("{:02}/{:04}", number / FOLDER_ENTRIES, number % FOLDER_ENTRIES))
            .collect();
        let pages = pages(search("name=4999"), Faults::none(), &files);
        let found: Vec<_> = pages.iter().map(|(found, _)| found.len()).collect();
        // The folders are entries, too: the last one is not visited to its end.
        assert_eq!(found, [39, 1]);
    }

    #[test]
    fn a_search_that_takes_long_stops_and_continues() {
        const SLOWEST: Duration = Duration::from_secs(1);
        let faults = Faults { would_block: 1000, offload_delay_max: SLOWEST, ..Faults::none() };
        let files: Vec<_> = (0..100).map(|number| format!("{number:02}/x")).collect();
        let pages = pages(search("name=x"), faults, &files);
        let (_, others) = pages.split_last().unwrap();
        // A listing is not cut short, nor is the way back to the entry at which a search continues.
        assert!(others.len() > 3 && others.iter().all(|(_, time)| *time >= SEARCH_TIME_MAX), "{pages:?}");
        assert!(pages.iter().all(|(_, time)| *time < SEARCH_TIME_MAX + 4 * SLOWEST), "{pages:?}");
        let found: Vec<_> = pages.into_iter().flat_map(|(found, _)| found).collect();
        assert_eq!(found, files);
    }
}
