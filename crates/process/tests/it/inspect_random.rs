//! Random trees of processes that fork, share, map, unmap and die, looked at beside what the kernel sums up
//! for each of them (`smaps_rollup`, `numa_maps`).

use std::io::{BufRead, BufReader};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use atoll_process::inspect::{
    LivePages, MappingKind, MemoryOptions, Method, NodeMap, ProcessMemory, ProcessSource, Snapshot,
    Union, WatchOptions, Watcher, identify,
};
use atoll_sys::Root;
use atoll_testkit::{Need, skip};
use atoll_topology::Machine;

const TREES: u64 = 16;
const KIB: u64 = 1024;
/// The kernel's page of code in each process (vdso) is in its sum and has no line in `numa_maps`.
const KERNELS_OWN_MAX: u64 = 8 * KIB;

/// Compiles the program that is such a tree; none, and said so, without a compiler.
fn program(directory: &Path) -> Option<PathBuf> {
    let crate_root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let program = directory.join("tree");
    let mut compiler = Command::new("cc");
    compiler.arg(Path::new(&crate_root).join("tests/tree.c")).arg("-o").arg(&program);
    match compiler.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(error) => {
            skip(Need::Compiler, error);
            None
        }
    }
}

/// A tree that lives until its input ends.
struct RunningTree {
    root: Child,
    pids: Vec<u32>,
}

impl RunningTree {
    fn start(program: &Path, seed: u64) -> Self {
        let mut command = Command::new(program);
        command.arg(seed.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut root = command.spawn().expect("it was compiled");
        let mut line = String::new();
        let mut out = BufReader::new(root.stdout.take().expect("a pipe"));
        out.read_line(&mut line).expect("text");
        let pids: Vec<u32> = line.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        assert!(!pids.is_empty(), "seed {seed}: no process is left");
        Self { root, pids }
    }
}

impl Drop for RunningTree {
    fn drop(&mut self) {
        drop(self.root.stdin.take());
        let _ = self.root.wait();
    }
}

/// A line of the kernel's sum over all mappings of a process, in bytes.
fn rollup(pid: u32, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(value.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * KIB)
}

/// Bytes on a node by a process's `numa_maps`.
fn on_node(pid: u32, node: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/numa_maps")).unwrap_or_default();
    let line = |line: &str| {
        let value = |key: &str| {
            let mut words = line.split_whitespace().filter_map(|word| word.split_once('='));
            words.find(|(name, _)| *name == key).map(|(_, value)| value.parse::<u64>().unwrap())
        };
        let pages = value(&format!("N{node}")).unwrap_or(0);
        pages * value("kernelpagesize_kB").unwrap_or(0) * KIB
    };
    text.lines().map(line).sum()
}

/// Least and most that a process's PSS may be: all of its shares of memory that only the tree has, and none or
/// all of its files, which other programs of the machine map and unmap meanwhile.
fn proportional_bounds(pid: u32, memory: &ProcessMemory) -> RangeInclusive<u64> {
    let of = |kind| memory.by_kind.get(&kind).map_or(0, |nodes| nodes.values().sum::<u64>());
    let files = of(MappingKind::File) + of(MappingKind::Program);
    let own = rollup(pid, "Pss_Anon").unwrap() + rollup(pid, "Pss_Shmem").unwrap();
    let rounding = 3 * KIB;
    own.saturating_sub(rounding)..=own + files + rounding + KERNELS_OWN_MAX
}

fn look(pids: &[u32]) -> Snapshot {
    let (root, machine) = (Root::live(), Machine::discover().unwrap());
    let nodes = NodeMap::read(&root, &machine);
    let source = ProcessSource::new(&root, &LivePages, &machine, &nodes);
    let ids: Vec<_> = pids.iter().map(|pid| identify(&root, *pid).unwrap()).collect();
    let memory = MemoryOptions { is_exact: true, ..MemoryOptions::default() };
    let mut watcher = Watcher::new(&ids, WatchOptions { memory, budget: None });
    watcher.look(&source, Duration::ZERO).unwrap()
}

#[test]
fn what_is_told_of_random_trees_is_what_the_kernel_sums_up() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = program(directory.path()) else { return };
    for seed in 0..TREES {
        let tree = RunningTree::start(&program, seed);
        let snapshot = look(&tree.pids);
        let is_exact = |process: &atoll_process::inspect::Process| {
            process.memory.as_ref().is_some_and(|memory| memory.method == Method::Exact)
        };
        if !snapshot.processes.iter().all(is_exact) || rollup(tree.pids[0], "Pss_Shmem").is_none() {
            return skip(Need::Permission, "numa_maps or smaps_rollup cannot be read");
        }
        let (mut ids, mut told): (Vec<u32>, Vec<u32>) =
            (tree.pids.clone(), snapshot.processes.iter().map(|process| process.id.pid).collect());
        ids.sort_unstable();
        told.sort_unstable();
        assert_eq!(ids, told, "seed {seed}");
        for process in &snapshot.processes {
            let (pid, memory) = (process.id.pid, process.memory.as_ref().unwrap());
            let kernels_own = rollup(pid, "Rss").unwrap() - memory.resident();
            assert!(kernels_own <= KERNELS_OWN_MAX, "seed {seed}: {kernels_own} bytes are missing");
            let told = memory.proportional.unwrap();
            let bounds = proportional_bounds(pid, memory);
            assert!(bounds.contains(&told), "seed {seed}: PSS {told} is not in {bounds:?}");
            for node in Machine::discover().unwrap().nodes {
                let by_kind = memory.by_kind.values();
                let bytes: u64 = by_kind.filter_map(|nodes| nodes.get(&Some(node.id))).sum();
                assert_eq!(bytes, on_node(pid, node.id.0), "seed {seed}, node {}", node.id);
            }
        }
        are_shared_pages_counted_once(&snapshot, seed);
    }
}

/// The shares of a page that several processes map add up to one page: so do those of all pages, but for
/// what each process's sum is rounded by.
fn are_shared_pages_counted_once(snapshot: &Snapshot, seed: u64) {
    let processes = &snapshot.processes;
    let shares: u64 =
        processes.iter().map(|process| rollup(process.id.pid, "Pss_Shmem").unwrap()).sum();
    let kind = snapshot.memory.get(&MappingKind::SharedAnonymous);
    let once: u64 = kind.map_or(0, |nodes| nodes.values().sum());
    let rounding = processes.len() as u64 * KIB;
    assert!(once.abs_diff(shares) <= rounding, "seed {seed}: {once} told, shares {shares}");
    let expected = if processes.len() > 1 { Union::Exact } else { Union::None };
    assert_eq!(snapshot.union, expected, "seed {seed}");
}
