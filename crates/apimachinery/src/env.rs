//! Time, randomness and identity as parameters, so that everything above runs under a seeded simulation.

use crate::Str;
use jiff::Timestamp;
use std::sync::Arc;

/// Tells the time of day.
pub trait WallClock: Send + Sync + std::fmt::Debug {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// Makes identities and random choices.
pub trait IdSource: Send + Sync + std::fmt::Debug {
    /// A fresh random 64-bit number.
    fn random_u64(&self) -> u64;

    /// A fresh version 4 UUID in its text form.
    fn uid(&self) -> Str {
        let (high, low) = (self.random_u64(), self.random_u64());
        let high = (high & 0xffff_ffff_ffff_0fff) | 0x4000;
        let low = (low & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
        compact_str::format_compact!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }

    /// `len` random characters of the alphabet that Kubernetes uses for generated names: no vowels and no look-alikes.
    fn name_suffix(&self, len: usize) -> Str {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..len)
            .map(|_| {
                let idx = self.random_u64() % (ALPHABET.len() as u64);
                char::from(ALPHABET[usize::try_from(idx).unwrap_or_default()])
            })
            .collect()
    }
}

/// The world's clock and dice, handed to whatever needs them.
#[derive(Clone, Debug)]
pub struct Env {
    /// Wall time.
    pub clock: Arc<dyn WallClock>,
    /// Identities and random numbers.
    pub ids: Arc<dyn IdSource>,
}

impl Env {
    /// A world that starts at 2026-01-01 and whose dice follow from `seed`; its clock stands still until it is moved.
    pub fn seeded(seed: u64) -> Env {
        Env { clock: Arc::new(ManualClock::default()), ids: Arc::new(SeededIds::new(seed)) }
    }

    /// The operating system's clock and random numbers.
    pub fn system() -> Env {
        Env { clock: Arc::new(SystemClock), ids: Arc::new(SystemIds::default()) }
    }
}

/// A clock that shows what it is told to.
#[derive(Debug)]
pub struct ManualClock {
    seconds: std::sync::atomic::AtomicI64,
}

impl Default for ManualClock {
    fn default() -> ManualClock {
        // 2026-01-01T00:00:00Z
        ManualClock { seconds: std::sync::atomic::AtomicI64::new(1_767_225_600) }
    }
}

impl ManualClock {
    /// Moves the clock on.
    pub fn advance(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, std::sync::atomic::Ordering::SeqCst);
    }
}

impl WallClock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.seconds.load(std::sync::atomic::Ordering::SeqCst)).unwrap_or_default()
    }
}

/// Dice that follow from a seed (SplitMix64).
#[derive(Debug)]
pub struct SeededIds {
    state: std::sync::atomic::AtomicU64,
}

impl SeededIds {
    /// The dice of this seed.
    pub fn new(seed: u64) -> SeededIds {
        SeededIds { state: std::sync::atomic::AtomicU64::new(seed) }
    }
}

/// The n-th output of SplitMix64 is a mix of `seed + n * GAMMA`.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

fn splitmix(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl IdSource for SeededIds {
    fn random_u64(&self) -> u64 {
        splitmix(self.state.fetch_add(GAMMA, std::sync::atomic::Ordering::Relaxed).wrapping_add(GAMMA))
    }
}

/// The operating system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl WallClock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Random numbers of the process: SipHash under keys that the standard library takes from the operating system. Good
/// for identities, not for secrets.
#[derive(Debug, Default)]
pub struct SystemIds {
    keys: std::hash::RandomState,
    n_drawn: std::sync::atomic::AtomicU64,
}

impl IdSource for SystemIds {
    fn random_u64(&self) -> u64 {
        use std::hash::BuildHasher;
        self.keys.hash_one(self.n_drawn.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_version_4() {
        let env = Env::seeded(7);
        for _ in 0..100 {
            let uid = env.ids.uid();
            assert_eq!(uid.len(), 36);
            assert_eq!(&uid[14..15], "4");
            assert!("89ab".contains(&uid[19..20]));
        }
        assert_eq!(Env::seeded(1).ids.uid(), Env::seeded(1).ids.uid());
        assert_ne!(Env::seeded(1).ids.uid(), Env::seeded(2).ids.uid());
        assert_eq!(env.ids.name_suffix(5).len(), 5);
    }
}
