//! The rule for new passwords, which the server applies and a client checks before it asks for more.
//!
//! It measures no strength. Invariant: a password is refused for its length, or because guessers try it
//! first.

use std::fmt;

use crate::limits::{PASSWORD_BYTES_MAX, PASSWORD_BYTES_MIN};

/// Passwords of at least eight bytes that lists of leaked passwords have at their top, in lower case.
const COMMON: &str = include_str!("common_passwords.txt");

/// Why a password is refused: a sentence with the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPassword {
    /// Too short or too long.
    Length,
    /// One of those that are tried first.
    Common,
}

impl fmt::Display for BadPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadPassword::Length => write!(
                f,
                "A password has {PASSWORD_BYTES_MIN} to {PASSWORD_BYTES_MAX} bytes. Choose one that does."
            ),
            BadPassword::Common => f.write_str(
                "This password is one of the first that are guessed. Choose another one, such as four words.",
            ),
        }
    }
}

/// Checks a new password for the account `name`.
///
/// # Errors
/// The reason why it is refused.
pub fn check_new_password(name: &str, password: &[u8]) -> Result<(), BadPassword> {
    if !(PASSWORD_BYTES_MIN..=PASSWORD_BYTES_MAX).contains(&password.len()) {
        return Err(BadPassword::Length);
    }
    let is_one_byte = password.iter().all(|byte| *byte == password[0]);
    let is_name = password.eq_ignore_ascii_case(name.as_bytes());
    let mut common = COMMON.lines().map(str::as_bytes);
    if is_one_byte || is_name || common.any(|common| password.eq_ignore_ascii_case(common)) {
        return Err(BadPassword::Common);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_that_is_guessed_first_is_refused_in_any_case() {
        let check = |password: &str| check_new_password("alice.smith", password.as_bytes());
        for bad in ["password", "PassWord", "12345678", "zzzzzzzz", "Alice.Smith", "qwertyuiop"] {
            assert_eq!(check(bad), Err(BadPassword::Common), "{bad}");
        }
        for bad in ["", "short", "seven b", &"x".repeat(1025)] {
            assert_eq!(check(bad), Err(BadPassword::Length), "{bad}");
        }
        for good in ["correct horse", "password of mine", "aaaaaaab", "open sesame"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn the_list_is_in_lower_case_sorted_and_has_no_password_that_its_length_refuses() {
        let all: Vec<&str> = COMMON.lines().collect();
        assert!(all.len() > 100 && all.is_sorted());
        assert!(all.iter().all(|line| line.len() >= PASSWORD_BYTES_MIN && **line == line.to_lowercase()));
    }
}
