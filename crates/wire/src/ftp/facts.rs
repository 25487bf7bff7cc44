//! Output of MLSD and MLST: facts of a file or folder for programs, and the selection of facts by the
//! client.
//!
//! Not here: which entries are listed ([`Entry`] holds the data of one). RFC 3659, section 7: facts, a
//! space, the name. Invariants: one entry is one line, and its name follows the first space, byte for byte.

use super::listing::{Entry, EntryKind, Rights, is_line};
use super::time::push_time;
use crate::decimal::write_decimal;

/// One fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fact {
    Type,
    Size,
    Modify,
    Perm,
    Unique,
}

/// Names on the wire, in the order in which the facts are written.
const NAMES: [(&str, Fact); 5] = [
    ("type", Fact::Type),
    ("size", Fact::Size),
    ("modify", Fact::Modify),
    ("perm", Fact::Perm),
    ("unique", Fact::Unique),
];

/// A selection of facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// In the order of [`NAMES`].
    wanted: [bool; NAMES.len()],
}

impl Default for Facts {
    /// Selects all facts, which a client gets unless it has sent OPTS MLST.
    fn default() -> Self {
        Self { wanted: [true; NAMES.len()] }
    }
}

impl Facts {
    /// Parses the list of OPTS MLST, `type;size;`. An unknown fact is ignored: "Any facts from the request
    /// not supported by the server will be omitted" (RFC 3659, section 7.9.1).
    #[must_use]
    pub fn parse(list: &[u8]) -> Self {
        let is_named = |name: &str| {
            list.split(|&byte| byte == b';').any(|other| other.eq_ignore_ascii_case(name.as_bytes()))
        };
        Self { wanted: NAMES.map(|(name, _)| is_named(name)) }
    }

    /// Formats the line of FEAT: all facts, with an asterisk after each selected one (RFC 3659, section
    /// 7.8).
    #[must_use]
    pub fn feature(&self) -> String {
        let listed = NAMES.iter().zip(self.wanted);
        let facts = listed.map(|((name, _), wanted)| format!("{name}{};", if wanted { "*" } else { "" }));
        format!("MLST {}", facts.collect::<String>())
    }

    /// Formats the text of the 200 that answers OPTS MLST: `"MLST OPTS" [ SP 1*( factname ";" ) ]` (RFC
    /// 3659, section 7.9.1).
    #[must_use]
    pub fn opts_text(&self) -> String {
        let facts: String = self.wanted().map(|(name, _)| format!("{name};")).collect();
        format!("MLST OPTS {facts}").trim_end().to_owned()
    }

    fn wanted(&self) -> impl Iterator<Item = (&'static str, Fact)> {
        NAMES.into_iter().zip(self.wanted).filter_map(|(fact, wanted)| wanted.then_some(fact))
    }
}

/// Appends an entry in MLSD's form. Returns false and appends nothing if the name has a CR or LF, which a
/// client would read as two entries.
pub fn push_mlsd(out: &mut Vec<u8>, entry: &Entry<'_>, facts: Facts) -> bool {
    let is_line = is_line(entry.name);
    if is_line {
        push_entry(out, entry, facts);
        out.extend_from_slice(b"\r\n");
    }
    is_line
}

/// Formats an entry for MLST: a middle line of a reply of several lines, without the indent.
#[must_use]
pub fn mlst_line(entry: &Entry<'_>, facts: Facts) -> Vec<u8> {
    let mut out = Vec::new();
    push_entry(&mut out, entry, facts);
    out
}

fn push_entry(out: &mut Vec<u8>, entry: &Entry<'_>, facts: Facts) {
    for (name, fact) in facts.wanted() {
        // A folder's size is of no use to a client.
        if fact != Fact::Size || entry.kind == EntryKind::File {
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
            push_value(out, entry, fact);
            out.push(b';');
        }
    }
    out.push(b' ');
    out.extend_from_slice(entry.name);
}

fn push_value(out: &mut Vec<u8>, entry: &Entry<'_>, fact: Fact) {
    match (fact, entry.kind) {
        (Fact::Type, EntryKind::File) => out.extend_from_slice(b"file"),
        (Fact::Type, EntryKind::Folder) => out.extend_from_slice(b"dir"),
        (Fact::Size, _) => write_decimal(entry.size, out),
        (Fact::Modify, _) => push_time(out, entry.modified),
        (Fact::Perm, kind) => push_perm(out, kind, entry.rights),
        (Fact::Unique, _) => {
            let (device, inode) = entry.unique;
            out.extend_from_slice(format!("{device:x}g{inode:x}").as_bytes());
        }
    }
}

/// Appends the letters of the permitted verbs (RFC 3659, section 7.5.5). For a file: append, delete, rename
/// from, retrieve and store. For a folder: create in it, delete, enter, rename from, list, make folders in
/// it and purge.
fn push_perm(out: &mut Vec<u8>, kind: EntryKind, rights: Rights) {
    let Rights { read, write, remove } = rights;
    // Replacing a file or moving it away requires the right to delete it.
    let both = write && remove;
    let letters: &[(u8, bool)] = match kind {
        EntryKind::File => &[(b'a', both), (b'd', remove), (b'f', both), (b'r', read), (b'w', both)],
        EntryKind::Folder => &[
            (b'c', write),
            (b'd', remove),
            (b'e', read),
            (b'f', both),
            (b'l', read),
            (b'm', write),
            (b'p', remove),
        ],
    };
    out.extend(letters.iter().filter_map(|&(letter, may)| may.then_some(letter)));
}
