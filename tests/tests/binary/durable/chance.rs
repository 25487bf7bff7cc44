//! A reproducible random generator, and contents that identify their version.

use plimsoll_tests::tree::noise;

/// Pseudorandom numbers from a seed.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns the seed from the environment, or one from the clock.
    pub(crate) fn seed() -> u64 {
        let given = std::env::var("PLIMSOLL_SEED").ok().and_then(|seed| seed.parse().ok());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        given.unwrap_or(u64::from(now.subsec_nanos()))
    }

    /// Returns one of `0..bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 16) % bound as u64).unwrap()
    }
}

/// The maximal length of a version.
const BYTES_MAX: usize = 300_000;
/// The maximal length of most versions.
const USUAL_BYTES_MAX: usize = 8_000;

/// Returns the contents of version `number`: its number in a line and noise, or nothing at all.
pub(super) fn content(number: u64) -> Vec<u8> {
    let mut chance = Chance::new(number);
    chance.below(2);
    let bytes = match number % 16 {
        0 => return Vec::new(),
        1 | 2 => chance.below(BYTES_MAX),
        _ => chance.below(USUAL_BYTES_MAX),
    };
    [format!("{number}\n").as_bytes(), &noise(number, bytes)].concat()
}

/// Returns the version of some bytes, or `None` for the empty one.
pub(super) fn version_of(path: &str, bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let number = std::str::from_utf8(line).ok().and_then(|line| line.parse().ok());
    let number = number.unwrap_or_else(|| panic!("{path}: {} bytes of no version", bytes.len()));
    assert!(content(number) == bytes, "{path}: {} bytes, not the whole of version {number}", bytes.len());
    Some(number)
}
