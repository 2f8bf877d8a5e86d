//! The `pintle` binary: the only composition root.
#![expect(clippy::print_stdout, reason = "what a command answers goes to standard output")]

mod admission;
mod bench;
mod cluster;
mod etcd_role;
mod exit;
mod flags;
mod kubeconfig;
mod maintain;
mod serve;
mod storage;
mod up;
mod upstream_flags;

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser, Subcommand};
use std::path::Path;
use std::process::ExitCode;

/// Requests are many small allocations, freed together on whatever thread ends them: with the system's allocator they
/// take up to a third more CPU time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What `--help` begins with.
const ABOUT: &str = "A Kubernetes control plane in one small binary.

`pintle up` runs everything: the API server on its own durable store, the control loops, a scheduler and simulated
nodes. `pintle apiserver` runs the API server alone and takes kube-apiserver's flags. Both keep what they need in a
data directory, and write a kubeconfig there.";

/// A Kubernetes control plane in one small binary.
#[derive(Debug, Parser)]
#[command(name = "pintle", version, about, long_about = ABOUT, after_help = exit::HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a whole cluster: API server, control loops, scheduler and simulated nodes.
    Up(Box<flags::UpFlags>),
    /// Run the API server alone.
    Apiserver(Box<flags::ServerFlags>),
    /// Measure how fast an API server is: this one, kube-apiserver, any that a kubeconfig leads to.
    Bench(Box<bench::Flags>),
    /// Print the administrator's kubeconfig, or make one for somebody else.
    Kubeconfig(flags::KubeconfigFlags),
    /// Save the state of a store into a file, and make a store from it.
    #[command(subcommand)]
    Snapshot(maintain::SnapshotCommand),
    /// Look after a store: where it stands, whether it is whole, and repair.
    #[command(subcommand)]
    Storage(maintain::StorageCommand),
    /// Print the version of Pintle, and of the Kubernetes API that it serves.
    Version,
    /// Print a script that completes commands and flags in your shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().collect();
    let role = args.first().and_then(|path| Path::new(path).file_name()?.to_str().map(str::to_owned));
    match role.as_deref() {
        // the names under which test harnesses look for a control plane
        Some("kube-apiserver") if args.get(1).map(String::as_str) == Some("--version") => {
            println!("Kubernetes {}", pintle_apiserver::documents::GIT_VERSION);
            return ExitCode::SUCCESS;
        }
        Some("kube-apiserver") => args.insert(1, "apiserver".to_owned()),
        Some("etcd") => return finish(etcd_role::run(args.split_off(1))),
        _ => {}
    }
    log_to_stderr();
    let sifted = match args.get(1).map(String::as_str) {
        Some("apiserver" | "up") => match upstream_flags::sift(args) {
            Ok(sifted) => sifted,
            Err(why) => {
                eprintln!("error: {why}");
                return ExitCode::from(exit::USAGE);
            }
        },
        _ => upstream_flags::Sifted { args, ..upstream_flags::Sifted::default() },
    };
    for name in &sifted.without_meaning {
        tracing::info!("--{name} has no meaning here and is ignored");
    }
    finish(run(Cli::parse_from(sifted.args).command))
}

fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("PINTLE_LOG").unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_target(false)
        .init();
}

fn finish(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why:#}");
            exit::code(&why)
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Up(flags) => runtime()?.block_on(up::up(*flags)),
        Command::Apiserver(flags) => runtime()?.block_on(serve::apiserver(*flags)),
        Command::Bench(flags) => bench::run(*flags),
        Command::Kubeconfig(flags) => kubeconfig::print(&flags),
        Command::Snapshot(command) => maintain::snapshot(command),
        Command::Storage(command) => maintain::storage(command),
        Command::Version => {
            println!("Pintle {}", env!("CARGO_PKG_VERSION"));
            println!("Kubernetes API {}", pintle_apiserver::documents::GIT_VERSION);
            Ok(())
        }
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "pintle", &mut std::io::stdout());
            Ok(())
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start worker threads")
}
