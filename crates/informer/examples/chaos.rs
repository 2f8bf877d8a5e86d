//! Informers against a live server, in a world that fails: streams are cut, requests refused, versions expired, answers
//! late; kill and restart the server meanwhile if you like. At the end every cache must be what the server has, and no
//! handler may have heard what it must not. `cargo run --example chaos -- [seconds] [seed]`
#![expect(clippy::print_stdout, reason = "it prints what it finds")]

use k8s_openapi::api::core::v1::ConfigMap;
use pintle_apimachinery::env::{Env, IdSource};
use pintle_client::{Api, Client, Object as _};
use pintle_informer::testing::{ChaosConfig, ChaosSource, History, HistoryHandler};
use pintle_informer::{CancellationToken, ListWatch, ObjectName, SharedInformer, SharedInformerOptions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const NAMESPACE: &str = "default";
const LABEL: &str = "example.org/chaos=yes";
const N_INFORMERS: usize = 4;
const N_OBJECTS: u64 = 40;

/// Rough, but the streams live long enough for the objects that are there at first to come through.
const CHAOS: ChaosConfig = ChaosConfig { cut_percent: 1, erred_percent: 1, ..ChaosConfig::ROUGH };

/// How long an informer may need, once the world is calm; then the run has failed.
const CONVERGED_TIMEOUT: Duration = Duration::from_secs(90);

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let argument =
        |idx: usize, default: u64| std::env::args().nth(idx).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (seconds, seed) = (argument(1, 20), argument(2, 1));
    let client = Client::try_default()?;
    let api = Api::<ConfigMap>::namespaced(&client, NAMESPACE);
    let env = Env { ids: Env::seeded(seed).ids, ..Env::system() };
    let stop = CancellationToken::new();

    let mut worlds = Vec::new();
    for idx in 0..N_INFORMERS {
        let dice = Env::seeded(seed * 100 + idx as u64).ids;
        let source = ListWatch::new(api.clone()).labels(LABEL);
        let chaos = ChaosSource::new(source, CHAOS, dice);
        let mut options = SharedInformerOptions::default();
        options.reflector.uses_watch_list = idx % 2 == 0;
        options.reflector.page_size = if idx == 1 { 7 } else { 0 };
        let start = Instant::now();
        options.reflector.on_error = Some(Arc::new(move |error| {
            if std::env::var("CHAOS_VERBOSE").is_ok() {
                println!(
                    "{:.1} informer {idx}: {}",
                    start.elapsed().as_secs_f64(),
                    pintle_client::error::chain_text(error)
                );
            }
        }));
        let informer = SharedInformer::with_options(chaos.clone(), options);
        let (handler, history) = HistoryHandler::new();
        informer.add_event_handler(handler);
        let (running, token) = (informer.clone(), stop.clone());
        tokio::spawn(async move { running.run(token).await });
        worlds.push((informer, chaos, history));
    }

    let (n_written, n_failed) = write(&api, env.ids.as_ref(), Duration::from_secs(seconds)).await;
    println!("{n_written} writes, {n_failed} failed");
    worlds.iter().for_each(|(_, chaos, _)| chaos.calm());
    for (idx, (informer, _, history)) in worlds.iter().enumerate() {
        let took = converge(&api, informer, history).await?;
        println!("informer {idx}: {} notifications, equal to the server after {took:?}", history.lines().len());
    }
    api.delete_collection().labels(LABEL).await?;
    stop.cancel();
    Ok(())
}

/// Makes, changes and deletes objects.
async fn write(api: &Api<ConfigMap>, dice: &dyn IdSource, span: Duration) -> (u32, u32) {
    let (mut n_written, mut n_failed) = (0, 0);
    let end = Instant::now() + span;
    while Instant::now() < end {
        let name = format!("chaos-{}", dice.random_u64() % N_OBJECTS);
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.clone());
        map.metadata.labels = Some([("example.org/chaos".to_owned(), "yes".to_owned())].into());
        map.data = Some([("roll".to_owned(), dice.random_u64().to_string())].into());
        let result = match dice.random_u64() % 4 {
            0 => api.delete(&name).await.map(|_| ()),
            1 => api.create(&map).await.map(|_| ()),
            _ => api.update(&map).await.map(|_| ()),
        };
        match result {
            Ok(()) => n_written += 1,
            Err(error) if error.is_not_found() || error.is_already_exists() => {}
            Err(_) => {
                n_failed += 1;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
    (n_written, n_failed)
}

/// Waits until the cache, and what the handler was told, are what the server has.
async fn converge(
    api: &Api<ConfigMap>,
    informer: &SharedInformer<ConfigMap>,
    history: &History,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let start = Instant::now();
    loop {
        let (wanted, cached) = (state_of_server(api).await, state_of_cache(informer));
        if wanted.as_ref().is_ok_and(|wanted| *wanted == cached && *wanted == history.told()) {
            break;
        }
        if start.elapsed() > CONVERGED_TIMEOUT {
            return Err(format!("the cache has {cached:?}\nthe server {wanted:?}").into());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    match history.violations().as_slice() {
        [] => Ok(start.elapsed()),
        violations => Err(format!("a handler heard {violations:?}\n{}", history.lines().join("\n")).into()),
    }
}

async fn state_of_server(api: &Api<ConfigMap>) -> pintle_client::Result<BTreeMap<ObjectName, String>> {
    let list = api.list().labels(LABEL).await?;
    Ok(list.iter().map(|map| (ObjectName::of(map), map.resource_version().to_owned())).collect())
}

fn state_of_cache(informer: &SharedInformer<ConfigMap>) -> BTreeMap<ObjectName, String> {
    let cached = informer.lister().list();
    cached.iter().map(|map| (map.object_name(), map.resource_version().to_owned())).collect()
}
