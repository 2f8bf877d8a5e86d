//! What the server hands out to objects that are written: cluster IPs and node ports of Services.
//!
//! Which ones a service needs is the kind's business (`pintle_kinds`); the pools are here. Inside this process a pool
//! in memory decides; between processes over one store the store does: each address is an IPAddress object, each port a
//! marker, and both can be created once only.

use crate::call::Call;
use crate::errors::storage_status;
use crate::resource::Resource;
use bytes::Bytes;
use parking_lot::Mutex;
use pintle_apimachinery::env::IdSource;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::time::time_value;
use pintle_apimachinery::{Status, Value, json};
use pintle_kinds::core::service::alloc::{self, Allocator, Family, Refusal};
use pintle_storage::{Key, NewValue, Storage, StorageError};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// How often an allocation is tried again after another process took what was chosen.
const TRIES_MAX: usize = 32;

/// A range of addresses, `10.0.0.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    base: u128,
    /// Addresses in it, network and broadcast included.
    size: u128,
    is_v4: bool,
}

impl Cidr {
    /// Reads a range.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> std::result::Result<Cidr, String> {
        let bad = || format!("{text:?} is no range of addresses: write it as 10.0.0.0/24");
        let (address, bits) = text.split_once('/').ok_or_else(bad)?;
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let bits: u32 = bits.parse().map_err(|_| bad())?;
        let (number, width) = number_of(address);
        if bits > width {
            return Err(bad());
        }
        let host_bits = width - bits;
        let size = 1u128.checked_shl(host_bits).unwrap_or(u128::MAX);
        Ok(Cidr { base: number & !(size - 1), size, is_v4: width == 32 })
    }

    fn address(&self, offset: u128) -> IpAddr {
        let number = self.base + offset;
        if self.is_v4 {
            IpAddr::from(u32::try_from(number).unwrap_or_default().to_be_bytes())
        } else {
            IpAddr::from(number.to_be_bytes())
        }
    }

    fn offset(&self, address: IpAddr) -> Option<u128> {
        let (number, width) = number_of(address);
        let is_same_family = (width == 32) == self.is_v4;
        number.checked_sub(self.base).filter(|offset| is_same_family && *offset < self.size)
    }

    /// The first address that may be handed out, and how many there are.
    fn usable(&self) -> (u128, u128) {
        // the network's own address is never used, nor IPv4's broadcast
        let last = if self.is_v4 { self.size.saturating_sub(2) } else { self.size - 1 };
        (1, last)
    }

    /// The first usable address: that of the `kubernetes` service.
    pub fn first(&self) -> IpAddr {
        self.address(1)
    }

    fn family(&self) -> Family {
        if self.is_v4 { Family::V4 } else { Family::V6 }
    }
}

fn number_of(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(v4) => (u128::from(u32::from(v4)), 32),
        IpAddr::V6(v6) => (u128::from(v6), 128),
    }
}

/// The addresses and ports of services.
#[derive(Debug)]
pub struct ServicePools {
    ranges: Vec<Cidr>,
    families: Vec<Family>,
    /// First and last node port.
    ports: (u16, u16),
    used: Mutex<Used>,
    ids: Arc<dyn IdSource>,
    /// Where ports are marked, between processes.
    storage: Arc<dyn Storage>,
    prefix: String,
    /// Where addresses are objects.
    addresses: Arc<Resource>,
}

#[derive(Debug, Default)]
struct Used {
    ips: BTreeSet<IpAddr>,
    ports: BTreeSet<u16>,
}

/// What the pools of a server are made of.
#[derive(Debug)]
pub struct PoolOptions {
    /// `--service-cluster-ip-range`: one range, or one of each family, the default first.
    pub ranges: Vec<Cidr>,
    /// `--service-node-port-range`, first and last.
    pub ports: (u16, u16),
    /// Dice.
    pub ids: Arc<dyn IdSource>,
    /// The store, for port markers.
    pub storage: Arc<dyn Storage>,
    /// What its keys begin with.
    pub prefix: String,
    /// The resource `ipaddresses`.
    pub addresses: Arc<Resource>,
}

