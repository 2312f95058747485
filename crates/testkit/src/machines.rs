//! Fake machines named by shape, and [`write_sysfs`], which writes one as the files that discovery reads.
//!
//! | Machine | Shape |
//! |---|---|
//! | [`one_node`] | one node, one domain of 4 cores: every laptop |
//! | [`two_nodes`] | two packages of one node, 2 domains × 2 cores × 2 threads each |
//! | [`four_nodes`] | four packages in a square: neighbours 21 away, opposite corners 31 |
//! | [`sub_numa_clusters`] | two packages × two nodes × two domains, threads numbered last, as x86 servers do |
//! | [`eight_uneven_nodes`] | sparse node numbers, 1 to 8 cpus, one node of memory only, one of cpus only, distances that differ there and back |
//! | [`full_detail`] | two packages of one node each, with caches of every level and pools of huge pages |
//! | [`sparse_nodes`] | nodes 0 and 8 with cpus, 252 to 255 with memory only, as on POWER servers with GPUs |

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use atoll_topology::{
    Bytes, Cache, CacheKind, Core, Cpu, CpuSet, Domain, HugePages, Knowledge, Limits, Machine,
    MachineBuilder, Node, NodeId, NodeSet, NodeShape, Numbering, PackageId, Quantity, Source,
    Subject,
};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// Control group of the process on a written machine.
const GROUP: &str = "/sys/fs/cgroup/atoll";

fn built(builder: MachineBuilder) -> Machine {
    builder.build().expect("a machine written down here is whole")
}

fn cpus(id: u32, domains: u32, cores: u32, threads: u32) -> NodeShape {
    NodeShape::with_cpus(NodeId(id), domains, cores, threads)
}

/// One node with one domain of 4 cores and 16 GiB.
pub fn one_node() -> Machine {
    let node = cpus(0, 1, 4, 1).memory(Bytes(16 * GIB)).cache(Bytes(8 * MIB));
    built(MachineBuilder::new("one_node").model("Laptop 1").node(node).distances(vec![vec![10]]))
}

/// Two packages of one node each: 2 domains × 2 cores × 2 threads and 32 GiB.
pub fn two_nodes() -> Machine {
    let mut builder = MachineBuilder::new("two_nodes").model("Server 2");
    for id in 0..2 {
        let node = cpus(id, 2, 2, 2).memory(Bytes(32 * GIB)).cache(Bytes(16 * MIB));
        builder = builder.node(node);
    }
    built(builder.distances(vec![vec![10, 21], vec![21, 10]]))
}

/// Four packages of one node each, linked in a square 0-1-3-2-0: one domain × 4 cores and 16 GiB.
pub fn four_nodes() -> Machine {
    let mut builder = MachineBuilder::new("four_nodes").model("Server 4");
    for id in 0..4 {
        let node = cpus(id, 1, 4, 1).memory(Bytes(16 * GIB)).cache(Bytes(20 * MIB));
        builder = builder.node(node);
    }
    built(builder.distances(vec![
        vec![10, 21, 21, 31],
        vec![21, 10, 31, 21],
        vec![21, 31, 10, 21],
        vec![31, 21, 21, 10],
    ]))
}

/// Two packages of two nodes each: 2 domains × 3 cores × 2 threads and 24 GiB; second threads are
/// numbered after all first threads.
pub fn sub_numa_clusters() -> Machine {
    let mut builder = MachineBuilder::new("sub_numa_clusters").model("Server 2x2");
    for id in 0..4 {
        let node = cpus(id, 2, 3, 2).package(PackageId(id / 2));
        builder = builder.node(node.memory(Bytes(24 * GIB)).cache(Bytes(12 * MIB)));
    }
    built(builder.numbering(Numbering::ThreadsLast).distances(vec![
        vec![10, 12, 21, 21],
        vec![12, 10, 21, 21],
        vec![21, 21, 10, 12],
        vec![21, 21, 12, 10],
    ]))
}

