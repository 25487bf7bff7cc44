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
use plimsoll_operations::{Error, GUEST, Operation, Place, Shown, Transfer};
use plimsoll_wire::ftp::facts::{Facts, push_mlsd};
use plimsoll_wire::ftp::glob::{has_wildcards, matches};
use plimsoll_wire::ftp::listing::{self as wire, Kind, Rights, push_list, push_name};

use super::answer::{Answer, Obeyed};
use super::conversation::Conversation;
use super::limits::PATTERN_BYTES_MAX;
use super::place::{NOT_THERE, SHARED, Spot};
use super::state::Who;
use crate::http::site::is_hidden;

/// The format of entries.
#[derive(Clone)]
pub(super) enum Form {
    /// The format of LIST, with the owner's name and the current time since 1970.
    Long { owner: String, now: Duration },
    /// The format of NLST: names, each after the folder as the client wrote it.
    Names { folder: Vec<u8> },
    /// The format of MLSD.
    Facts(Facts),
}

/// A request for a listing.
pub(super) struct Asked<'a> {
    /// The path as the client sent it; its last name may be a pattern.
    pub(super) path: &'a [u8],
    /// Whether patterns are expanded, and a file is listed as itself.
    pub(super) is_loose: bool,
    /// Whether a folder itself is listed, and not its entries.
    pub(super) is_itself: bool,
    /// Whether a pattern without a leading dot matches names with one.
    pub(super) finds_hidden: bool,
}

/// A listing, and its audit record.
pub(super) struct Listing {
    pub(super) bytes: Vec<u8>,
    pub(super) record: Transfer,
}

/// The selection and format of a folder's entries.
pub(super) struct Telling {
    form: Form,
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
pub(super) fn made_folder(inode: u64) -> Stat {
    Stat {
        kind: FileKind::Folder,
        size: 0,
        device: 0,
        inode,
        modified: Duration::ZERO,
        changed: Duration::ZERO,
    }
}

/// Returns the metadata of a file or folder in the form of `plimsoll_wire`.
pub(super) fn told<'a>(name: &'a [u8], stat: &Stat, rights: Rights) -> wire::Entry<'a> {
    let kind = if stat.kind == FileKind::Folder { Kind::Folder } else { Kind::File };
    let (size, modified, unique) = (stat.size, stat.modified, (stat.device, stat.inode));
    wire::Entry { name, kind, size, modified, unique, rights }
}

impl Form {
    fn push(&self, out: &mut Vec<u8>, entry: &wire::Entry<'_>) {
        match self {
            Form::Long { owner, now } => push_list(out, entry, owner, *now),
            Form::Names { folder } => _ = push_name(out, folder, entry.name),
            Form::Facts(facts) => _ = push_mlsd(out, entry, *facts),
        }
    }

    /// Sets the folder before each name, if the format has one. `asked` is the folder as the client wrote it.
    fn in_folder(&mut self, asked: &[u8]) {
        if let Form::Names { folder } = self {
            folder.clear();
            folder.extend_from_slice(asked);
            if !asked.is_empty() && !asked.ends_with(b"/") {
                folder.push(b'/');
            }
        }
    }
}

impl Telling {
    /// Returns the lines of a few `entries`.
    fn lines(self, entries: Vec<Entry>) -> Vec<u8> {
        let mut lines = FolderLines::new(self, Shown::All, false);
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
        self.form.push(out, &told(name, stat, rights));
    }

    fn is_meant(&self, name: &[u8]) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        let is_hidden = name.starts_with(b".") && !pattern.starts_with(b".");
        matches(pattern, name) && (self.finds_hidden || !is_hidden)
    }
}

/// Generates the lines of a folder's listing, in the order of names.
pub(super) struct FolderLines {
    telling: Telling,
    shown: Shown,
    is_site: bool,
    entries: BTreeMap<Vec<u8>, Stat>,
    is_begun: bool,
    out: Vec<u8>,
}

impl FolderLines {
    /// Creates a collector that lists the entries in `shown`. For a site, hidden names are left out.
    pub(super) fn new(telling: Telling, shown: Shown, is_site: bool) -> FolderLines {
        FolderLines { telling, shown, is_site, entries: BTreeMap::new(), is_begun: false, out: Vec::new() }
    }
}

impl EntryCollector for FolderLines {
    type Output = Vec<u8>;

    fn add(&mut self, Entry { name, stat }: Entry) {
        let is_shown = match &self.shown {
            Shown::All => !(self.is_site && is_hidden(&name)),
            Shown::Only(names) => names.contains(&name),
        };
        // An entry of that name in the home is not accessible by it.
        let is_covered = self.telling.shared.is_some() && name == SHARED;
        if is_shown && !is_covered && stat.kind != FileKind::Other && self.telling.is_meant(&name) {
            self.entries.insert(name, stat);
        }
    }

