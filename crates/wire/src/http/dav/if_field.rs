//! The field If (RFC 4918, section 10.4): conditions on entity tags and lock tokens.
//!
//! Not here: their evaluation. Invariants: a value is parsed whole or refused; the number of its conditions
//! is bounded; a parsed token or entity tag is a part of the value.

use super::{Destination, parse_destination};
use crate::limits::DAV_IF_CONDITIONS_MAX;

/// A list of conditions. The field is true if all conditions of any of its lists are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IfList<'a> {
    /// The resource that it is about; `None` for that of the request.
    pub resource: Option<Destination<'a>>,
    /// The conditions, at least one.
    pub conditions: Vec<IfCondition<'a>>,
}

/// A condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IfCondition<'a> {
    /// Whether it is true if the state is another one.
    pub is_not: bool,
    /// The state that the resource has.
    pub state: IfState<'a>,
}

/// A state of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfState<'a> {
    /// It is locked by the lock with this token, a URI.
    Token(&'a [u8]),
    /// Its entity tag is this one.
    EntityTag(&'a [u8]),
}

/// Parses an If. Returns `None` if it is malformed, or has more than [`DAV_IF_CONDITIONS_MAX`] conditions.
#[must_use]
pub fn parse_if(value: &[u8]) -> Option<Vec<IfList<'_>>> {
    let (mut lists, mut count) = (Vec::new(), 0);
    let (mut resource, mut is_tagged, mut needs_list) = (None, false, true);
    let mut rest = value.trim_ascii();
    while let Some(first) = rest.first() {
        if *first == b'<' {
            // "Tagged-list" or "No-tag-list", never both. A tag without a list is none.
            if (!lists.is_empty() && !is_tagged) || (is_tagged && needs_list) {
                return None;
            }
            let (tag, after) = enclosed(rest, b'<', b'>')?;
            resource = Some(parse_destination(tag).ok()?);
            (is_tagged, needs_list, rest) = (true, true, after.trim_ascii_start());
            continue;
        }
        let (conditions, after) = list(rest, &mut count)?;
        lists.push(IfList { resource, conditions });
        (needs_list, rest) = (false, after.trim_ascii_start());
    }
    (!needs_list).then_some(lists)
}

/// Parses `"(" 1*Condition ")"`.
fn list<'a>(value: &'a [u8], count: &mut usize) -> Option<(Vec<IfCondition<'a>>, &'a [u8])> {
    let mut rest = value.strip_prefix(b"(")?.trim_ascii_start();
    let mut conditions = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix(b")") {
            return (!conditions.is_empty()).then_some((conditions, after));
        }
        // Literals of the grammar are case-insensitive.
        let is_not = rest.get(..3).is_some_and(|word| word.eq_ignore_ascii_case(b"Not"));
        if is_not {
            rest = rest.get(3..)?.trim_ascii_start();
        }
        let (state, after) = state(rest)?;
        *count += 1;
        if *count > DAV_IF_CONDITIONS_MAX {
            return None;
        }
        conditions.push(IfCondition { is_not, state });
        rest = after.trim_ascii_start();
    }
}

/// Parses `Coded-URL | "[" entity-tag "]"`.
fn state(value: &[u8]) -> Option<(IfState<'_>, &[u8])> {
    if value.starts_with(b"<") {
        let (token, after) = enclosed(value, b'<', b'>')?;
        return is_uri(token).then_some((IfState::Token(token), after));
    }
    let rest = value.strip_prefix(b"[")?.trim_ascii_start();
    // The opaque part may contain a bracket. The examples of RFC 4918 have spaces there, too.
    let weak = if rest.starts_with(b"W/") { 2 } else { 0 };
    let quoted = rest.get(weak..)?.strip_prefix(b"\"")?;
    let length = quoted.iter().position(|byte| *byte == b'"')?;
    let (tag, after) = rest.split_at_checked(weak + length + 2)?;
    let is_tag = quoted.get(..length)?.iter().all(|byte| *byte >= b' ' && *byte != 0x7f);
    let after = after.trim_ascii_start().strip_prefix(b"]")?;
    is_tag.then_some((IfState::EntityTag(tag), after))
}

/// Returns the bytes between two delimiters, and those behind.
fn enclosed(value: &[u8], open: u8, close: u8) -> Option<(&[u8], &[u8])> {
    let inner = value.strip_prefix(&[open])?;
    let end = inner.iter().position(|byte| *byte == close)?;
    let (inner, after) = inner.split_at_checked(end)?;
    Some((inner, after.get(1..)?))
}

/// Whether the bytes have the form of an absolute URI, as tokens have. "DAV:no-lock" is one that no lock has.
fn is_uri(token: &[u8]) -> bool {
    let scheme = token.iter().position(|byte| *byte == b':').unwrap_or(0);
    scheme > 0 && token.iter().all(|byte| byte.is_ascii_graphic() && !b"<>\"".contains(byte))
}

/// Parses a Lock-Token: `Coded-URL` (section 10.5). Returns the token.
#[must_use]
pub fn parse_lock_token(value: &[u8]) -> Option<&[u8]> {
    let (token, after) = enclosed(value.trim_ascii(), b'<', b'>')?;
    (after.is_empty() && is_uri(token)).then_some(token)
}

/// Parses a Timeout (section 10.7): the first time of its list, in seconds. `Infinite` is the longest.
#[must_use]
pub fn parse_timeout(value: &[u8]) -> Option<u64> {
    let mut times = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    times.find_map(|time| {
        if time.eq_ignore_ascii_case(b"Infinite") {
            return Some(u64::MAX);
        }
        let (word, digits) = time.split_at_checked(7)?;
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let seconds = core::str::from_utf8(digits).ok()?.parse().unwrap_or(u64::MAX);
        (word.eq_ignore_ascii_case(b"Second-") && is_number).then_some(seconds)
    })
}
