//! The conditions of a run: without them its figures cannot be compared.

use atoll_sys::Root;
use atoll_topology::{Bytes, Machine};
use serde::{Deserialize, Serialize};

use crate::ExperimentOptions;

/// Conditions. What could not be read is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentManifest {
    /// Version of Atoll.
    pub atoll: String,
    /// Name of the machine.
    pub machine: String,
    /// Models of its cpus.
    pub models: Vec<String>,
    /// Whether it is the lab, where times are the emulator's and say nothing.
    pub is_lab: bool,
    /// Nodes, domains and cpus.
    pub nodes: usize,
    /// Domains.
    pub domains: usize,
    /// Cpus.
    pub cpus: usize,
    /// The largest last-level cache.
    pub cache: Option<Bytes>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Automatic NUMA balancing: 0 is off. It leaves the arrays alone, for their memory has a policy,
    /// unless the placement is `default` or `local`.
    pub numa_balancing: Option<String>,
    /// What the sizes of arrays are divided by.
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
    /// Of this process.
    pub fn of(machine: &Machine, root: &Root, options: &ExperimentOptions, is_lab: bool) -> Self {
        let line = |file: &str| {
            let text = root.read_text(file).ok()?;
            Some(text.lines().next()?.trim().to_owned())
        };
        let mut models: Vec<String> =
            machine.packages.iter().filter_map(|package| package.model.clone()).collect();
        models.dedup();
        Self {
            atoll: env!("CARGO_PKG_VERSION").to_owned(),
            machine: machine.name.clone(),
            models,
            is_lab,
            nodes: machine.nodes.len(),
            domains: machine.domains.len(),
            cpus: machine.cpus.len(),
            cache: machine.domains.iter().filter_map(|domain| domain.cache).max(),
            kernel: line("/proc/sys/kernel/osrelease"),
            transparent_huge_pages: line("/sys/kernel/mm/transparent_hugepage/enabled")
                .map(|all| chosen(&all)),
            numa_balancing: line("/proc/sys/kernel/numa_balancing"),
            scale: options.scale,
            repetitions: options.repetitions,
            seed: options.seed,
            turn: options.turn,
            kind: options.kind,
        }
    }

    /// Two lines for people.
    pub fn text(&self) -> String {
        let known = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "not known".to_owned());
        let Self { machine, nodes, domains, cpus, repetitions, seed, .. } = self;
        let models = match self.models.is_empty() {
            true => "model not known".to_owned(),
            false => self.models.join(", "),
        };
        let cache = self.cache.map_or("not known".to_owned(), |cache| cache.to_string());
        let mut text = format!(
            "{machine}: {models}; nodes: {nodes}, domains: {domains}, cpus: {cpus}, last-level \
             cache: {cache}\nkernel {}, transparent huge pages {}, NUMA balancing {}\n{} accesses, \
             repetitions: {repetitions}, seed {seed}\n",
            known(&self.kernel),
            known(&self.transparent_huge_pages),
            known(&self.numa_balancing),
            self.kind.name(),
        );
        if self.scale > 1 {
            text.push_str(&format!("array sizes are divided by {}\n", self.scale));
        }
        if self.is_lab {
            text.push_str(
                "in the lab: times are the emulator's and mean nothing; read the counts in the \
                 lab's report\n",
            );
        }
        text
    }
}

/// The choice in brackets of `always [madvise] never`.
fn chosen(all: &str) -> String {
    let inside = all.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(all, |(choice, _)| choice).to_owned()
}
