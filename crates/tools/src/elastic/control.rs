//! Flags for how cores are chosen and given.

use std::path::PathBuf;
use std::time::Duration;

use atoll_elastic::actuate::JournalDirectory;
use atoll_elastic::adapter::Adapter;
use atoll_elastic::decide::CorePolicy;
use atoll_elastic::mode::Mode;
use atoll_elastic::monitor::{LoadKind, WorkKind};
use atoll_topology::CpuSet;
use clap::{ValueEnum, ValueHint};

/// How cores are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ActuatorChoice {
    /// A cpuset if one may be used, otherwise the affinity of every thread
    Auto,
    /// A cpuset; an error if none may be used
    Cpuset,
    /// The affinity of every thread
    Affinity,
}

/// How cores are decided on.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct PolicyArgs {
    /// Which core comes next: close to the others, far from them, or where the pages are
    #[arg(long, value_name = "MODE", default_value = "adaptive")]
    mode: Mode,
    /// A core less where the load of its cores, percent, is at most this
    #[arg(long, value_name = "PERCENT", default_value_t = 10)]
    thmin: i64,
    /// A core more where the load of its cores, percent, is at least this
    #[arg(long, value_name = "PERCENT", default_value_t = 70)]
    thmax: i64,
    /// A core less where the load on one less would stay so far below --thmax
    #[arg(long, value_name = "PERCENT", default_value_t = 10)]
    hysteresis: i64,
    /// Fewest cores
    #[arg(long, value_name = "CORES", default_value_t = 1)]
    cores_min: usize,
    /// Most cores [default: all]
    #[arg(long, value_name = "CORES")]
    cores_max: Option<usize>,
    /// Looks in a row that must find the load too high before a core is given
    #[arg(long, value_name = "LOOKS", default_value_t = 3)]
    dwell_up: i64,
    /// Looks in a row that must find it too low before a core is released
    #[arg(long, value_name = "LOOKS", default_value_t = 10)]
    dwell_down: i64,
    /// Counter of work: cpu (time used), calls (reads and writes), or command:COMMAND that prints a counter
    /// [default: what --dbms counts, else cpu]
    #[arg(long, value_name = "WORK", value_parser = WorkKind::named)]
    work: Option<WorkKind>,
    /// Kind of DBMS, and how its client reaches it: its threads follow the cores, its counter shows the work
    /// done. postgres:CONNECTION, mariadb:ARGUMENTS, mysql:ARGUMENTS, duckdb:FILE or atoll:CONNECTION
    #[arg(long, value_name = "DBMS", value_parser = Adapter::named)]
    dbms: Option<Adapter>,
    /// The load: cpu, memory:GIGABYTES (a second, of its controllers) or interconnect (remote traffic)
    #[arg(long, value_name = "LOAD", default_value = "cpu", value_parser = LoadKind::named)]
    load: LoadKind,
    /// Only these cpus
    #[arg(long, value_name = "CPUS", value_parser = CpuSet::parse)]
    cpus: Option<CpuSet>,
    /// Time between two looks, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(10..=60_000))]
    interval: u64,
}

/// The counter of work: the named one, otherwise the DBMS's own.
pub(super) fn work(named: Option<WorkKind>, dbms: Option<Adapter>) -> WorkKind {
    named.or(dbms.map(WorkKind::Adapter)).unwrap_or_default()
}

impl PolicyArgs {
    /// The policy.
    pub(super) fn policy(&self) -> CorePolicy {
        CorePolicy {
            mode: self.mode,
            thmin: self.thmin,
            thmax: self.thmax,
            hysteresis: self.hysteresis,
            cores_min: self.cores_min,
            cores_max: self.cores_max,
            dwell_up: self.dwell_up,
            dwell_down: self.dwell_down,
            ..CorePolicy::default()
        }
    }

    pub(super) fn work(&self) -> WorkKind {
        work(self.work.clone(), self.dbms.clone())
    }

    pub(super) fn dbms(&self) -> Option<Adapter> {
        self.dbms.clone()
    }

    pub(super) fn load(&self) -> LoadKind {
        self.load
    }

    pub(super) fn cpus(&self) -> Option<&CpuSet> {
        self.cpus.as_ref()
    }

    pub(super) fn interval(&self) -> Duration {
        Duration::from_millis(self.interval)
    }
}

/// How cores are given and reported.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct HandArgs {
    /// How cores are given
    #[arg(long, value_enum, default_value = "auto")]
    pub(super) actuator: ActuatorChoice,
    /// Decide and say so, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Move the target's memory to the nodes of its cores, once these have stayed the same for 5 s; not undone
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) migrate_memory: bool,
    /// Write every look and decision to a file: .csv, .jsonl, or .svg at the end
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) trace: Option<PathBuf>,
    /// Serve Prometheus metrics on 127.0.0.1 at this port
    #[arg(long, value_name = "PORT")]
    pub(super) metrics: Option<u16>,
    /// Say every decision that changes cores on stderr
    #[arg(short, long)]
    pub(super) verbose: bool,
    #[command(flatten)]
    pub(super) journal: JournalArgs,
}

/// Where journals are.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct JournalArgs {
    /// Directory of the journals [default: /run/atoll-elastic, or one of the user's]
    #[arg(long, value_name = "DIRECTORY", env = "ATOLL_ELASTIC_JOURNAL",
          value_hint = ValueHint::DirPath)]
    journal: Option<PathBuf>,
}

impl JournalArgs {
    pub(super) fn path(&self) -> PathBuf {
        self.journal.clone().unwrap_or_else(JournalDirectory::usual)
    }
}

/// What a user names.
#[derive(clap::Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub(super) struct TargetArgs {
    /// A process, with all that descend from it
    #[arg(long, value_name = "PID")]
    pub(super) pid: Option<u32>,
    /// A control group, with those below it: its path as in /proc/PID/cgroup, or its directory
    #[arg(long, value_name = "PATH")]
    pub(super) cgroup: Option<String>,
    /// A unit of systemd
    #[arg(long, value_name = "UNIT")]
    pub(super) unit: Option<String>,
}
