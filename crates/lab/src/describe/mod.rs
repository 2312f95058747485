//! Describes a machine to an emulator: cut to the size of a laptop, then as QEMU's
//! arguments and as the set-up of the simulation.
//!
//! | File | Owns |
//! |---|---|
//! | `cut` | which cpus and how much memory stay, and their new numbers |
//! | `caches` | modelled caches out of declared ones |
//! | `sockets` | where each cpu sits in QEMU's sockets, dies, cores and threads |
//! | `arguments`, `hmat` | QEMU's arguments |
//! | `setup` | the setup of the plugin |
//!
//! Linux numbers nodes in the order in which the firmware's tables name them: first those with cpus,
//! in the order of the cpus, then those with memory only, and without gaps. A guest therefore has its
//! nodes in that order, whatever their numbers are on the declared machine.

mod arguments;
mod caches;
mod cut;
mod hmat;
mod setup;
mod sockets;

use std::ffi::OsString;
use std::path::PathBuf;

use atoll_simulation::{Counting, Setup};
use atoll_topology::{Bytes, Knowledge, NodeId};

use sockets::Sockets;

/// Where QEMU's q35 goes on at 4 GiB: asked for explicitly, so that it depends on no version.
pub(crate) const LOW_MEMORY: Bytes = Bytes(2 << 30);
const MIB: u64 = 1 << 20;

/// How large a guest is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestShape {
    /// Most cpus of a node; by default all nodes together have 16, at least one each.
    pub cpus_per_node: Option<u32>,
    /// Most cpus of a core: 1 leaves simultaneous multithreading out.
    pub threads_per_core: Option<u32>,
    /// Memory of the largest node; others are smaller in proportion, down to 128 MiB. Without it, 4
    /// GiB are shared among the nodes, of 128 to 512 MiB each.
    pub memory_per_node: Option<Bytes>,
    /// By how much the modelled caches are smaller than the declared ones; 1 leaves them as they are.
    pub cache_divisor: u32,
}

impl Default for GuestShape {
    fn default() -> Self {
        Self {
            cpus_per_node: None,
            threads_per_core: None,
            memory_per_node: None,
            cache_divisor: 1,
        }
    }
}

/// Why a machine cannot be emulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DescribeError {
    /// No cpu, or no memory.
    #[error("machine '{machine}' has no {what}; the lab boots a kernel, which needs some")]
    Without {
        /// The machine.
        machine: String,
        /// `cpus` or `memory`.
        what: &'static str,
    },
    /// More than the emulator has.
    #[error(
        "machine '{machine}' has {count} {what}, of which QEMU emulates {limit} at most; {advice}"
    )]
    TooMany {
        /// The machine.
        machine: String,
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        count: u64,
        /// How much there may be.
        limit: u64,
        /// What to do.
        advice: &'static str,
    },
}

/// A machine cut to a size that a laptop emulates.
#[derive(Clone, Debug, PartialEq)]
pub struct Guest {
    knowledge: Knowledge,
    notes: Vec<String>,
    sockets: Sockets,
    model: caches::Model,
    cache_divisor: u32,
}

impl Guest {
    /// Cuts a machine.
    pub fn try_from_knowledge(
        knowledge: &Knowledge,
        shape: &GuestShape,
    ) -> Result<Self, DescribeError> {
        let cut::CutMachine { knowledge, mut notes } = cut::cut(knowledge, shape)?;
        let sockets = Sockets::try_from_machine(&knowledge.machine, &mut notes)?;
        let cache_divisor = shape.cache_divisor.max(1);
        let model = caches::Model::from_machine(&knowledge.machine, cache_divisor, &mut notes);
        Ok(Self { knowledge, notes, sockets, model, cache_divisor })
    }

    /// The machine as the guest's kernel sees it: cpus and nodes by its numbers, memory and caches cut,
    /// links and facts as on the declared one.
    pub fn knowledge(&self) -> &Knowledge {
        &self.knowledge
    }

    /// Cuts and assumptions, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// By how much the caches are smaller than declared.
    pub fn cache_divisor(&self) -> u32 {
        self.cache_divisor
    }

    /// The setup of the plugin, which writes its report to that file.
    pub fn setup(&self, counting: Counting, report: PathBuf) -> Setup {
        setup::setup(self, counting, report)
    }

    /// QEMU's options for the machine, without devices, kernel and plugin.
    pub fn qemu_arguments(&self) -> Vec<OsString> {
        arguments::arguments(self).into_iter().map(OsString::from).collect()
    }

    /// Gives the node that the kernel fills first so much more memory.
    pub(crate) fn with_room_for(mut self, files: Bytes) -> Self {
        let step = cut::MEMORY_STEP.0;
        let more = Bytes(files.0.div_ceil(step).saturating_mul(step));
        let first = self.knowledge.machine.nodes.iter_mut().find(|node| node.memory.0 > 0);
        if let Some(node) = first.filter(|_| more.0 > 0) {
            node.memory = Bytes(node.memory.0.saturating_add(more.0));
            node.memory_free = node.memory;
            self.notes.push(format!("node {} has {more} more, for the files", node.id));
        }
        self
    }
}

/// Position of a node in the lists of a cut machine, whose nodes are numbered without gaps.
fn position(node: NodeId) -> usize {
    node.index()
}
