//! The common part of LIST, NLST, MLSD and STAT: selects entries and formats them.
//!
//! The format of one entry is in `plimsoll_wire`. Invariants: a path that cannot be listed is refused before
//! the data connection is opened. A listed entry can be accessed by its listed name. A listing's bytes count
//! as generated while they are in memory, as HTTP's listings do.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, SystemTime};

use plimsoll_io::{Entry, EntryCollector, FileKind, Stat};
use plimsoll_operations::{AuditEntry, Error, GUEST, HomePath, Operation, VisibleEntries};
use plimsoll_tls::Direction;
use plimsoll_wire::ftp::facts::{Facts, push_mlsd};
use plimsoll_wire::ftp::glob::{has_wildcards, matches};
use plimsoll_wire::ftp::listing::{self as wire, EntryKind, Rights, is_line, push_list, push_name};

use super::conversation::Conversation;
use super::limits::PATTERN_BYTES_MAX;
use super::path::{NOT_FOUND, PathTarget, SHARED};
use super::reply::{CommandResult, Reply};
use super::state::Login;
use plimsoll_content::is_hidden;
use plimsoll_store::is_name;

/// The format of entries.
#[derive(Clone)]
pub(super) enum ListingFormat {
    /// The format of LIST, with the owner's name and the current time since 1970.
    Long { owner: String, now: Duration },
    /// The format of NLST: names, each after the folder as the client wrote it.
    Names { folder: Vec<u8> },
    /// The format of MLSD.
    Facts(Facts),
}

/// A request for a listing.
pub(super) struct ListingRequest<'a> {
    /// The path as the client sent it; its last name may be a pattern.
    pub(super) path: &'a [u8],
    /// Whether patterns are expanded, and a file is listed as itself.
    pub(super) expands_patterns: bool,
    /// Whether a folder itself is listed, and not its entries.
    pub(super) lists_folder_itself: bool,
    /// Whether a pattern without a leading dot matches names with one.
    pub(super) finds_hidden: bool,
}

/// A listing, and its audit entry.
pub(super) struct Listing {
    pub(super) bytes: Vec<u8>,
    pub(super) audit: AuditEntry,
}

/// The selection and format of a folder's entries.
pub(super) struct EntryFormatter {
    format: ListingFormat,
    rights: Rights,
    pattern: Option<Vec<u8>>,
    finds_hidden: bool,
    /// `Some` if the folder is an account's `/`, where [`SHARED`] is the folder of others' shares and hides
    /// an entry of that name; true if there are such shares.
    shared: Option<bool>,
}

/// The rights to a file or folder that is read-only.
pub(super) const ONLY_READ: Rights = Rights { read: true, write: false, remove: false };

/// Returns the metadata of a folder that is on no disk.
pub(super) fn virtual_folder(inode: u64) -> Stat {
    Stat {
        kind: FileKind::Folder,
        size: 0,
        device: 0,
        inode,
        modified: Duration::ZERO,
        changed: Duration::ZERO,
        links: 1,
    }
}

/// Returns the metadata of a file or folder in the form of `plimsoll_wire`.
pub(super) fn wire_entry<'a>(name: &'a [u8], stat: &Stat, rights: Rights) -> wire::Entry<'a> {
    let kind = if stat.kind == FileKind::Folder { EntryKind::Folder } else { EntryKind::File };
    let (size, modified, unique) = (stat.size, stat.modified, (stat.device, stat.inode));
    wire::Entry { name, kind, size, modified, unique, rights }
}

impl ListingFormat {
    fn push(&self, out: &mut Vec<u8>, entry: &wire::Entry<'_>) {
        match self {
            ListingFormat::Long { owner, now } => push_list(out, entry, owner, *now),
            ListingFormat::Names { folder } => _ = push_name(out, folder, entry.name),
            ListingFormat::Facts(facts) => _ = push_mlsd(out, entry, *facts),
        }
    }

    /// Sets the folder before each name, if the format has one. `request` is the folder as the client wrote
    /// it.
    fn in_folder(&mut self, request: &[u8]) {
        if let ListingFormat::Names { folder } = self {
            folder.clear();
            folder.extend_from_slice(request);
            if !request.is_empty() && !request.ends_with(b"/") {
                folder.push(b'/');
            }
        }
    }
}

