//! The plan of a run: its settings, which results are only resumed with, and all runs in their order.

use std::fmt;

use atoll_elastic::decide::CorePolicy;
use atoll_elastic::mode::Mode;
use atoll_topology::Machine;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::clients::{ClientWork, ElasticEngine};
use super::{ElasticArgs, WorkName};
use crate::trials::TrialCase;

/// Repetitions of Q6 by one client.
const SINGLE: u32 = 50;
/// The query of figures 1, 3 and 4.
const SINGLE_QUERY: u8 = 6;

/// Thresholds of the load, percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Thresholds {
    pub(super) thmin: i64,
    pub(super) thmax: i64,
}

/// Reads `10:70`.
pub(super) fn thresholds(text: &str) -> Result<Thresholds, String> {
    let pair =
        text.split_once(':').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    match pair {
        Some((thmin, thmax)) if 0 <= thmin && thmin < thmax && thmax <= 100 => {
            Ok(Thresholds { thmin, thmax })
        }
        _ => Err("expected two percentages such as 10:70, the lower one first".to_owned()),
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        let usual = CorePolicy::default();
        Self { thmin: usual.thmin, thmax: usual.thmax }
    }
}

/// Settings of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ElasticPlan {
    pub(super) machine: String,
    pub(super) engine: ElasticEngine,
    pub(super) scale_factor: f64,
    pub(super) threads: usize,
    pub(super) clients: Vec<u32>,
    pub(super) queries: Vec<u8>,
    pub(super) work: Vec<WorkName>,
    pub(super) modes: Vec<Mode>,
    pub(super) thresholds: Vec<Thresholds>,
    pub(super) runs: u32,
    pub(super) seed: u64,
}

/// What the clients of a run do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ElasticSetting {
    pub(super) name: WorkName,
    pub(super) work: ClientWork,
    pub(super) clients: u32,
    pub(super) thresholds: Thresholds,
}

/// A run of a mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ElasticCase {
    pub(super) setting: ElasticSetting,
    /// From 1.
    pub(super) run: u32,
    /// `None` is the system's own scheduling.
    pub(super) mode: Option<Mode>,
}

impl ElasticPlan {
    /// The plan of a command.
    pub(super) fn new(args: &ElasticArgs, machine: &Machine) -> Self {
        let queries = match args.queries.is_empty() {
            true => (1..=22).collect(),
            false => args.queries.clone(),
        };
        Self {
            machine: machine.name.clone(),
            engine: args.engine,
            scale_factor: args.scale_factor,
            threads: args.threads.map_or(machine.cpus.len(), usize::from).max(1),
            clients: args.clients.clone(),
            queries,
            work: args.work.clone(),
            modes: args.modes.clone(),
            thresholds: args.thresholds.clone(),
            runs: args.runs,
            seed: args.seed,
        }
    }

    /// All runs: of each setting, round by round, the modes in turn.
    pub(super) fn cases(&self) -> impl Iterator<Item = ElasticCase> {
        self.settings().into_iter().flat_map(move |setting| {
            let modes = self.modes_of(&setting);
            (1..=self.runs).flat_map(move |run| {
                modes.clone().into_iter().map(move |mode| ElasticCase { setting, run, mode })
            })
        })
    }

    /// The settings of each kind of work.
    fn settings(&self) -> Vec<ElasticSetting> {
        let most = self.clients.iter().copied().max().unwrap_or(1);
        let thresholds = Thresholds::default();
        let one = |name, work, clients| ElasticSetting { name, work, clients, thresholds };
        let mut settings = Vec::new();
        for name in &self.work {
            match name {
                WorkName::Random => {
                    let clients = self.clients.iter();
                    settings.extend(clients.map(|it| one(*name, ClientWork::Random, *it)));
                }
                WorkName::Sequence => settings.push(one(*name, ClientWork::Sequence, most)),
                WorkName::Mixed => settings.push(one(*name, ClientWork::Mixed, most)),
                WorkName::Single => {
                    let has_usual = self.queries.contains(&SINGLE_QUERY);
                    let first = self.queries.first().filter(|_| !has_usual);
                    let query = first.copied().unwrap_or(SINGLE_QUERY);
                    settings.push(one(*name, ClientWork::Single { query, times: SINGLE }, 1));
                }
                WorkName::Thresholds => {
                    let random = one(*name, ClientWork::Random, most);
                    let all = self.thresholds.iter();
                    settings.extend(all.map(|it| ElasticSetting { thresholds: *it, ..random }));
                }
            }
        }
        settings
    }

    /// Only adaptive when thresholds are compared; Atoll's workers bind themselves and ignore cores given from
    /// outside.
    fn modes_of(&self, setting: &ElasticSetting) -> Vec<Option<Mode>> {
        let is_adaptive = |mode: Mode| mode == Mode::Adaptive;
        let is_free = setting.name != WorkName::Thresholds && self.engine != ElasticEngine::Atoll;
        let given = self.modes.iter().copied().filter(|mode| is_free || is_adaptive(*mode));
        std::iter::once(None).chain(given.map(Some)).collect()
    }
}

impl ElasticSetting {
    /// For results.
    pub(super) fn to_json(self) -> Value {
        let Self { name, clients, thresholds: Thresholds { thmin, thmax }, .. } = self;
        json!({ "work": name, "clients": clients, "thmin": thmin, "thmax": thmax })
    }

    /// Queries that its clients ask.
    pub(super) fn queries(&self, queries: &[u8]) -> f64 {
        let each = match self.work {
            ClientWork::Single { times, .. } => f64::from(times),
            _ => queries.len() as f64,
        };
        f64::from(self.clients) * each
    }
}

impl fmt::Display for ElasticSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, clients, thresholds: Thresholds { thmin, thmax }, .. } = self;
        write!(f, "{}, {clients} clients", name.name())?;
        match name {
            WorkName::Thresholds => write!(f, ", {thmin} to {thmax} %"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for ElasticCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.setting, mode_name(self.mode))
    }
}

impl TrialCase for ElasticCase {
    fn key(&self) -> String {
        format!("{self} {}", self.run)
    }
}

/// The name of a mode; `None` is the system's own scheduling.
pub(super) fn mode_name(mode: Option<Mode>) -> &'static str {
    mode.map_or("os", Mode::name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modes_of_a_setting_take_turns_and_thresholds_are_compared_for_adaptive_alone() {
        let plan = ElasticPlan {
            machine: "m".to_owned(),
            engine: ElasticEngine::Datafusion,
            scale_factor: 1.0,
            threads: 2,
            clients: vec![1, 4],
            queries: vec![1],
            work: vec![WorkName::Sequence, WorkName::Thresholds],
            modes: vec![Mode::Dense, Mode::Adaptive],
            thresholds: vec![Thresholds { thmin: 5, thmax: 50 }],
            runs: 2,
            seed: 1,
        };
        let keys: Vec<String> = plan.cases().map(|case| case.key()).collect();
        let [sequence, thresholds] = ["sequence, 4 clients", "thresholds, 4 clients, 5 to 50 %"];
        let expected = [
            format!("{sequence}, os 1"),
            format!("{sequence}, dense 1"),
            format!("{sequence}, adaptive 1"),
            format!("{sequence}, os 2"),
            format!("{sequence}, dense 2"),
            format!("{sequence}, adaptive 2"),
            format!("{thresholds}, os 1"),
            format!("{thresholds}, adaptive 1"),
            format!("{thresholds}, os 2"),
            format!("{thresholds}, adaptive 2"),
        ];
        assert_eq!(keys, expected);
    }
}
