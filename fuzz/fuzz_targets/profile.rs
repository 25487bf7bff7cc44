//! The files of the profilers: callgrind's format, and the report of perf.
//!
//! Not here: the profilers. Invariants: the shares of a profile that is read lie between 0 and 1, its
//! functions are ordered by their own cost, and a callgrind file that is cut has no profile.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_lab::profile::Profiler;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes).into_owned();
    for profiler in [Profiler::Callgrind, Profiler::Perf] {
        let Ok(profile) = profiler.read(&[text.clone()]) else { continue };
        for one in &profile.functions {
            assert!((0.0..=1.0).contains(&one.inclusive) && one.own >= 0.0, "{one:?}");
        }
        assert!(profile.functions.windows(2).all(|pair| pair[0].own >= pair[1].own));
    }
    if let Some(cut) = text.strip_suffix('\n') {
        assert!(Profiler::Callgrind.read(&[cut.to_owned()]).is_err());
    }
});
