//! What the command line says, checked and made into settings.

use anyhow::{Result, ensure};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Most clients, watchers, nodes and informers: each is a task, some are connections.
const COUNT_MAX: usize = 100_000;
/// Most writers that marks can tell apart.
const WRITERS_MAX: usize = 9_999;

/// `pintle bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchFlags {
    /// What to measure; `--list` shows what there is. Default: everything.
    #[arg(value_name = "SCENARIO")]
    pub scenarios: Vec<String>,
    /// List the scenarios and stop.
    #[arg(long)]
    pub list: bool,
    /// The server to measure. Default: Pintle, started for this on an empty directory.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Its processes, whose CPU time and memory are reported, summed.
    #[arg(long, value_name = "PIDS", value_delimiter = ',', requires = "kubeconfig")]
    pub server_pid: Vec<u32>,
    /// Measure this server too, in turns with the first one, and compare.
    #[arg(long, value_name = "FILE", conflicts_with = "peer")]
    pub peer_kubeconfig: Option<PathBuf>,
    /// The processes of the second server.
    #[arg(long, value_name = "PIDS", value_delimiter = ',', requires = "peer_kubeconfig")]
    pub peer_pid: Vec<u32>,
    /// Start kube-apiserver and etcd for this and compare with them: `kube-apiserver=PATH,etcd=PATH`.
    #[arg(long, value_name = "PROGRAMS")]
    pub peer: Option<String>,
    /// Another Pintle to start and to compare with: this program, in its place.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["peer", "peer_kubeconfig"])]
    pub peer_pintle: Option<PathBuf>,
    /// A further flag for the Pintle that is started here; may be given several times.
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    pub server_flag: Vec<String>,
    /// How much load, and for how long.
    #[command(flatten)]
    pub load: LoadFlags,
    /// Write the results there, as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the results there.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Where servers that are started here keep their data: on the disk that counts. Default: the system's place for
    /// temporary files.
    #[arg(long, value_name = "DIR")]
    pub work_dir: Option<PathBuf>,
}

/// How much load, and for how long.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Load")]
pub struct LoadFlags {
    /// Clients at once, each on a connection of its own; several values are measured one after the other.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "64")]
    pub clients: Vec<usize>,
    /// Clients that list at once.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1")]
    pub listers: Vec<usize>,
    /// Pods that are there to be read, and objects of the memory scenarios.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "10000")]
    pub objects: Vec<usize>,
    /// Watchers.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1000")]
    pub watchers: Vec<usize>,
    /// Watchers that share a connection.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub watchers_per_connection: usize,
    /// Writers whose events the watchers get.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub writers: usize,
    /// Events a second, where latency is measured.
    #[arg(long, value_name = "N", default_value_t = 20.0)]
    pub rate: f64,
    /// Nodes that send heartbeats.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2000")]
    pub nodes: Vec<usize>,
    /// Seconds between two heartbeats of a node.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub heartbeat_seconds: f64,
    /// Pods a second that come and go in the mixed cluster.
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    pub pods_per_second: f64,
    /// Informers on all pods in the mixed cluster.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub informers: usize,
    /// Seconds of each round.
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    pub seconds: f64,
    /// Seconds of the unmeasured round before the first.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub warm_up: f64,
    /// Rounds; with two servers they alternate.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub rounds: usize,
    /// What random choices follow from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// The flags, checked.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) load: LoadFlags,
    pub(crate) round: Duration,
    pub(crate) warm_up: Duration,
    pub(crate) heartbeat: Duration,
    /// Tells the namespaces of this run from those of others.
    pub(crate) run_id: String,
}

impl Settings {
    /// From flags.
    ///
    /// # Errors
    /// When a number makes no sense.
    pub(crate) fn new(load: LoadFlags, run_id: String) -> Result<Settings> {
        let seconds = |name: &str, value: f64| {
            Duration::try_from_secs_f64(value).map_err(|_| anyhow::anyhow!("--{name}={value}: not a number of seconds"))
        };
        let counts = [
            ("clients", &load.clients),
            ("listers", &load.listers),
            ("watchers", &load.watchers),
            ("nodes", &load.nodes),
            ("objects", &load.objects),
        ];
        for (name, values) in counts {
            let max = if name == "objects" { usize::MAX } else { COUNT_MAX };
            ensure!(values.iter().all(|n| (1..=max).contains(n)), "--{name}: each number must be 1 to {max}");
        }
        let writers_max = load.clients.iter().copied().max().unwrap_or_default().max(load.writers);
        ensure!(writers_max <= WRITERS_MAX, "--clients and --writers can be {WRITERS_MAX} at most");
        ensure!(load.writers > 0, "--writers must be at least 1");
        ensure!(load.watchers_per_connection > 0, "--watchers-per-connection must be at least 1");
        ensure!(load.rounds > 0, "--rounds must be at least 1");
        ensure!(load.rate > 0.0 && load.pods_per_second > 0.0, "--rate and --pods-per-second must be above 0");
        let (round, warm_up) = (seconds("seconds", load.seconds)?, seconds("warm-up", load.warm_up)?);
        let heartbeat = seconds("heartbeat-seconds", load.heartbeat_seconds)?;
        ensure!(!round.is_zero() && !heartbeat.is_zero(), "--seconds and --heartbeat-seconds must be above 0");
        Ok(Settings { round, warm_up, heartbeat, run_id, load })
    }
}
