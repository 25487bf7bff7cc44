//! The argument of LIST, NLST and STAT: flags as `ls` has them, which clients send, and then a path.
//!
//! Not here: what a flag does. RFC 959 has only the path. What must hold: any name can be asked for: one that
//! begins with a hyphen as `./-x` or after `--`, one with spaces as it is.

/// The flags that mean something here; the others are passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `-a`, `-A`: names that begin with a dot, too.
    pub all: bool,
    /// `-l`: not the names alone.
    pub long: bool,
    /// `-R`: and what is in the folders.
    pub recursive: bool,
    /// `-d`: a folder itself, not what is in it.
    pub itself: bool,
}

/// Reads an argument: its flags, and the path, which is empty for the working folder.
#[must_use]
pub fn list_argument(argument: &[u8]) -> (Flags, &[u8]) {
    let mut flags = Flags::default();
    let mut rest = argument;
    loop {
        let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let after = after.get(1..).unwrap_or_default();
        match word {
            b"--" => return (flags, after),
            [b'-', letters @ ..] if is_flags(letters) => flags.add(letters),
            _ => return (flags, rest),
        }
        rest = after;
    }
}

fn is_flags(letters: &[u8]) -> bool {
    !letters.is_empty() && letters.iter().all(u8::is_ascii_alphanumeric)
}

impl Flags {
    fn add(&mut self, letters: &[u8]) {
        let has = |letter: &u8| letters.contains(letter);
        self.all |= has(&b'a') || has(&b'A');
        self.long |= has(&b'l');
        self.recursive |= has(&b'R');
        self.itself |= has(&b'd');
    }
}
