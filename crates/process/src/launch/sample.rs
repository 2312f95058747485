//! Where the pages of a process and its descendants are, looked up from time to time while it runs.
//!
//! Read from `/proc/PID/numa_maps` of every process of the tree. Memory that several of them share by
//! a file or by shared memory at the same address (as PostgreSQL's buffers) counts once; private
//! pages that a fork shares until they are written to count in each. A process that left the tree
//! (a daemon) is not seen.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

use atoll_sys::Root;
use atoll_topology::{Bytes, NodeId};

/// Maximum number of processes of a tree that are inspected.
const PROCESSES_MAX: usize = 4096;
/// Maximum number of threads whose migrations are read in one look.
const THREADS_MAX: usize = 1024;
/// Maximum number of threads whose migrations are remembered.
const THREADS_KEPT_MAX: usize = 1 << 16;
/// Maximum size of one file in bytes: some millions of mappings.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Memory on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct NodePages {
    /// The node.
    pub node: NodeId,
    /// Resident there.
    pub bytes: Bytes,
}

/// Observations of a process and its descendants.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Sampled {
    /// Number of looks at which it was alive.
    pub samples: u32,
    /// Maximum number of processes at once.
    pub processes_max: usize,
    /// Memory by node at the look with the most memory.
    pub pages_peak: Vec<NodePages>,
    /// Memory by node at the last look.
    pub pages_last: Vec<NodePages>,
    /// Memory by policy in force at the last look, in the kernel's words (`bind:0`, `default`).
    pub policies_last: BTreeMap<String, Bytes>,
    /// Cpus its first thread may run on, at the last look.
    pub cpus_last: Option<String>,
    /// Migrations between cpus of the threads seen, up to the last look at each; `None` if the
    /// kernel does not report them.
    pub migrations: Option<u64>,
    /// Pages that automatic NUMA balancing moved for the threads seen.
    pub pages_migrated: Option<u64>,
    /// Processes whose memory could not be read at the last look, for lack of rights.
    pub unread_last: usize,
    /// Time of the last look, since the start.
    #[serde(rename = "seconds_last", serialize_with = "as_seconds")]
    pub last: Duration,
}

impl Sampled {
    /// Total memory at the look with the most memory.
    pub fn bytes_peak(&self) -> Bytes {
        Bytes(self.pages_peak.iter().fold(0, |sum, it| sum.saturating_add(it.bytes.0)))
    }
}

fn as_seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

/// Inspects one process tree repeatedly.
#[derive(Debug)]
pub(super) struct Sampler {
    root: Root,
    pid: i32,
    start: Instant,
    /// Migrations and migrated pages of each thread when last seen.
    threads: HashMap<i32, [Option<u64>; 2]>,
    found: Sampled,
}

impl Sampler {
    pub(super) fn new(root: Root, pid: i32) -> Self {
        let (threads, found) = (HashMap::new(), Sampled::default());
        Self { root, pid, start: Instant::now(), threads, found }
    }

    /// Looks once. A process that has ended is skipped.
    pub(super) fn look(&mut self) {
        let tree = self.tree();
        let mut tally = PageTally::default();
        for pid in &tree {
            if !self.tally(*pid, &mut tally) {
                tally.unread += 1;
            }
        }
        let pages = tally.pages();
        if pages.is_empty() && tally.unread == 0 {
            return;
        }
        self.look_at_threads(&tree);
        let sum = pages.iter().fold(0_u64, |sum, it| sum.saturating_add(it.bytes.0));
        if sum >= self.found.bytes_peak().0 {
            self.found.pages_peak.clone_from(&pages);
        }
        self.found.samples += 1;
        self.found.processes_max = self.found.processes_max.max(tree.len());
        self.found.pages_last = pages;
        self.found.policies_last = tally.policies;
        self.found.cpus_last = self.cpus();
        self.found.unread_last = tally.unread;
        self.found.last = self.start.elapsed();
    }

    /// The observations so far.
    pub(super) fn found(&self) -> Sampled {
        let sum = |at: usize| {
            let known = self.threads.values().filter_map(|counts| counts[at]);
            known.reduce(u64::saturating_add)
        };
        Sampled { migrations: sum(0), pages_migrated: sum(1), ..self.found.clone() }
    }

