//! Names and addresses of simulated nodes, all of which follow from a node's number.

use crate::profile::PODS_MAX;
use std::net::Ipv4Addr;

/// Nodes that one process simulates: the pod ranges between 10.128.0.0 and 10.255.255.0.
pub const NODES_MAX: u32 = 128 * 256;

/// The first node's pod range is 10.244.0.0/24, as on most clusters; after 10.255.255.0 it goes on at 10.128.0.0.
const FIRST_RANGE: u32 = (244 - 128) * 256;

/// One simulated node. `number` counts from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    number: u32,
}

impl Identity {
    /// The node of this number; `None` past [`NODES_MAX`] and for 0.
    pub fn new(number: u32) -> Option<Identity> {
        (1..=NODES_MAX).contains(&number).then_some(Identity { number })
    }

    /// The node whose name this is.
    pub fn of_name(prefix: &str, name: &str) -> Option<Identity> {
        let digits = name.strip_prefix(prefix)?;
        let is_plain = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
        if is_plain { Identity::new(digits.parse().ok()?) } else { None }
    }

    /// The number.
    pub fn number(self) -> u32 {
        self.number
    }

    /// The name.
    pub fn name(self, prefix: &str) -> String {
        format!("{prefix}{}", self.number)
    }

    /// The address that the node has in its own network.
    pub fn internal_ip(self) -> Ipv4Addr {
        // 172.18.0.1 is the gateway
        Ipv4Addr::from(u32::from(Ipv4Addr::new(172, 18, 0, 1)) + self.number)
    }

    /// The range of its pods' addresses.
    pub fn pod_cidr(self) -> String {
        format!("{}/24", Ipv4Addr::from(self.pod_range()))
    }

    /// The `index`th address for pods, from 0 to [`PODS_MAX`].
    pub fn pod_ip(self, index: u32) -> Ipv4Addr {
        // .0 is the network, .1 its gateway
        Ipv4Addr::from(self.pod_range() + 2 + index.min(PODS_MAX))
    }

    /// The index that an address for pods has, if it is one of this node.
    pub fn index_of_pod_ip(self, ip: Ipv4Addr) -> Option<u32> {
        u32::from(ip).checked_sub(self.pod_range() + 2).filter(|index| *index < PODS_MAX)
    }

    fn pod_range(self) -> u32 {
        let index = (FIRST_RANGE + self.number - 1) % NODES_MAX;
        u32::from(Ipv4Addr::new(10, 128, 0, 0)) + index * 256
    }
}

/// The addresses of a node's pods that are taken, one bit each.
#[derive(Clone, Debug, Default)]
pub(crate) struct TakenAddresses {
    bits: [u64; 4],
    /// Where the search for a free address begins: an address is not used again at once.
    next: u32,
}

impl TakenAddresses {
    /// Takes an address; `None` when all are taken.
    pub(crate) fn take(&mut self) -> Option<u32> {
        let found = (0..PODS_MAX).map(|n| (self.next + n) % PODS_MAX).find(|index| !self.is_taken(*index))?;
        self.mark(found, true);
        self.next = (found + 1) % PODS_MAX;
        Some(found)
    }

    /// Marks an address as taken or free.
    pub(crate) fn mark(&mut self, index: u32, is_taken: bool) {
        let (word, bit) = ((index / 64) as usize, 1_u64 << (index % 64));
        if is_taken {
            self.bits[word] |= bit;
        } else {
            self.bits[word] &= !bit;
        }
    }

    fn is_taken(&self, index: u32) -> bool {
        self.bits[(index / 64) as usize] & (1_u64 << (index % 64)) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_addresses() {
        let show = |number| {
            let node = Identity::new(number).unwrap();
            format!("{} {} {} {}", node.name("node-"), node.internal_ip(), node.pod_cidr(), node.pod_ip(0))
        };
        assert_eq!(show(1), "node-1 172.18.0.2 10.244.0.0/24 10.244.0.2");
        assert_eq!(show(3072), "node-3072 172.18.12.1 10.255.255.0/24 10.255.255.2");
        assert_eq!(show(3073), "node-3073 172.18.12.2 10.128.0.0/24 10.128.0.2");
        let ranges: BTreeSet<u32> = (1..=NODES_MAX).map(|n| Identity::new(n).unwrap().pod_range()).collect();
        assert_eq!(ranges.len(), NODES_MAX as usize);
        for (name, number) in [("node-7", Some(7)), ("node-07", None), ("node-", None), ("node-0", None), ("x", None)] {
            assert_eq!(Identity::of_name("node-", name).map(Identity::number), number, "{name}");
        }
    }

    #[test]
    fn every_address_is_given_once() {
        let node = Identity::new(9).unwrap();
        let mut taken = TakenAddresses::default();
        let given: BTreeSet<u32> = std::iter::from_fn(|| taken.take()).collect();
        assert_eq!(given, (0..PODS_MAX).collect());
        taken.mark(17, false);
        assert_eq!((taken.take(), taken.take()), (Some(17), None));
        assert_eq!(node.index_of_pod_ip(node.pod_ip(17)), Some(17));
        assert_eq!(node.index_of_pod_ip(Ipv4Addr::new(10, 0, 0, 1)), None);
    }
}
