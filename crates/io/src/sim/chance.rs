//! Random numbers from a seed: xoshiro256**, a public-domain generator, seeded by splitmix64.
//!
//! It is not fit for secrets and reads no clock. Invariant: the same seed draws the same numbers on
//! every machine. Any change of the algorithm would make all recorded seeds meaningless.

/// Certainty, in the unit of [`Chance::chance`].
pub const PER_MILLE: u16 = 1000;

/// A seeded stream of random numbers.
#[derive(Clone, Debug)]
pub struct Chance {
    state: [u64; 4],
}

impl Chance {
    /// Creates the stream of `seed`.
    pub fn new(seed: u64) -> Chance {
        let mut mix = seed;
        Chance { state: std::array::from_fn(|_| splitmix(&mut mix)) }
    }

    /// Creates another stream, for a component with draws of its own.
    pub fn fork(&mut self) -> Chance {
        Chance::new(self.draw())
    }

    /// Draws any number.
    pub fn draw(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let drawn = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        drawn
    }

    /// Draws a number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.draw().checked_rem(n).unwrap_or(0)
    }

    /// Draws an index below `n`; 0 if `n` is 0.
    pub fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap_or(0)
    }

    /// Returns true with a probability of `per_mille` in a thousand.
    pub fn chance(&mut self, per_mille: u16) -> bool {
        self.below(u64::from(PER_MILLE)) < u64::from(per_mille)
    }

    /// Fills `into` with random bytes.
    pub fn fill(&mut self, into: &mut [u8]) {
        for chunk in into.chunks_mut(size_of::<u64>()) {
            let drawn = self.draw().to_le_bytes();
            chunk.copy_from_slice(&drawn[..chunk.len()]);
        }
    }

    /// Puts `items` into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_draws_the_published_numbers() {
        let mut state = 1_234_567;
        assert_eq!(splitmix(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(splitmix(&mut state), 3_203_168_211_198_807_973);
    }

    #[test]
    fn xoshiro_draws_the_published_numbers() {
        let mut chance = Chance { state: [1, 2, 3, 4] };
        let drawn = [chance.draw(), chance.draw(), chance.draw(), chance.draw()];
        assert_eq!(drawn, [11_520, 0, 1_509_978_240, 1_215_971_899_390_074_240]);
    }

    #[test]
    fn a_chance_of_nothing_never_comes_and_a_certainty_always_does() {
        let mut chance = Chance::new(1);
        for _ in 0..1000 {
            assert!(!chance.chance(0) && chance.chance(PER_MILLE));
            assert_eq!(chance.below(0), 0);
            assert!(chance.below(3) < 3);
        }
    }

    #[test]
    fn shuffling_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Chance::new(5).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
