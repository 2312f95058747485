//! A sysfs and procfs tree written by a test.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use crate::machines;
use atoll_sys::Root;
use atoll_topology::{Allowed, CpuSet, DiscoverError, Machine, NodeSet};

/// The kernel's directory of cpus.
pub const CPU: &str = "sys/devices/system/cpu";
/// The kernel's directory of nodes.
pub const NODE: &str = "sys/devices/system/node";

/// A directory in place of `/`, removed when the value is dropped.
pub struct Tree {
    directory: PathBuf,
}

impl Drop for Tree {
    fn drop(&mut self) {
        // A leftover is among the temporary files.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Tree {
    /// An empty tree, in memory if the system has such a directory: a tree is hundreds of small files, and a busy disk
    /// takes milliseconds for each.
    pub fn empty() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let name = format!("atoll-tree-{process}-{number}");
        let places = [PathBuf::from("/dev/shm"), env::temp_dir()].map(|place| place.join(&name));
        let directory = places.into_iter().find(|place| fs::create_dir(place).is_ok());
        Self { directory: directory.expect("a directory for temporary files that can be written") }
    }

    /// The tree of a machine.
    pub fn from_machine(machine: &Machine) -> Self {
        let tree = Self::empty();
        machines::write_sysfs(machine, &tree.directory).unwrap();
        tree
    }

    /// The minimum that a kernel shows: cpus 0 to 3, no NUMA, no caches, no topology.
    pub fn bare() -> Self {
        Self::empty()
            .with(&format!("{CPU}/online"), "0-3\n")
            .with("proc/meminfo", "MemTotal:  4096 kB\nMemFree:  1024 kB\n")
    }

    /// Adds or replaces a file.
    pub fn with(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Removes a file or directory.
    pub fn without(self, name: &str) -> Self {
        let path = self.directory.join(name);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
        self
    }

    /// Adds a node of 1 MiB, 512 KiB of it free.
    pub fn with_node(self, node: u32, cpus: &str, distance: &str) -> Self {
        let meminfo = format!("Node {node} MemTotal: 1024 kB\nNode {node} MemFree: 512 kB\n");
        self.with(&format!("{NODE}/node{node}/cpulist"), cpus)
            .with(&format!("{NODE}/node{node}/distance"), distance)
            .with(&format!("{NODE}/node{node}/meminfo"), meminfo)
    }

    /// Adds a cache of 1 MiB to each of the cpus.
    pub fn with_cache(self, cpus: &str, index: u32, level: u32, shared: &str) -> Self {
        CpuSet::parse(cpus).unwrap().iter().fold(self, |tree, cpu| {
            let cache = format!("{CPU}/cpu{cpu}/cache/index{index}");
            tree.with(&format!("{cache}/level"), level.to_string())
                .with(&format!("{cache}/type"), "Unified\n")
                .with(&format!("{cache}/size"), "1024K\n")
                .with(&format!("{cache}/shared_cpu_list"), shared)
        })
    }

    /// Names of all files, in alphabetical order.
    pub fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut directories = vec![self.directory.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => directories.push(path),
                    false => {
                        let name = path.strip_prefix(&self.directory).unwrap();
                        files.push(name.to_str().unwrap().to_owned());
                    }
                }
            }
        }
        files.sort_unstable();
        files
    }

    /// The directory in place of `/`.
    pub fn root(&self) -> Root {
        Root::at(&self.directory)
    }

    /// Discovers what the tree's process may use.
    pub fn discover(&self) -> Result<Machine, DiscoverError> {
        Machine::discover_at(&self.root(), &Allowed::of_process(&self.root()))
    }

    /// Discovers the whole machine.
    pub fn discover_all(&self) -> Machine {
        Machine::discover_at(&self.root(), &Allowed::everything()).unwrap()
    }

    /// Discovers what these lists allow.
    pub fn discover_only(&self, cpus: &str, nodes: &str) -> Result<Machine, DiscoverError> {
        let (cpus, nodes) = (Some(set(cpus)), Some(NodeSet::parse(nodes).unwrap()));
        let allowed = Allowed { cpus, nodes, ..Allowed::everything() };
        Machine::discover_at(&self.root(), &allowed)
    }
}

/// Cpus in list notation.
pub fn set(cpus: &str) -> CpuSet {
    CpuSet::parse(cpus).unwrap()
}

/// The cpus of each domain.
pub fn domains(machine: &Machine) -> Vec<String> {
    machine.domains.iter().map(|domain| domain.cpus.to_string()).collect()
}

/// The cpus of each core.
pub fn cores(machine: &Machine) -> Vec<String> {
    machine.cores.iter().map(|core| core.cpus.to_string()).collect()
}

/// The cpus of each node.
pub fn nodes(machine: &Machine) -> Vec<String> {
    machine.nodes.iter().map(|node| format!("{}: {}", node.id, node.cpus)).collect()
}
