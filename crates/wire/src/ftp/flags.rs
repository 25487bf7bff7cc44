//! The argument of LIST, NLST and STAT: flags in the style of `ls`, which clients send, and then a path.
//!
//! Not here: the effect of a flag. RFC 959 has only the path. Invariant: any name can be expressed. One
//! that begins with a hyphen is written as `./-x` or after `--`, one with spaces as it is.

/// The supported flags. Others are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `-a`, `-A`: includes names that begin with a dot.
    pub all: bool,
    /// `-l`: the long form, not the names alone.
    pub long: bool,
    /// `-R`: lists subfolders recursively.
    pub recursive: bool,
    /// `-d`: lists a folder itself, not its contents.
    pub itself: bool,
}

/// Splits an argument into its flags and the path, which is empty for the working folder.
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
