//! Which part of a file a request selects: conditions first, then ranges (RFC 9110, section 13.2.2).
//!
//! It reads nothing. Invariant: a range applies only to the representation whose validators the response has.

use std::time::{Duration, SystemTime};

use plimsoll_io::Stat;
use plimsoll_wire::http::conditional::{Precondition, Validators, evaluate, range_applies};
use plimsoll_wire::http::date::{parse_date, usable_modification};
use plimsoll_wire::http::head::{Field, Head, Method};
use plimsoll_wire::http::range::{Ranges, Resolved, parse_range};

use crate::Representation;

/// The part of a representation that a request selects.
// On the stack for one response: a box would cost more than the space that the small variants waste.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selected {
    /// All of it.
    Whole,
    /// These ranges of it.
    Ranges(Ranges),
    /// None: the ranges lie outside of it.
    Unsatisfiable,
    /// None: the client has it.
    NotModified,
    /// None: a condition is false.
    PreconditionFailed,
}

/// Returns the part of `representation` that the request with this head selects. `now` is the time of day.
pub fn select<S>(head: &Head, block: &[u8], representation: &Representation<S>, now: SystemTime) -> Selected {
    let etag = representation.fields.etag().as_bytes();
    let modified = usable_modification(representation.stat.modified_at(), now);
    let validators = Validators { etag, modified };
    match evaluate(head, block, Some(&validators), true) {
        Precondition::Proceed => ranges(head, block, &validators, &representation.stat, now),
        Precondition::NotModified => Selected::NotModified,
        Precondition::Failed => Selected::PreconditionFailed,
    }
}

fn ranges(head: &Head, block: &[u8], validators: &Validators<'_>, stat: &Stat, now: SystemTime) -> Selected {
    // "A server MUST ignore a Range header field received with a request method that is unrecognized or for
    // which range handling is not defined" (RFC 9110, section 14.2); it is defined for GET alone.
    if head.method() != Method::Get || head.repeated(Field::Range) {
        return Selected::Whole;
    }
    let Some(value) = head.field(block, Field::Range) else { return Selected::Whole };
    if !range_applies(head, block, validators) || is_by_fresh_date(head, block, stat, now) {
        return Selected::Whole;
    }
    // A malformed range set, or one with too many ranges: "A server MAY ignore the Range header field".
    match parse_range(value).map(|ranges| ranges.resolve(stat.size)) {
        Ok(Resolved::Ranges(ranges)) => Selected::Ranges(ranges),
        Ok(Resolved::Unsatisfiable) => Selected::Unsatisfiable,
        Ok(Resolved::Whole) | Err(_) => Selected::Whole,
    }
}

/// Whether the range depends on the date of a file that may have changed again within that second. The date
/// is then a weak validator, and parts of two files could be combined (RFC 9110, section 8.8.2.2).
fn is_by_fresh_date(head: &Head, block: &[u8], stat: &Stat, now: SystemTime) -> bool {
    let by_date = head.field(block, Field::IfRange).is_some_and(|value| parse_date(value).is_some());
    by_date && now < stat.modified_at() + Duration::from_secs(1)
}