/// Eight nodes of which no two are alike: node 5 has memory only, node 6 has cpus only, there is no
/// node 3, and some distances differ there and back.
pub fn eight_uneven_nodes() -> Machine {
    let gib = |count: u64| Bytes(count * GIB);
    let builder = MachineBuilder::new("eight_uneven_nodes")
        .node(cpus(0, 1, 4, 2).package(PackageId(0)).memory(gib(64)).cache(Bytes(32 * MIB)))
        .node(cpus(1, 2, 2, 1).package(PackageId(0)).memory(gib(32)).cache(Bytes(16 * MIB)))
        .node(cpus(2, 1, 3, 2).package(PackageId(1)).memory(gib(16)).cache(Bytes(24 * MIB)))
        .node(cpus(4, 1, 1, 1).package(PackageId(1)).memory(gib(8)).cache(Bytes(4 * MIB)))
        .node(NodeShape::memory_only(NodeId(5), gib(128)))
        .node(cpus(6, 1, 2, 1).package(PackageId(2)).cache(Bytes(8 * MIB)))
        .node(cpus(7, 3, 1, 2).package(PackageId(3)).memory(gib(4)).cache(Bytes(2 * MIB)))
        .node(cpus(8, 1, 5, 1).package(PackageId(3)).memory(gib(1)).cache(Bytes(10 * MIB)));
    built(builder.distances(vec![
        vec![10, 12, 21, 21, 17, 31, 31, 41],
        vec![12, 10, 21, 21, 28, 31, 31, 41],
        vec![21, 21, 10, 12, 28, 21, 31, 31],
        vec![22, 21, 12, 10, 28, 21, 31, 31],
        vec![17, 28, 28, 28, 10, 38, 48, 48],
        vec![31, 31, 21, 21, 38, 10, 21, 21],
        vec![31, 31, 31, 31, 48, 21, 10, 12],
        vec![40, 41, 31, 31, 48, 21, 12, 10],
    ]))
}

/// Six nodes whose numbers leave large gaps: 0 and 8 with cpus, 252 to 255 with memory only.
pub fn sparse_nodes() -> Machine {
    let mut builder = MachineBuilder::new("sparse_nodes");
    for id in [0, 8] {
        builder = builder.node(cpus(id, 1, 2, 4).memory(Bytes(8 * GIB)).cache(Bytes(10 * MIB)));
    }
    for id in 252..256 {
        builder = builder.node(NodeShape::memory_only(NodeId(id), Bytes(2 * GIB)));
    }
    let row = |from: usize| {
        (0..6).map(|to| if from == to { 10 } else { 40 + 10 * u32::from(from + to > 1) }).collect()
    };
    built(builder.distances((0..6).map(row).collect()))
}

/// Two packages of one node each, 2 domains × 2 cores × 2 threads and 32 GiB, with everything that sysfs contains:
/// caches of every level with their lines and ways, and pools of huge pages.
pub fn full_detail() -> Machine {
    let mut machine = Machine { name: "full_detail".to_owned(), ..two_nodes() };
    machine.caches = caches(&machine);
    for (node, total) in machine.nodes.iter_mut().zip([512, 0]) {
        let free = total / 2;
        node.huge_pages = vec![
            HugePages { size: Bytes(2 * MIB), total, free },
            HugePages { size: Bytes(GIB), total: 1, free: 1 },
        ];
    }
    machine
}

/// First- and second-level caches of every core, last-level caches of every domain.
fn caches(machine: &Machine) -> Vec<Cache> {
    let of_core = |core: &Core, level, kind, kib: u64, ways| Cache {
        level,
        kind,
        cpus: core.cpus.clone(),
        size: Some(Bytes(kib << 10)),
        line: Some(Bytes(64)),
        ways: Some(ways),
    };
    let of_domain = |domain: &Domain| Cache {
        level: domain.cache_level.unwrap_or(3),
        kind: CacheKind::Unified,
        cpus: domain.cpus.clone(),
        size: domain.cache,
        line: Some(Bytes(64)),
        ways: Some(0),
    };
    let kinds = [
        (1, CacheKind::Data, 48, 12),
        (1, CacheKind::Instruction, 32, 8),
        (2, CacheKind::Unified, 1024, 16),
    ];
    let of_cores = kinds.iter().flat_map(|&(level, kind, kib, ways)| {
        machine.cores.iter().map(move |core| of_core(core, level, kind, kib, ways))
    });
    of_cores.chain(machine.domains.iter().map(of_domain)).collect()
}

