//! Inspects this process and compares the result with other sources of the kernel.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use atoll_placement::{Arena, Kernel, LiveKernel};
use atoll_process::inspect::{
    LivePages, MappingKind, MemoryOptions, Method, NodeMap, ProcessSource, ThreadReader,
    WatchOptions, Watcher, descendants, identify, memory,
};
use atoll_sys::{Root, page_size};
use atoll_testkit::{Need, skip};
use atoll_topology::Machine;

const TOUCHED: usize = 4096;

fn with_source<T>(look: impl FnOnce(&ProcessSource<'_>) -> T) -> T {
    let (root, machine) = (Root::live(), Machine::discover().unwrap());
    let nodes = NodeMap::read(&root, &machine);
    look(&ProcessSource::new(&root, &LivePages, &machine, &nodes))
}

fn status_bytes(key: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.trim_matches([':', '\t', ' ']).split(' ').next().unwrap().parse::<u64>().unwrap() * 1024
}

fn anonymous(source: &ProcessSource<'_>, options: &MemoryOptions) -> (u64, Method) {
    let ProcessSource { root, homes, nodes, page_size } = *source;
    let mut missing = Vec::new();
    let pid = std::process::id();
    let memory = memory::read(root, homes, nodes, page_size, pid, options, &mut missing).unwrap();
    let bytes = |kind| memory.by_kind.get(&kind).map_or(0, |by_node| by_node.values().sum());
    (bytes(MappingKind::Anonymous), memory.method)
}

/// Anonymous bytes found before and after so much was touched, and the kernel's own sum; none where
/// pages are not counted exactly.
fn touch(source: &ProcessSource<'_>, length: usize) -> Option<[u64; 3]> {
    let (before, method) = anonymous(source, &MemoryOptions::default());
    if method != Method::Exact {
        return None;
    }
    // So large that the allocator maps it; zeros are not touched by the one who asks for them.
    let mut touched = vec![0_u8; 2 * length];
    touched[..length].fill(1);
    let (after, _) = anonymous(source, &MemoryOptions::default());
    let resident = status_bytes("RssAnon");
    assert_eq!(touched[length - 1], 1);
    Some([before, after, resident])
}

#[test]
fn pages_that_are_touched_are_counted_and_the_sum_is_the_kernels() {
    let length = TOUCHED * page_size();
    let slack = (length / 8) as u64;
    with_source(|source| {
        let mut seen = Vec::new();
        // Other tests run in this process meanwhile and allocate: one undisturbed look will do.
        for _ in 0..200 {
            let Some([before, after, resident]) = touch(source, length) else {
                return skip(Need::Permission, "numa_maps cannot be read");
            };
            let found = after.saturating_sub(before).abs_diff(length as u64);
            if found < slack && after <= resident + slack {
                return;
            }
            seen.push([before, after, resident]);
        }
        panic!("{length} bytes touched, and never found: {seen:?}");
    });
}

/// Bytes in transparent huge pages, read here by other means.
fn huge_by_smaps() -> u64 {
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
    let lines = smaps.lines().filter_map(|line| line.strip_prefix("AnonHugePages:"));
    let kib = |value: &str| value.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
    lines.map(kib).sum::<u64>() * 1024
}

#[test]
fn transparent_huge_pages_are_counted_as_smaps_counts_them() {
    const BYTES: usize = 4 << 20;
    let kernel = Arc::new(LiveKernel::new());
    let Some(huge) = kernel.huge_page_size() else {
        return skip(Need::HugePages, "the kernel has no transparent huge pages");
    };
    let arena = Arena::new(Arc::new(Machine::discover().unwrap()), kernel, None);
    let mut buffer = arena.allocate(None, BYTES.next_multiple_of(huge)).unwrap();
    buffer.as_mut_slice().fill(1);
    let look = || {
        let (before, found) = (huge_by_smaps(), with_source(huge_by_inspect));
        (before == huge_by_smaps()).then_some((before, found))
    };
    // Other tests run in this process meanwhile, and may have huge pages too.
    let (counted, found) = (0..1000).find_map(|_| look()).expect("two readings that agree");
    assert_eq!(found, Some(counted));
    assert_eq!(buffer.as_slice()[BYTES - 1], 1);
    if counted < BYTES as u64 {
        let reason = "transparent huge pages are off, or too few are free";
        skip(Need::HugePages, format!("{reason}: {counted} bytes"));
    }
}

fn huge_by_inspect(source: &ProcessSource<'_>) -> Option<u64> {
    let ProcessSource { root, homes, nodes, page_size } = *source;
    let (pid, options, mut missing) = (std::process::id(), MemoryOptions::default(), Vec::new());
    let memory = memory::read(root, homes, nodes, page_size, pid, &options, &mut missing);
    memory.unwrap().huge_transparent
}

#[test]
fn a_sample_adds_up_to_the_kernels_own_sum() {
    with_source(|source| {
        let options = MemoryOptions { exact_bytes_max: 0, ..MemoryOptions::default() };
        let ProcessSource { root, homes, nodes, page_size } = *source;
        let (pid, mut missing) = (std::process::id(), Vec::new());
        let memory =
            memory::read(root, homes, nodes, page_size, pid, &options, &mut missing).unwrap();
        let Method::Sampled { looked, resident, .. } = memory.method else {
            return skip(Need::Permission, "move_pages is forbidden");
        };
        assert!(resident > 0 && resident <= looked);
        assert!(memory.resident().abs_diff(status_bytes("VmRSS")) < 64 << 20);
    });
}

#[test]
fn every_thread_is_found_by_name() {
    let (stop, stopped) = mpsc::channel::<()>();
    let stopped = std::sync::Arc::new(std::sync::Mutex::new(stopped));
    let (ready, started) = mpsc::channel();
    let threads: Vec<_> = (0..50)
        .map(|_| {
            let (stopped, ready) = (stopped.clone(), ready.clone());
            let work = move || {
                ready.send(()).unwrap();
                let _ = stopped.lock().unwrap().recv();
            };
            std::thread::Builder::new().name("atoll (inspect".to_owned()).spawn(work).unwrap()
        })
        .collect();
    started.iter().take(50).for_each(drop);
    with_source(|source| {
        let mut reader = ThreadReader::new(std::process::id());
        reader.list(source.root).unwrap();
        reader.read(source.root, source.nodes, Duration::ZERO).unwrap();
        let found = reader.threads().filter(|thread| &*thread.name == "atoll (inspect").count();
        assert_eq!(found, 50);
        assert!(reader.threads().all(|thread| thread.cpus_allowed.contains(thread.cpu)));
    });
    drop(stop);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_child_that_ends_between_two_looks_is_reported() {
    let mut child =
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    with_source(|source| {
        let id = identify(source.root, child.id()).unwrap();
        let mut watcher = Watcher::new(&[id], WatchOptions::default());
        let first = watcher.look(source, Duration::ZERO).unwrap();
        assert_eq!((first.processes.len(), first.threads().count()), (1, 1));
        drop(child.stdin.take());
        child.wait().unwrap();
        let second = watcher.look(source, Duration::from_secs(1)).unwrap();
        assert_eq!((second.processes.len(), second.ended), (0, vec![id]));
    });
}

#[test]
fn a_child_that_has_ended_is_not_there_even_before_it_is_waited_for() {
    let mut child = Command::new("true").spawn().unwrap();
    let (root, begun) = (Root::live(), Instant::now());
    while identify(&root, child.id()).is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is taken to be there");
        std::thread::yield_now();
    }
    assert!(root.exists(&format!("/proc/{}/stat", child.id())));
    let own = identify(&root, std::process::id()).unwrap();
    assert!(descendants(&root, &[own]).unwrap().iter().all(|id| id.pid != child.id()));
    child.wait().unwrap();
}