    fn write(&mut self, entries_max: usize) -> ControlFlow<Vec<u8>> {
        if !std::mem::replace(&mut self.is_begun, true)
            && self.telling.shared == Some(true)
            && self.telling.is_meant(SHARED)
        {
            self.entries.insert(SHARED.to_vec(), made_folder(0));
        }
        for _ in 0..entries_max {
            let Some((name, stat)) = self.entries.pop_first() else {
                return ControlFlow::Break(std::mem::take(&mut self.out));
            };
            self.telling.push(&mut self.out, &name, &stat);
        }
        ControlFlow::Continue(())
    }
}

/// Splits a path into a folder and a pattern; only the last name can be a pattern.
fn pattern(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let (folder, last) = path.split_at(at);
    // A longer pattern is taken as a name: matching it would cost too much.
    (last.len() <= PATTERN_BYTES_MAX && has_wildcards(last)).then_some((folder, last))
}

impl Conversation<'_> {
    /// Generates a listing.
    pub(super) async fn listing(&mut self, asked: Asked<'_>, mut form: Form) -> Result<Listing, Answer> {
        let (mut path, mut found) = (asked.path, None);
        // An existing name takes precedence over its meaning as a pattern.
        if asked.is_loose
            && let Some((folder, last)) = pattern(path)
            && self.stat_of(path).await.is_err()
        {
            (path, found) = (folder, Some(last.to_vec()));
        }
        let spot = self.state.spot(path)?;
        if spot == Spot::Owners {
            return self.listing_of_owners(path, form, found, asked.is_itself).await;
        }
        let (readable, record) = self.read(&spot, Operation::List).await?;
        let stat = match self.stat(readable.clone()).await {
            Ok(stat) => stat,
            Err(error) => return Err(ended(record, error)),
        };
        let is_whole = asked.is_itself && found.is_none();
        if stat.kind != FileKind::Folder || is_whole {
            if !asked.is_loose || found.is_some() {
                return Err(ended(record, plimsoll_store::Error::NotFolder.into()));
            }
            let mut bytes = Vec::new();
            form.push(&mut bytes, &told(path_or_dot(path), &stat, readable.own_rights()));
            return Ok(Listing { bytes, record });
        }
        form.in_folder(path);
        let shared = self.of_top(&spot).await?;
        let (rights, finds_hidden) = (readable.rights, asked.finds_hidden);
        let telling = Telling { form, rights, pattern: found, finds_hidden, shared };
        match self.list(readable, telling).await {
            Ok(bytes) => Ok(Listing { bytes, record }),
            Err(error) => Err(ended(record, error)),
        }
    }

    /// As [`Conversation::listing`], for the folder that has one folder for each account that shares with the
    /// caller.
    async fn listing_of_owners(
        &mut self,
        path: &[u8],
        mut form: Form,
        pattern: Option<Vec<u8>>,
        is_itself: bool,
    ) -> Result<Listing, Answer> {
        let visitor = self.visitor();
        let (operations, caller) = self.caller().await?;
        let name = &caller.identity.account.name;
        let record = operations.recorder().begin(&visitor, Operation::List, name, &"/shared");
        let owners = match operations.sharers(&caller).await {
            Ok(owners) => owners,
            Err(error) => return Err(ended(record, error)),
        };
        let entry = |(owner, last): (String, SystemTime)| {
            let modified = last.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let stat = Stat { modified, ..made_folder(number_of(&owner)) };
            Entry { name: owner.into_bytes(), stat }
        };
        let mut entries: Vec<Entry> = owners.into_iter().map(entry).collect();
        if is_itself && pattern.is_none() {
            entries = vec![Entry { name: path_or_dot(path).to_vec(), stat: made_folder(0) }];
        } else {
            form.in_folder(path);
        }
        let telling = Telling { form, rights: ONLY_READ, pattern, finds_hidden: true, shared: None };
        Ok(Listing { bytes: telling.lines(entries), record })
    }

    /// Returns, for an account's `/`, whether anything is shared with it.
    async fn of_top(&mut self, spot: &Spot) -> Result<Option<bool>, Answer> {
        match spot {
            Spot::Place(place) if place.owner.is_none() && place.path.is_root() => {
                let (operations, caller) = self.caller().await?;
                Ok(Some(!operations.sharers(&caller).await?.is_empty()))
            }
            _ => Ok(None),
        }
    }

    /// Returns the metadata of the file or folder at a path, and the caller's rights to it.
    pub(super) async fn stat_of(&mut self, path: &[u8]) -> Result<(Stat, Rights), Answer> {
        let spot = self.state.spot(path)?;
        if spot == Spot::Owners {
            self.caller().await?;
            return Ok((made_folder(0), ONLY_READ));
        }
        let readable = self.look(&spot).await?;
        let rights = readable.own_rights();
        Ok((self.stat(readable).await?, rights))
    }

    /// Returns the format of LIST for `path`.
    pub(super) fn long_form(&self, path: &[u8]) -> Form {
        let owner = match (&self.state.who, self.state.spot(path)) {
            (Who::Person(_), Ok(Spot::Place(Place { owner: Some(owner), .. })))
                if !has_wildcards(owner.as_bytes()) =>
            {
                Some(owner)
            }
            (Who::Person(caller), _) => Some(caller.identity.account.name.clone()),
            _ => None,
        };
        let now = self.shared.io.wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Form::Long { owner: owner.unwrap_or_else(|| GUEST.to_owned()), now }
    }

    /// Sends a listing.
    pub(super) async fn send_listing(&mut self, listing: Listing) -> Obeyed {
        let Listing { bytes, mut record } = listing;
        let shared = self.shared;
        let Some(_reserved) = shared.served.generated.reserve(bytes.len() as u64) else {
            record.failed("busy");
            return Err(Answer::new(450, "Many long listings are being sent; try again shortly."));
        };
        let way = match self.state.take_way() {
            Ok(way) => way,
            Err(refused) => {
                record.failed("no data connection");
                return Err(refused);
            }
        };
        self.control.say(&Answer::new(150, "Here is the listing."));
        let moved = Cell::new(0);
        let sent = self.transfer(way, &moved, record.permit(), async |data, moving| {
            moving.send_bytes(data, bytes).await
        });
        match sent.await {
            Ok(()) => {
                record.done();
                Ok(Answer::new(226, "That was all."))
            }
            Err(stopped) => Err(stopped.end(record)),
        }
    }
}

