//! Records of entries of the trash, as a crash or another program may leave them.
//!
//! Invariant: a record that is read has one reading, also after it is written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_store::fuzzing::check_trash_record;

fuzz_target!(|bytes: &[u8]| check_trash_record(bytes));
