//! How a cache is to behave.

use pintle_storage::Record;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How a cache is to behave.
#[derive(Clone, Debug)]
pub struct Options {
    /// Events in the window. At the limit the oldest is let go of: who has not read it yet is told `Expired`, and who
    /// asks for it later is served by the back end.
    pub window_events_max: usize,
    /// Bytes of values in the window. As above.
    pub window_bytes_max: usize,
    /// How long a reader waits for a cache that is not filled yet. Then it is told `Unavailable`.
    pub ready_timeout: Duration,
    /// How long a reader waits for the cache to reach a revision. Then the back end is asked instead.
    pub fresh_timeout: Duration,
    /// How often a watcher that wants progress is told. Who makes bookmarks of it may leave some out.
    pub progress_interval: Duration,
    /// What watchers can be found by.
    pub indexer: Indexer,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            window_events_max: 100_000,
            window_bytes_max: 64 << 20,
            ready_timeout: Duration::from_secs(30),
            fresh_timeout: Duration::from_secs(3),
            progress_interval: Duration::from_secs(10),
            indexer: Indexer::none(),
        }
    }
}

/// Tells a sink the field's name and its value.
type Values = dyn Fn(&Record, &mut dyn FnMut(&str, &str)) + Send + Sync;

/// Says which values of which fields a record has. A watcher whose filter has a trigger on such a field is woken for
/// records with that value only.
#[derive(Clone)]
pub struct Indexer {
    fields: Arc<[String]>,
    values: Arc<Values>,
}

impl Indexer {
    /// An index by these fields; `values` tells its sink each of them with the value that a record has.
    pub fn new(
        fields: impl IntoIterator<Item = impl Into<String>>,
        values: impl Fn(&Record, &mut dyn FnMut(&str, &str)) + Send + Sync + 'static,
    ) -> Indexer {
        Indexer { fields: fields.into_iter().map(Into::into).collect(), values: Arc::new(values) }
    }

    /// An index by nothing.
    pub fn none() -> Indexer {
        Indexer::new([] as [String; 0], |_, _| {})
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.fields.iter().any(|other| other == field)
    }

    pub(crate) fn tell(&self, record: &Record, sink: &mut dyn FnMut(&str, &str)) {
        (self.values)(record, sink);
    }
}

impl fmt::Debug for Indexer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Indexer").field(&self.fields).finish()
    }
}
