//! Whether acts pay: `p(n+1) > p(n)` and `p(n) >= p(ntotal)` of section 3.2.2, found out by trying.
//!
//! After a core was given or released, performance is compared with its earlier value. Only the performance of an
//! overloaded target depends on its cores: one that is not overloaded does all the work it gets.
//!
//! | Act | Then still overloaded, and | Means |
//! |---|---|---|
//! | given | the target fills it, performance did not rise | the core did not pay: it is taken back and its node counts as saturated |
//! | released | performance fell | the core was needed: it is given back, and releasing stops |
//!
//! A core that the target does not fill lowers `u`, as the invariant requires: it stays. A change counts if it exceeds
//! the margin, or half of a core's share if that is less.
//!
//! A saturated node is avoided: the next core is tried on another one, and when none is left, growth stops. Four
//! saturated cores on a saturated memory controller thus stay four. These results hold until the load falls below the
//! upper threshold, performance changes by a quarter, or a time has passed that doubles with each failed trial.

use std::collections::{BTreeSet, VecDeque};

use atoll_topology::{CoreId, NodeId};

use super::Observation;
use crate::net::Verdict;

/// A change of performance by this share means another workload.
const OTHER_WORKLOAD: f64 = 0.25;
/// Observations before a failed trial is repeated, initially and at most.
const REFUSED_FIRST: u64 = 300;
const REFUSED_MAX: u64 = 36_000;

/// An act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A core was given.
    Gave {
        /// The core.
        core: CoreId,
        /// Its node.
        node: NodeId,
    },
    /// A core was released.
    Released {
        /// The core.
        core: CoreId,
    },
}

#[derive(Clone, Debug)]
struct Trial {
    act: Act,
    before: Moment,
    after: Vec<Moment>,
}

/// Performance, and cpus of time used.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    performance: f64,
    busy: f64,
}

/// A failed trial.
#[derive(Clone, Debug, Default)]
struct Refusal {
    /// Performance at that time; None if nothing was refused.
    performance: Option<f64>,
    left: u64,
    length: u64,
}

impl Refusal {
    fn begin(&mut self, performance: f64) {
        // Refusing one node after the other is a single trial.
        if !self.is_on() {
            self.length = (self.length * 2).clamp(REFUSED_FIRST, REFUSED_MAX);
        }
        self.performance = Some(performance);
        self.left = self.length;
    }

    fn end(&mut self) {
        self.performance = None;
    }

    fn is_on(&self) -> bool {
        self.performance.is_some()
    }

    /// Expires when its time has passed or the workload changes.
    fn pass(&mut self, performance: Option<f64>) {
        let (Some(then), Some(now)) = (self.performance, performance) else { return };
        self.left = self.left.saturating_sub(1);
        if (now - then).abs() > then.abs() * OTHER_WORKLOAD {
            *self = Self::default();
        } else if self.left == 0 {
            self.end();
        }
    }
}

/// Acts and their results.
#[derive(Clone, Debug)]
pub struct TrialBook {
    margin: f64,
    length: usize,
    recent: VecDeque<Moment>,
    trial: Option<Trial>,
    /// The act to undo now.
    failed: Option<Act>,
    growth: Refusal,
    release: Refusal,
    saturated: BTreeSet<NodeId>,
}

impl TrialBook {
    /// Changes of less than the margin are ignored; a trial takes `observations` observations.
    pub fn new(margin_percent: f64, observations: i64) -> Self {
        let length = usize::try_from(observations).unwrap_or(1).max(1);
        Self {
            margin: margin_percent / 100.0,
            length,
            recent: VecDeque::with_capacity(length),
            trial: None,
            failed: None,
            growth: Refusal::default(),
            release: Refusal::default(),
            saturated: BTreeSet::new(),
        }
    }

    /// Nodes on which another core did not pay.
    pub fn saturated(&self) -> &BTreeSet<NodeId> {
        &self.saturated
    }

    /// Whether an act is still being judged.
    pub fn is_pending(&self) -> bool {
        self.trial.is_some()
    }

    /// Whether another core may pay, if cores of these nodes are free.
    pub fn may_grow(&self, nodes_free: &BTreeSet<NodeId>) -> bool {
        !self.is_pending()
            && (!self.growth.is_on()
                || nodes_free.iter().any(|node| !self.saturated.contains(node)))
    }

    /// Whether one core less may cost nothing.
    pub fn may_release(&self) -> bool {
        !self.is_pending() && !self.release.is_on()
    }

    /// Starts judging an act, if performance is known.
    pub(super) fn begin(&mut self, act: Act) {
        self.failed = None;
        if !self.recent.is_empty() {
            let before = mean(self.recent.iter());
            self.trial = Some(Trial { act, before, after: Vec::new() });
        }
        self.recent.clear();
    }

    /// Stops judging, because the cores have changed.
    pub(super) fn forget_trial(&mut self) {
        self.trial = None;
        self.failed = None;
        self.recent.clear();
    }

    /// The core that a transition restores or takes back.
    pub(super) fn undone(&self, transition: &str) -> Option<CoreId> {
        match (transition, self.failed?) {
            ("retreat", Act::Gave { core, .. }) | ("regain", Act::Released { core }) => Some(core),
            _ => None,
        }
    }

    /// Records an observation; returns whether to undo an act.
    pub(super) fn observe(
        &mut self,
        seen: &Observation,
        cores: usize,
        is_overloaded: bool,
    ) -> Verdict {
        self.failed = None;
        self.growth.pass(seen.performance);
        self.release.pass(seen.performance);
        if !is_overloaded {
            self.growth.end();
            self.saturated.clear();
        }
        if !self.growth.is_on() {
            self.saturated.clear();
        }
        let Some(performance) = seen.performance else { return Verdict::Evaluate };
        let moment = Moment { performance, busy: seen.load / 100.0 * cores as f64 };
        let Some(trial) = &mut self.trial else {
            if self.recent.len() == self.length {
                self.recent.pop_front();
            }
            self.recent.push_back(moment);
            return Verdict::Evaluate;
        };
        trial.after.push(moment);
        if !is_overloaded {
            self.trial = None;
            return Verdict::Evaluate;
        }
        if trial.after.len() < self.length {
            return Verdict::Evaluate;
        }
        let trial = self.trial.take();
        trial.map_or(Verdict::Evaluate, |trial| self.judge(&trial, cores))
    }

    fn judge(&mut self, trial: &Trial, cores: usize) -> Verdict {
        let (before, after) = (trial.before, mean(trial.after.iter()));
        let margin = self.margin.min(0.5 / cores.max(1) as f64);
        let rose = |before: f64, after: f64| after > before * (1.0 + margin);
        match trial.act {
            Act::Gave { node, .. }
                if rose(before.busy, after.busy)
                    && !rose(before.performance, after.performance) =>
            {
                self.growth.begin(after.performance);
                self.saturated.insert(node);
                self.failed = Some(trial.act);
                Verdict::Retreat
            }
            Act::Released { .. } if after.performance < before.performance * (1.0 - margin) => {
                self.release.begin(before.performance);
                self.failed = Some(trial.act);
                Verdict::Regain
            }
            _ => {
                self.recent.extend(trial.after.iter());
                Verdict::Evaluate
            }
        }
    }
}

fn mean<'a>(moments: impl ExactSizeIterator<Item = &'a Moment>) -> Moment {
    let count = moments.len().max(1) as f64;
    let sum = moments.fold(Moment::default(), |sum, it| Moment {
        performance: sum.performance + it.performance,
        busy: sum.busy + it.busy,
    });
    Moment { performance: sum.performance / count, busy: sum.busy / count }
}
