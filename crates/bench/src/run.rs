//! A whole run: servers found or started, scenarios measured in turns, results written.

use crate::lab::Lab;
use crate::link::Dialer;
use crate::options::{BenchFlags, Settings};
use crate::plot;
use crate::process::Processes;
use crate::progress::Progress;
use crate::report::{Comparison, Measured, Report, Row};
use crate::scenario::{Scale, Scenario, Session, all};
use crate::server::{Recipe, Running};
use anyhow::{Context, Result, bail};
use pintle_apimachinery::env::Env;
use pintle_client::Config;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Measures what the flags say and writes the results to standard output and the files that the flags name.
///
/// # Errors
/// When a flag makes no sense, a server cannot be reached or started, or a scenario cannot be prepared. Refused requests
/// are results, not errors.
pub async fn run(flags: BenchFlags) -> Result<()> {
    if flags.list {
        return tell(&list());
    }
    let scenarios = chosen(&flags.scenarios)?;
    let run_id = Env::system().ids.name_suffix(5);
    let settings = Arc::new(Settings::new(flags.load.clone(), run_id.to_string())?);
    let work_dir = flags.work_dir.clone().unwrap_or_else(std::env::temp_dir).join(format!("pintle-bench-{run_id}"));
    let directory = Directory(work_dir);
    let mut servers = servers(&flags, &settings, &directory.0).await?;
    let labs: Vec<Arc<Lab>> = servers.iter().map(|server| server.lab.clone()).collect();
    let measured = tokio::select! {
        measured = measure(&scenarios, &labs, &settings) => measured,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    };
    for server in &mut servers {
        match server.running.take() {
            Some(running) => running.stop().await?,
            None => server.lab.leave().await?,
        }
    }
    let report = measured?;
    tell(&report.table())?;
    if let Some(path) = &flags.json {
        let text = serde_json::to_string_pretty(&report).context("results as JSON")?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &flags.svg {
        std::fs::write(path, plot::svg(&report)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The data of servers that were started here, removed at the end.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // it exists only if a server was started
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn tell(text: &str) -> Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot write results")
}

fn list() -> String {
    let all = all();
    let width = all.iter().map(|scenario| scenario.name.len()).max().unwrap_or_default();
    all.iter().map(|scenario| format!("{:width$}  {}\n", scenario.name, scenario.what)).collect()
}

/// The scenarios of these names, in the order of the table; all when none is named.
fn chosen(names: &[String]) -> Result<Vec<Scenario>> {
    let mut all = all();
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|scenario| scenario.name != **name)) {
        bail!("there is no scenario {unknown:?}; --list shows what there is");
    }
    if !names.is_empty() {
        all.retain(|scenario| names.iter().any(|name| name == scenario.name));
    }
    Ok(all)
}

struct Server {
    lab: Arc<Lab>,
    running: Option<Running>,
}

async fn servers(flags: &BenchFlags, settings: &Arc<Settings>, directory: &Path) -> Result<Vec<Server>> {
    let given = |path: &Path, pids: &[u32], label: &str| -> Result<Server> {
        let config = Config::from_file(path).with_context(|| format!("{}", path.display()))?;
        let label = format!("{label} ({})", config.server.authority().map_or("", |authority| authority.as_str()));
        let processes = Processes::new(pids.to_vec());
        processes.usage().context("--server-pid, --peer-pid")?;
        let work_dir = directory.to_owned();
        let lab = Lab::new(label, Dialer::new(&config)?, processes, None, settings.clone(), work_dir);
        Ok(Server { lab: Arc::new(lab), running: None })
    };
    let pintle = |program: PathBuf| Recipe::Pintle { program, flags: flags.server_flag.clone() };
    let mut servers = vec![match &flags.kubeconfig {
        Some(path) => given(path, &flags.server_pid, "server")?,
        None => {
            let program = std::env::current_exe().context("where this program is")?;
            started(pintle(program), "pintle", settings, directory.join("first")).await?
        }
    }];
    if let Some(path) = &flags.peer_kubeconfig {
        servers.push(given(path, &flags.peer_pid, "peer")?);
    }
    if let Some(programs) = &flags.peer {
        let recipe = Recipe::upstream(programs)?;
        let label = recipe.label();
        servers.push(started(recipe, label, settings, directory.join("second")).await?);
    }
    if let Some(program) = &flags.peer_pintle {
        servers.push(started(pintle(program.clone()), "peer pintle", settings, directory.join("second")).await?);
    }
    Ok(servers)
}

async fn started(recipe: Recipe, label: &str, settings: &Arc<Settings>, directory: PathBuf) -> Result<Server> {
    let running = recipe.start(&directory.join("server")).await.with_context(|| format!("cannot start {label}"))?;
    let (dialer, processes) = (Dialer::new(&running.config()?)?, running.processes());
    let lab = Lab::new(label.to_owned(), dialer, processes, Some(recipe), settings.clone(), directory);
    Ok(Server { lab: Arc::new(lab), running: Some(running) })
}

async fn measure(scenarios: &[Scenario], labs: &[Arc<Lab>], settings: &Settings) -> Result<Report> {
    let mut report = Report {
        cpus: std::thread::available_parallelism().map_or(0, usize::from),
        seed: settings.load.seed,
        seconds: settings.load.seconds,
        rounds: settings.load.rounds,
        ..Report::default()
    };
    for scenario in scenarios {
        for (name, scale) in scenario.sweep.scales(&settings.load) {
            let rows = scenario_rows(scenario, &name, scale, labs, settings);
            let rows = rows.await.with_context(|| format!("{} {name}", scenario.name))?;
            if let [first, second] = &rows[..] {
                report.comparisons.push(Comparison::new(first, second));
            }
            report.rows.extend(rows);
        }
    }
    Ok(report)
}

/// Measures one scenario at one scale: a round on each server by turns, each first as often as the other.
async fn scenario_rows(
    scenario: &Scenario,
    scale_name: &str,
    scale: Scale,
    labs: &[Arc<Lab>],
    settings: &Settings,
) -> Result<Vec<Row>> {
    let what = |lab: &Lab, round: &str| format!("{} {scale_name} {} {round}", scenario.name, lab.label);
    let mut sessions: Vec<Box<dyn Session>> = Vec::new();
    for lab in labs {
        let _progress = Progress::of(what(lab, "opening"), lab.live.clone());
        let mut session = (scenario.open)(lab.clone(), scale).await.with_context(|| lab.label.clone())?;
        if scenario.is_timed && !settings.warm_up.is_zero() {
            session.ready().await?;
            session.round(settings.warm_up).await?;
        }
        sessions.push(session);
    }
    let mut measured: Vec<Vec<Measured>> = vec![Vec::new(); labs.len()];
    for round in 0..settings.load.rounds {
        let mut order: Vec<usize> = (0..labs.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for idx in order {
            let name = format!("round {} of {}", round + 1, settings.load.rounds);
            let _progress = Progress::of(what(&labs[idx], &name), labs[idx].live.clone());
            let outcome = one_round(&labs[idx], &mut *sessions[idx], settings.round).await;
            measured[idx].push(outcome.with_context(|| labs[idx].label.clone())?);
        }
    }
    for session in sessions {
        session.close().await?;
    }
    let row = |(lab, rounds): (&Arc<Lab>, &Vec<Measured>)| {
        Row::new(scenario.name, scale_name, &lab.label, scenario.unit, rounds)
    };
    Ok(labs.iter().zip(&measured).map(row).collect())
}

async fn one_round(lab: &Lab, session: &mut dyn Session, span: Duration) -> Result<Measured> {
    session.ready().await?;
    let own = Processes::own();
    lab.processes.reset_peak();
    let (server_before, own_before, begun) = (lab.processes.usage()?, own.usage()?, Instant::now());
    let round = session.round(span).await?;
    let (server_after, own_after) = (lab.processes.usage()?, own.usage()?);
    let of_processes = (!lab.processes.is_empty())
        .then(|| crate::process::Usage { cpu: server_after.cpu.saturating_sub(server_before.cpu), ..server_after });
    Ok(Measured {
        server: session.own_usage().or(of_processes),
        own_cpu: own_after.cpu.saturating_sub(own_before.cpu),
        wall: begun.elapsed(),
        round,
    })
}
