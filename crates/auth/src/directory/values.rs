//! Numbers and permissions as every store represents them.
//!
//! It reads nothing from a store. Invariants: a stored value is read back unchanged. A value that only
//! another program can have written does no harm.

use crate::account::Permissions;

/// Saturates at the largest number that stores have: no byte count or time comes near it.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(super) fn permissions(bits: i64) -> Permissions {
    let may = |bit| bits & bit != 0;
    let (read, write, delete, share) = (may(1), may(2), may(4), may(8));
    Permissions { read, write, delete, share, operate: may(16), parents: may(32), administer: may(64) }
}

pub(super) fn permission_bits(permissions: Permissions) -> i64 {
    let Permissions { read, write, delete, share, operate, parents, administer } = permissions;
    let own = i64::from(read) | i64::from(write) << 1 | i64::from(delete) << 2 | i64::from(share) << 3;
    own | i64::from(operate) << 4 | i64::from(parents) << 5 | i64::from(administer) << 6
}
