use super::*;
use parking_lot::Mutex;
use pintle_client::fake::{FakeServer, Reaction};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

type Journal = Arc<Mutex<Vec<String>>>;

/// A candidate that leads until it is told to stop or loses the lease, and writes that down.
fn candidate(server: &FakeServer, identity: &str, journal: &Journal, stop: CancellationToken) -> Arc<LeaderElector> {
    let config = LeaderElectionConfig::new("kube-system", "controller", identity);
    let elector = Arc::new(LeaderElector::new(&server.client(), config).unwrap());
    let (this, journal, identity) = (Arc::clone(&elector), Arc::clone(journal), identity.to_owned());
    let start = Instant::now();
    tokio::spawn(async move {
        loop {
            let lead = || async {
                journal.lock().push(format!("{} {identity} leads", start.elapsed().as_secs()));
                std::future::pending::<()>().await;
            };
            let led = this.run(stop.clone(), lead).await;
            journal.lock().push(format!("{} {identity}: {led:?}", start.elapsed().as_secs()));
            if led == Led::Stopped {
                return;
            }
        }
    });
    elector
}

#[tokio::test(start_paused = true)]
async fn one_leads_at_a_time() {
    let server = FakeServer::with_env(crate::testing::TokioClock::env(1));
    let journal = Journal::default();
    let (stop_a, stop_b) = (CancellationToken::new(), CancellationToken::new());
    let a = candidate(&server, "a", &journal, stop_a.clone());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let b = candidate(&server, "b", &journal, stop_b.clone());
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert!(a.is_leader() && !b.is_leader());
    assert_eq!(b.leader(), "a");
    stop_a.cancel();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(b.is_leader());
    stop_b.cancel();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let lines = journal.lock().clone();
    assert_eq!(lines[..2], ["0 a leads", "60 a: Stopped"]);
    assert!(lines[2].ends_with(" b leads"), "{lines:?}");
    let after: u64 = lines[2].split(' ').next().unwrap().parse().unwrap();
    // b began to count one second later
    assert!((59..=64).contains(&after), "given back, taken within a retry: {lines:?}");
    let leases = Api::<Lease>::namespaced(&server.client(), "kube-system");
    let spec = leases.get("controller").await.unwrap().spec.unwrap();
    assert_eq!((spec.holder_identity, spec.lease_transitions), (None, Some(1)));
}

#[tokio::test(start_paused = true)]
async fn a_leader_cut_off_stops_before_the_next_begins() {
    let server = FakeServer::with_env(crate::testing::TokioClock::env(1));
    let journal = Journal::default();
    let is_cut_off = Arc::new(AtomicBool::new(false));
    let stop = CancellationToken::new();
    let _a = candidate(&server, "a", &journal, stop.clone());
    tokio::time::sleep(Duration::from_secs(5)).await;
    let cut = Arc::clone(&is_cut_off);
    server.react("*", "leases", move |action| {
        let is_from_a = action.body["spec"]["holderIdentity"].as_str() == Some("a");
        if is_from_a && cut.load(Ordering::Relaxed) { Reaction::Disconnect } else { Reaction::Pass }
    });
    is_cut_off.store(true, Ordering::Relaxed);
    let _b = candidate(&server, "b", &journal, stop.clone());
    tokio::time::sleep(Duration::from_secs(60)).await;
    stop.cancel();
    let lines = journal.lock().clone();
    let seconds: Vec<u64> = lines.iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    assert!(
        lines[0].ends_with("a leads") && lines[1].ends_with("a: Lost") && lines[2].ends_with("b leads"),
        "{lines:?}"
    );
    // b began to count when it came, five seconds after a
    assert!(seconds[1] < seconds[2] + 5, "two leaders at once: {lines:?}");
}

#[tokio::test(start_paused = true)]
async fn settings_that_contradict_each_other() {
    let client = FakeServer::new().client();
    let mut config = LeaderElectionConfig::new("ns", "n", "");
    assert_eq!(
        LeaderElector::new(&client, config.clone()).unwrap_err().to_string(),
        "invalid request: Lock identity is empty"
    );
    config.identity = "me".to_owned();
    config.renew_deadline = Duration::from_secs(15);
    let error = LeaderElector::new(&client, config).unwrap_err();
    assert_eq!(error.to_string(), "invalid request: leaseDuration must be greater than renewDeadline");
}
