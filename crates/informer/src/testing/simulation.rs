//! The informer in a world that fails: seeded, without real time. Whatever happens, no handler hears what it must not,
//! and when the world calms down, cache and handlers agree with the source.

use super::{ChaosConfig, ChaosSource, FakeControllerSource, History, HistoryHandler};
use crate::{Cached, reflector::ReflectorConfig};
use crate::{
    CancellationToken, ListWatch, ListerWatcher, ObjectName, Registration, SharedInformer, SharedInformerOptions,
};
use k8s_openapi::api::core::v1::ConfigMap;
use pintle_apimachinery::env::{Env, IdSource};
use pintle_client::fake::{FakeServer, Reaction};
use pintle_client::{Api, Object as _};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const N_OBJECTS: u64 = 6;
const N_STEPS: usize = 150;

fn map(n: u64) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(format!("map-{n}"));
    map.metadata.namespace = Some("ns".to_owned());
    map.metadata.uid = Some(format!("uid-{n}"));
    map
}

fn name(n: u64) -> ObjectName {
    ObjectName::new("ns", format!("map-{n}"))
}

/// A world: an informer, its handlers, and dice.
struct World {
    informer: SharedInformer<ConfigMap>,
    histories: Vec<(Registration<Cached<ConfigMap>>, History, bool)>,
    dice: Arc<dyn IdSource>,
    stop: CancellationToken,
}

impl World {
    fn start(source: impl ListerWatcher<Cached<ConfigMap>>, env: &Env, uses_watch_list: bool, page_size: u32) -> World {
        let reflector = ReflectorConfig {
            env: env.clone(),
            uses_watch_list,
            page_size,
            on_error: Some(Arc::new(|_| {})),
            ..ReflectorConfig::default()
        };
        let informer = SharedInformer::with_options(source, SharedInformerOptions { reflector, resync_period: None });
        let mut world =
            World { informer, histories: Vec::new(), dice: Arc::clone(&env.ids), stop: CancellationToken::new() };
        world.join(None);
        world.join(Some(Duration::from_secs(7)));
        let (informer, stop) = (world.informer.clone(), world.stop.clone());
        tokio::spawn(async move { informer.run(stop).await });
        world
    }

    fn join(&mut self, resync_period: Option<Duration>) {
        let (handler, history) = HistoryHandler::new();
        let registration = self.informer.add_event_handler_with_resync_period(handler, resync_period);
        self.histories.push((registration, history, true));
    }

    fn roll(&self, n: u64) -> u64 {
        self.dice.random_u64() % n
    }

    /// Handlers come and go.
    fn shuffle_handlers(&mut self) {
        match self.roll(20) {
            0 => self.join(None),
            1 => {
                let idx = usize::try_from(self.roll(self.histories.len() as u64)).unwrap();
                let (registration, _, is_there) = &mut self.histories[idx];
                self.informer.remove_event_handler(registration);
                *is_there = false;
            }
            _ => {}
        }
    }

    /// Waits for the cache to be equal to `wanted`, then checks everybody.
    async fn settle(self, wanted: BTreeMap<ObjectName, String>) -> String {
        let lister = self.informer.lister();
        let cached = || {
            lister.list().iter().map(|o| (o.object_name(), o.resource_version().to_owned())).collect::<BTreeMap<_, _>>()
        };
        let converged = async {
            while cached() != wanted || self.histories.iter().any(|(r, _, is_there)| *is_there && r.n_waiting() > 0) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(600), converged).await;
        assert!(in_time.is_ok(), "the cache has {:?}\nthe source {wanted:?}", cached());
        // a wait of virtual time in which every handler runs
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut transcript = String::new();
        for (idx, (registration, history, is_there)) in self.histories.iter().enumerate() {
            assert_eq!(history.violations(), [], "handler {idx}:\n{}", history.lines().join("\n"));
            if *is_there {
                assert!(registration.has_synced(), "handler {idx}");
                assert_eq!(history.told(), wanted, "handler {idx}:\n{}", history.lines().join("\n"));
            }
            transcript += &format!("handler {idx}\n{}\n", history.lines().join("\n"));
        }
        self.stop.cancel();
        transcript
    }
}