/// All of these machines.
pub fn all() -> Vec<Machine> {
    vec![
        one_node(),
        two_nodes(),
        four_nodes(),
        sub_numa_clusters(),
        eight_uneven_nodes(),
        full_detail(),
        sparse_nodes(),
    ]
}

/// Writes the sysfs and procfs of a machine under a directory, as a Linux kernel shows them to a process that may use
/// all of it (without `hidden` and links, and only with x86's kinds of cpus, P and E cores). Memory and caches are
/// written in KiB, as the kernel does, and the caches are those of [`caches_written`].
pub fn write_sysfs(machine: &Machine, directory: &Path) -> io::Result<()> {
    let tree = FakeTree { directory };
    write_process(machine, &tree)?;
    write_cpus(machine, &tree)?;
    write_nodes(machine, &tree)?;
    write_limits(&machine.limits, &tree)?;
    if let Some(size) = machine.huge_page_size {
        let directory = "sys/kernel/mm/transparent_hugepage";
        tree.write(&format!("{directory}/enabled"), "always [madvise] never")?;
        tree.write(&format!("{directory}/hpage_pmd_size"), size.0)?;
    }
    Ok(())
}

/// Like [`write_sysfs`], plus the firmware's path data: the discovered latencies and bandwidths among the facts, each
/// in the file that is its origin.
pub fn write_knowledge(knowledge: &Knowledge, directory: &Path) -> io::Result<()> {
    write_sysfs(&knowledge.machine, directory)?;
    for fact in &knowledge.facts {
        let unit = if fact.quantity == Quantity::Latency { 1.0 } else { 1e-3 };
        if let (Source::Discovered, Subject::Path { from, .. }) = (fact.source, fact.subject)
            && let Some((initiators, _)) = fact.origin.rsplit_once('/')
        {
            let tree = FakeTree { directory };
            tree.write(&fact.origin, (fact.value / unit).round())?;
            tree.write(&format!("{initiators}/node{from}/online"), 1)?;
        }
    }
    Ok(())
}

/// Writes what the process may use on a machine written before: its `/proc/self/status`.
pub fn write_allowed(cpus: &CpuSet, nodes: &NodeSet, directory: &Path) -> io::Result<()> {
    let status = format!("Name:\tatoll\nCpus_allowed_list:\t{cpus}\nMems_allowed_list:\t{nodes}");
    FakeTree { directory }.write("proc/self/status", status)
}

/// The directory in place of `/`.
struct FakeTree<'a> {
    directory: &'a Path,
}

impl FakeTree<'_> {
    /// Writes a file of one or more lines, and creates its directories.
    fn write(&self, name: &str, text: impl std::fmt::Display) -> io::Result<()> {
        self.write_bytes(name, format!("{text}\n").as_bytes())
    }

    fn write_bytes(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.directory.join(name.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap_or(self.directory))?;
        fs::write(path, bytes)
    }
}

fn write_process(machine: &Machine, tree: &FakeTree<'_>) -> io::Result<()> {
    let cpus = machine.cpus.iter().map(|cpu| cpu.id).collect();
    let nodes = machine.nodes_with_memory().map(|node| node.id).collect();
    write_allowed(&cpus, &nodes, tree.directory)?;
    tree.write("proc/sys/kernel/hostname", &machine.name)?;
    // AT_PAGESZ and the end of the auxiliary vector.
    let words = [6, machine.page_size.0, 0, 0];
    tree.write_bytes("proc/self/auxv", &words.map(u64::to_ne_bytes).concat())?;
    tree.write("proc/meminfo", meminfo("", machine.memory(), machine.memory_free()))?;
    tree.write("proc/cpuinfo", cpuinfo(machine))
}

