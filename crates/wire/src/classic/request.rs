//! The first line of a connection: the caller's credentials and the kind of request.
//!
//! Not here: the check of the credentials. Invariants: a written line parses as the same request; a line
//! has only one reading.

use zeroize::Zeroizing;

use super::line::WipedLine;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Create an account with this name and password.
    New(Credentials),
    /// Send a file. Its path is on the next line.
    Get(Credentials),
}

/// A name and a password, as bytes. The account service decides which are valid.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The account's name.
    pub name: Vec<u8>,
    /// The account's password.
    pub password: WipedLine,
}

/// A line that is not a request. The error's text says which forms are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// The line begins with no known word.
    #[error("send new:NAME:PASSWORD or get:NAME:PASSWORD")]
    Word,
    /// The line does not have three parts.
    #[error("send three parts, such as get:NAME:PASSWORD; write \\: for a colon in a name or a password")]
    Parts,
    /// A backslash precedes a character other than a colon or a backslash.
    #[error("write \\: for a colon and \\\\ for a backslash in a name or a password")]
    Escape,
}

/// A name, password or path that the protocol cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("classic has no way to say a name, a password or a file with a line's end in it")]
pub struct Unwritable;

impl Request {
    /// Reads a line, without its LF.
    ///
    /// # Errors
    /// Returns [`BadRequest`] if the line is not a request.
    pub fn parse(line: &[u8]) -> Result<Request, BadRequest> {
        let request = match line {
            [b'n', b'e', b'w', b':', ..] => Request::New,
            [b'g', b'e', b't', b':', ..] => Request::Get,
            _ => return Err(BadRequest::Word),
        };
        // Reserves the final capacity at once: growing would leave unwiped copies of a password in freed
        // memory.
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
    /// Returns [`Unwritable`] if the name or the password contains LF.
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
