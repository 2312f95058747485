//! Cpus, cores and packages: `/sys/devices/system/cpu/online`, `cpu*/topology`, `/proc/cpuinfo`.
//!
//! Where a kernel or a sandbox does not describe the topology of a cpu, the cpu is a core of its own
//! in package 0.

use std::collections::BTreeMap;

use atoll_sys::Root;

use super::caches::CacheList;
use super::nodes::Nodes;
use super::read;
use crate::assemble::CpuPart;
use crate::discover::DiscoverError;
use crate::{Cache, CpuId, CpuSet, NodeId, PackageId, Source};

const DIRECTORY: &str = "/sys/devices/system/cpu";

/// Usable cpus and the models of their packages.
#[derive(Debug)]
pub(super) struct Cpus {
    pub(super) parts: Vec<CpuPart>,
    pub(super) models: BTreeMap<PackageId, String>,
    pub(super) caches: Vec<Cache>,
}

impl Cpus {
    /// Reads the topology of the usable cpus.
    pub(super) fn read(root: &Root, usable: &CpuSet, nodes: &Nodes) -> Result<Self, DiscoverError> {
        let mut caches = CacheList::default();
        let parts = usable
            .iter()
            .map(|cpu| part(root, &Peers::of(root, cpu, usable, nodes)?, &mut caches))
            .collect::<Result<Vec<_>, _>>()?;
        let models = models(root, &parts)?;
        Ok(Self { parts, models, caches: caches.usable(usable) })
    }

    /// Discovered as soon as the cache of any cpu is known.
    pub(super) fn caches_source(&self) -> Source {
        let known = self.parts.iter().any(|cpu| cpu.cache.level.is_some());
        if known { Source::Discovered } else { Source::Assumed }
    }
}

/// Cpus that are online.
pub(super) fn online(root: &Root) -> Result<CpuSet, DiscoverError> {
    read::set(root, &format!("{DIRECTORY}/online"))
}

/// A cpu's file, by its name.
pub(super) fn file(cpu: CpuId, name: &str) -> String {
    format!("{DIRECTORY}/cpu{cpu}/{name}")
}

fn part(root: &Root, peers: &Peers<'_>, caches: &mut CacheList) -> Result<CpuPart, DiscoverError> {
    Ok(CpuPart {
        id: peers.cpu,
        package: package(root, peers.cpu)?,
        node: peers.node,
        core: peers.leader(&core_cpus(root, peers.cpu)?),
        cache: caches.read(root, peers)?,
    })
}

/// A cpu among the usable cpus of its node.
pub(super) struct Peers<'a> {
    pub(super) cpu: CpuId,
    node: NodeId,
    usable: &'a CpuSet,
    nodes: &'a Nodes,
}

impl<'a> Peers<'a> {
    fn of(
        root: &Root,
        cpu: CpuId,
        usable: &'a CpuSet,
        nodes: &'a Nodes,
    ) -> Result<Self, DiscoverError> {
        Ok(Self { cpu, node: nodes.home(root, cpu)?, usable, nodes })
    }

    /// The first usable cpu on the same node out of a set that should hold the cpu itself. All
    /// members of a group name the same leader, so groups stay apart even if their lists disagree.
    pub(super) fn leader(&self, group: &CpuSet) -> CpuId {
        let peer = |cpu: &CpuId| self.usable.contains(*cpu) && self.nodes.is_home(self.node, *cpu);
        group.iter().find(peer).unwrap_or(self.cpu)
    }

    /// The first usable cpu of the node.
    pub(super) fn node_leader(&self) -> CpuId {
        self.leader(self.usable)
    }
}

/// Hardware threads of the cpu's core. The second name is that of kernels before 5.3.
fn core_cpus(root: &Root, cpu: CpuId) -> Result<CpuSet, DiscoverError> {
    for name in ["topology/core_cpus_list", "topology/thread_siblings_list"] {
        if let Some(cpus) = read::set_if_present(root, &file(cpu, name))? {
            return Ok(cpus);
        }
    }
    Ok(CpuSet::from_iter([cpu]))
}

/// The cpu's package; the kernel says -1 where the firmware does not tell.
fn package(root: &Root, cpu: CpuId) -> Result<PackageId, DiscoverError> {
    let name = file(cpu, "topology/physical_package_id");
    let number = match read::number_if_present(root, &name)? {
        None | Some(-1) => 0,
        Some(number) => number,
    };
    let expected = "a package number or -1";
    u32::try_from(number)
        .map(PackageId)
        .map_err(|_| read::malformed(root, &name, expected, &number.to_string()))
}

/// Model name of each package, from the `model name` lines of `/proc/cpuinfo`; kernels for other
/// processors than x86 have none.
fn models(root: &Root, cpus: &[CpuPart]) -> Result<BTreeMap<PackageId, String>, DiscoverError> {
    let Some(text) = root.read_text_if_present("/proc/cpuinfo")? else {
        return Ok(BTreeMap::new());
    };
    let by_cpu = models_by_cpu(&text);
    let mut models = BTreeMap::new();
    for cpu in cpus {
        if let Some(model) = by_cpu.get(&cpu.id) {
            models.entry(cpu.package).or_insert_with(|| (*model).to_owned());
        }
    }
    Ok(models)
}

fn models_by_cpu(text: &str) -> BTreeMap<CpuId, &str> {
    let mut models = BTreeMap::new();
    let mut current = None;
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        match key.trim() {
            "processor" => current = value.trim().parse().ok().map(CpuId),
            "model name" => {
                models.extend(current.map(|cpu| (cpu, value.trim())));
            }
            _ => {}
        }
    }
    models
}
