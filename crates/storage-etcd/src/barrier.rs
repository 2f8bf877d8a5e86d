//! Asking where the store stands, once for all who ask at the same time.

use parking_lot::Mutex;
use pintle_storage::{Result, Revision};

/// Shares answers among those who ask. An answer is good for whoever asked before the question was sent.
#[derive(Debug, Default)]
pub(crate) struct Barrier {
    asking: tokio::sync::Mutex<()>,
    answers: Mutex<Answers>,
}

#[derive(Debug, Default)]
struct Answers {
    /// Questions sent.
    n_sent: u64,
    /// The newest question answered, and its answer.
    answered: Option<(u64, Revision)>,
}

impl Barrier {
    /// An answer to a question that is sent after this call.
    pub(crate) async fn pass(&self, ask: impl AsyncFnOnce() -> Result<Revision>) -> Result<Revision> {
        let n_before = self.answers.lock().n_sent;
        let _one_is_enough = self.asking.lock().await;
        let number = {
            let mut answers = self.answers.lock();
            if let Some((number, revision)) = answers.answered
                && number > n_before
            {
                return Ok(revision);
            }
            answers.n_sent += 1;
            answers.n_sent
        };
        let revision = ask().await?;
        self.answers.lock().answered = Some((number, revision));
        Ok(revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn who_asks_together_shares_an_answer() {
        let (barrier, n_asked) = (Barrier::default(), AtomicU64::new(0));
        let ask = || {
            barrier.pass(async || {
                let n = n_asked.fetch_add(1, Ordering::Relaxed) + 1;
                tokio::time::sleep(Duration::from_millis(5)).await;
                Ok(Revision::new(n).expect("not 0"))
            })
        };
        let answers = futures_util::future::join_all((0..10).map(|_| ask())).await;
        let answers: Vec<u64> = answers.into_iter().map(|answer| answer.expect("asked").get()).collect();
        // The first question was sent before the others asked.
        assert_eq!(answers, [1, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!(ask().await.expect("asked").get(), 3);
    }
}