fn meminfo(prefix: &str, total: Bytes, free: Bytes) -> String {
    let line = |key: &str, bytes: u64| format!("{prefix}{key:<16}{:>8} kB", bytes / 1024);
    let used = total.0.saturating_sub(free.0);
    [line("MemTotal:", total.0), line("MemFree:", free.0), line("MemUsed:", used)].join("\n")
}

fn cpuinfo(machine: &Machine) -> String {
    let mut text = String::new();
    for package in &machine.packages {
        for cpu in package.cpus.iter() {
            let _ = writeln!(text, "processor\t: {cpu}");
            if let Some(model) = &package.model {
                let _ = writeln!(text, "model name\t: {model}");
            }
            text.push('\n');
        }
    }
    text
}

fn write_cpus(machine: &Machine, tree: &FakeTree<'_>) -> io::Result<()> {
    let online: CpuSet = machine.cpus.iter().map(|cpu| cpu.id).collect();
    for name in ["online", "possible", "present"] {
        tree.write(&format!("sys/devices/system/cpu/{name}"), &online)?;
    }
    for cpu in &machine.cpus {
        write_topology(machine, cpu, tree)?;
    }
    for kind in &machine.cpu_kinds {
        let device = if kind.name == "P cores" { "cpu_core" } else { "cpu_atom" };
        tree.write(&format!("sys/devices/{device}/cpus"), &kind.cpus)?;
    }
    write_caches(machine, tree)
}

fn write_topology(machine: &Machine, cpu: &Cpu, tree: &FakeTree<'_>) -> io::Result<()> {
    let directory = format!("sys/devices/system/cpu/cpu{}/topology", cpu.id);
    let core = &machine.cores[cpu.core.index()];
    tree.write(&format!("{directory}/physical_package_id"), cpu.package)?;
    if let Some(die) = machine.dies.iter().find(|die| die.cpus.contains(cpu.id)) {
        tree.write(&format!("{directory}/die_id"), die.id)?;
    }
    tree.write(&format!("{directory}/core_id"), core.id)?;
    tree.write(&format!("{directory}/core_cpus_list"), &core.cpus)?;
    tree.write(&format!("{directory}/thread_siblings_list"), &core.cpus)
}

/// The caches that [`write_sysfs`] writes: the machine's, or, if only its domains have some, first-level caches per
/// core and the last-level cache.
pub fn caches_written(machine: &Machine) -> Vec<Cache> {
    if !machine.caches.is_empty() {
        return machine.caches.clone();
    }
    let cache = |level, kind, size, cpus: &CpuSet| {
        let cpus = cpus.clone();
        Cache { level, kind, cpus, size, line: None, ways: None }
    };
    let last_level = |core: &Core| machine.domains[core.domain.index()].cache_level;
    let cores = || machine.cores.iter().filter(|core| last_level(core).is_some());
    let first = |kind| move |core: &Core| cache(1, kind, Some(Bytes(32 << 10)), &core.cpus);
    let last = machine.domains.iter().filter_map(|domain| {
        Some(cache(domain.cache_level?, CacheKind::Unified, domain.cache, &domain.cpus))
    });
    let data = cores().map(first(CacheKind::Data));
    let instruction = cores().map(first(CacheKind::Instruction));
    data.chain(instruction).chain(last).collect()
}

fn write_caches(machine: &Machine, tree: &FakeTree<'_>) -> io::Result<()> {
    let mut indexes = BTreeMap::new();
    for cache in caches_written(machine) {
        for cpu in cache.cpus.iter() {
            let index = indexes.entry(cpu).or_insert(0);
            let directory = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
            write_cache(&cache, &directory, tree)?;
            *index += 1;
        }
    }
    Ok(())
}

