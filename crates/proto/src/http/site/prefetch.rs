//! Filling the hot set before anybody asks: a site's small files into it, its larger ones into the system's
//! cache.
//!
//! Sites alone: an account's files are many, and who will ask for which is not known before they log in.
//! What must hold: neither takes more than the set's budget; links are left out, so that nothing is read
//! twice and no way is endless.

use std::io;
use std::ops::AddAssign;

use plimsoll_io::{FileKind, Fs, Instant};

use super::encoding::Encodings;
use super::hot::{Before, HotSet, Wanted};
use super::lookup::{Found, INDEX, Lookup, Source};
use super::{Manner, Site, is_hidden};
use crate::http::limits::{HOT_BODY_BYTES_MAX, PREFETCH_FILES_MAX, PREFETCH_LEVELS_MAX};

/// Files and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What became of the files of sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefetched {
    /// In the hot set.
    pub kept: Count,
    /// Larger ones, read into the system's cache.
    pub cached: Count,
    /// What there was no room for, or could not be read.
    pub left: Count,
}

impl AddAssign<u64> for Count {
    fn add_assign(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }
}

/// A file that may be read.
pub struct Candidate<'a> {
    site: &'a Site,
    name: Vec<u8>,
    /// Its length in bytes when it was listed.
    pub bytes: u64,
}

/// The files of sites, the smallest first: so most of them find room. Not of those of which nothing is kept.
pub fn candidates<'a>(fs: &dyn Fs, sites: &'a [Site]) -> Vec<Candidate<'a>> {
    let mut found = Vec::new();
    for site in sites.iter().filter(|site| site.root.edition.is_some()) {
        let mut ahead = vec![(Vec::new(), 0)];
        while let Some((folder, level)) = ahead.pop() {
            // A folder that cannot be read is for its requests to complain of.
            let _ = gather(fs, site, &folder, level, &mut ahead, &mut found);
        }
    }
    found.sort_by_key(|candidate| candidate.bytes);
    found
}

fn gather<'a>(
    fs: &dyn Fs,
    site: &'a Site,
    folder: &[u8],
    level: usize,
    ahead: &mut Vec<(Vec<u8>, usize)>,
    found: &mut Vec<Candidate<'a>>,
) -> io::Result<()> {
    let opened = fs.open_beneath(&site.root.folder, folder)?;
    for entry in fs.names(&opened, PREFETCH_FILES_MAX)? {
        let name = [folder, &entry.name].concat();
        match entry.stat.kind {
            _ if is_hidden(&entry.name) => {}
            FileKind::Folder if level < PREFETCH_LEVELS_MAX => {
                ahead.push(([&name, &b"/"[..]].concat(), level + 1))
            }
            FileKind::File if found.len() < PREFETCH_FILES_MAX => {
                found.push(Candidate { site, name, bytes: entry.stat.size });
            }
            _ => {}
        }
    }
    Ok(())
}

impl Prefetched {
    /// Reads one file. `now` is by the clock that connections will have.
    pub fn read(&mut self, hot: &HotSet, fs: &dyn Fs, candidate: &Candidate<'_>, now: Instant) {
        let bytes = candidate.bytes;
        let is_small = bytes <= HOT_BODY_BYTES_MAX as u64;
        if is_small && candidate.keep(hot, fs, now).unwrap_or(false) {
            self.kept += bytes;
        } else if !is_small
            && self.cached.bytes + bytes <= hot.bytes_max()
            && candidate.read_ahead(fs).is_ok()
        {
            self.cached += bytes;
        } else {
            self.left += bytes;
        }
    }
}

impl Candidate<'_> {
    /// Keeps the file for those who take no encoding and for browsers, which take all; an index page under
    /// its folder's name too. Whether there was room.
    fn keep(&self, hot: &HotSet, fs: &dyn Fs, now: Instant) -> io::Result<bool> {
        let folder =
            self.name.strip_suffix(INDEX).filter(|folder| folder.is_empty() || folder.ends_with(b"/"));
        for name in [Some(&*self.name), folder].into_iter().flatten() {
            for encodings in [Encodings::NONE, Encodings::ALL] {
                if !hot.has_room(self.bytes) {
                    return Ok(false);
                }
                self.keep_as(hot, fs, name, encodings, now)?;
            }
        }
        Ok(true)
    }

    fn keep_as(
        &self,
        hot: &HotSet,
        fs: &dyn Fs,
        name: &[u8],
        encodings: Encodings,
        now: Instant,
    ) -> io::Result<()> {
        let (root, manner) = (&self.site.root, Manner::Site);
        let Some(edition) = root.edition else { return Ok(()) };
        let lookup = Lookup { fs, root: &root.folder, manner, encodings, is_known: false, is_prefetch: true };
        if let Found::File(found) = lookup.find(name)?
            && matches!(found.source, Source::Bytes { .. })
        {
            let before = Before::at(edition, now);
            hot.keep(&Wanted::new(edition, name, manner, encodings), &before, &found);
        }
        Ok(())
    }

    fn read_ahead(&self, fs: &dyn Fs) -> io::Result<()> {
        let file = fs.open_beneath(&self.site.root.folder, &self.name)?;
        fs.read_ahead(&file, 0..self.bytes)
    }
}
