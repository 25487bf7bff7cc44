//! Limits of profiles.
//!
//! They bound a report, not a client.

/// Maximum number of functions of a profile; those with the smallest cost are left out.
pub(super) const FUNCTIONS_MAX: usize = 100;
