//! What can be measured. A [`Scenario`] is a name and how it is opened on a server; a [`Session`] is one that is open and
//! is measured round by round.

mod list;
mod memory;
mod mixed;
mod requests;
mod startup;
mod watch;

use crate::lab::Lab;
use crate::options::LoadFlags;
use crate::tally::Round;
use anyhow::Result;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

/// A scenario that is open on one server.
#[async_trait]
pub(crate) trait Session: Send {
    /// Readies the next round; neither time nor CPU of it counts.
    async fn ready(&mut self) -> Result<()> {
        Ok(())
    }

    /// Measures for about so long.
    async fn round(&mut self, span: Duration) -> Result<Round>;

    /// What the server used in the round, if that is not what its processes say.
    fn own_usage(&self) -> Option<crate::process::Usage> {
        None
    }

    /// Removes what it left in the server.
    async fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// Which of the load's numbers a scenario is repeated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sweep {
    Nothing,
    Clients,
    Objects,
    ListsOfObjects,
    Watchers,
    Nodes,
}

/// One value of what a scenario is repeated for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) clients: usize,
    pub(crate) objects: usize,
    pub(crate) watchers: usize,
    pub(crate) nodes: usize,
}

impl Sweep {
    /// The values with what reports call them.
    pub(crate) fn scales(self, load: &LoadFlags) -> Vec<(String, Scale)> {
        let each = |values: &[usize], unit: &str, scale: fn(usize) -> Scale| {
            values.iter().map(|n| (format!("{n} {unit}"), scale(*n))).collect::<Vec<_>>()
        };
        match self {
            Sweep::Nothing => vec![(String::new(), Scale::default())],
            Sweep::Clients => each(&load.clients, "clients", |clients| Scale { clients, ..Scale::default() }),
            Sweep::Objects => each(&load.objects, "objects", |objects| Scale { objects, ..Scale::default() }),
            Sweep::Watchers => each(&load.watchers, "watchers", |watchers| Scale { watchers, ..Scale::default() }),
            Sweep::Nodes => each(&load.nodes, "nodes", |nodes| Scale { nodes, ..Scale::default() }),
            Sweep::ListsOfObjects => {
                let pairs = load
                    .objects
                    .iter()
                    .flat_map(|objects| load.listers.iter().map(move |clients| (*objects, *clients)));
                pairs
                    .map(|(objects, clients)| {
                        (format!("{objects} pods, {clients} at once"), Scale { clients, objects, ..Scale::default() })
                    })
                    .collect()
            }
        }
    }
}

/// How a scenario is opened on a server.
type Open = fn(Arc<Lab>, Scale) -> futures_util::future::BoxFuture<'static, Result<Box<dyn Session>>>;

/// Something that can be measured.
#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// What one operation is.
    pub(crate) unit: &'static str,
    pub(crate) what: &'static str,
    pub(crate) sweep: Sweep,
    /// Whether a round's length is chosen, and a first one is thrown away.
    pub(crate) is_timed: bool,
    pub(crate) open: Open,
}

/// Everything that can be measured, in the order in which it is: what only reads pods is together, so that they are made
/// once.
pub(crate) fn all() -> Vec<Scenario> {
    let mut all = startup::scenarios();
    all.extend(requests::scenarios());
    all.extend(list::scenarios());
    all.extend(watch::scenarios());
    all.extend(mixed::scenarios());
    all.extend(memory::scenarios());
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_scenario_has_a_name_of_its_own() {
        let names: BTreeSet<_> = super::all().iter().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), super::all().len());
        assert!(names.contains("startup") && names.contains("watch-fan-out"));
    }
}
