//! The conditions of a number: without them it cannot be compared with another.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use atoll_topology::{Bytes, Machine};
use datafusion::arrow::array::TimestampSecondArray;
use datafusion::arrow::util::display::array_value_to_string;
use serde::Serialize;

/// Machine, kernel and settings under which something was measured. What could not be read is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Manifest {
    /// Date and time (UTC) of the start.
    pub date: String,
    /// Version of Atoll.
    pub atoll: &'static str,
    /// The command line.
    pub command: String,
    /// Host name.
    pub machine: String,
    /// Model names of the packages' cpus.
    pub cpu_models: Vec<String>,
    /// Revision of the cpu's microcode.
    pub microcode: Option<String>,
    /// Nodes the process may use.
    pub nodes: usize,
    /// Cpus the process may use.
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
    /// Runnable threads on average over the minute before the start.
    pub load_average_start: Option<String>,
    /// The same before the end; about the number of threads where nothing else ran.
    pub load_average_end: Option<String>,
}

impl Manifest {
    /// Of this process, at its start.
    pub fn of(machine: &Machine) -> Self {
        let models = machine.packages.iter().filter_map(|package| package.model.clone());
        let caches = machine.domains.iter().filter_map(|domain| domain.cache);
        Self {
            date: now(),
            atoll: env!("CARGO_PKG_VERSION"),
            command: command(),
            machine: machine.name.clone(),
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
            load_average_start: load_average(),
            load_average_end: None,
        }
    }

    /// Notes what can only be told at the end.
    pub fn end(&mut self) {
        self.load_average_end = load_average();
    }

    /// The facts as a Markdown list.
    pub fn to_markdown(&self) -> String {
        let known = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "not known".into());
        let models = match self.cpu_models.is_empty() {
            true => "model not known".to_owned(),
            false => self.cpu_models.join(", "),
        };
        let Self { date, atoll, command, machine, nodes, cpus, .. } = self;
        format!(
            "- {date} UTC, Atoll {atoll}, `{command}`\n\
             - machine `{machine}`: {models}, {nodes} nodes, {cpus} cpus, last-level caches {}, \
             memory {}\n\
             - kernel {}, transparent huge pages {}, NUMA balancing {}, governor {}, microcode {}\n\
             - load average {} at the start, {} at the end\n",
            self.caches_bytes,
            self.memory_bytes,
            known(&self.kernel),
            known(&self.transparent_huge_pages),
            known(&self.numa_balancing),
            known(&self.governor),
            known(&self.microcode),
            known(&self.load_average_start),
            known(&self.load_average_end),
        )
    }
}

/// The command line without the path to the program.
fn command() -> String {
    let arguments = std::env::args().skip(1);
    std::iter::once("atoll-bench".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// The time as `2026-01-31T12:00:00`.
fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let time = TimestampSecondArray::from(vec![seconds as i64]);
    array_value_to_string(&time, 0).unwrap_or_else(|_| format!("{seconds} s since 1970"))
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
    fn a_manifest_names_the_machine_and_says_what_is_not_known() {
        let machine = Machine::synthetic("node:2(memory=1GiB) core:2 pu:1").expect("a machine");
        let manifest = Manifest { governor: None, ..Manifest::of(&machine) };
        let text = manifest.to_markdown();
        for part in ["2 nodes", "4 cpus", "memory 2.0 GiB", "governor not known", "at the end"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(manifest.date.len(), "2026-01-31T12:00:00".len());
    }
}
