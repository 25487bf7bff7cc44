//! The first line of a connection: who asks, and for what.
//!
//! Not here: whether there is such an account. What must hold: what is written is read as the same; a line
//! has one reading.

use zeroize::Zeroizing;

use super::line::Wiped;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// An account of this name and password is to be made.
    New(Credentials),
    /// A file is wanted, which the next line names.
    Get(Credentials),
}

/// A name and a password, as bytes: what they may be is the accounts' to say.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The account's name.
    pub name: Vec<u8>,
    /// The account's password.
    pub password: Wiped,
}

/// A line that asks for nothing. Its text says what would.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// It begins with no word that is known.
    #[error("send new:NAME:PASSWORD or get:NAME:PASSWORD")]
    Word,
    /// It has not three parts.
    #[error("send three parts, such as get:NAME:PASSWORD; write \\: for a colon in a name or a password")]
    Parts,
    /// A backslash stands before what needs none.
    #[error("write \\: for a colon and \\\\ for a backslash in a name or a password")]
    Escape,
}

/// A name, a password or a file that no line can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("classic has no way to say a name, a password or a file with a line's end in it")]
pub struct Unwritable;

impl Request {
    /// Reads a line, without its LF.
    ///
    /// # Errors
    /// It asks for nothing.
    pub fn parse(line: &[u8]) -> Result<Request, BadRequest> {
        let request = match line {
            [b'n', b'e', b'w', b':', ..] => Request::New,
            [b'g', b'e', b't', b':', ..] => Request::Get,
            _ => return Err(BadRequest::Word),
        };
        // As large as they may be, so that no copy of a password stays where it grew from.
        let part = || Zeroizing::new(Vec::with_capacity(line.len()));
        let (mut name, mut password) = (part(), None);
        let mut bytes = line.iter().skip("new:".len());
        while let Some(&byte) = bytes.next() {
            match (byte, &mut password) {
                (b':', None) => password = Some(part()),
                (b':', Some(_)) => return Err(BadRequest::Parts),
                (byte, part) => part.as_mut().unwrap_or(&mut name).push(unescaped(byte, &mut bytes)?),
            }
        }
        let password = password.ok_or(BadRequest::Parts)?;
        Ok(request(Credentials { name: name.to_vec(), password }))
    }

    /// Appends the line, with its LF.
    ///
    /// # Errors
    /// The name or the password cannot be said.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        let (word, Credentials { name, password }) = match self {
            Request::New(credentials) => (b"new", credentials),
            Request::Get(credentials) => (b"get", credentials),
        };
        if name.contains(&b'\n') || password.contains(&b'\n') {
            return Err(Unwritable);
        }
        out.extend_from_slice(word);
        for part in [name.as_slice(), password.as_slice()] {
            out.push(b':');
            for &byte in part {
                if is_escaped(byte) {
                    out.push(b'\\');
                }
                out.push(byte);
            }
        }
        out.push(b'\n');
        Ok(())
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({}, ...)", self.name.escape_ascii())
    }
}

fn unescaped<'a>(byte: u8, rest: &mut impl Iterator<Item = &'a u8>) -> Result<u8, BadRequest> {
    if byte != b'\\' {
        return Ok(byte);
    }
    rest.next().copied().filter(|&byte| is_escaped(byte)).ok_or(BadRequest::Escape)
}

fn is_escaped(byte: u8) -> bool {
    matches!(byte, b':' | b'\\')
}
