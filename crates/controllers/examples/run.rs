//! Runs the controllers against the server of a kubeconfig: `run KUBECONFIG [CONTROLLERS]`, as in
//! `run ./data/kubeconfig '*,-garbage-collector-controller'`.

use pintle_client::{Client, Config};
use pintle_controllers::{ControllerSelection, Options, run_all};
use pintle_informer::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: run KUBECONFIG [CONTROLLERS]")?;
    let mut config = Config::from_file(&path)?;
    config.user_agent = "kube-controller-manager/pintle".to_owned();
    config.qps = None;
    let root_ca = config.tls.certificate_authority_pem.clone();
    let controllers =
        args.next().map_or_else(|| Ok(ControllerSelection::default()), |text| ControllerSelection::parse(&text))?;
    let options = Options { controllers, root_ca, use_service_account_credentials: false };
    let stop = CancellationToken::new();
    let ending = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            ending.cancel();
        }
    });
    run_all(&Client::new(config)?, options, stop).await;
    Ok(())
}
