//! The conditions of a benchmark: without them its figures cannot be compared with others.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::time::SystemTime;

use anyhow::Context as _;
use atoll_topology::{Bytes, Fingerprint, Machine, rfc3339};
use serde::{Deserialize, Serialize};

/// Machine, kernel and settings under which something was measured. What could not be read is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Date and time of the start.
    pub date: String,
    /// Version of Atoll.
    pub atoll: String,
    /// The command line.
    pub command: String,
    /// Name of the machine.
    pub machine: String,
    /// What tells it from others.
    pub fingerprint: String,
    /// Models of the cpus, one for each package.
    pub cpu_models: Vec<String>,
    /// Revision of the cpu's microcode.
    pub microcode: Option<String>,
    /// Nodes that the process may use.
    pub nodes: usize,
    /// Cpus that the process may use.
    pub cpus: usize,
    /// Last-level caches together.
    pub caches_bytes: Bytes,
    /// Memory of those nodes.
    pub memory_bytes: Bytes,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Automatic NUMA balancing: 0 is off.
    pub numa_balancing: Option<String>,
    /// Frequency governor of the first cpu.
    pub governor: Option<String>,
    /// Whether it is the lab, where times are the emulator's and say nothing.
    pub is_lab: bool,
    /// Runs that count.
    pub runs: u32,
    /// Runs before them.
    pub warmup: u32,
    /// Seed of data and orders.
    pub seed: u64,
    /// Engines that took part, with their versions.
    pub engines: Vec<String>,
    /// Runnable threads on average over the minute before the start.
    pub load_average_start: Option<String>,
    /// The same before the end; about the number of threads where nothing else ran.
    pub load_average_end: Option<String>,
}

impl Manifest {
    /// Of this process, at its start.
    pub fn of(machine: &Machine, runs: u32, warmup: u32, seed: u64) -> Self {
        let models = machine.packages.iter().filter_map(|package| package.model.clone());
        let caches = machine.domains.iter().filter_map(|domain| domain.cache);
        Self {
            date: rfc3339(SystemTime::now()),
            atoll: env!("CARGO_PKG_VERSION").to_owned(),
            command: command(std::env::args_os()),
            machine: machine.name.clone(),
            fingerprint: Fingerprint::of(machine).to_string(),
            cpu_models: models.collect(),
            microcode: field("/proc/cpuinfo", "microcode"),
            nodes: machine.nodes.len(),
            cpus: machine.cpus.len(),
            caches_bytes: Bytes(caches.map(|cache| cache.0).sum()),
            memory_bytes: machine.memory(),
            kernel: line("/proc/sys/kernel/osrelease"),
            transparent_huge_pages: line("/sys/kernel/mm/transparent_hugepage/enabled")
                .map(|all| chosen(&all)),
            numa_balancing: line("/proc/sys/kernel/numa_balancing"),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            is_lab: is_lab(),
            runs,
            warmup,
            seed,
            engines: Vec::new(),
            load_average_start: load_average(),
            load_average_end: None,
        }
    }

    /// Of this process, on the machine it runs on.
    ///
    /// # Errors
    /// When the machine cannot be described.
    pub fn here(runs: u32, warmup: u32, seed: u64) -> anyhow::Result<Self> {
        let machine = Machine::discover().context("this machine cannot be described")?;
        Ok(Self::of(&machine, runs, warmup, seed))
    }

    /// Notes what can only be told at the end: who took part, and the load.
    pub fn end(&mut self, engines: impl IntoIterator<Item = (String, String)>) {
        let engines = engines.into_iter().filter(|(_, version)| !version.is_empty());
        self.engines = engines.map(|(name, version)| format!("{name} {version}")).collect();
        self.engines.sort_unstable();
        self.engines.dedup();
        self.load_average_end = load_average();
    }
}

impl fmt::Display for Manifest {
    /// A Markdown list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "unknown".into());
        let mut models = self.cpu_models.clone();
        models.dedup();
        let models = if models.is_empty() { "unknown cpus".into() } else { models.join(", ") };
        let Self { date, atoll, command, machine, nodes, cpus, .. } = self;
        writeln!(f, "- {date}, Atoll {atoll}: `{command}`")?;
        writeln!(
            f,
            "- machine `{machine}` ({}): {models}; nodes: {nodes}, cpus: {cpus}, last-level caches: {}, \
             memory: {}",
            self.fingerprint, self.caches_bytes, self.memory_bytes
        )?;
        writeln!(
            f,
            "- kernel {}, transparent huge pages {}, NUMA balancing {}, governor {}, microcode {}",
            known(&self.kernel),
            known(&self.transparent_huge_pages),
            known(&self.numa_balancing),
            known(&self.governor),
            known(&self.microcode),
        )?;
        let Self { runs, warmup, seed, .. } = self;
        write!(f, "- runs: {runs} after {warmup} to warm up, in turn, seed {seed}")?;
        if !self.engines.is_empty() {
            write!(f, "; {}", self.engines.join(", "))?;
        }
        writeln!(
            f,
            "\n- load average {} at the start, {} at the end",
            known(&self.load_average_start),
            known(&self.load_average_end),
        )?;
        if self.is_lab {
            writeln!(f, "- in the lab: times are the emulator's and say nothing")?;
        }
        Ok(())
    }
}

/// Whether this is a guest of the lab, whose init says so.
pub(crate) fn is_lab() -> bool {
    std::env::var_os("ATOLL_LAB").is_some()
}

/// The command line, the program by its name.
fn command(mut arguments: impl Iterator<Item = OsString>) -> String {
    let program = arguments.next().unwrap_or_default();
    let program = std::path::Path::new(&program).file_name().unwrap_or_default().to_owned();
    let words = std::iter::once(program).chain(arguments);
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn line(file: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}

/// The first value of `name : value` in a file.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// The choice in brackets of `always [madvise] never`.
fn chosen(all: &str) -> String {
    let inside = all.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(all, |(choice, _)| choice).to_owned()
}

fn load_average() -> Option<String> {
    Some(line("/proc/loadavg")?.split_whitespace().next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_in_brackets_is_taken() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("never"), "never");
    }

    #[test]
    fn the_command_names_the_program_without_its_directory() {
        let words = ["/a/b/atoll", "bench", "sort"].map(OsString::from);
        assert_eq!(command(words.into_iter()), "atoll bench sort");
    }

    #[test]
    fn a_manifest_names_the_machine_and_says_what_is_unknown() {
        let machine = Machine::synthetic("node:2(memory=1GiB) core:2 pu:1").expect("a machine");
        let mut manifest = Manifest { governor: None, ..Manifest::of(&machine, 5, 2, 7) };
        manifest.end([("duckdb".into(), "2.0".into()), ("std".into(), String::new())]);
        let text = manifest.to_string();
        for part in [
            "nodes: 2, cpus: 4",
            "memory: 2.0 GiB",
            "governor unknown",
            "runs: 5 after 2 to warm up, in turn, seed 7; duckdb 2.0\n",
            "at the end",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
