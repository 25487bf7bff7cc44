//! Names of accounts: the one form that sign-up, log-in and shares agree on. And the rule for new passwords.
//!
//! It is not a lookup: a valid name may belong to no account. Invariant: a name in this form is safe as
//! the name of a folder, and two names that differ only in case are one.

use std::borrow::Cow;

use crate::error::Error;
use crate::limits::NAME_BYTES_MAX;
use plimsoll_rpc::Secret;
use plimsoll_wire::password::check_new_password;

const RULE: &str = "A name has 1 to 64 of the letters a to z, digits and . _ - @ +, \
    and begins with a letter or digit. Choose one that does.";

/// Returns the form in which `given` is stored and compared: in lower-case ASCII.
///
/// # Errors
/// [`Error::BadName`], with the rule.
pub fn account_name(given: &[u8]) -> Result<String, Error> {
    let folded = given.to_ascii_lowercase();
    let name = String::from_utf8(folded).ok().filter(|name| is_name(name.as_bytes()));
    name.ok_or(Error::BadName(Cow::Borrowed(RULE)))
}

/// Checks a new password for the account `name`.
///
/// # Errors
/// [`Error::BadPassword`], with the rule.
pub(crate) fn check_password(name: &str, password: &Secret) -> Result<(), Error> {
    check_new_password(name, password.bytes()).map_err(|bad| Error::BadPassword(Cow::Owned(bad.to_string())))
}

fn is_name(name: &[u8]) -> bool {
    let begins_well = name.first().is_some_and(u8::is_ascii_alphanumeric);
    begins_well && name.len() <= NAME_BYTES_MAX && name.iter().all(|byte| is_part(*byte))
}

fn is_part(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'@' | b'+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_does_not_tell_two_names_apart() {
        assert_eq!(account_name(b"Alice.B+x@Example-1_2").unwrap(), "alice.b+x@example-1_2");
        assert_eq!(account_name(&[b'A'; 64]).unwrap(), "a".repeat(64));
        assert_eq!(account_name(b"7").unwrap(), "7");
    }

    #[test]
    fn a_name_that_could_leave_a_folder_or_hide_in_one_is_refused() {
        let long = [b'a'; 65];
        let bad: [&[u8]; 12] = [
            b"",
            b".",
            b"..",
            b".hidden",
            b"-rf",
            b"a/b",
            b"a\\b",
            b"a b",
            b"a\0",
            b"a:b",
            b"\xc3\xa9",
            &long,
        ];
        for name in bad {
            let refused = account_name(name).unwrap_err();
            assert!(matches!(&refused, Error::BadName(_)), "{name:?}");
            assert!(refused.detail().ends_with('.'));
        }
    }
}
