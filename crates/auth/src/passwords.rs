//! Password hashes: Argon2id (RFC 9106) in PHC form.
//!
//! It runs only where the engine lets hashing run. Invariants: an unknown name costs as much as a wrong
//! password. A stored hash cannot demand more than the limits. A password has one form, whatever operating
//! system it is typed on (RFC 8265, section 4.2).

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};

use unicode_normalization::{UnicodeNormalization as _, is_nfc};
use zeroize::Zeroizing;

use crate::directory::DirectoryError;
use crate::limits::{ARGON2_LANES_MAX, ARGON2_MEMORY_KIB_MAX, ARGON2_PASSES_MAX};
use crate::settings::Argon2Settings;
use plimsoll_rpc::Secret;

/// Random bytes in each hash (RFC 9106, section 3.1).
pub(crate) type Salt = [u8; 16];

/// The result of a password check.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Weighed {
    Wrong,
    Right,
    /// Right, but hashed at another cost than is set now, or in another form. Contains the new hash to be
    /// stored.
    Outdated(String),
}

/// Hashes `password` in its [`opaque_string`] form.
pub(crate) fn hash(
    settings: Argon2Settings,
    password: &Secret,
    salt: &Salt,
) -> Result<String, DirectoryError> {
    let opaque = opaque_string(password);
    hash_bytes(settings, opaque.as_ref().map_or(password.bytes(), |text| text.as_bytes()), salt)
}

/// Returns the form in which a password is hashed, if it differs from the password itself: "Any instances of
/// non-ASCII space MUST be mapped to SPACE", and "Unicode Normalization Form C (NFC) MUST be applied" (RFC
/// 8265, section 4.2.2). macOS types letters with accents as two characters, other systems as one. Bytes that
/// are not UTF-8 stay as they are.
fn opaque_string(password: &Secret) -> Option<Zeroizing<String>> {
    let text = std::str::from_utf8(password.bytes()).ok()?;
    if text.is_ascii() || (is_nfc(text) && !text.contains(is_other_space)) {
        return None;
    }
    // The form is at most three times as long (UAX 15, section 13). A growing string would leave copies.
    let mut opaque = Zeroizing::new(String::with_capacity(3 * text.len()));
    opaque.extend(text.chars().map(|char| if is_other_space(char) { ' ' } else { char }).nfc());
    Some(opaque)
}