impl ServicePools {
    /// Pools in which nothing is used yet.
    pub fn new(options: PoolOptions) -> ServicePools {
        let PoolOptions { ranges, ports, ids, storage, prefix, addresses } = options;
        let families = ranges.iter().map(Cidr::family).collect();
        ServicePools { ranges, families, ports, used: Mutex::default(), ids, storage, prefix, addresses }
    }

    /// A service that is there: what it has is used.
    pub fn note(&self, service: &Value) {
        let mut used = self.used.lock();
        for ip in ips_of(service) {
            used.ips.insert(ip);
        }
        used.ports.extend(ports_of(service));
    }

    /// A service is gone: what it had is free.
    pub fn forget(&self, service: &Value) {
        let mut used = self.used.lock();
        for ip in ips_of(service) {
            used.ips.remove(&ip);
        }
        for port in ports_of(service) {
            used.ports.remove(&port);
        }
    }

    fn port_key(&self, port: u16) -> Key {
        Key::new(format!("{}/ranges/servicenodeports/{port}", self.prefix))
    }
}

fn ips_of(service: &Value) -> Vec<IpAddr> {
    service.at("spec.clusterIPs").items().iter().filter_map(|ip| ip.str_or_empty().parse().ok()).collect()
}

fn ports_of(service: &Value) -> Vec<u16> {
    let ports = service.at("spec.ports").items().iter().map(|port| &port["nodePort"]);
    let health = std::iter::once(service.at("spec.healthCheckNodePort"));
    ports.chain(health).filter_map(Value::as_i64).filter_map(|p| u16::try_from(p).ok()).filter(|p| *p > 0).collect()
}

/// The pools for the length of one request.
struct Turn<'p> {
    pools: &'p ServicePools,
    taken_ips: Vec<IpAddr>,
    taken_ports: Vec<u16>,
    released_ips: Vec<IpAddr>,
    released_ports: Vec<u16>,
    /// Nothing is taken out of the pools.
    dry_run: bool,
}

impl Turn<'_> {
    fn take_ip(&mut self, ip: IpAddr) -> std::result::Result<IpAddr, Refusal> {
        let mut used = self.pools.used.lock();
        if used.ips.contains(&ip) || self.taken_ips.contains(&ip) {
            return Err(Refusal::AddressTaken);
        }
        if !self.dry_run {
            used.ips.insert(ip);
        }
        self.taken_ips.push(ip);
        Ok(ip)
    }

    fn take_port(&mut self, port: u16) -> std::result::Result<u16, Refusal> {
        let mut used = self.pools.used.lock();
        if used.ports.contains(&port) || self.taken_ports.contains(&port) {
            return Err(Refusal::PortTaken);
        }
        if !self.dry_run {
            used.ports.insert(port);
        }
        self.taken_ports.push(port);
        Ok(port)
    }
}

impl Allocator for Turn<'_> {
    fn families(&self) -> &[Family] {
        &self.pools.families
    }

    fn allocate_ip(&mut self, family: Family, wanted: Option<IpAddr>) -> std::result::Result<IpAddr, Refusal> {
        let Some(range) = self.pools.ranges.iter().find(|range| range.family() == family).copied() else {
            return Err(Refusal::AddressOutOfRange);
        };
        let (first, n_usable) = range.usable();
        if let Some(wanted) = wanted {
            let offset = range.offset(wanted).filter(|offset| (first..first + n_usable).contains(offset));
            return if offset.is_some() { self.take_ip(wanted) } else { Err(Refusal::AddressOutOfRange) };
        }
        // The lower part is left to those who ask for an address by name, until the upper part is full.
        let reserved = (n_usable / 16).clamp(16, 256).min(n_usable / 2);
        for (from, len) in [(first + reserved, n_usable - reserved), (first, reserved)] {
            if len == 0 {
                continue;
            }
            let begin = u128::from(self.pools.ids.random_u64()) % len;
            // a range may be vast; beyond so many taken neighbours it counts as full
            let steps = len.min(1 << 20);
            for step in 0..steps {
                let ip = range.address(from + (begin + step) % len);
                if self.take_ip(ip).is_ok() {
                    return Ok(ip);
                }
            }
        }
        Err(Refusal::Full)
    }

    fn release_ip(&mut self, ip: IpAddr) {
        self.released_ips.push(ip);
    }

    fn allocate_port(&mut self, wanted: Option<i64>) -> std::result::Result<u16, Refusal> {
        let (first, last) = self.pools.ports;
        if let Some(wanted) = wanted {
            let port = u16::try_from(wanted).ok().filter(|port| (first..=last).contains(port));
            return match port {
                Some(port) => self.take_port(port),
                None => Err(Refusal::PortOutOfRange(format!("{first}-{last}"))),
            };
        }
        let n_ports = u64::from(last - first) + 1;
        let begin = self.pools.ids.random_u64() % n_ports;
        for step in 0..n_ports {
            let port = first + u16::try_from((begin + step) % n_ports).unwrap_or_default();
            if self.take_port(port).is_ok() {
                return Ok(port);
            }
        }
        Err(Refusal::Full)
    }

    fn release_port(&mut self, port: i64) {
        self.released_ports.extend(u16::try_from(port));
    }
}