/// One run over the fake source with chaos between.
async fn rough_source(seed: u64) -> String {
    let env = Env::seeded(seed);
    let source = FakeControllerSource::<ConfigMap>::new();
    source.set_watch_list(seed.is_multiple_of(2));
    let chaos = ChaosSource::new(source.clone(), ChaosConfig::ROUGH, Arc::clone(&env.ids));
    let mut world = World::start(chaos.clone(), &env, true, 0);
    for _ in 0..N_STEPS {
        let n = world.roll(N_OBJECTS);
        match world.roll(16) {
            0..8 => drop(source.modify(map(n))),
            8..11 => source.delete(&name(n)),
            11 => {
                // a change that open watches never hear of comes with the end of those watches
                source.modify_drop_watch(map(n));
                source.compact();
                source.reset_watch();
            }
            12 => {
                source.delete_drop_watch(&name(n));
                source.compact();
                source.reset_watch();
            }
            13 => source.reset_watch(),
            14 => source.compact(),
            _ => tokio::time::sleep(Duration::from_millis(world.roll(5000))).await,
        }
        world.shuffle_handlers();
        if world.roll(3) == 0 {
            tokio::time::sleep(Duration::from_millis(world.roll(300))).await;
        }
    }
    chaos.calm();
    let wanted = source.objects().iter().map(|o| (o.object_name(), o.resource_version().to_owned())).collect();
    world.settle(wanted).await
}

/// One run over the whole client, against a server that fails.
async fn rough_server(seed: u64) -> String {
    let env = Env::seeded(seed);
    let server = FakeServer::with_env(env.clone());
    let is_rough = Arc::new(AtomicBool::new(true));
    let (rough, dice) = (Arc::clone(&is_rough), Arc::clone(&env.ids));
    let fault = move || match (rough.load(Ordering::Relaxed), dice.random_u64() % 12) {
        (true, 0) => Reaction::fail(500, "InternalError", "chaos"),
        (true, 1) => Reaction::fail(410, "Expired", "chaos"),
        (true, 2) => Reaction::Disconnect,
        _ => Reaction::Pass,
    };
    server.react("list", "configmaps", {
        let fault = fault.clone();
        move |_| fault()
    });
    server.react("watch", "configmaps", move |_| fault());
    let maps = Api::<ConfigMap>::namespaced(&server.client(), "ns");
    let mut world = World::start(ListWatch::new(maps.clone()), &env, !seed.is_multiple_of(3), 2);
    for _ in 0..N_STEPS {
        let n = world.roll(N_OBJECTS);
        let object_name = name(n).name;
        match world.roll(14) {
            0..7 => match maps.get_opt(&object_name).await.unwrap() {
                None => drop(maps.create(&map(n)).await.unwrap()),
                Some(mut known) => {
                    known.data = Some([("roll".to_owned(), env.ids.random_u64().to_string())].into());
                    maps.update(&known).await.unwrap();
                }
            },
            7..10 => {
                let deleted = maps.delete(&object_name).await;
                assert!(deleted.is_ok() || deleted.is_err_and(|error| error.is_not_found()));
            }
            10 => server.disconnect_watches(),
            11 => server.compact(),
            _ => tokio::time::sleep(Duration::from_millis(world.roll(4000))).await,
        }
        world.shuffle_handlers();
    }
    is_rough.store(false, Ordering::Relaxed);
    let list = maps.list().await.unwrap();
    let wanted = list.iter().map(|map| (ObjectName::of(map), map.resource_version().to_owned())).collect();
    world.settle(wanted).await
}

fn simulate<F: Future<Output = String>>(world: F) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(world)
}

/// `SIM_SEED` runs one seed, `SIM_SEEDS` so many.
fn seeds(n: u64) -> Vec<u64> {
    let number = |variable: &str| std::env::var(variable).ok().and_then(|text| text.parse::<u64>().ok());
    match number("SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("SIM_SEEDS").unwrap_or(n)).collect(),
    }
}

#[test]
fn every_informer_converges_and_no_handler_hears_nonsense() {
    for seed in seeds(150) {
        let transcript = std::panic::catch_unwind(|| simulate(rough_source(seed)));
        assert!(transcript.is_ok(), "SIM_SEED={seed} shows it again");
    }
}

#[test]
fn so_through_the_client() {
    for seed in seeds(60) {
        let transcript = std::panic::catch_unwind(|| simulate(rough_server(seed)));
        assert!(transcript.is_ok(), "SIM_SEED={seed} shows it again");
    }
}

#[test]
fn a_seed_is_a_history() {
    for seed in 0..5 {
        let first = simulate(rough_source(seed));
        assert!(first.lines().count() > 30, "a history is long enough to tell something");
        assert_eq!(first, simulate(rough_source(seed)));
    }
}
