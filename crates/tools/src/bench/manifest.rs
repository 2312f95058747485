//! The conditions of a benchmark: without them its figures cannot be compared with others.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::time::SystemTime;

use anyhow::Context as _;
use atoll_sys::Root;
use atoll_topology::conditions::{MachineConditions, known};
use atoll_topology::{Machine, rfc3339};
use serde::{Deserialize, Serialize};

/// Command, date, machine and settings of a run. Values that could not be read are None.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Date and time of the start.
    pub date: String,
    /// The command line.
    pub command: String,
    /// Machine, kernel and settings.
    #[serde(flatten)]
    pub machine: MachineConditions,
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
    /// The same before the end; about the number of threads if nothing else ran.
    pub load_average_end: Option<String>,
}

impl Manifest {
    /// The manifest of this process, at its start.
    pub fn new(machine: &Machine, runs: u32, warmup: u32, seed: u64) -> Self {
        Self {
            date: rfc3339(SystemTime::now()),
            command: command(std::env::args_os()),
            machine: MachineConditions::read(machine, &Root::live(), is_lab()),
            runs,
            warmup,
            seed,
            engines: Vec::new(),
            load_average_start: load_average(),
            load_average_end: None,
        }
    }

    /// The manifest of this process, on its machine.
    ///
    /// # Errors
    /// When the machine cannot be described.
    pub fn here(runs: u32, warmup: u32, seed: u64) -> anyhow::Result<Self> {
        let machine = Machine::discover().context("this machine cannot be described")?;
        Ok(Self::new(&machine, runs, warmup, seed))
    }

    /// Records what is known only at the end: who took part, and the load.
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
        let Self { date, command, machine, .. } = self;
        let MachineConditions { atoll, name, nodes, cpus, .. } = machine;
        writeln!(f, "- {date}, Atoll {atoll}: `{command}`")?;
        writeln!(
            f,
            "- machine `{name}` ({}): {}; nodes: {nodes}, cpus: {cpus}, last-level caches: {}, memory: {}",
            machine.fingerprint,
            machine.models(),
            machine.caches_bytes,
            machine.memory_bytes
        )?;
        let (governor, microcode) = (known(&machine.governor), known(&machine.microcode));
        writeln!(f, "- {}, governor {governor}, microcode {microcode}", machine.settings())?;
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
        if machine.is_lab {
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

fn load_average() -> Option<String> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    Some(text.split_whitespace().next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_the_program_without_its_directory() {
        let words = ["/a/b/atoll", "bench", "sort"].map(OsString::from);
        assert_eq!(command(words.into_iter()), "atoll bench sort");
    }

    #[test]
    fn a_manifest_names_the_machine_and_says_what_is_unknown() {
        let machine = Machine::synthetic("node:2(memory=1GiB) core:2 pu:1").expect("a machine");
        let mut manifest = Manifest::new(&machine, 5, 2, 7);
        manifest.machine.governor = None;
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
