//! Limits of an experiment.
//!
//! They bound an experiment, not a client: a mistake in its file must not run for weeks.

use std::time::Duration;

/// Maximum number of trials of an experiment.
pub const TRIALS_MAX: usize = 100_000;
/// Maximum number of repetitions of a point.
pub const REPETITIONS_MAX: u32 = 10_000;
/// Maximum time between two trials.
pub const GAP_MAX: Duration = Duration::from_secs(3600);
/// Maximum number of a core, plus 1: as many as the kernel's sets of cores have in the C library.
pub const CORES_MAX: usize = 1024;
/// Maximum length of an experiment file.
pub const EXPERIMENT_BYTES_MAX: usize = 1024 * 1024;
/// Maximum length of a value in the outline of an experiment, in characters.
pub const OUTLINE_CHARACTERS_MAX: usize = 24;
