//! The rule-condition-action pipeline: an observation enters the net, the net fires until it waits for the next one,
//! and the transitions that fired are the decision.
//!
//! The net determines which act is right, the [`Mode`] which core it affects, and the [`TrialBook`] whether the last
//! acts paid. This module uses no clocks, files or threads: a decision depends only on earlier observations, so a
//! recorded run can be replayed.

mod policy;
mod trial;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use atoll_topology::{CoreId, CpuSet, NodeId};

use crate::mode::{CoreChoice, CoreIds, CoreTable, Mode, PageQueue};
use crate::net::{
    ELSEWHERE, FREE, Firing, GIVEN, Marking, Net, NetParameters, OBSERVED, PipelineStep, Verdict,
    core_net, first_marking,
};

pub use policy::{CorePolicy, PolicyError};
pub use trial::{Act, TrialBook};

/// Limit of firings for one observation; more mean that the net is wrong.
const FIRINGS_MAX: usize = 16;

/// An observation of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observation {
    /// Time since the target was first looked at.
    pub at: Duration,
    /// Load `u`, percent: see the monitor that measured it.
    pub load: f64,
    /// Performance `p`, work per second; None if unknown.
    pub performance: Option<f64>,
}

/// A decision, and its reasons.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Decision {
    /// Time since the target was first looked at, seconds.
    pub at_seconds: f64,
    /// Load, percent.
    pub load: f64,
    /// Performance, work per second.
    pub performance: Option<f64>,
    /// Names of the transitions that fired, in order.
    pub fired: Vec<&'static str>,
    /// The rule of the last one, in words.
    pub rule: &'static str,
    /// Cores given by it.
    pub gave: Vec<CoreId>,
    /// Cores released by it.
    pub released: Vec<CoreId>,
    /// Cores that the target has now.
    pub cores: usize,
    /// Their cpus.
    pub cpus: CpuSet,
}

impl Decision {
    /// Whether it changes the cores of the target.
    pub fn is_act(&self) -> bool {
        !self.gave.is_empty() || !self.released.is_empty()
    }
}

/// Decides for one target.
#[derive(Clone, Debug)]
pub struct CoreController {
    net: Net,
    parameters: NetParameters,
    mode: Mode,
    table: Arc<CoreTable>,
    marking: Marking,
    pages: PageQueue,
    trials: TrialBook,
    is_to_yield: bool,
    /// Consecutive observations in which exchanging cores was worth it.
    moves_wanted: i64,
}

impl CoreController {
    /// For a target that has the cores `given` and may get those of `free`.
    pub fn new(
        table: Arc<CoreTable>,
        policy: &CorePolicy,
        given: &CoreIds,
        free: &CoreIds,
    ) -> Result<Self, PolicyError> {
        let parameters = policy.parameters(table.len())?;
        let numbers = |ids: &CoreIds| ids.iter().map(|id| i64::from(id.0)).collect::<Vec<_>>();
        let elsewhere = &(&table.ids() - given) - free;
        let marking = first_marking(numbers(given), numbers(free), numbers(&elsewhere));
        Ok(Self {
            net: core_net(),
            parameters,
            mode: policy.mode,
            table,
            marking,
            pages: PageQueue::default(),
            trials: TrialBook::new(policy.margin_percent, parameters.dwell_up),
            is_to_yield: false,
            moves_wanted: 0,
        })
    }

    /// The cores that the target has.
    pub fn given(&self) -> CoreIds {
        self.cores_on(GIVEN)
    }

    /// The cores that it may get.
    pub fn free(&self) -> CoreIds {
        self.cores_on(FREE)
    }

    /// The cpus of its cores.
    pub fn cpus(&self) -> CpuSet {
        self.table.cpus(&self.given())
    }

    /// The parameters of its net.
    pub fn parameters(&self) -> &NetParameters {
        &self.parameters
    }

    /// Nodes on which another core did not pay.
    pub fn saturated(&self) -> &BTreeSet<NodeId> {
        self.trials.saturated()
    }

    /// The known pages that it accesses.
    pub fn set_pages(&mut self, pages: PageQueue) {
        self.pages = pages;
    }

    /// Read access to its pages.
    pub fn pages(&self) -> &PageQueue {
        &self.pages
    }

    /// Limits the number of cores from now on, as a quota does.
    pub fn set_cores_max(&mut self, cores_max: usize) {
        let most = i64::try_from(cores_max).unwrap_or(i64::MAX);
        self.parameters.cores_max = most.max(self.parameters.cores_min);
    }

    /// Releases a core at the next observation, if it has more than the minimum.
    pub fn yield_core(&mut self) {
        self.is_to_yield = true;
    }

    /// Whether it is overloaded and has no core to get.
    pub fn is_short(&self, observation: &Observation) -> bool {
        let given = i64::try_from(self.given().len()).unwrap_or(i64::MAX);
        rounded(observation.load) >= self.parameters.thmax
            && given < self.parameters.cores_max
            && self.free().is_empty()
            && self.trials.may_grow(&BTreeSet::new())
    }

    /// Lends it cores of other targets.
    pub fn lend(&mut self, cores: &CoreIds) {
        self.pass("lend", ELSEWHERE, cores);
    }

    /// Takes free cores away from it, for other targets.
    pub fn recall(&mut self, cores: &CoreIds) {
        self.pass("recall", FREE, cores);
    }

    fn pass(&mut self, transition: &'static str, from: usize, cores: &CoreIds) {
        let there = self.cores_on(from);
        for core in cores.intersection(&there) {
            let firings = self.firings(|it| it.name == transition);
            let fits = |firing: &&Firing| firing.binding.value("c") == Some(i64::from(core.0));
            if let Some(firing) = firings.iter().find(fits) {
                self.fire(firing);
            }
        }
    }

