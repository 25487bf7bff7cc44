//! MySQL's packets: three bytes of length, a sequence number, and the payload.
//!
//! It knows no statement. Invariants: packets are received whole and in order. An error packet from the
//! server is returned as an error.

use plimsoll_tls::BlockingConnector;

use crate::directory::database::socket::Socket;
use crate::directory::{DirectoryError, Fault};
use crate::limits::{DATABASE_BLOCK_BYTES, DATABASE_MESSAGE_BYTES_MAX};

/// The socket, and the bytes received from it.
pub(super) struct Packets {
    socket: Socket,
    received: Vec<u8>,
    /// How many of them were read.
    read: usize,
    /// The sequence number of the next packet of this exchange.
    next: u8,
}

/// The code of a deadlock: the server has rolled back the transaction, which may be retried.
const DEADLOCK: u16 = 1213;
/// The codes of a full disk (`ER_DISK_FULL`) and of a full table space (`ER_RECORD_FILE_FULL`).
const DISK_FULL: [u16; 2] = [1021, 1114];
/// The codes of all errors of a file (`EE_WRITE`, `ER_ERROR_ON_WRITE`, `ER_GET_ERRNO`).
const OF_A_FILE: [u16; 3] = [3, 1026, 1030];
/// The codes of refused users (`ER_DBACCESS_DENIED_ERROR`, `ER_ACCESS_DENIED_ERROR`,
/// `ER_ACCESS_DENIED_NO_PASSWORD_ERROR`).
const REFUSED: [u16; 3] = [1044, 1045, 1698];
const ENOSPC: &str = "28";

pub(super) fn broken(error: impl std::fmt::Display) -> DirectoryError {
    failed_by(None, error)
}

pub(super) fn failed_by(fault: Option<Fault>, error: impl std::fmt::Display) -> DirectoryError {
    DirectoryError::of("MariaDB or MySQL", fault, &error)
}

#[allow(clippy::needless_pass_by_value, reason = "it is what `map_err` calls")]
fn cut(error: std::io::Error) -> DirectoryError {
    failed_by(Fault::of_io(&error), error)
}

pub(super) fn strange() -> DirectoryError {
    broken("the response does not fit the request; check the server's version")
}

impl Packets {
    pub(super) fn new(socket: Socket) -> Packets {
        Packets { socket, received: Vec::new(), read: 0, next: 0 }
    }

    pub(super) fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    /// Encrypts the packets from now on, for the server of this name.
    pub(super) fn encrypt(
        self,
        connector: &BlockingConnector,
        name: &str,
    ) -> Result<Packets, DirectoryError> {
        // An attacker may have inserted these, to be taken for the encrypted response to the log-in.
        if self.read < self.received.len() {
            return Err(strange());
        }
        let socket = self.socket.encrypt(connector, name).map_err(cut)?;
        Ok(Packets { socket, ..self })
    }

    /// Begins an exchange.
    pub(super) fn begin(&mut self) {
        self.next = 0;
    }

    pub(super) fn send(&mut self, payload: &[u8]) -> Result<(), DirectoryError> {
        let length =
            u32::try_from(payload.len()).ok().filter(|_| payload.len() <= DATABASE_MESSAGE_BYTES_MAX);
        let [low, middle, high, _] = length.ok_or_else(|| broken("too long a question"))?.to_le_bytes();
        let packet = [&[low, middle, high, self.next], payload].concat();
        self.next = self.next.wrapping_add(1);
        self.socket.send(&packet).map_err(cut)
    }

