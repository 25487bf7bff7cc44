//! Records of resumable uploads, as a crash or another program may leave them.
//!
//! Invariants: a record that is read has one reading, also after it is written again; a record that was cut
//! short never yields a larger offset.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_store::fuzzing::check_upload_record;

/// Bytes of an upload's identifier, which the check codes of its record contain.
const ID_BYTES: usize = 32;

fuzz_target!(|bytes: &[u8]| {
    if let Some((id, record)) = bytes.split_at_checked(ID_BYTES) {
        check_upload_record(id, record);
    }
});