    /// Decides.
    pub fn observe(&mut self, observation: &Observation) -> Decision {
        let before = self.given();
        let verdict = self.verdict(observation);
        let grow = i64::from(self.trials.may_grow(&self.nodes_free()));
        let release = i64::from(self.trials.may_release());
        let load = rounded(observation.load);
        self.marking.put(OBSERVED, vec![load, verdict.number(), grow, release]);
        let mut fired = Vec::new();
        let mut rule = "";
        while fired.len() < FIRINGS_MAX {
            let firings = self.firings(|it| it.step != PipelineStep::Share);
            let Some(firing) = self.chosen(&firings) else { break };
            let transition = &self.net.transitions[firing.transition];
            fired.push(transition.name);
            rule = transition.rule;
            self.fire(&firing);
        }
        let after = self.given();
        let gave: Vec<CoreId> = after.difference(&before).copied().collect();
        let released: Vec<CoreId> = before.difference(&after).copied().collect();
        self.note(verdict, &gave, &released);
        Decision {
            at_seconds: observation.at.as_secs_f64(),
            load: observation.load,
            performance: observation.performance,
            fired,
            rule,
            gave,
            released,
            cores: after.len(),
            cpus: self.table.cpus(&after),
        }
    }

    /// The verdict before the load.
    fn verdict(&mut self, observation: &Observation) -> Verdict {
        let is_overloaded = rounded(observation.load) >= self.parameters.thmax;
        let judged = self.trials.observe(observation, self.given().len(), is_overloaded);
        let is_over = self.given().len() as i64 > self.parameters.cores_max;
        if std::mem::take(&mut self.is_to_yield) || is_over {
            return Verdict::Yield;
        }
        if judged != Verdict::Evaluate {
            return judged;
        }
        if self.trials.is_pending() || self.choice(|choice| choice.exchange(self.mode)).is_none() {
            self.moves_wanted = 0;
            return Verdict::Evaluate;
        }
        self.moves_wanted += 1;
        match self.moves_wanted >= self.parameters.dwell_up {
            true => Verdict::Move,
            false => Verdict::Evaluate,
        }
    }

    /// Records the act in the book.
    fn note(&mut self, verdict: Verdict, gave: &[CoreId], released: &[CoreId]) {
        let node = |core: &CoreId| self.table.core(*core).map(|core| core.node);
        match (verdict, gave, released) {
            (Verdict::Evaluate, [core], []) => {
                if let Some(node) = node(core) {
                    self.trials.begin(Act::Gave { core: *core, node });
                }
            }
            (Verdict::Evaluate, [], [core]) => self.trials.begin(Act::Released { core: *core }),
            (_, [], []) => {}
            // Undone, exchanged and yielded cores are not trials.
            _ => {
                self.trials.forget_trial();
                self.moves_wanted = 0;
            }
        }
    }

    fn cores_on(&self, place: usize) -> CoreIds {
        let core = |token: &Vec<i64>| u32::try_from(*token.first()?).ok().map(CoreId);
        self.marking.tokens(place).filter_map(core).collect()
    }

    fn nodes_free(&self) -> BTreeSet<NodeId> {
        self.free().iter().filter_map(|id| self.table.core(*id)).map(|core| core.node).collect()
    }

    fn firings(&self, of: impl Fn(&crate::net::Transition) -> bool) -> Vec<Firing> {
        let mut firings = self.net.enabled(&self.marking, &|name| self.parameters.named(name));
        firings.retain(|firing| of(&self.net.transitions[firing.transition]));
        firings
    }

    fn fire(&mut self, firing: &Firing) {
        let next = self.net.fire(&self.marking, firing, &|name| self.parameters.named(name));
        debug_assert!(next.is_some(), "what is enabled can fire");
        self.marking = next.unwrap_or_else(|| self.marking.clone());
    }

    /// Of all enabled bindings of the transition, the one with the core that the mode prefers.
    fn chosen(&self, firings: &[Firing]) -> Option<Firing> {
        let first = firings.first()?;
        let transition = &self.net.transitions[first.transition];
        let takes = |place| transition.inputs.iter().any(|arc| arc.place == place);
        let (core, other) = match (takes(GIVEN), takes(FREE)) {
            (true, true) => match self.choice(|choice| choice.exchange(self.mode)) {
                Some((away, to)) => (Some(away), Some(to)),
                None => (None, None),
            },
            (true, false) => {
                let undone = self.trials.undone(transition.name);
                (undone.or_else(|| self.choice(|choice| choice.release(self.mode))), None)
            }
            (false, true) => {
                let undone = self.trials.undone(transition.name);
                (undone.or_else(|| self.choice(|choice| choice.give(self.mode))), None)
            }
            (false, false) => (None, None),
        };
        let is = |firing: &Firing, name, core: Option<CoreId>| {
            core.is_none_or(|core| firing.binding.value(name) == Some(i64::from(core.0)))
        };
        let preferred =
            firings.iter().find(|firing| is(firing, "c", core) && is(firing, "e", other));
        Some(preferred.unwrap_or(first).clone())
    }

    fn choice<T>(&self, ask: impl Fn(&CoreChoice<'_>) -> Option<T>) -> Option<T> {
        ask(&CoreChoice {
            table: &self.table,
            given: &self.given(),
            free: &self.free(),
            pages: &self.pages,
            saturated: self.trials.saturated(),
        })
    }
}

/// Percent as an integer; NaN counts as 0.
fn rounded(load: f64) -> i64 {
    load.clamp(0.0, 1e6).round() as i64
}
