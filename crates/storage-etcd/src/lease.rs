//! Leases for keys with a time to live. Keys written shortly after each other share one, as upstream's do: a lease costs
//! etcd far more than a key.

use crate::cluster::{Cluster, Repeat};
use crate::fault::Fault;
use crate::proto::LeaseGrantRequest;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Keys of one lease. Its end deletes them all in one transaction.
const LEASE_KEYS_MAX: u32 = 1000;

/// How much longer than asked for a key may live so that a lease can be shared: at most this, and a twentieth of its time.
const EXTRA_MAX: Duration = Duration::from_secs(60);

/// The lease that was granted last.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    last: Mutex<Option<Lease>>,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    id: i64,
    ends: Instant,
    n_keys: u32,
}

impl Leases {
    /// A lease for a key that is to live so long.
    pub(crate) async fn for_key(&self, cluster: &Cluster, ttl: Duration) -> Result<i64, Fault> {
        let extra = (ttl / 20).min(EXTRA_MAX);
        let mut last = self.last.lock().await;
        let now = Instant::now();
        if let Some(lease) = last.as_mut()
            && lease.ends >= now + ttl
            && lease.ends <= now + ttl + extra
            && lease.n_keys < LEASE_KEYS_MAX
        {
            lease.n_keys += 1;
            return Ok(lease.id);
        }
        let lives = ttl + extra;
        // etcd counts in seconds; rounding up, the key lives as long as it is to live.
        let seconds = lives.as_secs() + u64::from(lives.subsec_nanos() > 0);
        let request = LeaseGrantRequest { ttl: i64::try_from(seconds.max(1)).unwrap_or(i64::MAX), id: 0 };
        let granted = cluster.call(request, Repeat::Freely).await?;
        if granted.id == 0 {
            return Err(Fault::Denied(format!("etcd grants no lease: {}", granted.error)));
        }
        *last = Some(Lease { id: granted.id, ends: now + lives, n_keys: 1 });
        Ok(granted.id)
    }

    /// A lease turned out to be gone.
    pub(crate) async fn forget(&self, id: i64) {
        let mut last = self.last.lock().await;
        if last.is_some_and(|lease| lease.id == id) {
            *last = None;
        }
    }
}
