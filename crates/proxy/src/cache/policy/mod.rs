//! The rules of RFC 9111, as functions of requests, responses and times.
//!
//! Not here: storage, and any clock. The decision whether a response may be stored, and for how long it
//! is fresh, is that of the crate `http-cache-semantics`; `storable.rs` lists where it is corrected.
//! Invariant: where a message is ambiguous, the rule that reuses less applies.

mod cache_status;
mod directives;
mod fields;
mod freshness;
mod head;
mod invalidation;
mod key;
mod request;
mod storable;
mod validation;
mod vary;

pub use cache_status::{CacheStatus, Forwarded};
pub use directives::{RequestDirectives, ResponseDirectives};
pub use fields::{FieldBlock, FieldLines};
pub use freshness::{ExchangeTimes, Freshness, Timestamp, Usability};
pub use head::{Slice, StoredHead};
pub use invalidation::invalidated_uris;
pub(crate) use key::normalised_authority;
pub use key::{Digest, ResourceKey, Servers};
pub use request::{Bypass, CacheRequest};
pub use storable::{NotStored, Storable, evaluate};
pub use validation::{
    Merged, has_common_validator, is_not_modified, is_same_version, merge_not_modified, validation_fields,
};
pub use vary::Vary;

#[cfg(test)]
pub(crate) use head::tests::stored as stored_for_tests;
