//! The faults that a test injects into a disk: power cuts, failing calls, a full disk.
//!
//! It changes no file. Invariant: every call that changes or syncs something is counted, so that a test
//! can make each of them the last.

use std::io;

/// Bytes of space on an ordinary disk.
const ROOM_BYTES: u64 = 1 << 40;

/// A call that changes or syncs something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// [`crate::Fs::create`].
    Create,
    /// [`crate::Fs::write_at`].
    Write,
    /// [`crate::Fs::set_len`].
    SetLen,
    /// [`crate::Fs::set_modified`].
    SetModified,
    /// [`crate::Fs::sync`].
    Sync,
    /// [`crate::Fs::make_folder`].
    MakeFolder,
    /// [`crate::Fs::make_link`].
    MakeLink,
    /// [`crate::Fs::rename`].
    Rename,
    /// [`crate::Fs::remove_file`].
    RemoveFile,
    /// [`crate::Fs::remove_folder`].
    RemoveFolder,
    /// [`crate::Fs::copy`].
    Copy,
}

/// Whether the power is cut before a call takes effect or after it. The caller gets an error in both
/// cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The call has no effect.
    Before,
    /// The call has its full effect.
    After,
}

/// The faults to inject, and the count of calls.
pub(super) struct InjectedFaults {
    calls: u64,
    cut: bool,
    cut_at: Option<(u64, Moment)>,
    fail_at: Vec<(u64, io::ErrorKind)>,
    fail_next: Vec<(Call, io::ErrorKind)>,
    room: u64,
}

impl InjectedFaults {
    pub(super) fn none() -> InjectedFaults {
        InjectedFaults {
            calls: 0,
            cut: false,
            cut_at: None,
            fail_at: Vec::new(),
            fail_next: Vec::new(),
            room: ROOM_BYTES,
        }
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    pub(super) fn cut(&mut self) {
        self.cut = true;
    }

    pub(super) fn cut_at(&mut self, call: u64, moment: Moment) {
        self.cut_at = Some((call, moment));
    }

    pub(super) fn fail_at(&mut self, call: u64, kind: io::ErrorKind) {
        self.fail_at.push((call, kind));
    }

    pub(super) fn fail_next(&mut self, call: Call, kind: io::ErrorKind) {
        self.fail_next.push((call, kind));
    }

    /// # Errors
    /// The error of every call after the power is cut.
    pub(super) fn power(&self) -> io::Result<()> {
        if self.cut { Err(io::Error::other("the power is cut")) } else { Ok(()) }
    }

    /// Counts a call that is about to happen.
    ///
    /// # Errors
    /// The injected fault, if there is one for this call.
    pub(super) fn begin(&mut self, call: Call) -> io::Result<()> {
        self.power()?;
        self.calls += 1;
        self.cut |= self.cut_at == Some((self.calls, Moment::Before));
        self.power()?;
        let number = self.calls;
        if let Some(found) = self.fail_at.iter().position(|(at, _)| *at == number) {
            return Err(self.fail_at.swap_remove(found).1.into());
        }
        if let Some(found) = self.fail_next.iter().position(|(next, _)| *next == call) {
            return Err(self.fail_next.remove(found).1.into());
        }
        Ok(())
    }

    /// Ends the call that was counted last.
    ///
    /// # Errors
    /// The power is cut: the caller does not learn that the call took effect.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.cut |= self.cut_at == Some((self.calls, Moment::After));
        self.power()
    }

    pub(super) fn set_room(&mut self, bytes: u64) {
        self.room = bytes;
    }

    pub(super) fn room(&self) -> u64 {
        self.room
    }

    /// Accounts for a file's change from `old` to `new` bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`].
    pub(super) fn resize(&mut self, old: u64, new: u64) -> io::Result<()> {
        let after = self.room.saturating_add(old).checked_sub(new);
        self.room = after.ok_or(io::ErrorKind::StorageFull)?;
        Ok(())
    }
}
