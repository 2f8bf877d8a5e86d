//! The lease by which a server shows that it is alive.

use crate::bootstrap::seed;
use crate::call::World;
use crate::catalog::Catalog;
use crate::modify::Conditions;
use pintle_apimachinery::GroupResource;
use pintle_apimachinery::status::Result;
use pintle_auth::bootstrap::{IDENTITY_RENEWAL, identity, identity_lease, identity_spec};
use std::sync::Arc;

/// Writes the lease of a server on `host` and renews it for ever. A write that fails is left to the next renewal.
pub async fn keep(catalog: Arc<Catalog>, world: World, host: String) {
    let uid = world.env.ids.uid();
    let mut ticks = tokio::time::interval(IDENTITY_RENEWAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(status) = renew(&catalog, &world, &host, &uid).await {
            tracing::warn!(why = %status.message, "cannot renew the lease of this server");
        }
    }
}

async fn renew(catalog: &Catalog, world: &World, host: &str, uid: &str) -> Result<()> {
    let leases = catalog.served().of_group_resource(&GroupResource::new("coordination.k8s.io", "leases")).cloned();
    let Some(leases) = leases else { return Ok(()) };
    let name = identity(host);
    let now = world.env.clock.now();
    let renewed = leases.modify("kube-system", &name, Conditions::default(), false, |lease| {
        lease.set("spec", identity_spec(&name, uid, now));
        Ok(())
    });
    match renewed.await {
        Ok(_) => Ok(()),
        Err(status) if status.is("NotFound") => seed(catalog, world, vec![identity_lease(host, uid, now)]).await,
        Err(status) => Err(status),
    }
}
