//! A seeded pseudo-random number generator: SplitMix64, sufficient for shuffles and samples.
//!
//! It is not cryptographic. Invariant: the same seed gives the same numbers, on every machine.

/// A pseudo-random number generator.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// Creates a generator. Any seed is valid, including 0.
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// Returns the next number (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
    /// 2014).
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, or 0 if that is 0. Its bias is at most `bound` in 2^64.
    pub fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.draw()) * bound as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// Shuffles `items` uniformly.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_paper() {
        let mut chance = Chance::new(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| chance.draw()).collect();
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn a_shuffle_keeps_all_and_depends_on_the_seed() {
        let shuffled = |seed| {
            let mut items: Vec<usize> = (0..20).collect();
            Chance::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        let mut sorted = shuffled(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_drawn_is_below_its_bound() {
        let mut chance = Chance::new(0);
        assert!((0..1000).all(|_| chance.below(7) < 7));
        assert_eq!(chance.below(0), 0);
    }
}
