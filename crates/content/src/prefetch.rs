//! Fills the hot cache at start: small files of sites into it, larger ones into the page cache.
//!
//! Not accounts' files: they are many, and the server cannot know which will be requested. Invariants:
//! neither cache receives more than the hot cache's budget; symbolic links are skipped, so that no file is
//! read twice and no path is endless.

use std::io;
use std::ops::AddAssign;

use plimsoll_io::{FileKind, Fs, Instant};

use crate::encoding::Encodings;
use crate::hot_cache::{CacheKey, HotCache, LookupStart};
use crate::limits::{HOT_BODY_BYTES_MAX, PREFETCH_FILES_MAX, PREFETCH_LEVELS_MAX};
use crate::lookup::{Found, INDEX, LocalSource, Resolver};
use crate::{Site, Visibility, is_hidden};

/// A number of files, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The result of prefetching the sites' files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefetched {
    /// Stored in the hot cache.
    pub kept: Count,
    /// Larger ones, read into the page cache.
    pub cached: Count,
    /// Files that did not fit, or could not be read.
    pub left: Count,
}

impl AddAssign<u64> for Count {
    fn add_assign(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }
}

/// A file that may be prefetched.
pub struct Candidate<'a> {
    site: &'a Site,
    name: Vec<u8>,
    /// Its length in bytes when it was listed.
    pub bytes: u64,
}

/// Returns the files of sites, the smallest first, so that as many as possible fit. Sites that do not use the
/// hot cache are skipped.
pub fn candidates<'a>(fs: &dyn Fs, sites: &'a [Site]) -> Vec<Candidate<'a>> {
    let mut found = Vec::new();
    for site in sites.iter().filter(|site| site.generation().is_some()) {
        let mut ahead = vec![(Vec::new(), 0)];
        while let Some((folder, level)) = ahead.pop() {
            // A folder that cannot be read is reported when it is requested.
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
    let opened = fs.open_beneath(site.folder(), folder)?;
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
    pub fn read(&mut self, hot: &HotCache, fs: &dyn Fs, candidate: &Candidate<'_>, now: Instant) {
        let bytes = candidate.bytes;
        let is_small = bytes <= HOT_BODY_BYTES_MAX as u64;
        if is_small && candidate.store(hot, fs, now).unwrap_or(false) {
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
    /// Stores the file for clients that accept no encoding, and for browsers, which accept all; an index page
    /// also under its folder's name. Returns whether it fits.
    fn store(&self, hot: &HotCache, fs: &dyn Fs, now: Instant) -> io::Result<bool> {
        let folder =
            self.name.strip_suffix(INDEX).filter(|folder| folder.is_empty() || folder.ends_with(b"/"));
        for name in [Some(&*self.name), folder].into_iter().flatten() {
            for encodings in [Encodings::NONE, Encodings::ALL] {
                if !hot.has_room(self.bytes) {
                    return Ok(false);
                }
                self.store_as(hot, fs, name, encodings, now)?;
            }
        }
        Ok(true)
    }

    fn store_as(
        &self,
        hot: &HotCache,
        fs: &dyn Fs,
        name: &[u8],
        encodings: Encodings,
        now: Instant,
    ) -> io::Result<()> {
        let (root, visibility) = (self.site.folder(), Visibility::Public);
        let Some(generation) = self.site.generation() else { return Ok(()) };
        let resolver = Resolver { fs, root, visibility, encodings, is_known: false, is_prefetch: true };
        if let Found::File(found) = resolver.resolve(name)?
            && matches!(found.source, LocalSource::Bytes { .. })
        {
            let before = LookupStart::at(generation, now);
            hot.insert(&CacheKey::new(generation, name, visibility, encodings), &before, &found);
        }
        Ok(())
    }

    fn read_ahead(&self, fs: &dyn Fs) -> io::Result<()> {
        let file = fs.open_beneath(self.site.folder(), &self.name)?;
        fs.read_ahead(&file, 0..self.bytes)
    }
}
