//! `pintle bench`: the load generator on a runtime of its own, small enough to leave the machine to the server.

use anyhow::{Context, Result, ensure};
use clap::Args;
use pintle_bench::BenchFlags;

/// `pintle bench`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Flags {
    /// Threads that make the load.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    #[command(flatten)]
    bench: BenchFlags,
}

/// Measures.
pub(crate) fn run(flags: Flags) -> Result<()> {
    ensure!(flags.threads > 0, "--threads must be at least 1");
    let runtime = if flags.threads == 1 {
        tokio::runtime::Builder::new_current_thread().enable_all().build()
    } else {
        tokio::runtime::Builder::new_multi_thread().worker_threads(flags.threads).enable_all().build()
    };
    runtime.context("cannot start worker threads")?.block_on(pintle_bench::run(flags.bench))
}
