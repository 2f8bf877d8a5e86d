//! Sets of completion indexes, as a job's status spells them: `0,3-5,7`. Pure.

use std::fmt;

/// A set of indexes. Invariant: intervals are in order, and between two there is a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes {
    intervals: Vec<(i32, i32)>,
}

impl Indexes {
    /// Reads a list, below `completions`. What is no interval is left out.
    pub(super) fn parse(text: &str, completions: i32) -> Indexes {
        let mut indexes = Indexes::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) else { continue };
            if first < completions {
                indexes.add(first, last.min(completions - 1));
            }
        }
        indexes
    }

    /// These indexes, in any order.
    pub(super) fn of(indexes: impl IntoIterator<Item = i32>) -> Indexes {
        let mut set = Indexes::default();
        for index in indexes {
            set.add(index, index);
        }
        set
    }

    fn add(&mut self, first: i32, last: i32) {
        if last < first {
            return;
        }
        let start = self.intervals.partition_point(|(_, other_last)| *other_last < first.saturating_sub(1));
        let end = self.intervals.partition_point(|(other_first, _)| *other_first <= last.saturating_add(1));
        let merged = self.intervals[start..end.max(start)]
            .iter()
            .fold((first, last), |(first, last), other| (first.min(other.0), last.max(other.1)));
        self.intervals.splice(start..end.max(start), [merged]);
    }

    /// Both together.
    #[must_use]
    pub(super) fn union(&self, other: &Indexes) -> Indexes {
        let mut set = self.clone();
        for (first, last) in &other.intervals {
            set.add(*first, *last);
        }
        set
    }

    /// How many.
    pub(super) fn len(&self) -> i32 {
        self.intervals.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// Whether the index is in it.
    pub(super) fn has(&self, index: i32) -> bool {
        let at = self.intervals.partition_point(|(_, last)| *last < index);
        self.intervals.get(at).is_some_and(|(first, _)| *first <= index)
    }

    /// How many are in both.
    pub(super) fn n_common(&self, other: &Indexes) -> i32 {
        let overlap = |a: &(i32, i32), b: &(i32, i32)| (a.1.min(b.1) - a.0.max(b.0) + 1).max(0);
        self.intervals.iter().map(|a| other.intervals.iter().map(|b| overlap(a, b)).sum::<i32>()).sum()
    }

    /// The first `count` indexes below `completions` that are not in it.
    pub(super) fn missing(&self, count: usize, completions: i32) -> Vec<i32> {
        let mut missing = Vec::new();
        let mut candidate = 0;
        for (first, last) in self.intervals.iter().copied().chain([(completions, completions)]) {
            while candidate < first.min(completions) && missing.len() < count {
                missing.push(candidate);
                candidate += 1;
            }
            candidate = candidate.max(last.saturating_add(1));
        }
        missing
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (idx, (first, last)) in self.intervals.iter().enumerate() {
            let comma = if idx == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn spelled_as_upstream_spells_them() {
        assert_eq!(Indexes::of([5, 0, 3, 4, 7, 8]).to_string(), "0,3-5,7,8");
        assert_eq!(Indexes::parse("0,3-9,x,20", 6).to_string(), "0,3-5");
        assert_eq!(Indexes::default().to_string(), "");
    }

    proptest! {
        /// As a set of numbers.
        #[test]
        fn as_a_set(a in proptest::collection::btree_set(0..30_i32, 0..20), b in proptest::collection::btree_set(0..30_i32, 0..20), count in 0..10_usize) {
            let (x, y) = (Indexes::of(a.iter().copied()), Indexes::of(b.iter().rev().copied()));
            prop_assert_eq!(Indexes::parse(&x.to_string(), 30).to_string(), x.to_string());
            prop_assert_eq!(x.len() as usize, a.len());
            prop_assert_eq!(x.n_common(&y) as usize, a.intersection(&b).count());
            prop_assert_eq!(x.union(&y), Indexes::of(a.union(&b).copied()));
            let missing: Vec<i32> = (0..30).filter(|i| !a.contains(i)).take(count).collect();
            prop_assert_eq!(x.missing(count, 30), missing);
            prop_assert!((0..30).all(|i| x.has(i) == a.contains(&i)));
            prop_assert_eq!(x.is_empty(), BTreeSet::is_empty(&a));
        }
    }
}