    /// The process and its descendants.
    fn tree(&self) -> Vec<i32> {
        let mut tree = vec![self.pid];
        let mut at = 0;
        while at < tree.len() && tree.len() < PROCESSES_MAX {
            let pid = tree[at];
            for tid in self.tasks(pid) {
                let name = format!("/proc/{pid}/task/{tid}/children");
                let children = self.root.read_text(&name).unwrap_or_default();
                let pids =
                    children.split_ascii_whitespace().filter_map(|it| it.parse::<i32>().ok());
                tree.extend(pids.take(PROCESSES_MAX));
            }
            at += 1;
        }
        tree.truncate(PROCESSES_MAX);
        tree
    }

    fn tasks(&self, pid: i32) -> Vec<i32> {
        let Ok(path) = self.root.path(&format!("/proc/{pid}/task")) else { return Vec::new() };
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten().take(THREADS_MAX);
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// Adds the pages of a process. Returns false if they may not be read.
    fn tally(&self, pid: i32, tally: &mut PageTally) -> bool {
        let Ok(path) = self.root.path(&format!("/proc/{pid}/numa_maps")) else { return false };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => return error.kind() != std::io::ErrorKind::PermissionDenied,
        };
        let lines = BufReader::new(file.take(FILE_BYTES_MAX)).split(b'\n');
        // Reading fails with ESRCH if the process ends meanwhile.
        for line in lines.map_while(Result::ok) {
            tally.add(&String::from_utf8_lossy(&line));
        }
        true
    }

    fn look_at_threads(&mut self, tree: &[i32]) {
        let threads =
            tree.iter().flat_map(|pid| self.tasks(*pid).into_iter().map(|tid| (*pid, tid)));
        for (pid, tid) in threads.take(THREADS_MAX).collect::<Vec<_>>() {
            if self.threads.len() >= THREADS_KEPT_MAX && !self.threads.contains_key(&tid) {
                continue;
            }
            let text = self.root.read_text(&format!("/proc/{pid}/task/{tid}/sched"));
            let Ok(text) = text else { continue };
            let counts = ["se.nr_migrations", "numa_pages_migrated"].map(|key| counter(&text, key));
            self.threads.insert(tid, counts);
        }
    }

    fn cpus(&self) -> Option<String> {
        let status = self.root.read_text(&format!("/proc/{}/status", self.pid)).ok()?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some(list.trim().to_owned())
    }
}

/// `se.nr_migrations   :   12`
fn counter(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        if name.trim() == key { value.trim().parse().ok() } else { None }
    })
}

/// Pages of several processes.
#[derive(Debug, Default)]
struct PageTally {
    private: BTreeMap<NodeId, u64>,
    /// By file and address; of several processes the one that maps the most counts.
    shared: HashMap<(String, String), BTreeMap<NodeId, u64>>,
    policies: BTreeMap<String, Bytes>,
    unread: usize,
}

impl PageTally {
    /// Adds a line of `numa_maps`: `ADDRESS POLICY [file=…] … N0=12 N1=3 kernelpagesize_kB=4`.
    /// Unknown words are skipped.
    fn add(&mut self, line: &str) {
        let Some((address, rest)) = line.split_once(' ') else { return };
        let page =
            value(rest, "kernelpagesize_kB=").and_then(|kib| kib.parse().ok()).unwrap_or(4_u64);
        let bytes = rest.split(' ').filter_map(|word| {
            let (node, count) = word.strip_prefix('N')?.split_once('=')?;
            let bytes = count.parse::<u64>().ok()?.saturating_mul(page).saturating_mul(1024);
            Some((NodeId(node.parse().ok()?), bytes))
        });
        let mut all = 0_u64;
        match value(rest, "file=") {
            None => {
                for (node, bytes) in bytes {
                    all = all.saturating_add(bytes);
                    let sum = self.private.entry(node).or_default();
                    *sum = sum.saturating_add(bytes);
                }
            }
            Some(file) => {
                let key = (file.to_owned(), address.to_owned());
                let mapping = self.shared.entry(key).or_default();
                for (node, bytes) in bytes {
                    let most = mapping.entry(node).or_default();
                    all = all.saturating_add(bytes.saturating_sub(*most));
                    *most = bytes.max(*most);
                }
            }
        }
        if all > 0 {
            let sum = self.policies.entry(policy(rest).to_owned()).or_default();
            sum.0 = sum.0.saturating_add(all);
        }
    }