/// What was handed out for an object that is about to be written: given back unless it is kept.
#[derive(Debug, Default)]
pub(crate) struct Allocated {
    pools: Option<Arc<ServicePools>>,
    ips: Vec<IpAddr>,
    ports: Vec<u16>,
    released_ips: Vec<IpAddr>,
    released_ports: Vec<u16>,
}

impl Allocated {
    /// The object was written: what it has is its own, what it had before is free.
    pub(crate) fn keep(mut self) {
        if let Some(pools) = self.pools.take() {
            give_back(&pools, std::mem::take(&mut self.released_ips), std::mem::take(&mut self.released_ports));
        }
    }
}

impl Drop for Allocated {
    fn drop(&mut self) {
        if let Some(pools) = self.pools.take() {
            give_back(&pools, std::mem::take(&mut self.ips), std::mem::take(&mut self.ports));
        }
    }
}

/// Frees addresses and ports, in the store a moment later.
fn give_back(pools: &Arc<ServicePools>, ips: Vec<IpAddr>, ports: Vec<u16>) {
    if ips.is_empty() && ports.is_empty() {
        return;
    }
    {
        let mut used = pools.used.lock();
        for ip in &ips {
            used.ips.remove(ip);
        }
        for port in &ports {
            used.ports.remove(port);
        }
    }
    let pools = pools.clone();
    tokio::spawn(async move {
        for ip in ips {
            let key = pools.addresses.store.key("", &ip.to_string());
            forget(&*pools.addresses.store.storage, key).await;
        }
        for port in ports {
            forget(&*pools.storage, pools.port_key(port)).await;
        }
    });
}

async fn forget(storage: &dyn Storage, key: Key) {
    match storage.delete(key.clone(), None).await {
        Ok(_) | Err(StorageError::NotFound { .. }) => {}
        Err(why) => tracing::warn!(%key, %why, "cannot free an address or port"),
    }
}

impl Resource {
    /// Hands out what a new object needs.
    pub(crate) async fn allocate_on_create(
        &self,
        call: &Call<'_>,
        object: &mut Value,
        dry_run: bool,
    ) -> Result<Allocated> {
        self.allocate(call, object, dry_run, |object, turn| alloc::on_create(object, turn)).await
    }

    /// Hands out what a changed object needs besides.
    pub(crate) async fn allocate_on_update(
        &self,
        call: &Call<'_>,
        object: &mut Value,
        old: &Value,
        dry_run: bool,
    ) -> Result<Allocated> {
        if !call.subresource.is_empty() {
            return Ok(Allocated::default());
        }
        self.allocate(call, object, dry_run, |object, turn| alloc::on_update(object, old, turn)).await
    }