impl EntryFormatter {
    /// Returns the lines of a few `entries`.
    fn lines(self, entries: Vec<Entry>) -> Vec<u8> {
        let mut lines = FolderLines::new(self, VisibleEntries::All, false);
        entries.into_iter().for_each(|entry| lines.add(entry));
        loop {
            if let ControlFlow::Break(lines) = lines.write(usize::MAX) {
                return lines;
            }
        }
    }

    fn push(&self, out: &mut Vec<u8>, name: &[u8], stat: &Stat) {
        let is_made = self.shared.is_some() && name == SHARED;
        let rights = if is_made { ONLY_READ } else { self.rights };
        self.format.push(out, &wire_entry(name, stat, rights));
    }

    fn is_selected(&self, name: &[u8]) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        let is_hidden = name.starts_with(b".") && !pattern.starts_with(b".");
        matches(pattern, name) && (self.finds_hidden || !is_hidden)
    }
}

/// Generates the lines of a folder's listing, in the order of names.
pub(super) struct FolderLines {
    formatter: EntryFormatter,
    shown: VisibleEntries,
    is_site: bool,
    entries: BTreeMap<Vec<u8>, Stat>,
    is_begun: bool,
    out: Vec<u8>,
}

impl FolderLines {
    /// Creates a collector that lists the entries in `shown`. For a site, hidden names are left out.
    pub(super) fn new(formatter: EntryFormatter, shown: VisibleEntries, is_site: bool) -> FolderLines {
        FolderLines { formatter, shown, is_site, entries: BTreeMap::new(), is_begun: false, out: Vec::new() }
    }
}

impl EntryCollector for FolderLines {
    type Output = Vec<u8>;

    fn add(&mut self, Entry { name, stat }: Entry) {
        let is_shown = match &self.shown {
            VisibleEntries::All => is_name(&name) && is_line(&name) && !(self.is_site && is_hidden(&name)),
            VisibleEntries::Only(names) => names.contains(&name),
        };
        // An entry of that name in the home is not accessible by it.
        let is_covered = self.formatter.shared.is_some() && name == SHARED;
        if is_shown && !is_covered && stat.kind != FileKind::Other && self.formatter.is_selected(&name) {
            self.entries.insert(name, stat);
        }
    }

    fn write(&mut self, entries_max: usize) -> ControlFlow<Vec<u8>> {
        if !std::mem::replace(&mut self.is_begun, true)
            && self.formatter.shared == Some(true)
            && self.formatter.is_selected(SHARED)
        {
            self.entries.insert(SHARED.to_vec(), virtual_folder(0));
        }
        for _ in 0..entries_max {
            let Some((name, stat)) = self.entries.pop_first() else {
                return ControlFlow::Break(std::mem::take(&mut self.out));
            };
            self.formatter.push(&mut self.out, &name, &stat);
        }
        ControlFlow::Continue(())
    }
}

/// Splits a path into a folder and a pattern; only the last name can be a pattern.
fn split_pattern(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let (folder, last) = path.split_at(at);
    // A longer pattern is taken as a name: matching it would cost too much.
    (last.len() <= PATTERN_BYTES_MAX && has_wildcards(last)).then_some((folder, last))
}