    fn pages(&self) -> Vec<NodePages> {
        let mut sums = self.private.clone();
        for (node, bytes) in self.shared.values().flatten() {
            let sum = sums.entry(*node).or_default();
            *sum = sum.saturating_add(*bytes);
        }
        sums.into_iter().map(|(node, bytes)| NodePages { node, bytes: Bytes(bytes) }).collect()
    }
}

fn value<'a>(words: &'a str, key: &str) -> Option<&'a str> {
    words.split(' ').find_map(|word| word.strip_prefix(key))
}

/// The policy: two have a space in their name (`prefer (many):0`, `weighted interleave:0`).
fn policy(rest: &str) -> &str {
    let first = rest.find(' ').unwrap_or(rest.len());
    let is_long = rest.starts_with("prefer (many)") || rest.starts_with("weighted interleave");
    let end = match rest[first..].trim_start().find(' ') {
        Some(second) if is_long => first + 1 + second,
        None if is_long => rest.len(),
        _ => first,
    };
    &rest[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(lines: &[&str]) -> Vec<(u32, u64)> {
        let mut tally = PageTally::default();
        lines.iter().for_each(|line| tally.add(line));
        tally.pages().into_iter().map(|it| (it.node.0, it.bytes.0 >> 10)).collect()
    }

    #[test]
    fn pages_are_summed_by_node_in_their_own_size() {
        let lines = [
            "7f0000000000 bind:0 anon=3 dirty=3 N0=2 N1=1 kernelpagesize_kB=4",
            "7f0000400000 bind:0 huge anon=1 N1=1 kernelpagesize_kB=2048",
            "7f0000800000 default",
        ];
        assert_eq!(pages(&lines), [(0, 8), (1, 2052)]);
    }

    #[test]
    fn shared_memory_at_one_address_counts_once_with_the_most_that_is_mapped() {
        let line = |pages| {
            format!(
                "7f00 default file=/dev/zero\\040(deleted) dirty=1 N0={pages} kernelpagesize_kB=4"
            )
        };
        assert_eq!(pages(&[&line(10), &line(30), &line(20)]), [(0, 120)]);
    }

    #[test]
    fn hostile_lines_count_nothing_and_overflow_nothing() {
        let huge = "7f00 default N0=18446744073709551615 kernelpagesize_kB=18446744073709551615";
        assert_eq!(pages(&[huge, huge]), [(0, u64::MAX >> 10)]);
        assert_eq!(pages(&["", " ", "7f00", "7f00 default N=1 Nx=2 N1=x N99999999999=1"]), []);
    }

    #[test]
    fn policies_are_named_in_the_kernels_words() {
        for (rest, name) in [
            ("bind:0-1 anon=1", "bind:0-1"),
            ("prefer (many):0 anon=1", "prefer (many):0"),
            ("weighted interleave:0-1 anon=1", "weighted interleave:0-1"),
            ("weighted interleave:0", "weighted interleave:0"),
            ("default", "default"),
        ] {
            assert_eq!(policy(rest), name);
        }
    }

    #[test]
    fn this_process_is_found_with_its_memory() {
        let mut sampler = Sampler::new(Root::live(), std::process::id() as i32);
        sampler.look();
        let found = sampler.found();
        if found.unread_last == 0 && Root::live().exists("/proc/self/numa_maps") {
            assert!(found.samples == 1 && !found.pages_peak.is_empty(), "{found:?}");
        }
    }

    #[test]
    fn a_process_that_ended_is_passed_over() {
        let mut sampler = Sampler::new(Root::live(), i32::MAX);
        sampler.look();
        assert_eq!(sampler.found(), Sampled::default());
    }
}
