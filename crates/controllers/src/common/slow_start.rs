//! Many requests of which the first ones may tell that all will fail: a few at first, then twice as many each time.

use futures_util::future::join_all;
use pintle_client::{Error, Result};
use std::future::Future;

/// Requests in the first batch.
pub(crate) const INITIAL_BATCH: usize = 1;

/// Calls `f` with `0..count` in batches of 1, 2, 4 ... and stops after a batch with a failure. Gives how many went well
/// and the first failure.
pub(crate) async fn slow_start_batch<F, Fut>(count: usize, initial: usize, f: F) -> (usize, Option<Error>)
where
    F: Fn(usize) -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let (mut n_done, mut n_well) = (0, 0);
    let mut batch = initial.min(count);
    while batch > 0 {
        let results = join_all((n_done..n_done + batch).map(&f)).await;
        n_done += batch;
        let mut failure = None;
        for result in results {
            match result {
                Ok(()) => n_well += 1,
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if failure.is_some() {
            return (n_well, failure);
        }
        batch = (2 * batch).min(count - n_done);
    }
    (n_well, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    #[tokio::test]
    async fn stops_at_the_first_batch_that_fails() {
        let tried = Mutex::new(Vec::new());
        let (n_well, failure) = slow_start_batch(20, INITIAL_BATCH, |idx| {
            tried.lock().push(idx);
            let result = if idx == 5 { Err(Error::InvalidRequest("no".to_owned())) } else { Ok(()) };
            async { result }
        })
        .await;
        assert_eq!((n_well, failure.is_some(), tried.lock().len()), (6, true, 7), "1 + 2 + 4 were tried");
        assert_eq!(slow_start_batch(20, INITIAL_BATCH, |_| async { Ok(()) }).await.0, 20);
    }
}
