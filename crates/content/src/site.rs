//! A site: a folder that is served to every client, to be read only.
//!
//! It is not a route. Invariant: names are opened only beneath the root.

use std::io;
use std::path::Path;

use plimsoll_io::{File, Fs};
use plimsoll_store::{Generation, Location};

use crate::CacheRules;

/// A folder served under a prefix.
#[derive(Clone, Debug)]
pub struct Site {
    prefix: Vec<u8>,
    folder: File,
    /// The generation that lookups are cached under; none if they are not cached.
    generation: Option<Generation>,
    cache_rules: CacheRules,
}

impl Site {
    /// Serves the folder at `root` under `prefix`, which begins with a slash.
    ///
    /// # Errors
    /// The folder cannot be opened.
    pub fn open(fs: &dyn Fs, prefix: &str, root: &Path) -> io::Result<Site> {
        let prefix = prefix.trim_end_matches('/').as_bytes().to_vec();
        let (generation, cache_rules) = (Some(Generation::draw()), CacheRules::default());
        Ok(Site { prefix, folder: fs.open_root(root)?, generation, cache_rules })
    }

    /// Excludes the site from the hot cache: this server also changes the files in the folder, and such
    /// changes must be visible at once.
    #[must_use]
    pub fn never_hot(mut self) -> Site {
        self.generation = None;
        self
    }

    /// Sets the values of Cache-Control for the files.
    #[must_use]
    pub fn cached_by(mut self, rules: CacheRules) -> Site {
        self.cache_rules = rules;
        self
    }

    /// Returns the value of Cache-Control for the file at a decoded path, which begins with the prefix.
    pub fn cache_control(&self, path: &[u8]) -> Option<&str> {
        self.cache_rules.find(path)
    }

    /// Returns the folder.
    pub(crate) fn folder(&self) -> &File {
        &self.folder
    }

    pub(crate) fn generation(&self) -> Option<Generation> {
        self.generation
    }

    /// Returns the location of a name beneath the folder. A slash at its end requests a folder.
    pub fn location(&self, name: Vec<u8>) -> Location {
        Location::in_folder(self.folder.clone(), name, self.generation)
    }

    /// Returns the prefix, without a slash at its end. The prefix of the whole server is empty.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Returns the name beneath the root for a decoded path, if the path is in this site.
    pub fn strip(&self, path: &[u8]) -> Option<Vec<u8>> {
        match path.strip_prefix(&*self.prefix)? {
            [] => Some(Vec::new()),
            [b'/', name @ ..] => Some(name.to_vec()),
            _ => None,
        }
    }
}

/// Whether a component of the name begins with a dot, as those of configuration and history do.
pub fn is_hidden(name: &[u8]) -> bool {
    name.split(|&byte| byte == b'/').any(|part| part.starts_with(b".") && part != b".well-known")
}
