//! Where a store answers its fronts.
//!
//! It decides nothing: it asks the store that is here, as an operation of this process would. What must hold:
//! a condition that comes as words is asked under the home's lock; a name that no account can have is no
//! folder's.

use std::ops::ControlFlow;

use plimsoll_io::{Existing, File, FileKind, Io, ListingPage, Work};
use serde::Serialize;

use super::ask::{
    Asked, Destination, Ended, Ending, Get, How, NewArrival, Owner, Question, Removal, SaidTerms, Seen,
};
use super::listing::list;
use super::trouble::Told;
use crate::condition::{Condition, Said};
use crate::digest_slots::DigestSlots;
use crate::error::{Error, Result};
use crate::limits::DIRECTORY_BYTES_MAX;
use crate::path::Path;
use crate::usage::Quota;
use crate::write::{Algorithm, FileDigest, NewUpload, Terms};
use crate::{End, Files, Home, Store, Upload};

/// Answers for a store.
pub struct Desk {
    store: Store,
    /// Makes a condition of its words, which are the protocol's.
    again: fn(&str) -> Condition,
    digests: DigestSlots,
}

impl Desk {
    /// Answers for `store`; `again` makes of a condition's words what they ask.
    pub fn new(store: Store, again: fn(&str) -> Condition) -> Desk {
        Desk { store, again, digests: DigestSlots::default() }
    }

    /// The answer to a question, in JSON.
    pub async fn answer(&self, io: &Io, asked: Asked) -> Vec<u8> {
        self.ask(io, asked).await.unwrap_or_else(|error| told::<()>(Err(error)))
    }

    async fn ask(&self, io: &Io, Asked { owner, caller, question }: Asked) -> Result<Vec<u8>> {
        let io = &io.for_owner(owner.job_owner(caller));
        let home = self.home(io, &owner).await?;
        Ok(match question {
            Question::Usage => told(home.usage(io).await),
            Question::Stat(path) => told(home.stat(io, &path).await.map(Seen)),
            Question::List { path, most, page } => {
                list(io, &home, &path, most, page.map(ListingPage::from)).await
            }
            Question::MakeFolder { path, quota } => told(home.make_folder(io, path, quota).await),
            Question::CheckRemoval(Removal { path, what, condition }) => {
                told(home.check_removal(io, path, what, self.condition(&condition)).await)
            }
            Question::Remove(Removal { path, what, condition }) => {
                told(home.remove(io, path, what, self.condition(&condition)).await)
            }
            Question::SetModified { path, modified } => {
                told(home.set_modified(io, path, modified).await.map(Seen))
            }
            Question::CheckRename(path, to) => {
                let (from, to, existing) = self.ends(io, home, path, to).await?;
                told(from.check_rename(io, &to, existing).await)
            }
            Question::Rename(path, to) => {
                let (from, to, existing) = self.ends(io, home, path, to).await?;
                told(from.rename(io, to, existing).await)
            }
            Question::CheckCopy(path, to) => {
                let (from, to, existing) = self.ends(io, home, path, to).await?;
                told(from.check_copy(io, &to, existing).await)
            }
            Question::Copy(path, to, depth) => {
                let (from, to, existing) = self.ends(io, home, path, to).await?;
                told(from.copy(io, to, existing, depth).await)
            }
            Question::Keep { terms, bytes, words } => {
                let terms = self.terms(terms);
                told(home.keep(io, NewUpload { terms, bytes, condition: words }).await)
            }
            Question::Kept(id) => told(home.kept(io, id).await),
            Question::Completed(id) => told(home.completed(io, id).await),
            Question::PendingAt(path) => told(home.pending_at(io, &path).await),
            Question::AllKept => told(home.all_kept(io).await),
            Question::Discard(id) => told(home.discard(io, id).await),
            Question::EndOf { path, keep } => told(home.end_of(io, &path, keep).await),
            Question::Digest(path, algorithm) => told(self.digest(io, &home, &path, algorithm).await),
        })
    }

    /// The ends of a move or copy, and what is to become of what has the name.
    async fn ends(&self, io: &Io, home: Home, path: Path, to: Destination) -> Result<(End, End, Existing)> {
        let Destination { owner, path: name, quota, replaces } = to;
        let existing = if replaces { Existing::Replaced } else { Existing::Kept };
        let to = End { home: self.home(io, &owner).await?, path: name, quota };
        Ok((End { home, path, quota: Quota::default() }, to, existing))
    }