impl Conversation<'_> {
    /// Generates a listing.
    pub(super) async fn listing(
        &mut self,
        request: ListingRequest<'_>,
        mut format: ListingFormat,
    ) -> Result<Listing, Reply> {
        let (mut path, mut pattern) = (request.path, None);
        // An existing name takes precedence over its meaning as a pattern.
        if request.expands_patterns
            && let Some((folder, last)) = split_pattern(path)
            && self.stat_of(path).await.is_err()
        {
            (path, pattern) = (folder, Some(last.to_vec()));
        }
        let target = self.state.resolve(path)?;
        if target == PathTarget::Sharers {
            return self.listing_of_sharers(path, format, pattern, request.lists_folder_itself).await;
        }
        let (readable, audit) = self.authorise_read(&target, Operation::List).await?;
        let stat = match self.stat(&readable).await {
            Ok(stat) => stat,
            Err(error) => return Err(end_audit(audit, error)),
        };
        let is_whole = request.lists_folder_itself && pattern.is_none();
        if stat.kind != FileKind::Folder || is_whole {
            if !request.expands_patterns || pattern.is_some() {
                return Err(end_audit(audit, plimsoll_store::Error::NotFolder.into()));
            }
            let mut bytes = Vec::new();
            format.push(&mut bytes, &wire_entry(path_or_dot(path), &stat, readable.rights_to_itself()));
            return Ok(Listing { bytes, audit });
        }
        format.in_folder(path);
        let shared = self.shares_in_root(&target).await?;
        let (rights, finds_hidden) = (readable.rights, request.finds_hidden);
        let formatter = EntryFormatter { format, rights, pattern, finds_hidden, shared };
        match self.list(readable, formatter).await {
            Ok(bytes) => Ok(Listing { bytes, audit }),
            Err(error) => Err(end_audit(audit, error)),
        }
    }

    /// As [`Conversation::listing`], for the folder that has one folder for each account that shares with the
    /// caller.
    async fn listing_of_sharers(
        &mut self,
        path: &[u8],
        mut format: ListingFormat,
        pattern: Option<Vec<u8>>,
        lists_folder_itself: bool,
    ) -> Result<Listing, Reply> {
        let visitor = self.visitor();
        let (operations, caller) = self.caller().await?;
        let name = &caller.identity.account.name;
        let audit = operations.audit_log().begin(&visitor, Operation::List, name, &"/shared");
        let owners = match operations.sharers(&caller).await {
            Ok(owners) => owners,
            Err(error) => return Err(end_audit(audit, error)),
        };
        let entry = |(owner, last): (String, SystemTime)| {
            let modified = last.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let stat = Stat { modified, ..virtual_folder(virtual_inode(&owner)) };
            Entry { name: owner.into_bytes(), stat }
        };
        let mut entries: Vec<Entry> = owners.into_iter().map(entry).collect();
        if lists_folder_itself && pattern.is_none() {
            entries = vec![Entry { name: path_or_dot(path).to_vec(), stat: virtual_folder(0) }];
        } else {
            format.in_folder(path);
        }
        let formatter =
            EntryFormatter { format, rights: ONLY_READ, pattern, finds_hidden: true, shared: None };
        Ok(Listing { bytes: formatter.lines(entries), audit })
    }

    /// Returns, for an account's `/`, whether anything is shared with it.
    async fn shares_in_root(&mut self, target: &PathTarget) -> Result<Option<bool>, Reply> {
        match target {
            PathTarget::Home(place) if place.owner.is_none() && place.path.is_root() => {
                let (operations, caller) = self.caller().await?;
                Ok(Some(!operations.sharers(&caller).await?.is_empty()))
            }
            _ => Ok(None),
        }
    }

    /// Returns the metadata of the file or folder at a path, and the caller's rights to it.
    pub(super) async fn stat_of(&mut self, path: &[u8]) -> Result<(Stat, Rights), Reply> {
        let target = self.state.resolve(path)?;
        if target == PathTarget::Sharers {
            self.caller().await?;
            return Ok((virtual_folder(0), ONLY_READ));
        }
        let readable = self.authorise_lookup(&target).await?;
        let rights = readable.rights_to_itself();
        Ok((self.stat(&readable).await?, rights))
    }

    /// Returns the format of LIST for `path`.
    pub(super) fn long_form(&self, path: &[u8]) -> ListingFormat {
        let owner = match (&self.state.login, self.state.resolve(path)) {
            (Login::Account(_), Ok(PathTarget::Home(HomePath { owner: Some(owner), .. })))
                if !has_wildcards(owner.as_bytes()) =>
            {
                Some(owner)
            }
            (Login::Account(caller), _) => Some(caller.identity.account.name.clone()),
            _ => None,
        };
        let now = self.shared.io.wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        ListingFormat::Long { owner: owner.unwrap_or_else(|| GUEST.to_owned()), now }
    }

    /// Sends a listing.
    pub(super) async fn send_listing(&mut self, listing: Listing) -> CommandResult {
        let Listing { bytes, mut audit } = listing;
        let shared = self.shared;
        let Some(_reserved) = shared.services.generated.reserve(bytes.len() as u64) else {
            audit.failed("busy");
            return Err(Reply::new(450, "Many long listings are being sent; try again shortly."));
        };
        let data_mode = match self.take_data_mode() {
            Ok(data_mode) => data_mode,
            Err(refused) => {
                audit.failed("no data connection");
                return Err(refused);
            }
        };
        self.control.send_reply(&Reply::new(150, "Here is the listing."));
        let transferred = Cell::new(0);
        let data_mode = (data_mode, Direction::Download);
        let sent = self.transfer(data_mode, &transferred, audit.permit(), async |data, context| {
            context.send_bytes(data, bytes).await
        });
        match sent.await {
            Ok(()) => {
                audit.done();
                Ok(Reply::new(226, "That was all."))
            }
            Err(stopped) => Err(stopped.end(audit)),
        }
    }
}

