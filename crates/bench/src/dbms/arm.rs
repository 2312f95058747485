//! Arms: a placement that stays, or threads that are moved from node to node while clients run.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use atoll_placement::Strategy;

use crate::trials::placement;

/// Milliseconds between two moves.
const EVERY_MAX: u64 = 3_600_000;

/// An arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum DbmsArm {
    /// Threads and pages as the strategy has them.
    Placed(Strategy),
    /// Aligned at first; so often all threads of an instance go to the next node, and the pages stay.
    Migrating(Duration),
}

impl DbmsArm {
    /// How instances are started.
    pub(super) fn strategy(self) -> Strategy {
        match self {
            Self::Placed(strategy) => strategy,
            Self::Migrating(_) => Strategy::Aligned,
        }
    }

    /// Time between two moves of all threads.
    pub(super) fn moves_every(self) -> Option<Duration> {
        match self {
            Self::Placed(_) => None,
            Self::Migrating(every) => Some(every),
        }
    }
}

impl fmt::Display for DbmsArm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Placed(strategy) => strategy.fmt(f),
            Self::Migrating(every) => write!(f, "migrating({})", every.as_millis()),
        }
    }
}

impl FromStr for DbmsArm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix("migrating") else {
            return placement::strategy(text).map(Self::Placed);
        };
        let every = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        match every.and_then(|every| every.parse().ok()) {
            Some(every @ 1..=EVERY_MAX) => Ok(Self::Migrating(Duration::from_millis(every))),
            _ => Err(format!(
                "unknown arm '{text}'; expected migrating(N): N milliseconds from 1 to {EVERY_MAX}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_have_names() {
        for name in ["default", "ahead(1)", "migrating(100)"] {
            assert_eq!(name.parse::<DbmsArm>().map(|arm| arm.to_string()), Ok(name.to_owned()));
        }
        let moving: DbmsArm = "migrating(20)".parse().unwrap();
        assert_eq!(moving.moves_every(), Some(Duration::from_millis(20)));
        assert_eq!(moving.strategy(), Strategy::Aligned);
        for wrong in ["migrating", "migrating()", "migrating(0)", "migrating(x)", "replicate"] {
            assert!(wrong.parse::<DbmsArm>().is_err(), "{wrong}");
        }
    }
}
