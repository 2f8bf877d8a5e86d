//! The `pintle` binary: the only composition root.

mod admission;
mod flags;
mod serve;
mod storage;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A Kubernetes control plane in one small binary.
#[derive(Debug, Parser)]
#[command(name = "pintle", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the API server alone.
    Apiserver(flags::ServerFlags),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("PINTLE_LOG").unwrap_or_else(|_| "info".into()),
        )
        .with_writer(std::io::stderr)
        .init();
    let Command::Apiserver(args) = Cli::parse().command;
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => {
            tracing::error!(%why, "cannot start");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(serve::apiserver(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            tracing::error!("{why:#}");
            ExitCode::FAILURE
        }
    }
}
