//! Random choices that follow from a seed: the same run makes the same requests.

/// A generator of the kind "splitmix64": small, fast, good enough to choose objects.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// One of the many generators of a run.
    pub(crate) fn new(seed: u64, stream: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream.wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `n`, which is above zero.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % (n.max(1) as u64)).unwrap_or_default()
    }

    /// A number from zero up to, and without, one.
    pub(crate) fn fraction(&mut self) -> f64 {
        /// As many as a double can tell apart.
        const STEPS: u64 = 1 << 53;
        (self.next() % STEPS) as f64 / STEPS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_says_everything_and_choices_are_even() {
        let draw = |seed, stream| {
            let mut random = Random::new(seed, stream);
            (0..8).map(|_| random.next()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 1), draw(1, 1));
        assert_ne!(draw(1, 1), draw(1, 2));
        assert_ne!(draw(1, 1), draw(2, 1));
        let mut random = Random::new(7, 0);
        let mut counts = [0_u32; 10];
        for _ in 0..10_000 {
            counts[random.below(10)] += 1;
            assert!((0.0..1.0).contains(&random.fraction()));
        }
        assert!(counts.iter().all(|n| (850..1150).contains(n)), "{counts:?}");
    }
}