/// Returns a unique number for a folder without an inode (FNV-1a, 64 bit).
fn number_of(owner: &str) -> u64 {
    owner
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Returns the path as the client sent it, or the current folder.
fn path_or_dot(path: &[u8]) -> &[u8] {
    if path.is_empty() { b"." } else { path }
}

/// Ends the record of a refused listing; returns the reply.
fn ended(record: Transfer, error: Error) -> Answer {
    record.end::<(), _>(Err(error)).err().map_or(NOT_THERE, Answer::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Rights = Rights { read: true, write: true, remove: true };

    fn telling(form: Form) -> Telling {
        Telling { form, rights: ALL, pattern: None, finds_hidden: false, shared: None }
    }

    fn names(folder: &[u8]) -> Form {
        Form::Names { folder: folder.to_vec() }
    }

    fn entries(names: &[&str]) -> Vec<Entry> {
        let stat = Stat { kind: FileKind::File, ..made_folder(7) };
        names.iter().map(|name| Entry { name: name.as_bytes().to_vec(), stat }).collect()
    }

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn only_the_last_name_of_a_path_is_a_pattern() {
        for (path, found) in [
            ("*.txt", Some(("", "*.txt"))),
            ("a/b/?", Some(("a/b/", "?"))),
            ("/*", Some(("/", "*"))),
            ("*/a", None),
            ("a[1]/", None),
            ("", None),
        ] {
            let expected = found.map(|(folder, last)| (folder.as_bytes(), last.as_bytes()));
            assert_eq!(pattern(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn a_pattern_finds_a_name_that_begins_with_a_dot_only_if_it_says_so() {
        let found = |pattern: &str, finds_hidden| {
            let pattern = Some(pattern.as_bytes().to_vec());
            let telling = Telling { pattern, finds_hidden, ..telling(names(b"")) };
            text(telling.lines(entries(&[".a", "a", "b"])))
        };
        assert_eq!(found("*", false), "a\r\nb\r\n");
        assert_eq!(found("*", true), ".a\r\na\r\nb\r\n");
        assert_eq!(found(".*", false), ".a\r\n");
        assert_eq!(found("x*", false), "");
        assert_eq!(text(telling(names(b"")).lines(entries(&[".a", "a"]))), ".a\r\na\r\n");
    }

    #[test]
    fn names_follow_the_folder_as_it_was_asked_for() {
        for (asked, line) in [("", "a\r\n"), ("d", "d/a\r\n"), ("d/", "d/a\r\n"), ("/", "/a\r\n")] {
            let mut form = names(b"");
            form.in_folder(asked.as_bytes());
            assert_eq!(text(telling(form).lines(entries(&["a"]))), line, "{asked}");
        }
    }

    #[test]
    fn in_the_top_folder_shared_is_what_others_share_and_can_only_be_read() {
        let told = |shared| {
            let form = Form::Facts(Facts::parse(b"type;perm;"));
            text(Telling { shared, ..telling(form) }.lines(entries(&["a", "shared", "z"])))
        };
        let [a, z] = ["type=file;perm=adfrw; a\r\n", "type=file;perm=adfrw; z\r\n"];
        assert_eq!(told(None), format!("{a}type=file;perm=adfrw; shared\r\n{z}"));
        assert_eq!(told(Some(false)), format!("{a}{z}"));
        assert_eq!(told(Some(true)), format!("{a}type=dir;perm=el; shared\r\n{z}"));
    }
}
