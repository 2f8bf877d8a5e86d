//! The index against a model that remembers everything: reads, watches, rewrites and restarts at random.

use super::*;
use crate::disk::{Disk, SimDisk};
use crate::format::{Kind, SegmentKind, SegmentName};
use pintle_apimachinery::env::{IdSource, SeededIds};

/// A record as it lies in a segment.
#[derive(Clone, Debug)]
struct Lying {
    key: Key,
    version: Version,
    previous: Option<Revision>,
}

/// The index, the segments it describes, and all that ever happened.
struct World {
    index: Index,
    segments: BTreeMap<u32, (Arc<Segment>, Vec<Lying>)>,
    /// Key and whether it was put, by revision from 2 on.
    all: Vec<(Key, bool)>,
    current: u32,
    next_number: u32,
    dice: SeededIds,
}

fn revision(n: usize) -> Revision {
    Revision::new(n as u64).expect("counted from 1")
}

impl World {
    fn new(seed: u64) -> World {
        let mut world = World {
            index: Builder::new(Revision::FIRST).finish(Revision::FIRST).expect("nothing is missing"),
            segments: BTreeMap::new(),
            all: Vec::new(),
            current: 0,
            next_number: 1,
            dice: SeededIds::new(seed),
        };
        world.begin_segment();
        world
    }

    fn die(&self, n: usize) -> usize {
        usize::try_from(self.dice.random_u64()).expect("64 bits") % n
    }

    fn segment(&mut self) -> Arc<Segment> {
        let number = self.next_number;
        self.next_number += 1;
        let name = SegmentName { number, kind: SegmentKind::Log };
        let file = SimDisk::new(0).create("x").expect("no fault is planned");
        let segment = Arc::new(Segment { name, file, seed: 0, first: self.index.revision().next() });
        self.segments.insert(number, (Arc::clone(&segment), Vec::new()));
        segment
    }

    fn begin_segment(&mut self) {
        self.index.seal(self.current, 1 << 20);
        let segment = self.segment();
        self.current = segment.name.number;
        self.index.add_segment(segment, 64);
    }

    fn write(&mut self) {
        let key = Key::new(format!("k{}", self.die(5)));
        let previous = self.index.newest(&key).map(|place| place.version.revision);
        let is_put = previous.is_none() || self.die(3) > 0;
        let unit = 8 + 10 * u32::try_from(self.segments[&self.current].1.len()).expect("few");
        let kind = if is_put { Kind::Put } else { Kind::Delete };
        let revision = self.index.revision().next();
        let version = Version { revision, segment: self.current, unit, bytes: 80, kind, is_mortal: false };
        self.index.publish([Change { key: key.clone(), version, held: Weak::new() }]);
        self.segments.get_mut(&self.current).expect("it is open").1.push(Lying { key: key.clone(), version, previous });
        self.all.push((key, is_put));
    }

    fn compact(&mut self) {
        let n_more = self.die(10) as u64;
        let target = Revision::new(self.index.compacted().get() + n_more).expect("not 0");
        while !self.index.compact(target, 3) {}
    }

    /// Rewrites a segment of the past, with changes in between as they may happen while a copy is under way.
    fn rewrite(&mut self) {
        let compacted = self.index.compacted();
        let old: Vec<u32> = self
            .index
            .segments()
            .filter(|s| s.is_sealed && s.last <= compacted)
            .map(|s| s.segment.name.number)
            .collect();
        if old.is_empty() {
            return;
        }
        let victim = old[self.die(old.len())];
        let target = self.segment();
        let (mut moved, mut dropped, mut copies) = (Vec::new(), Vec::new(), Vec::new());
        for lying in self.segments[&victim].1.clone() {
            match self.index.needed(&lying.key, lying.version.revision, victim) {
                Some((key, version)) => {
                    assert_eq!(version, lying.version);
                    let unit = 8 + 10 * u32::try_from(copies.len()).expect("few");
                    let version = Version { segment: target.name.number, unit, ..version };
                    copies.push(Lying { version, ..lying });
                    moved.push(Moved { key, version, from: victim });
                }
                None => dropped.push(Dropped { key: lying.key, kind: lying.version.kind }),
            }
            if self.die(8) == 0 {
                self.write();
                self.compact();
            }
        }
        let last = copies.iter().map(|copy| copy.version.revision).max().unwrap_or(Revision::FIRST);
        self.index.add_base(Arc::clone(&target), 1 << 20, copies.len() as u64, last);
        self.segments.get_mut(&target.name.number).expect("just made").1 = copies;
        self.index.follow(&moved);
        self.index.drop_garbage(&dropped);
        self.index.remove_segment(victim);
        self.segments.remove(&victim);
    }

