//! Default values for missing facts, each with its reason.

use std::borrow::Cow;

/// Range of an assumption: no machine is outside, and no product overflows.
const RANGE: std::ops::RangeInclusive<f64> = 1e-6..=1e9;

/// A value and why it was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumption {
    /// The value, in the unit of its field.
    pub value: f64,
    /// Why: a paper, a calibration.
    pub origin: Cow<'static, str>,
}

impl Assumption {
    /// A value and why it was taken.
    pub fn new(value: f64, origin: impl Into<Cow<'static, str>>) -> Self {
        Self { value, origin: origin.into() }
    }
}

/// All assumptions. Facts of the machine take precedence.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumptions {
    /// Latency of a node's own memory, ns.
    pub latency_local: Assumption,
    /// Latency of another node's memory as a multiple of the local one, if distances are assumed too; known distances
    /// scale it.
    pub latency_remote: Assumption,
    /// Latency of a hit in the second-level cache, cycles.
    pub latency_l2: Assumption,
    /// Latency of a hit in the last-level cache, cycles.
    pub latency_llc: Assumption,
    /// Latency of a clean line from another domain's cache, as a share of the latency of that node's memory.
    pub line_clean: Assumption,
    /// The same for a written line.
    pub line_dirty: Assumption,
    /// Time of a page walk after a miss of the DTLB, cycles.
    pub walk: Assumption,
    /// Clock frequency, GHz.
    pub frequency: Assumption,
    /// Instructions per cycle without stalls.
    pub instructions_per_cycle: Assumption,
    /// Compute time per access besides waiting, ns. Replaces the time of the instructions, which counts if this is
    /// None. For loops whose time was measured.
    pub compute_per_access: Option<Assumption>,
    /// Independent accesses that a cpu has in flight, at least 1.
    pub in_flight: Assumption,
    /// Bandwidth of a memory controller, GB/s.
    pub bandwidth_controller: Assumption,
    /// Bandwidth of a link in each direction, GB/s.
    pub bandwidth_link: Assumption,
    /// Cpus of each node that work at the same time; taken from the flows if None.
    pub busy_cpus: Option<Assumption>,
}

impl Default for Assumptions {
    fn default() -> Self {
        let levinthal = "Levinthal 2009, Performance analysis guide for Core i7 and Xeon 5500";
        let usual = "usual on servers";
        Self {
            latency_local: Assumption::new(90.0, usual),
            latency_remote: Assumption::new(1.6, usual),
            latency_l2: Assumption::new(10.0, levinthal),
            latency_llc: Assumption::new(40.0, levinthal),
            line_clean: Assumption::new(0.65, "100 to 300 cycles in Levinthal 2009"),
            line_dirty: Assumption::new(0.75, "100 to 300 cycles in Levinthal 2009"),
            walk: Assumption::new(30.0, "a walk that hits the second-level cache three times"),
            frequency: Assumption::new(2.5, usual),
            instructions_per_cycle: Assumption::new(2.0, "half of what a core of four issues"),
            compute_per_access: None,
            in_flight: Assumption::new(10.0, "line-fill buffers of a core, Nehalem to Skylake"),
            bandwidth_controller: Assumption::new(20.0, usual),
            bandwidth_link: Assumption::new(12.0, usual),
            busy_cpus: None,
        }
    }
}

/// An assumption outside of its range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{name} is assumed to be {value}; give a number from {least} to 1e9")]
pub struct AssumptionError {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// Its minimum.
    pub least: f64,
}

impl Assumptions {
    /// Checks the range of all values.
    pub(crate) fn check(&self) -> Result<(), AssumptionError> {
        let positive = [
            ("latency of local memory", &self.latency_local),
            ("latency of remote memory", &self.latency_remote),
            ("clock frequency", &self.frequency),
            ("instructions per cycle", &self.instructions_per_cycle),
            ("bandwidth of a controller", &self.bandwidth_controller),
            ("bandwidth of a link", &self.bandwidth_link),
        ];
        positive.into_iter().try_for_each(|(name, it)| check(name, it, *RANGE.start()))?;
        let may_be_nothing = [
            ("latency of the second-level cache", Some(&self.latency_l2)),
            ("latency of the last-level cache", Some(&self.latency_llc)),
            ("latency of a clean line", Some(&self.line_clean)),
            ("latency of a written line", Some(&self.line_dirty)),
            ("time of a page walk", Some(&self.walk)),
            ("time per access", self.compute_per_access.as_ref()),
        ];
        let given = may_be_nothing.into_iter().filter_map(|(name, it)| Some((name, it?)));
        given.into_iter().try_for_each(|(name, it)| check(name, it, 0.0))?;
        check("number of accesses in flight", &self.in_flight, 1.0)?;
        self.busy_cpus.iter().try_for_each(|it| check("number of busy cpus", it, 1.0))
    }
}

fn check(name: &'static str, it: &Assumption, least: f64) -> Result<(), AssumptionError> {
    match (least..=*RANGE.end()).contains(&it.value) {
        true => Ok(()),
        false => Err(AssumptionError { name, value: it.value, least }),
    }
}

/// Whether a fact's value can be used: a machine file may say anything finite.
pub(crate) fn is_usable(value: f64) -> bool {
    RANGE.contains(&value)
}
