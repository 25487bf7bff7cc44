//! How the slots of a server are shared out between addresses, protocols and clients.
//!
//! It counts nothing. Invariant: a policy of one slot or more lets one connection in.

use std::fmt;
use std::str::FromStr;

use crate::limits::{
    ADDRESS_PART, ADDRESS_SHARE_MIN, AUTHENTICATED_PART, SERVICE_PART, SPARE_PART, SPARE_SLOTS_MAX,
};

/// How many slots one address may have. An IPv6 address counts by its first 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PerAddress {
    /// Half of all slots, and a sixteenth, but 16 at least, while slots run short.
    #[default]
    Auto,
    /// So many, and never more than by [`PerAddress::Auto`] while slots run short.
    AtMost(usize),
    /// Any number.
    Unlimited,
}

/// The text is neither `auto`, nor `none`, nor a whole number from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write auto, none, or a whole number from 1 on")]
pub struct NoPerAddress;

impl FromStr for PerAddress {
    type Err = NoPerAddress;

    fn from_str(text: &str) -> Result<PerAddress, NoPerAddress> {
        match text {
            "auto" => Ok(PerAddress::Auto),
            "none" => Ok(PerAddress::Unlimited),
            _ => text.parse().ok().filter(|most| *most > 0).map(PerAddress::AtMost).ok_or(NoPerAddress),
        }
    }
}

impl fmt::Display for PerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PerAddress::Auto => f.write_str("auto"),
            PerAddress::AtMost(most) => most.fmt(f),
            PerAddress::Unlimited => f.write_str("none"),
        }
    }
}

/// How slots are shared out.
#[derive(Clone, Debug)]
pub struct SlotPolicy {
    /// How many connections may be open.
    pub max: usize,
    /// How many slots one address may have.
    pub per_address: PerAddress,
    /// Whether a quarter of the slots is for clients that have authenticated.
    pub has_accounts: bool,
}

impl From<usize> for SlotPolicy {
    fn from(max: usize) -> SlotPolicy {
        SlotPolicy { max, per_address: PerAddress::default(), has_accounts: true }
    }
}

impl SlotPolicy {
    /// Returns whether the slots of one address are bounded. They are not where a few fronts or proxies
    /// bring all clients.
    pub(super) fn has_shares(&self) -> bool {
        self.per_address != PerAddress::Unlimited
    }

    /// Returns how many slots one address may have; `is_short` while slots run short.
    pub(super) fn share_of_address(&self, is_short: bool) -> usize {
        let half = (self.max / 2).max(1);
        let small = (self.max / ADDRESS_PART).max(ADDRESS_SHARE_MIN).min(half);
        match (self.per_address, is_short) {
            (PerAddress::Unlimited, _) => usize::MAX,
            (PerAddress::AtMost(most), true) => most.min(small),
            (PerAddress::AtMost(most), false) => most,
            (PerAddress::Auto, true) => small,
            (PerAddress::Auto, false) => half,
        }
    }

    /// With fewer connections than this, no protocol runs short of slots.
    pub(super) fn plenty(&self) -> usize {
        self.max / 2
    }

    /// With so many connections, slots run short.
    pub(super) fn short(&self) -> usize {
        self.max - self.max / 4
    }

    /// Slots that are kept free by eviction, so that a new connection need not wait for one.
    pub(super) fn spare(&self) -> usize {
        (self.max / SPARE_PART).clamp(1, SPARE_SLOTS_MAX)
    }

    /// Slots that each protocol with a listener has to itself.
    pub(super) fn reserved_for_service(&self) -> usize {
        self.max / SERVICE_PART
    }

    /// How many slots clients that have not authenticated may have.
    pub(super) fn unauthenticated_max(&self) -> usize {
        if self.has_accounts { self.max - self.max / AUTHENTICATED_PART } else { self.max }
    }
}
