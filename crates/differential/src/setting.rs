//! Settings under which every answer has to be the same.

use std::fmt;
use std::path::Path;
use std::process::Command;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use atoll_bench::worker::EngineKind;

const PLACEMENTS: [&str; 6] =
    ["aligned", "ahead(1)", "interleave", "spread", "replicate", "default"];
const MACHINES: [Option<&str>; 4] = [None, None, Some("two_nodes"), Some("eight_uneven_nodes")];
const BATCH_ROWS: [usize; 4] = [1, 2, 64, 8192];
const LARGE_BATCH_ROWS_MIN: usize = 64;
/// Limits that are tight for a join or a grouping of a large table, and hold the tables.
const MEMORY_LIMITS: [Option<u64>; 4] = [None, None, Some(24 << 20), Some(64 << 20)];

/// The limit of a process that functions are called in.
const CALLS_MEMORY_LIMIT: u64 = 512 << 20;

/// Settings of a process at start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProcessSetting {
    threads: usize,
    machine: Option<&'static str>,
    memory_limit: Option<u64>,
}

/// One way of running Atoll.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) process: ProcessSetting,
    /// Settings of the session.
    variables: Vec<(&'static str, String)>,
}

impl Setting {
    /// The reference: one worker, DataFusion's own aggregation.
    pub(crate) fn reference() -> Self {
        let process = ProcessSetting { threads: 1, machine: None, memory_limit: None };
        Self { process, variables: vec![("atoll.aggregate", "off".to_owned())] }
    }

    /// Any other. Batches over large tables have more than a few rows: an operator's work for each
    /// batch would take minutes.
    pub(crate) fn random(random: &mut StdRng, has_large_tables: bool) -> Self {
        let machine = MACHINES.choose(random).copied().flatten();
        let memory_limit = MEMORY_LIMITS.choose(random).copied().flatten();
        let process = ProcessSetting { threads: random.random_range(1..8), machine, memory_limit };
        let one_of = |names: &[&str], random: &mut StdRng| {
            names.choose(random).map_or(String::new(), |name| (*name).to_owned())
        };
        let aggregate = one_of(&["auto", "local", "ring", "migrate", "off"], random);
        let join = one_of(&["auto", "merge"], random);
        let placement = one_of(&PLACEMENTS, random);
        let rows = BATCH_ROWS.choose(random).copied().unwrap_or(8192);
        let rows = if has_large_tables { rows.max(LARGE_BATCH_ROWS_MIN) } else { rows };
        let variables = vec![
            ("atoll.aggregate", aggregate),
            ("atoll.join", join),
            ("atoll.placement", placement),
            ("datafusion.execution.batch_size", rows.to_string()),
        ];
        Self { process, variables }
    }

    /// One for calls of functions, whose values may be too large for any memory.
    pub(crate) fn of_calls(random: &mut StdRng) -> Self {
        let any = Self::random(random, false);
        let process = ProcessSetting { memory_limit: Some(CALLS_MEMORY_LIMIT), ..any.process };
        Self { process, ..any }
    }

    /// The statements that set the session up.
    pub(crate) fn statements(&self) -> Vec<String> {
        self.variables.iter().map(|(name, value)| format!("SET {name} = '{value}'")).collect()
    }

    /// Whether queries may run out of memory.
    pub(crate) fn is_tight(&self) -> bool {
        self.process.memory_limit.is_some()
    }
}

impl ProcessSetting {
    /// The command that starts Atoll so.
    pub(crate) fn command(self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.args(["worker", "--engine", EngineKind::Atoll.name()]);
        command.arg("--threads").arg(self.threads.to_string());
        if let Some(machine) = self.machine {
            command.args(["--machine", machine]);
        }
        if let Some(bytes) = self.memory_limit {
            command.arg("--memory-limit").arg(bytes.to_string());
        }
        command
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProcessSetting { threads, machine, memory_limit } = self.process;
        write!(f, "{threads} threads on {}", machine.unwrap_or("this machine"))?;
        if let Some(bytes) = memory_limit {
            write!(f, ", {} MiB", bytes >> 20)?;
        }
        self.variables.iter().try_for_each(|(name, value)| write!(f, ", {name} = {value}"))
    }
}