fn write_cache(cache: &Cache, directory: &str, tree: &FakeTree<'_>) -> io::Result<()> {
    let kind = match cache.kind {
        CacheKind::Data => "Data",
        CacheKind::Instruction => "Instruction",
        CacheKind::Unified => "Unified",
    };
    tree.write(&format!("{directory}/level"), cache.level)?;
    tree.write(&format!("{directory}/type"), kind)?;
    tree.write(&format!("{directory}/shared_cpu_list"), &cache.cpus)?;
    if let Some(size) = cache.size {
        tree.write(&format!("{directory}/size"), format!("{}K", size.0 / 1024))?;
    }
    if let Some(line) = cache.line {
        tree.write(&format!("{directory}/coherency_line_size"), line.0)?;
    }
    if let Some(ways) = cache.ways {
        tree.write(&format!("{directory}/ways_of_associativity"), ways)?;
    }
    Ok(())
}

fn write_nodes(machine: &Machine, tree: &FakeTree<'_>) -> io::Result<()> {
    let online: NodeSet = machine.nodes.iter().map(|node| node.id).collect();
    for name in ["online", "possible"] {
        tree.write(&format!("sys/devices/system/node/{name}"), &online)?;
    }
    for node in &machine.nodes {
        write_huge_pages(node, tree)?;
    }
    for (node, row) in machine.nodes.iter().zip(&machine.distances) {
        let directory = format!("sys/devices/system/node/node{}", node.id);
        let prefix = format!("Node {} ", node.id);
        let row: Vec<String> = row.iter().map(u32::to_string).collect();
        tree.write(&format!("{directory}/cpulist"), &node.cpus)?;
        tree.write(&format!("{directory}/distance"), row.join(" "))?;
        let meminfo = meminfo(&prefix, node.memory, node.memory_free);
        tree.write(&format!("{directory}/meminfo"), meminfo)?;
        write_near(machine, node, tree)?;
    }
    Ok(())
}

/// The firmware's data about a node's memory: the nodes of the nearest cpus, and memory-side caches.
fn write_near(machine: &Machine, node: &Node, tree: &FakeTree<'_>) -> io::Result<()> {
    let directory = format!("sys/devices/system/node/node{}", node.id);
    let is_near = |other: &&Node| !other.cpus.intersection(&node.near).is_empty();
    for initiator in machine.nodes.iter().filter(is_near) {
        let id = initiator.id;
        tree.write(&format!("{directory}/access0/initiators/node{id}/online"), 1)?;
    }
    for cache in &node.side_caches {
        let directory = format!("{directory}/memory_side_cache/index{}", cache.level);
        tree.write(&format!("{directory}/size"), cache.size.0)?;
        tree.write(&format!("{directory}/line_size"), cache.line.unwrap_or_default().0)?;
    }
    Ok(())
}

fn write_huge_pages(node: &Node, tree: &FakeTree<'_>) -> io::Result<()> {
    for pool in &node.huge_pages {
        let kib = pool.size.0 >> 10;
        let node = node.id;
        let directory = format!("sys/devices/system/node/node{node}/hugepages/hugepages-{kib}kB");
        tree.write(&format!("{directory}/nr_hugepages"), pool.total)?;
        tree.write(&format!("{directory}/free_hugepages"), pool.free)?;
    }
    Ok(())
}

/// Limits in control group version 2 format.
fn write_limits(limits: &Limits, tree: &FakeTree<'_>) -> io::Result<()> {
    const PERIOD: f64 = 100_000.0;
    tree.write("proc/self/cgroup", "0::/atoll")?;
    tree.write("proc/self/mountinfo", "31 24 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw")?;
    let memory = limits.memory.as_ref().map_or("max".to_owned(), |limit| limit.bytes.0.to_string());
    tree.write(&format!("{GROUP}/memory.max"), memory)?;
    let quota = match &limits.cpu_time {
        Some(limit) => format!("{}", (limit.cpus * PERIOD).round()),
        None => "max".to_owned(),
    };
    tree.write(&format!("{GROUP}/cpu.max"), format!("{quota} {PERIOD}"))
}