/// Whether a character is a space separator (category Zs) other than that of ASCII.
fn is_other_space(char: char) -> bool {
    matches!(char, '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

fn hash_bytes(settings: Argon2Settings, password: &[u8], salt: &Salt) -> Result<String, DirectoryError> {
    let hashed = hasher(settings)?.hash_password_with_salt(password, salt);
    hashed
        .map(|hash| hash.to_string())
        .map_err(|error| DirectoryError::Failed(format!("Argon2 made no hash: {error}")))
}

/// Checks `password` against `stored`: in its [`opaque_string`] form, then as it was sent, which is the form
/// of older hashes. An unknown account (`None`) gives a wrong password after the same time.
pub(crate) fn weigh(
    settings: Argon2Settings,
    stored: Option<&str>,
    password: &Secret,
    salt: &Salt,
) -> Result<Weighed, DirectoryError> {
    let opaque = opaque_string(password);
    let Some(stored) = stored else {
        if opaque.is_some() {
            hash_bytes(settings, password.bytes(), salt)?;
        }
        return hash(settings, password, salt).map(|_| Weighed::Wrong);
    };
    let (parsed, params) =
        parse(stored).ok_or_else(|| DirectoryError::Failed("a stored hash cannot be read".to_owned()))?;
    let is_right = |password: &[u8]| Argon2::default().verify_password(password, &parsed).is_ok();
    let is_right_in_form = opaque.as_ref().is_some_and(|text| is_right(text.as_bytes()));
    if !is_right_in_form && !is_right(password.bytes()) {
        return Ok(Weighed::Wrong);
    }
    if params == settings && (is_right_in_form || opaque.is_none()) {
        Ok(Weighed::Right)
    } else {
        hash(settings, password, salt).map(Weighed::Outdated)
    }
}

/// Returns whether `stored` is a hash that can be verified here, at a cost within the limits.
pub(crate) fn is_hash(stored: &str) -> bool {
    parse(stored).is_some()
}

fn hasher(settings: Argon2Settings) -> Result<Argon2<'static>, DirectoryError> {
    let Argon2Settings { memory_kib, passes, lanes } = settings;
    let params = Params::new(memory_kib, passes, lanes, None);
    let params = params
        .map_err(|error| DirectoryError::Failed(format!("Argon2 cannot run with these settings: {error}")))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn parse(stored: &str) -> Option<(PasswordHash, Argon2Settings)> {
    let parsed = PasswordHash::new(stored).ok()?;
    let params = Params::try_from(&parsed).ok()?;
    let (memory_kib, passes, lanes) = (params.m_cost(), params.t_cost(), params.p_cost());
    let is_within =
        memory_kib <= ARGON2_MEMORY_KIB_MAX && passes <= ARGON2_PASSES_MAX && lanes <= ARGON2_LANES_MAX;
    let is_whole = parsed.salt.is_some() && parsed.hash.is_some();
    let is_argon2id = parsed.algorithm.as_str() == "argon2id";
    (is_within && is_whole && is_argon2id).then_some((parsed, Argon2Settings { memory_kib, passes, lanes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: Argon2Settings = Argon2Settings { memory_kib: 8, passes: 1, lanes: 1 };
    const SALT: Salt = [7; 16];

    #[test]
    fn only_the_password_itself_is_right() {
        let stored = hash(TINY, &"open sesame".into(), &SALT).unwrap();
        let weighed = |password: &str| weigh(TINY, Some(&stored), &password.into(), &SALT).unwrap();
        assert_eq!(weighed("open sesame"), Weighed::Right);
        for wrong in ["open sesam", "open sesame ", "Open sesame", ""] {
            assert_eq!(weighed(wrong), Weighed::Wrong, "{wrong}");
        }
        assert_eq!(weigh(TINY, None, &"open sesame".into(), &SALT), Ok(Weighed::Wrong));
    }

    #[test]
    fn a_hash_of_another_cost_is_made_anew_from_the_right_password_only() {
        let now = Argon2Settings { passes: 2, ..TINY };
        let stored = hash(TINY, &"open sesame".into(), &SALT).unwrap();
        assert_eq!(weigh(now, Some(&stored), &"other".into(), &SALT), Ok(Weighed::Wrong));
        let Ok(Weighed::Outdated(anew)) = weigh(now, Some(&stored), &"open sesame".into(), &SALT) else {
            panic!("the hash was not made anew");
        };
        assert_eq!(weigh(now, Some(&anew), &"open sesame".into(), &SALT), Ok(Weighed::Right));
    }

    #[test]
    fn a_hash_that_asks_for_too_much_or_is_of_another_kind_is_none() {
        let good = hash(TINY, &"open sesame".into(), &SALT).unwrap();
        assert!(is_hash(&good), "{good}");
        let bad = [
            good.replace("m=8", "m=4294967295"),
            good.replace("t=1", "t=1000"),
            good.replace("argon2id", "argon2i"),
            good.replace("argon2id", "md5"),
            good.rsplit_once('$').unwrap().0.to_owned(),
            String::new(),
        ];
        for hash in bad {
            assert!(!is_hash(&hash), "{hash}");
        }
    }

    const COMPOSED: &str = "caf\u{e9} na\u{ef}ve";
    const DECOMPOSED: &str = "cafe\u{301}\u{a0}nai\u{308}ve";

    #[test]
    fn a_password_is_the_same_in_every_unicode_form_that_a_system_types() {
        for (set, typed) in [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED), (DECOMPOSED, DECOMPOSED)] {
            let stored = hash(TINY, &set.into(), &SALT).unwrap();
            assert_eq!(weigh(TINY, Some(&stored), &typed.into(), &SALT).unwrap(), Weighed::Right);
        }
        let stored = hash(TINY, &COMPOSED.into(), &SALT).unwrap();
        for wrong in ["cafe naive", "CAF\u{c9} NA\u{cf}VE", "caf\u{e9}na\u{ef}ve", "cafe\u{301} naive"] {
            assert_eq!(weigh(TINY, Some(&stored), &wrong.into(), &SALT).unwrap(), Weighed::Wrong, "{wrong}");
        }
    }

    #[test]
    fn an_older_hash_of_the_decomposed_form_is_accepted_once_and_replaced() {
        let old = hash_bytes(TINY, DECOMPOSED.as_bytes(), &SALT).unwrap();
        let weighed = weigh(TINY, Some(&old), &DECOMPOSED.into(), &SALT).unwrap();
        let Weighed::Outdated(new) = weighed else { panic!("{weighed:?}") };
        assert_eq!(weigh(TINY, Some(&new), &COMPOSED.into(), &SALT).unwrap(), Weighed::Right);
        assert_eq!(weigh(TINY, Some(&new), &DECOMPOSED.into(), &SALT).unwrap(), Weighed::Right);
    }

    #[test]
    fn bytes_that_are_no_text_are_a_password_as_they_are() {
        let latin = Secret::from(&b"caf\xe9"[..]);
        let stored = hash(TINY, &latin, &SALT).unwrap();
        assert_eq!(weigh(TINY, Some(&stored), &latin, &SALT).unwrap(), Weighed::Right);
        assert_eq!(weigh(TINY, Some(&stored), &"caf\u{e9}".into(), &SALT).unwrap(), Weighed::Wrong);
    }

    #[test]
    fn the_normalised_form_needs_no_reallocation() {
        // NFC excludes these from composition: the first grows the most, to three times its bytes.
        for text in ["\u{1d160}", "\u{fb2c}", "\u{958}", DECOMPOSED] {
            let text = text.repeat(300);
            let opaque = opaque_string(&text.as_str().into());
            assert!(opaque.is_none_or(|opaque| opaque.capacity() == 3 * text.len()), "{text}");
        }
    }

    #[test]
    fn an_unknown_name_is_hashed_at_the_cost_that_is_set() {
        // A measurement of time would prove little on a busy machine. An impossible cost that fails
        // proves that a hash was computed.
        let impossible = Argon2Settings { memory_kib: 0, ..TINY };
        assert!(weigh(impossible, None, &"open sesame".into(), &SALT).is_err());
    }
}
