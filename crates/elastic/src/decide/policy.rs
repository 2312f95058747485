//! The user's policy for a target.

use crate::mode::Mode;
use crate::net::NetParameters;

/// How to decide on a target's cores.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CorePolicy {
    /// Which core comes next.
    pub mode: Mode,
    /// Lower threshold of the load, percent.
    pub thmin: i64,
    /// Upper threshold of the load, percent.
    pub thmax: i64,
    /// How far below the upper threshold the load must stay with one core less, percent.
    pub hysteresis: i64,
    /// Fewest cores.
    pub cores_min: usize,
    /// Most cores; all if None.
    pub cores_max: Option<usize>,
    /// Consecutive overloaded observations before a core is given.
    pub dwell_up: i64,
    /// Consecutive idle observations before a core is released.
    pub dwell_down: i64,
    /// Smaller changes of performance are ignored, percent.
    pub margin_percent: f64,
}

impl Default for CorePolicy {
    fn default() -> Self {
        let published = NetParameters::published(1);
        Self {
            mode: Mode::default(),
            thmin: published.thmin,
            thmax: published.thmax,
            hysteresis: published.hysteresis,
            cores_min: 1,
            cores_max: None,
            dwell_up: published.dwell_up,
            dwell_down: published.dwell_down,
            margin_percent: 3.0,
        }
    }
}

/// Why a policy is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The thresholds leave nothing between them.
    #[error(
        "thresholds thmin {thmin} and thmax {thmax}: expected 0 <= thmin < thmax <= 100, percent"
    )]
    Thresholds {
        /// The lower one.
        thmin: i64,
        /// The upper one.
        thmax: i64,
    },
    /// A core could never be released.
    #[error("hysteresis {hysteresis}: expected 0 to less than thmax ({thmax}), percent")]
    Hysteresis {
        /// The hysteresis.
        hysteresis: i64,
        /// The upper threshold.
        thmax: i64,
    },
    /// The dwell is out of range.
    #[error("dwell of {observations} observations: expected 1 to 100000")]
    Dwell {
        /// The number.
        observations: i64,
    },
    /// The bounds on cores are wrong, or the machine is too small for them.
    #[error(
        "cores_min {least} and cores_max {most}: expected 1 <= cores_min <= cores_max <= {there}, the cores that may be given"
    )]
    Cores {
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
        /// Cores of the machine.
        there: usize,
    },
    /// The margin is out of range.
    #[error("margin_percent {margin}: expected 0 to 50")]
    Margin {
        /// The margin.
        margin: f64,
    },
}

impl CorePolicy {
    /// The parameters of the net for this many cores.
    pub fn parameters(&self, cores: usize) -> Result<NetParameters, PolicyError> {
        let (thmin, thmax, hysteresis) = (self.thmin, self.thmax, self.hysteresis);
        if !(0 <= thmin && thmin < thmax && thmax <= 100) {
            return Err(PolicyError::Thresholds { thmin, thmax });
        }
        if !(0..thmax).contains(&hysteresis) {
            return Err(PolicyError::Hysteresis { hysteresis, thmax });
        }
        for observations in [self.dwell_up, self.dwell_down] {
            if !(1..=100_000).contains(&observations) {
                return Err(PolicyError::Dwell { observations });
            }
        }
        if !(0.0..=50.0).contains(&self.margin_percent) {
            return Err(PolicyError::Margin { margin: self.margin_percent });
        }
        let (least, most) = (self.cores_min, self.cores_max.unwrap_or(cores));
        if !(1 <= least && least <= most && most <= cores) {
            return Err(PolicyError::Cores { least, most, there: cores });
        }
        Ok(NetParameters {
            thmin,
            thmax,
            hysteresis,
            cores_min: least as i64,
            cores_max: most as i64,
            dwell_up: self.dwell_up,
            dwell_down: self.dwell_down,
        })
    }

    /// The smallest number of cores that keeps this many cpus of work below the upper threshold, within the bounds;
    /// `cpus_each` is the number of hardware threads per core.
    pub fn cores_for(&self, demand_cpus: f64, cpus_each: f64, cores: usize) -> usize {
        let each = cpus_each.max(1.0) * self.thmax as f64 / 100.0;
        let wanted = (demand_cpus.max(0.0) / each).floor() + 1.0;
        let most = self.cores_max.unwrap_or(cores).min(cores).max(1);
        (wanted.min(most as f64) as usize).clamp(self.cores_min.clamp(1, most), most)
    }
}