    async fn allocate(
        &self,
        call: &Call<'_>,
        object: &mut Value,
        dry_run: bool,
        fill: impl Fn(&mut Value, &mut Turn<'_>) -> Result<()>,
    ) -> Result<Allocated> {
        let Some(pools) = self.store.service_pools.get() else { return Ok(Allocated::default()) };
        for _ in 0..TRIES_MAX {
            let mut filled = object.clone();
            let mut turn = Turn {
                pools,
                taken_ips: Vec::new(),
                taken_ports: Vec::new(),
                released_ips: Vec::new(),
                released_ports: Vec::new(),
                dry_run,
            };
            let done = fill(&mut filled, &mut turn);
            let Turn { taken_ips, taken_ports, released_ips, released_ports, .. } = turn;
            if dry_run {
                done?;
                *object = filled;
                return Ok(Allocated::default());
            }
            let mut allocated = Allocated {
                pools: Some(pools.clone()),
                ips: taken_ips,
                ports: taken_ports,
                released_ips,
                released_ports,
            };
            // given back when `allocated` goes
            done?;
            if claim(pools, call, &filled, &mut allocated).await? {
                *object = filled;
                return Ok(allocated);
            }
        }
        Err(Box::new(Status::server_timeout(self.group_resource(), "create", 1)))
    }

    /// Takes back what a deleted object had.
    pub(crate) async fn after_delete(&self, object: &Value) {
        let Some(pools) = self.store.service_pools.get() else { return };
        give_back(pools, ips_of(object), ports_of(object));
    }

    /// Whether DELETE shows the deleted object instead of a Status.
    pub(crate) fn returns_deleted_object(&self) -> bool {
        self.strategy.returns_deleted_object()
            || (self.gvr.group.is_empty() && matches!(self.gvr.resource.as_str(), "pods" | "podtemplates"))
    }
}

/// Claims in the store what was chosen in memory; false when another process was quicker with some of it.
async fn claim(pools: &Arc<ServicePools>, call: &Call<'_>, service: &Value, allocated: &mut Allocated) -> Result<bool> {
    for idx in 0..allocated.ips.len() {
        let ip = allocated.ips[idx];
        let object = address_object(call, service, ip);
        let head = pools.addresses.at_rest(&object);
        let value = NewValue { bytes: head.bytes().clone(), note: head.into_note(), ttl: None };
        let key = pools.addresses.store.key("", &ip.to_string());
        match pools.addresses.store.storage.create(key, value).await {
            Ok(_) => {}
            Err(StorageError::AlreadyExists { .. }) => {
                // it stays used here, and what was claimed already is given back
                allocated.ips.remove(idx);
                return Ok(false);
            }
            Err(error) => return Err(storage_status(&error, pools.addresses.group_resource(), &ip.to_string())),
        }
    }
    for idx in 0..allocated.ports.len() {
        let port = allocated.ports[idx];
        let bytes = Bytes::from(format!("{}/{}", call.namespace, service.name()));
        let value = NewValue { bytes, ..NewValue::default() };
        match pools.storage.create(pools.port_key(port), value).await {
            Ok(_) => {}
            Err(StorageError::AlreadyExists { .. }) => {
                allocated.ports.remove(idx);
                return Ok(false);
            }
            Err(error) => return Err(storage_status(&error, pools.addresses.group_resource(), &port.to_string())),
        }
    }
    Ok(true)
}

/// The IPAddress object of a service's address.
fn address_object(call: &Call<'_>, service: &Value, ip: IpAddr) -> Value {
    let family = Family::of(ip).name();
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
        "metadata": {
            "name": ip.to_string(), "uid": call.world.env.ids.uid(), "creationTimestamp": time_value(call.now),
            "generation": 1,
            "labels": {"ipaddress.kubernetes.io/ip-family": family, "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"},
        },
        "spec": {"parentRef": {"resource": "services", "namespace": call.namespace, "name": service.name()}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let range = Cidr::parse("10.0.0.7/24").unwrap();
        assert_eq!(range.first().to_string(), "10.0.0.1");
        assert_eq!(range.offset("10.0.0.255".parse().unwrap()), Some(255));
        assert_eq!(range.offset("10.0.1.0".parse().unwrap()), None);
        assert_eq!(range.usable(), (1, 254));
        assert_eq!(Cidr::parse("fd00::/108").unwrap().family(), Family::V6);
        assert!(Cidr::parse("10.0.0.0").is_err() && Cidr::parse("10.0.0.0/33").is_err());
    }
}
