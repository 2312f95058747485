//! The conditions of a run: without them its figures cannot be compared.

use atoll_sys::Root;
use atoll_topology::conditions::MachineConditions;
use atoll_topology::{Bytes, Machine};
use serde::{Deserialize, Serialize};

use crate::ExperimentOptions;

/// Machine and options of a run. Values that could not be read are None.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentManifest {
    /// Machine, kernel and settings. Automatic NUMA balancing leaves the arrays alone, for their memory
    /// has a policy, unless the placement is `default` or `local`.
    #[serde(flatten)]
    pub machine: MachineConditions,
    /// Domains.
    pub domains: usize,
    /// The largest last-level cache.
    pub cache: Option<Bytes>,
    /// Divisor of the sizes of arrays.
    pub scale: u32,
    /// Repetitions of each arm.
    pub repetitions: u32,
    /// Seed of the random places.
    pub seed: u64,
    /// Accesses between two waits for each other; 0 for none.
    pub turn: u64,
    /// Whether accesses wait for each other.
    pub kind: crate::Kind,
}

impl ExperimentManifest {
    /// The manifest of this process.
    pub fn new(machine: &Machine, root: &Root, options: &ExperimentOptions, is_lab: bool) -> Self {
        Self {
            machine: MachineConditions::read(machine, root, is_lab),
            domains: machine.domains.len(),
            cache: machine.domains.iter().filter_map(|domain| domain.cache).max(),
            scale: options.scale,
            repetitions: options.repetitions,
            seed: options.seed,
            turn: options.turn,
            kind: options.kind,
        }
    }

    /// Two lines for people.
    pub fn text(&self) -> String {
        let Self { machine, domains, repetitions, seed, .. } = self;
        let MachineConditions { name, nodes, cpus, .. } = machine;
        let cache = self.cache.map_or("unknown".to_owned(), |cache| cache.to_string());
        let mut text = format!(
            "{name}: {}; nodes: {nodes}, domains: {domains}, cpus: {cpus}, last-level cache: {cache}\n\
             {}\n{} accesses, repetitions: {repetitions}, seed {seed}\n",
            machine.models(),
            machine.settings(),
            self.kind.name(),
        );
        if self.scale > 1 {
            text.push_str(&format!("array sizes are divided by {}\n", self.scale));
        }
        if machine.is_lab {
            text.push_str(
                "in the lab: times are the emulator's and mean nothing; read the counts in the \
                 lab's report\n",
            );
        }
        text
    }
}