    /// Receives the next packet. Returns its payload, or its error.
    pub(super) fn receive(&mut self) -> Result<Vec<u8>, DirectoryError> {
        let head = self.take(4)?;
        let length = usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16;
        if length > DATABASE_MESSAGE_BYTES_MAX || head[3] != self.next {
            return Err(strange());
        }
        self.next = self.next.wrapping_add(1);
        let payload = self.take(length)?;
        if payload.first() == Some(&0xff) { Err(refusal(&payload)) } else { Ok(payload) }
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>, DirectoryError> {
        while self.received.len() - self.read < length {
            self.received.drain(..self.read);
            self.read = 0;
            let mut block = [0; DATABASE_BLOCK_BYTES];
            let received = self.socket.receive(&mut block).map_err(cut)?;
            self.received.extend_from_slice(&block[..received]);
        }
        let taken = self.received[self.read..self.read + length].to_vec();
        self.read += length;
        Ok(taken)
    }
}

/// Whether an error is that the disk is full. Some codes are those of all errors of a file, and their
/// text has the kernel's number.
fn is_disk_full(code: u16, text: &str) -> bool {
    let has_number = || text.split(|letter: char| !letter.is_ascii_digit()).any(|number| number == ENOSPC);
    DISK_FULL.contains(&code) || (OF_A_FILE.contains(&code) && has_number())
}

/// Converts an error packet: its code, an SQL state, which is dropped, and its text.
fn refusal(payload: &[u8]) -> DirectoryError {
    let mut reader = Reader(payload);
    let code = reader.skip(1).and_then(|()| reader.u16()).unwrap_or_default();
    let text = String::from_utf8_lossy(reader.0);
    let text = if text.starts_with('#') { text.get(6..).unwrap_or_default() } else { &text };
    let text = format!("{text} ({code})");
    if code == DEADLOCK {
        DirectoryError::RolledBack(format!("MariaDB or MySQL: {text}"))
    } else if is_disk_full(code, &text) {
        DirectoryError::Full(format!("MariaDB or MySQL: {text}"))
    } else {
        failed_by(REFUSED.contains(&code).then_some(Fault::Authentication), text)
    }
}

/// The unread part of a packet.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], DirectoryError> {
        let (taken, left) = self.0.split_at_checked(length).ok_or_else(strange)?;
        self.0 = left;
        Ok(taken)
    }

    pub(super) fn skip(&mut self, length: usize) -> Result<(), DirectoryError> {
        self.take(length).map(drop)
    }

    pub(super) fn u16(&mut self) -> Result<u16, DirectoryError> {
        let taken = self.take(2)?;
        Ok(u16::from_le_bytes([taken[0], taken[1]]))
    }

    /// Reads an integer of one byte, or of the length that its first byte gives.
    pub(super) fn number(&mut self) -> Result<u64, DirectoryError> {
        let length = match self.take(1)?[0] {
            small @ 0..=0xfa => return Ok(u64::from(small)),
            0xfc => 2,
            0xfd => 3,
            0xfe => 8,
            _ => return Err(strange()),
        };
        let mut bytes = [0; 8];
        bytes[..length].copy_from_slice(self.take(length)?);
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads a value of a row. NULL is a byte of its own.
    pub(super) fn cell(&mut self) -> Result<Option<Vec<u8>>, DirectoryError> {
        if self.0.first() == Some(&0xfb) {
            return self.skip(1).map(|()| None);
        }
        let length = usize::try_from(self.number()?).map_err(|_| strange())?;
        self.take(length).map(|taken| Some(taken.to_vec()))
    }

    /// Reads bytes up to a zero, which may be missing at the end of a packet.
    pub(super) fn word(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        let word = &self.0[..end.unwrap_or(self.0.len())];
        self.0 = self.0.get(word.len() + 1..).unwrap_or_default();
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_values_are_read_in_each_length() {
        let mut reader =
            Reader(&[7, 0xfc, 1, 2, 0xfd, 1, 0, 1, 0xfe, 1, 0, 0, 0, 0, 0, 0, 0, 0xfb, 2, b'o', b'k']);
        let numbers = [7, 0x0201, 0x0001_0001, 1];
        assert_eq!(numbers.map(|_| reader.number().unwrap()), numbers);
        assert_eq!(reader.cell().unwrap(), None);
        assert_eq!(reader.cell().unwrap().unwrap(), b"ok");
        assert!(reader.cell().is_err());
    }

    #[test]
    fn an_error_has_its_text_and_a_deadlock_may_be_retried() {
        let error = refusal(b"\xff\x15\x04#28000Access denied");
        let text = "MariaDB or MySQL: Access denied (1045)".to_owned();
        assert_eq!(error, DirectoryError::Unavailable(Fault::Authentication, text));
        let error = refusal(b"\xff\xbd\x04#40001Deadlock found");
        assert_eq!(error, DirectoryError::RolledBack("MariaDB or MySQL: Deadlock found (1213)".to_owned()));
    }

    #[test]
    fn a_full_disk_is_distinguished_from_other_file_errors() {
        let is_full = |packet: &[u8]| matches!(refusal(packet), DirectoryError::Full(_));
        assert!(is_full(b"\xff\x5a\x04#HY000The table 'plimsoll_sessions' is full"));
        assert!(is_full(b"\xff\xfd\x03#HY000Disk full (/tmp); waiting for someone to free some space"));
        assert!(is_full(
            b"\xff\x06\x04#HY000Got error 28 \"No space left on device\" from storage engine InnoDB"
        ));
        assert!(is_full(
            b"\xff\x03\0#HY000Error writing file './x' (Errcode: 28 \"No space left on device\")"
        ));
        assert!(!is_full(b"\xff\x06\x04#HY000Got error 128 from storage engine InnoDB"));
        assert!(!is_full(b"\xff\x15\x04#28000Access denied for user 28"));
    }
}
