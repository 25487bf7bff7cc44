//! Arguments that are neither paths nor addresses: those of TYPE, STRU, MODE, REST, ALLO, MFMT and OPTS.
//!
//! Not here: the effect of the arguments. Invariant: errors use the codes of RFC 959, section 4.2: "Syntax
//! error in parameters or arguments" (501), or "Command not implemented for that parameter" (504).

use std::time::Duration;

use super::facts::Facts;
use super::hash::Algorithm;
use super::time::parse_time;
use crate::decimal::decimal;
use crate::hex;

/// The reason why an argument is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadArgument {
    /// The argument cannot be parsed.
    #[error("The argument cannot be understood.")]
    Form,
    /// The argument is valid but not supported.
    #[error("That is not supported here.")]
    Unsupported,
}

impl BadArgument {
    /// Returns the code of the reply.
    #[must_use]
    pub fn code(self) -> u16 {
        match self {
            Self::Form => 501,
            Self::Unsupported => 504,
        }
    }
}

/// The representation of a file on the data connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// As text with lines that end in CR LF: "the default type and must be accepted by all FTP
    /// implementations" (RFC 959, section 3.1.1.1).
    Ascii,
    /// Unchanged bytes.
    Image,
}

/// Parses TYPE's argument: `A`, `A N`, `I` or `L 8`. EBCDIC, print formats and other byte sizes are
/// recognised but not supported.
///
/// # Errors
///
/// [`BadArgument`].
pub fn parse_type(argument: &[u8]) -> Result<Type, BadArgument> {
    match argument.to_ascii_uppercase().as_slice() {
        b"A" | b"A N" => Ok(Type::Ascii),
        b"I" | b"L 8" => Ok(Type::Image),
        b"A T" | b"A C" | b"E" | b"E N" | b"E T" | b"E C" => Err(BadArgument::Unsupported),
        [b'L', b' ', size @ ..] if decimal(size).is_some() => Err(BadArgument::Unsupported),
        _ => Err(BadArgument::Form),
    }
}

/// Reads STRU's argument: `F`, a file without structure. Records and pages are not supported.
///
/// # Errors
///
/// [`BadArgument`].
pub fn parse_structure(argument: &[u8]) -> Result<(), BadArgument> {
    one_of(argument, b'F', b"RP")
}

/// Reads MODE's argument: `S`, a stream. Blocks and compression are not supported.
///
/// # Errors
///
/// [`BadArgument`].
pub fn parse_mode(argument: &[u8]) -> Result<(), BadArgument> {
    one_of(argument, b'S', b"BCZ")
}

/// Accepts the letter `taken`. "The argument is a single Telnet character code" (RFC 959, section 4.1.2).
fn one_of(argument: &[u8], taken: u8, known: &[u8]) -> Result<(), BadArgument> {
    let [letter] = argument else { return Err(BadArgument::Form) };
    match letter.to_ascii_uppercase() {
        letter if letter == taken => Ok(()),
        letter if known.contains(&letter) => Err(BadArgument::Unsupported),
        _ => Err(BadArgument::Form),
    }
}

/// Reads REST's argument, in stream mode the offset in bytes (RFC 3659, section 5).
///
/// # Errors
///
/// [`BadArgument::Form`].
pub fn parse_rest(argument: &[u8]) -> Result<u64, BadArgument> {
    decimal(argument).ok_or(BadArgument::Form)
}

/// Parses ALLO's argument, `<decimal-integer> [<SP> R <SP> <decimal-integer>]`: the size of the file in
/// bytes. The size of its records is parsed and ignored.
///
/// # Errors
///
/// [`BadArgument::Form`].
pub fn parse_allo(argument: &[u8]) -> Result<u64, BadArgument> {
    let (size, records) = split_word(argument);
    match records {
        b"" => {}
        [b'R' | b'r', b' ', record @ ..] if decimal(record).is_some() => {}
        _ => return Err(BadArgument::Form),
    }
    decimal(size).ok_or(BadArgument::Form)
}

/// Parses MFMT's argument, `time-val SP pathname` (draft-somers-ftp-mfxx): the time since the start of
/// 1970, and the path.
///
/// # Errors
///
/// [`BadArgument::Form`].
pub fn parse_mfmt(argument: &[u8]) -> Result<(Duration, &[u8]), BadArgument> {
    let (time, path) = split_word(argument);
    let time = parse_time(time).filter(|_| !path.is_empty());
    time.map(|time| (time, path)).ok_or(BadArgument::Form)
}

/// An option of a command that FEAT lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opts {
    /// Whether names are UTF-8. They are in either case.
    Utf8(bool),
    /// The facts that MLSD and MLST send from now on.
    Mlst(Facts),
    /// The digest that HASH uses from now on. None asks for the current one.
    Hash(Option<Algorithm>),
    /// An announced property of the next upload.
    Stor(Announced),
}

/// An announced property of the file of the next upload, by which the server knows whether it has received
/// all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announced {
    /// Its size in bytes.
    Size(u64),
    /// Its digest, of the algorithm's length.
    Digest(Algorithm, Vec<u8>),
}

/// Parses OPTS's argument: a command's name and its options (RFC 2389, section 4).
///
/// # Errors
///
/// [`BadArgument::Form`], also for a command without options.
pub fn parse_opts(argument: &[u8]) -> Result<Opts, BadArgument> {
    let (name, options) = split_word(argument);
    match name.to_ascii_uppercase().as_slice() {
        b"UTF8" | b"UTF-8" => switch(options).map(Opts::Utf8),
        b"MLST" => Ok(Opts::Mlst(Facts::parse(options))),
        b"HASH" if options.is_empty() => Ok(Opts::Hash(None)),
        b"HASH" => {
            let algorithm = Algorithm::parse(options).ok_or(BadArgument::Form)?;
            Ok(Opts::Hash(Some(algorithm)))
        }
        b"STOR" => announced(options).map(Opts::Stor).ok_or(BadArgument::Form),
        _ => Err(BadArgument::Form),
    }
}

/// Parses `SIZE 123`, or an algorithm of HASH and a digest in hexadecimal.
fn announced(options: &[u8]) -> Option<Announced> {
    let (name, value) = split_word(options);
    if name.eq_ignore_ascii_case(b"SIZE") {
        return decimal(value).map(Announced::Size);
    }
    let algorithm = Algorithm::parse(name)?;
    let digest =
        hex::decode(&value.to_ascii_lowercase()).filter(|digest| digest.len() == algorithm.digest_bytes())?;
    Some(Announced::Digest(algorithm, digest))
}

fn switch(option: &[u8]) -> Result<bool, BadArgument> {
    match option.to_ascii_uppercase().as_slice() {
        b"" | b"ON" => Ok(true),
        b"OFF" => Ok(false),
        _ => Err(BadArgument::Form),
    }
}

/// Splits off the first word. The rest begins after the one space.
fn split_word(argument: &[u8]) -> (&[u8], &[u8]) {
    let end = argument.iter().position(|&byte| byte == b' ').unwrap_or(argument.len());
    let (word, rest) = argument.split_at(end);
    (word, rest.get(1..).unwrap_or_default())
}