    /// Builds the index anew from what lies in the segments.
    fn restart(&mut self) {
        let compacted = self.index.compacted();
        let mut builder = Builder::new(compacted);
        let mut lying: Vec<&Lying> = Vec::new();
        for (number, (segment, records)) in &self.segments {
            builder.index().add_segment(Arc::clone(segment), 64);
            builder.index().seal(*number, 1 << 20);
            lying.extend(records);
        }
        // What is older than the compacted revision comes in any order.
        let (old, new): (Vec<&Lying>, Vec<&Lying>) = lying.iter().partition(|l| l.version.revision <= compacted);
        let mut new = new;
        new.sort_by_key(|lying| lying.version.revision);
        for lying in old.iter().rev().chain(&new) {
            builder.found(&Physical { key: &lying.key, version: lying.version, previous: lying.previous });
        }
        let current = self.index.revision();
        self.index = builder.finish(current).expect("nothing is missing");
        self.begin_segment();
    }

    /// What the key held at a revision: the revision of that put.
    fn held(&self, key: &str, at: Revision) -> Option<Revision> {
        let n = usize::try_from(at.get()).expect("few") - 1;
        let last = self.all[..n].iter().rposition(|(other, _)| &**other == key)?;
        self.all[last].1.then(|| revision(last + 2))
    }

    fn compare(&self) {
        self.index.check();
        let (compacted, current) = (self.index.compacted(), self.index.revision());
        assert_eq!(current, revision(self.all.len() + 1));
        for n in compacted.get()..=current.get() {
            let at = Revision::new(n).expect("not 0");
            for key in ["k0", "k1", "k2", "k3", "k4"] {
                let place = self.index.at(key, at);
                assert_eq!(place.as_ref().map(|place| place.version.revision), self.held(key, at), "{key} at {at}");
                if let Some(Place { version, .. }) = place {
                    let lies = self.segments[&version.segment].1.iter().any(|lying| lying.version == version);
                    assert!(lies, "{key} at {at} is not where the index says");
                }
            }
            let (places, more) = self.index.page("k", Bound::Unbounded, at, 100);
            let expected: Vec<_> = ["k0", "k1", "k2", "k3", "k4"].iter().filter_map(|key| self.held(key, at)).collect();
            assert_eq!(places.iter().map(|place| place.version.revision).collect::<Vec<_>>(), expected);
            assert_eq!((more, self.index.count("k", Bound::Unbounded, at, 100).0), (None, expected.len()));
        }
        let (past, scanned) = self.index.past(compacted, "k", 1000, 1000).expect("it is where history begins");
        assert_eq!(scanned, current);
        assert_eq!(past.len() as u64, current.get() - compacted.get());
        for event in past {
            let (key, is_put) = &self.all[usize::try_from(event.revision.get()).expect("few") - 2];
            assert_eq!((&event.key, event.record.is_some()), (key, *is_put));
            let before = Revision::new(event.revision.get() - 1).expect("not 0");
            assert_eq!(event.previous.map(|place| place.version.revision), self.held(key, before));
        }
        assert!(compacted == Revision::FIRST || self.index.past(Revision::FIRST, "k", 10, 10).is_err());
    }
}

#[test]
fn an_index_knows_what_a_model_knows() {
    for seed in 0..300 {
        let mut world = World::new(seed);
        for _ in 0..60 {
            match world.die(8) {
                0 => world.compact(),
                1 => world.rewrite(),
                2 => world.begin_segment(),
                3 if world.die(3) == 0 => world.restart(),
                _ => world.write(),
            }
            world.compare();
        }
    }
}
