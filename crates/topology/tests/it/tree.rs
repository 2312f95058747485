//! A sysfs and procfs tree written by a test.

use std::fs;

use atoll_sys::Root;
use atoll_testkit::machines;
use atoll_topology::{Allowed, CpuSet, DiscoverError, Machine, NodeSet};

pub(crate) const CPU: &str = "sys/devices/system/cpu";
pub(crate) const NODE: &str = "sys/devices/system/node";

/// A directory that stands for `/` and vanishes with the value.
pub(crate) struct Tree {
    directory: tempfile::TempDir,
}

impl Tree {
    /// In memory where the system has such a directory: a tree is hundreds of small files, and a busy
    /// disk takes milliseconds for each.
    pub(crate) fn empty() -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self { directory: directory.unwrap() }
    }

    /// The tree of a machine.
    pub(crate) fn of(machine: &Machine) -> Self {
        let tree = Self::empty();
        machines::write_sysfs(machine, tree.directory.path()).unwrap();
        tree
    }

    /// The least that a kernel shows: cpus 0 to 3, no NUMA, no caches, no topology.
    pub(crate) fn bare() -> Self {
        Self::empty()
            .with(&format!("{CPU}/online"), "0-3\n")
            .with("proc/meminfo", "MemTotal:  4096 kB\nMemFree:  1024 kB\n")
    }

    /// Adds or replaces a file.
    pub(crate) fn with(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Removes a file or directory.
    pub(crate) fn without(self, name: &str) -> Self {
        let path = self.directory.path().join(name);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
        self
    }

    /// Adds a node of 1 MiB, 512 KiB of it free.
    pub(crate) fn with_node(self, node: u32, cpus: &str, distance: &str) -> Self {
        let meminfo = format!("Node {node} MemTotal: 1024 kB\nNode {node} MemFree: 512 kB\n");
        self.with(&format!("{NODE}/node{node}/cpulist"), cpus)
            .with(&format!("{NODE}/node{node}/distance"), distance)
            .with(&format!("{NODE}/node{node}/meminfo"), meminfo)
    }

    /// Adds a cache of 1 MiB to each of the cpus.
    pub(crate) fn with_cache(self, cpus: &str, index: u32, level: u32, shared: &str) -> Self {
        CpuSet::parse(cpus).unwrap().iter().fold(self, |tree, cpu| {
            let cache = format!("{CPU}/cpu{cpu}/cache/index{index}");
            tree.with(&format!("{cache}/level"), level.to_string())
                .with(&format!("{cache}/type"), "Unified\n")
                .with(&format!("{cache}/size"), "1024K\n")
                .with(&format!("{cache}/shared_cpu_list"), shared)
        })
    }

    pub(crate) fn root(&self) -> Root {
        Root::at(self.directory.path())
    }

    /// Discovers what the process of the tree is allowed.
    pub(crate) fn discover(&self) -> Result<Machine, DiscoverError> {
        Machine::discover_at(&self.root(), &Allowed::of_process(&self.root())?)
    }

    /// Discovers the machine as a whole.
    pub(crate) fn discover_all(&self) -> Machine {
        Machine::discover_at(&self.root(), &Allowed::everything()).unwrap()
    }

    /// Discovers what these lists allow.
    pub(crate) fn discover_only(&self, cpus: &str, nodes: &str) -> Result<Machine, DiscoverError> {
        let allowed =
            Allowed { cpus: Some(set(cpus)), nodes: Some(NodeSet::parse(nodes).unwrap()) };
        Machine::discover_at(&self.root(), &allowed)
    }
}

pub(crate) fn set(cpus: &str) -> CpuSet {
    CpuSet::parse(cpus).unwrap()
}

/// The cpus of each domain.
pub(crate) fn domains(machine: &Machine) -> Vec<String> {
    machine.domains.iter().map(|domain| domain.cpus.to_string()).collect()
}

/// The cpus of each core.
pub(crate) fn cores(machine: &Machine) -> Vec<String> {
    machine.cores.iter().map(|core| core.cpus.to_string()).collect()
}

/// The cpus of each node.
pub(crate) fn nodes(machine: &Machine) -> Vec<String> {
    machine.nodes.iter().map(|node| format!("{}: {}", node.id, node.cpus)).collect()
}