/// Returns a unique number for a folder without an inode (FNV-1a, 64 bit).
fn virtual_inode(owner: &str) -> u64 {
    owner
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Returns the path as the client sent it, or the current folder.
fn path_or_dot(path: &[u8]) -> &[u8] {
    if path.is_empty() { b"." } else { path }
}

/// Ends the audit entry of a refused listing; returns the reply.
fn end_audit(audit: AuditEntry, error: Error) -> Reply {
    audit.end::<(), _>(Err(error)).err().map_or(NOT_FOUND, Reply::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Rights = Rights { read: true, write: true, remove: true };

    fn formatter(format: ListingFormat) -> EntryFormatter {
        EntryFormatter { format, rights: ALL, pattern: None, finds_hidden: false, shared: None }
    }

    fn names(folder: &[u8]) -> ListingFormat {
        ListingFormat::Names { folder: folder.to_vec() }
    }

    fn entries(names: &[&str]) -> Vec<Entry> {
        let stat = Stat { kind: FileKind::File, ..virtual_folder(7) };
        names.iter().map(|name| Entry { name: name.as_bytes().to_vec(), stat }).collect()
    }

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn only_the_last_name_of_a_path_is_a_pattern() {
        for (path, pattern) in [
            ("*.txt", Some(("", "*.txt"))),
            ("a/b/?", Some(("a/b/", "?"))),
            ("/*", Some(("/", "*"))),
            ("*/a", None),
            ("a[1]/", None),
            ("", None),
        ] {
            let expected = pattern.map(|(folder, last)| (folder.as_bytes(), last.as_bytes()));
            assert_eq!(split_pattern(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn a_pattern_above_the_limit_is_a_name() {
        let pattern = |bytes: usize| [b"*".repeat(bytes - 1), b"a".to_vec()].concat();
        assert!(split_pattern(&pattern(PATTERN_BYTES_MAX)).is_some());
        assert!(split_pattern(&pattern(PATTERN_BYTES_MAX + 1)).is_none());
    }

    #[test]
    fn a_pattern_matches_dot_names_only_if_it_begins_with_a_dot() {
        let listed = |pattern: &str, finds_hidden| {
            let pattern = Some(pattern.as_bytes().to_vec());
            let formatter = EntryFormatter { pattern, finds_hidden, ..formatter(names(b"")) };
            text(formatter.lines(entries(&[".a", "a", "b"])))
        };
        assert_eq!(listed("*", false), "a\r\nb\r\n");
        assert_eq!(listed("*", true), ".a\r\na\r\nb\r\n");
        assert_eq!(listed(".*", false), ".a\r\n");
        assert_eq!(listed("x*", false), "");
        assert_eq!(text(formatter(names(b"")).lines(entries(&[".a", "a"]))), ".a\r\na\r\n");
    }

    #[test]
    fn nlst_prefixes_names_with_the_folder_as_the_client_wrote_it() {
        for (request, line) in [("", "a\r\n"), ("d", "d/a\r\n"), ("d/", "d/a\r\n"), ("/", "/a\r\n")] {
            let mut format = names(b"");
            format.in_folder(request.as_bytes());
            assert_eq!(text(formatter(format).lines(entries(&["a"]))), line, "{request}");
        }
    }

    #[test]
    fn in_the_root_shared_hides_the_homes_own_entry_and_is_read_only() {
        let root_listing = |shared| {
            let format = ListingFormat::Facts(Facts::parse(b"type;perm;"));
            text(EntryFormatter { shared, ..formatter(format) }.lines(entries(&["a", "shared", "z"])))
        };
        let [a, z] = ["type=file;perm=adfrw; a\r\n", "type=file;perm=adfrw; z\r\n"];
        assert_eq!(root_listing(None), format!("{a}type=file;perm=adfrw; shared\r\n{z}"));
        assert_eq!(root_listing(Some(false)), format!("{a}{z}"));
        assert_eq!(root_listing(Some(true)), format!("{a}type=dir;perm=el; shared\r\n{z}"));
    }
}
