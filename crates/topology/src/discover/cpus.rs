//! Cpus and cores: `/sys/devices/system/cpu/online`, `cpu*/topology`, `/proc/cpuinfo`.
//!
//! If a kernel or a sandbox does not describe the topology of a cpu, the cpu is a separate core in package 0.

use std::collections::BTreeMap;

use super::Allowed;
use super::caches::CacheList;
use super::files::{CPU_DIRECTORY, KernelFiles, cpu_file};
use super::nodes::Nodes;
use super::packages;
use super::peers::Peers;
use crate::assemble::CpuPart;
use crate::{Cache, CpuId, CpuSet, PackageId, Source};

const CPUINFO: &str = "/proc/cpuinfo";

/// Usable cpus and the models of their packages.
#[derive(Debug)]
pub(super) struct Cpus {
    pub(super) parts: Vec<CpuPart>,
    pub(super) models: BTreeMap<PackageId, String>,
    pub(super) caches: Vec<Cache>,
}

impl Cpus {
    /// Reads the topology of the usable cpus.
    pub(super) fn read(files: &KernelFiles<'_>, usable: &CpuSet, nodes: &Nodes) -> Self {
        let mut caches = CacheList::default();
        let peers = |cpu| Peers { cpu, node: nodes.home(cpu), usable, nodes };
        let packages = packages::read(files, usable);
        let part = |cpu| part(files, &peers(cpu), packages.get(&cpu).copied(), &mut caches);
        let parts: Vec<CpuPart> = usable.iter().map(part).collect();
        let models = models(files, &parts);
        Self { parts, models, caches: caches.usable(usable) }
    }

    /// Discovered as soon as the cache of any cpu is known.
    pub(super) fn caches_source(&self) -> Source {
        let known = self.parts.iter().any(|cpu| cpu.cache.level.is_some());
        if known { Source::Discovered } else { Source::Assumed }
    }
}

/// Online cpus: those that the kernel lists. Without a list, those with a directory that does not mark them offline,
/// else those of `/proc/cpuinfo`, else those that the process may run on. Empty if no file describes a cpu.
pub(super) fn online(files: &KernelFiles<'_>, allowed: &Allowed) -> CpuSet {
    let name = format!("{CPU_DIRECTORY}/online");
    if let Some(listed) = files.list_set(&name).filter(|cpus: &CpuSet| !cpus.is_empty()) {
        return listed;
    }
    let is_on =
        |cpu: &CpuId| files.text(&cpu_file(*cpu, "online")).is_none_or(|text| text.trim() != "0");
    let with_directory = || directories(files).iter().filter(is_on).collect();
    let of_cpuinfo = || {
        let text = files.text(CPUINFO).unwrap_or_default();
        processors(&text).filter(|&cpu| cpu.0 <= crate::SET_NUMBER_MAX).collect()
    };
    let of_process = || match &allowed.cpus {
        Some(cpus) => cpus.clone(),
        None => files.cpus_of_this_process(),
    };
    let sources: [(&str, &dyn Fn() -> CpuSet); 3] = [
        ("those with a directory", &with_directory),
        ("those of /proc/cpuinfo", &of_cpuinfo),
        ("those that the process may run on", &of_process),
    ];
    for (words, cpus) in sources {
        let cpus = cpus();
        if !cpus.is_empty() {
            files.assume(
                &name,
                "no list of the cpus online",
                format_args!("taken as {words}: {cpus}"),
            );
            return cpus;
        }
    }
    CpuSet::new()
}

/// The online cpus that the process may use. If there are none, which is contradictory, those it may use that exist,
/// or else all.
pub(super) fn usable(files: &KernelFiles<'_>, online: &CpuSet, allowed: &Allowed) -> CpuSet {
    let Some(granted) = &allowed.cpus else { return online.clone() };
    let usable = granted.intersection(online);
    if !usable.is_empty() {
        return usable;
    }
    let there = granted.intersection(&directories(files));
    let usable = if there.is_empty() { online.clone() } else { there };
    let list = |set: &CpuSet| if set.is_empty() { "none".to_owned() } else { set.to_string() };
    let found = format!("online are {online}, the process may run on {}", list(granted));
    files.assume(&format!("{CPU_DIRECTORY}/online"), found, format_args!("taken as {usable}"));
    usable
}

/// Cpus that have a directory.
fn directories(files: &KernelFiles<'_>) -> CpuSet {
    files.numbered(CPU_DIRECTORY, "cpu").into_iter().map(CpuId).collect()
}

fn part(
    files: &KernelFiles<'_>,
    peers: &Peers<'_>,
    package: Option<PackageId>,
    caches: &mut CacheList,
) -> CpuPart {
    let core = core_cpus(files, peers.cpu);
    CpuPart {
        id: peers.cpu,
        package: package.unwrap_or_default(),
        node: peers.node,
        core: peers.leader(&core),
        cache: caches.read(files, peers, &core),
    }
}

/// Hardware threads of the cpu's core. The second file name is that of kernels before 5.3. A set without the cpu
/// itself, such as an empty one, is ignored.
fn core_cpus(files: &KernelFiles<'_>, cpu: CpuId) -> CpuSet {
    for name in ["core_cpus", "thread_siblings"] {
        let mask = cpu_file(cpu, &format!("topology/{name}"));
        let Some(cpus) = files.list_or_mask(&format!("{mask}_list"), &mask) else { continue };
        if cpus.contains(cpu) {
            return cpus;
        }
        let found =
            format_args!("the cpu itself is not among the threads of its core, {cpus}").to_string();
        files.assume(&mask, found, "ignored");
    }
    CpuSet::from_iter([cpu])
}

/// Model name of each package, from the `model name` lines of `/proc/cpuinfo`, which only x86 kernels have.
fn models(files: &KernelFiles<'_>, cpus: &[CpuPart]) -> BTreeMap<PackageId, String> {
    let text = files.text(CPUINFO).unwrap_or_default();
    let by_cpu = models_by_cpu(&text);
    let mut models = BTreeMap::new();
    for cpu in cpus {
        if let Some(model) = by_cpu.get(&cpu.id) {
            models.entry(cpu.package).or_insert_with(|| (*model).to_owned());
        }
    }
    models
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

/// The cpus that `/proc/cpuinfo` numbers.
fn processors(text: &str) -> impl Iterator<Item = CpuId> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let lines = lines.filter(|(key, _)| key.trim() == "processor");
    lines.filter_map(|(_, value)| value.trim().parse().ok().map(CpuId))
}
