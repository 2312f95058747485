//! Plans the arms for a machine: which thread runs where, and which array lies where.
//!
//! | File | Kiefer 2013, section 3.2 |
//! |---|---|
//! | `remote` | experiment 1: remote memory access costs |
//! | `migration` | experiment 2: thread migration costs; 3: cache migration costs |
//! | `concurrency` | experiment 4: cache concurrency costs |
//! | `custom` | any other run |

mod concurrency;
mod custom;
mod migration;
mod remote;

use std::collections::BTreeSet;

use atoll_topology::{Bytes, Machine};
use serde::{Deserialize, Serialize};

use crate::options::DEPENDENT_WRITES;
use crate::places::Localities;
use crate::{Arm, By, Custom, ExperimentOptions, Group, Kind, Operation, PlanError};

/// The plan of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum Which {
    /// Kiefer's experiments of these numbers.
    Experiments(BTreeSet<u8>),
    /// Something else.
    Custom(Custom),
}

/// Arms to be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRow {
    /// Number of the experiment; 0 for a custom run.
    pub experiment: u8,
    /// The work common to all arms.
    pub name: String,
    /// Index of the arm that the others are compared with.
    pub baseline: usize,
    /// Indexes of the others.
    pub contrasts: Vec<usize>,
}

/// What will be run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In the order of the run.
    pub arms: Vec<Arm>,
    /// Which belong together.
    pub rows: Vec<PlanRow>,
    /// What cannot be run here, and other things to know.
    pub notes: Vec<String>,
}

/// The paper's two sizes of arrays: below and above its last-level cache of 24 MB.
pub(crate) const SMALL: Bytes = Bytes(16 << 20);
pub(crate) const LARGE: Bytes = Bytes(128 << 20);
/// Regions that the plugin distinguishes.
const REGIONS: usize = atoll_marker::REGIONS as usize;
/// What to do on a machine with one node.
const LAB: &str = "try it in the lab: atoll lab run --machine westmere-ex-4 -- atoll bench memory";

/// The arms of experiments on a machine.
///
/// # Errors
/// [`PlanError::Options`] for numbers out of bounds, [`PlanError::NotHere`] when nothing of it can be
/// run on this machine.
pub fn plan(
    machine: &Machine,
    which: &Which,
    options: &ExperimentOptions,
) -> Result<Plan, PlanError> {
    options.check()?;
    let mut draft = Draft { machine, options, plan: Plan::default() };
    match which {
        Which::Experiments(numbers) => {
            if let Some(number) = numbers.iter().find(|number| !(1..=4).contains(*number)) {
                let message = format!("unknown experiment {number}; expected 1 to 4");
                return Err(PlanError::Options(message));
            }
            for number in numbers {
                draft.experiment(*number)?;
            }
        }
        Which::Custom(custom) => custom::plan(&mut draft, custom)?,
    }
    draft.finish()
}

/// A plan being made.
struct Draft<'a> {
    machine: &'a Machine,
    options: &'a ExperimentOptions,
    plan: Plan,
}

/// What arms of a row have in common.
#[derive(Clone, Debug)]
struct RowSubject {
    experiment: u8,
    /// `4 threads`, `4 groups`; empty for a single thread.
    who: String,
    operation: Operation,
    size: Bytes,
    processes: bool,
}

/// The settings of one arm.
#[derive(Clone, Debug)]
struct ArmVariant {
    setting: String,
    groups: Vec<Group>,
    migrations: u32,
}

impl Draft<'_> {
    fn experiment(&mut self, number: u8) -> Result<(), PlanError> {
        match number {
            1 => remote::plan(self),
            2 => migration::plan_one(self),
            3 => migration::plan_ring(self),
            _ => concurrency::plan(self),
        }
    }

    /// Operations of an experiment: with dependent accesses only reads.
    fn operations(&mut self) -> &'static [Operation] {
        match self.options.kind {
            Kind::Independent => &Operation::ALL,
            Kind::Dependent => {
                self.note(DEPENDENT_WRITES.to_owned());
                &[Operation::Read]
            }
        }
    }

    fn places(&self, by: By) -> Localities {
        Localities::from_machine(self.machine, self.options.by.unwrap_or(by))
    }

    fn note(&mut self, note: String) {
        if !self.plan.notes.contains(&note) {
            self.plan.notes.push(note);
        }
    }

    /// Adds a row: the first variant is the baseline.
    fn row(&mut self, subject: &RowSubject, variants: Vec<ArmVariant>) {
        let first = self.plan.arms.len();
        let name = name(subject);
        for variant in variants {
            self.arm(subject, name.clone(), variant);
        }
        let contrasts = (first + 1..self.plan.arms.len()).collect();
        if self.plan.arms.len() > first {
            let experiment = subject.experiment;
            self.plan.rows.push(PlanRow { experiment, name, baseline: first, contrasts });
        }
    }

    fn arm(&mut self, subject: &RowSubject, name: String, variant: ArmVariant) {
        let RowSubject { experiment, operation, size, processes, .. } = *subject;
        let ArmVariant { setting, groups, migrations } = variant;
        let index = self.plan.arms.len();
        let region = u8::try_from(index).ok().filter(|_| index < REGIONS);
        let size_run = Bytes((size.0 / u64::from(self.options.scale)).max(1));
        let kind = self.options.kind;
        let shares_cache = shares_cache(self.machine, &groups);
        self.plan.arms.push(Arm {
            experiment,
            name,
            setting,
            operation,
            kind,
            size,
            size_run,
            groups,
            migrations,
            processes,
            shares_cache,
            region,
        });
    }

    fn finish(mut self) -> Result<Plan, PlanError> {
        if self.plan.arms.is_empty() {
            let notes = self.plan.notes;
            return Err(PlanError::NotHere(match notes.is_empty() {
                true => "nothing to run: no experiment, operation or size was given".to_owned(),
                false => notes.join("\n"),
            }));
        }
        if self.plan.arms.len() > REGIONS {
            self.note(format!("the lab distinguishes {REGIONS} arms; later ones are not counted"));
        }
        Ok(self.plan)
    }
}

/// Whether two threads start in one domain. All go the same round, so those that start apart stay so.
fn shares_cache(machine: &Machine, groups: &[Group]) -> bool {
    let threads = groups.iter().flat_map(|group| &group.threads);
    let domains = threads.filter_map(|way| Some(machine.cpu(way.at(0)?)?.domain));
    let mut met = BTreeSet::new();
    domains.into_iter().any(|domain| !met.insert(domain))
}

fn name(subject: &RowSubject) -> String {
    let RowSubject { who, operation, size, .. } = subject;
    match who.is_empty() {
        true => format!("{operation} {}", size_text(*size)),
        false => format!("{who} {operation} {}", size_text(*size)),
    }
}

/// `16 MiB`, `1.5 KiB`: without decimals where there are none.
pub(crate) fn size_text(size: Bytes) -> String {
    size.to_string().replace(".0 ", " ")
}