    async fn digest(
        &self,
        io: &Io,
        home: &Home,
        path: &Path,
        algorithm: Algorithm,
    ) -> Result<(Seen, Vec<u8>)> {
        let Files::Here { folder, .. } = home.files() else { return Err(Error::Away) };
        let name = path.to_open();
        let opened = io.files(move |fs| {
            let file = fs.open_beneath(&folder, &name)?;
            let stat = fs.stat(&file)?;
            Ok((file, stat))
        });
        let (file, stat) = opened.await?;
        match stat.kind {
            FileKind::File => Ok((Seen(stat), self.digest_of(io, file, algorithm).await?)),
            FileKind::Folder => Err(Error::IsFolder),
            FileKind::Other => Err(Error::NotFound),
        }
    }

    /// The digest of a whole file that `get` asks for.
    ///
    /// # Errors
    /// [`Error::Busy`] if too many are in progress; the file cannot be read.
    pub async fn digest_for(&self, io: &Io, get: &Get, file: File, algorithm: Algorithm) -> Result<Vec<u8>> {
        self.digest_of(&io.for_owner(get.owner.job_owner(get.caller)), file, algorithm).await
    }

    async fn digest_of(&self, io: &Io, file: File, algorithm: Algorithm) -> Result<Vec<u8>> {
        let _slot = self.digests.take(io.owner()).ok_or(Error::Busy)?;
        let mut going = FileDigest::new(algorithm, file);
        loop {
            // One turn at a time, so that others' digests are made in between.
            match io.ask(Work::Chores, move |fs| going.go_on(fs)).await? {
                ControlFlow::Continue(further) => going = further,
                ControlFlow::Break(digest) => return Ok(digest),
            }
        }
    }

    /// The home that a file is asked for in.
    ///
    /// # Errors
    /// What keeps the home from being opened.
    pub async fn home_of(&self, io: &Io, get: &Get) -> Result<Home> {
        self.home(io, &get.owner).await
    }

    /// Begins an upload.
    ///
    /// # Errors
    /// As the home's own.
    pub async fn begin(&self, io: &Io, arrival: NewArrival) -> Result<Upload> {
        let io = &io.for_owner(arrival.owner.job_owner(arrival.caller));
        let home = self.home(io, &arrival.owner).await?;
        match arrival.how {
            How::Whole(terms, expected) => home.upload(io, self.terms(terms), expected).await,
            How::From { terms, begin, keep, at } => {
                let upload = home.upload_from(io, self.terms(terms), begin, keep).await?;
                // It has grown since the front was told.
                if upload.begun_at() == at { Ok(upload) } else { Err(Error::InUse) }
            }
            How::GoOn { id, offset, digests, quota, only_new } => {
                let terms = |to, words: &str| {
                    let condition = Said { words: words.to_owned(), only_new, only_folder: false };
                    Terms { to, condition: self.condition(&condition), quota }
                };
                home.go_on(io, id, offset, digests, terms).await
            }
            How::Parts { terms, parts } => home.upload_of_parts(io, self.terms(terms), parts, 0).await,
        }
    }

    /// Ends an upload whose bytes have come.
    ///
    /// # Errors
    /// As [`Upload::commit_whole`] and [`Upload::pause`].
    pub async fn end_upload(&self, mut upload: Upload, ending: Ending) -> Result<Ended> {
        match ending {
            Ending::Commit(whole) => upload.commit_whole(whole).await.map(Ended::Committed),
            Ending::CommitDated(whole, modified) => {
                upload.set_modified(modified);
                upload.commit_whole(whole).await.map(Ended::Committed)
            }
            Ending::Pause => upload.pause().await.map(Ended::Paused),
            Ending::GiveUp => {
                upload.give_up().await;
                Ok(Ended::GivenUp)
            }
        }
    }

    async fn home(&self, io: &Io, owner: &Owner) -> Result<Home> {
        let name = Path::parse(owner.name.as_bytes())?;
        if name.as_bytes() != owner.name.as_bytes() || name.depth() != 1 {
            return Err(Error::NotFound);
        }
        let directory = owner.directory.as_bytes();
        if directory.len() > DIRECTORY_BYTES_MAX || !directory.iter().all(u8::is_ascii_alphanumeric) {
            return Err(Error::NotFound);
        }
        self.store.home_of(io, owner).await
    }

    fn terms(&self, said: SaidTerms) -> Terms {
        Terms { to: said.to, condition: self.condition(&said.condition), quota: said.quota }
    }

    fn condition(&self, said: &Said) -> Condition {
        let mut condition = (self.again)(&said.words);
        if said.only_new {
            condition = condition.and_new();
        }
        if said.only_folder {
            condition = condition.and_folder();
        }
        condition
    }
}

/// What was answered, as it travels. What only the log may have stays in it.
pub fn told<T: Serialize>(answered: Result<T>) -> Vec<u8> {
    if let Err(error @ (Error::Failed(_) | Error::Denied(_))) = &answered {
        tracing::error!(%error, "an operation on files failed");
    }
    // Strings and numbers into memory: there is nothing here that could fail.
    serde_json::to_vec(&Told::from(answered)).unwrap_or_default()
}
