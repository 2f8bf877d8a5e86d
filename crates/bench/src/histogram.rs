//! Latencies in buckets whose width grows with the value: counts of millions in a few kilobytes, percentiles to within
//! two per cent.

use std::time::Duration;

/// Buckets for each doubling of the value: the relative error of a percentile is half of one over this.
const BUCKETS_PER_OCTAVE: u64 = 32;
/// `log2` of [`BUCKETS_PER_OCTAVE`].
const OCTAVE_BITS: u32 = 5;
/// Longest duration told apart, about nine minutes; longer ones count as this long (the maximum stays exact).
const NANOS_MAX: u64 = 1 << 39;

/// How often which latency was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Histogram {
    /// Grown to the highest bucket that was hit.
    counts: Vec<u64>,
    n: u64,
    nanos_max: u64,
}

impl Histogram {
    /// How many were counted.
    #[cfg(test)]
    pub(crate) fn len(&self) -> u64 {
        self.n
    }

    /// Counts one latency.
    pub(crate) fn record(&mut self, latency: Duration) {
        self.record_nanos(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Counts one latency of so many nanoseconds.
    pub(crate) fn record_nanos(&mut self, nanos: u64) {
        let idx = bucket(nanos.min(NANOS_MAX));
        if idx >= self.counts.len() {
            self.counts.resize(idx + 1, 0);
        }
        self.counts[idx] += 1;
        self.n += 1;
        self.nanos_max = self.nanos_max.max(nanos);
    }

    /// Adds what another one counted.
    pub(crate) fn merge(&mut self, other: &Histogram) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.n += other.n;
        self.nanos_max = self.nanos_max.max(other.nanos_max);
    }

    /// The latency that `per_mille` thousandths of all do not exceed: the middle of its bucket. Zero when nothing was
    /// counted.
    pub(crate) fn quantile(&self, per_mille: u64) -> Duration {
        let rank = (self.n * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (idx, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(middle(idx).min(self.nanos_max));
            }
        }
        Duration::ZERO
    }

    /// The longest latency.
    pub(crate) fn max(&self) -> Duration {
        Duration::from_nanos(self.nanos_max)
    }
}

/// The bucket of a value: exact below [`BUCKETS_PER_OCTAVE`], then by its highest bits.
fn bucket(nanos: u64) -> usize {
    let octave = u64::from(nanos.max(BUCKETS_PER_OCTAVE).ilog2() - OCTAVE_BITS);
    let idx = octave * BUCKETS_PER_OCTAVE + (nanos >> octave);
    usize::try_from(idx).unwrap_or(usize::MAX)
}

/// The middle of a bucket, in nanoseconds.
fn middle(idx: usize) -> u64 {
    let idx = idx as u64;
    let octave = (idx / BUCKETS_PER_OCTAVE).saturating_sub(1);
    let low = (idx - octave * BUCKETS_PER_OCTAVE) << octave;
    low + (1 << octave) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_values(mut values in prop::collection::vec(0..NANOS_MAX, 1..300)) {
            let mut whole = Histogram::default();
            let mut parts = [Histogram::default(), Histogram::default()];
            for (idx, value) in values.iter().enumerate() {
                whole.record_nanos(*value);
                parts[idx % 2].record_nanos(*value);
            }
            let [mut merged, other] = parts;
            merged.merge(&other);
            prop_assert_eq!(&merged, &whole);
            values.sort_unstable();
            for per_mille in [1, 500, 900, 990, 1000] {
                let exact = values[(values.len() * per_mille).div_ceil(1000).max(1) - 1];
                let told = u64::try_from(whole.quantile(per_mille as u64).as_nanos()).unwrap();
                prop_assert!(told.abs_diff(exact) <= exact / 32 + 1, "{told} for {exact}");
            }
            prop_assert_eq!(whole.max().as_nanos(), u128::from(*values.last().unwrap()));
        }
    }

    #[test]
    fn buckets_follow_each_other_without_gap() {
        let mut last = bucket(0);
        for nanos in 1..100_000 {
            let idx = bucket(nanos);
            assert!(idx == last || idx == last + 1, "{nanos}");
            last = idx;
        }
        assert_eq!(Histogram::default().quantile(500), Duration::ZERO);
    }
}
