//! What the rounds so far tell about an arm: its ratio to default with an interval, and a verdict.
//!
//! The interval comes from ranks ([`Change`]), so it holds whatever the distribution is. It is looked at after
//! every round from the first that can be sure on, and each look has its part of the probability to be wrong
//! (Bonferroni), so that stopping at a clear verdict does not make the verdict less sure.

use std::fmt;

use atoll_tools::bench::Summary;
use serde::Serialize;

use super::plan::PlacementPlan;
use super::rounds::PlacementResult;
use super::{BetterName, PlacementArgs};
use crate::rank::Change;

/// Rounds before the first look: fewer tell nothing with 95 %.
const ROUNDS_BEFORE: u32 = 3;

/// When a verdict is clear.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    confidence: f64,
    threshold: f64,
    rounds: u32,
}

impl Rules {
    pub(super) fn new(args: &PlacementArgs) -> Self {
        let PlacementArgs { confidence, threshold, repetitions, .. } = args;
        Self { confidence: *confidence, threshold: *threshold, rounds: *repetitions }
    }

    /// How sure each look has to be.
    fn confidence_each(&self) -> f64 {
        let looks = self.rounds.saturating_sub(ROUNDS_BEFORE).max(1);
        1.0 - (1.0 - self.confidence) / f64::from(looks)
    }
}

/// An arm against default.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ArmVerdict {
    pub(super) arm: String,
    pub(super) values: Vec<f64>,
    pub(super) spread: Option<Summary>,
    /// Above 1 it is better than default; `None` of default itself, and without rounds of both.
    pub(super) change: Option<Change>,
    pub(super) verdict: Verdict,
}

/// The verdict on an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// What others are compared with.
    Reference,
    Better,
    Worse,
    /// No difference above the threshold.
    Same,
    /// A difference, if there is one, is smaller than the spread.
    WithinNoise,
    TooFewRounds,
    /// It could not be measured.
    Missing,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reference => "",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "the same",
            Self::WithinNoise => "within noise",
            Self::TooFewRounds => "too few rounds",
            Self::Missing => "not measured",
        })
    }
}

/// The verdict on each arm by these results.
pub(super) fn verdicts(
    plan: &PlacementPlan,
    rules: &Rules,
    results: &[PlacementResult],
) -> Vec<ArmVerdict> {
    let values = |arm: &String| -> Vec<f64> {
        let of_arm = results.iter().filter(|it| it.case.arm == *arm);
        of_arm.filter_map(|it| Some(it.answer.as_ref()?.value)).collect()
    };
    let default = plan.arms.first().map(values).unwrap_or_default();
    let verdict = |(at, arm): (usize, &String)| {
        let values = values(arm);
        let change = match at {
            0 => None,
            _ => compared(&default, &values, plan.better, rules.confidence_each()),
        };
        let verdict = match &change {
            _ if values.is_empty() => Verdict::Missing,
            None if at == 0 => Verdict::Reference,
            None => Verdict::TooFewRounds,
            Some(change) => Verdict::from_change(change, rules.threshold),
        };
        let spread = Summary::from_values(values.iter().copied());
        ArmVerdict { arm: arm.clone(), values, spread, change, verdict }
    };
    plan.arms.iter().enumerate().map(verdict).collect()
}

/// Whether the rounds before this one make every verdict clear.
pub(super) fn is_clear(
    plan: &PlacementPlan,
    rules: &Rules,
    results: &[PlacementResult],
    round: u32,
) -> bool {
    let before: Vec<_> = results.iter().filter(|it| it.case.round < round).cloned().collect();
    let is_clear =
        |it: &ArmVerdict| !matches!(it.verdict, Verdict::WithinNoise | Verdict::TooFewRounds);
    !before.is_empty() && verdicts(plan, rules, &before).iter().all(is_clear)
}

fn compared(default: &[f64], arm: &[f64], better: BetterName, sure: f64) -> Option<Change> {
    match better {
        BetterName::More => Change::from_samples(default, arm, sure),
        BetterName::Less => Change::from_samples(arm, default, sure),
    }
}

impl Verdict {
    fn from_change(change: &Change, threshold: f64) -> Self {
        let most = 1.0 + threshold;
        match change {
            Change { is_sure: false, .. } => Self::TooFewRounds,
            Change { low, high, .. } if *low >= 1.0 / most && *high <= most => Self::Same,
            Change { low, .. } if *low > 1.0 => Self::Better,
            Change { high, .. } if *high < 1.0 => Self::Worse,
            _ => Self::WithinNoise,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::plan::PlacementCase;
    use crate::placement::rounds::PlacementAnswer;

    const RULES: Rules = Rules { confidence: 0.95, threshold: 0.02, rounds: 6 };

    fn plan(better: BetterName) -> PlacementPlan {
        PlacementPlan {
            machine: "m".to_owned(),
            nodes: 2,
            server: vec!["server".to_owned()],
            ready: None,
            load: "load".to_owned(),
            metric: None,
            better,
            arms: ["default", "aligned"].map(str::to_owned).to_vec(),
        }
    }

    /// Rounds with these values of default and of aligned.
    fn results(rounds: &[(f64, f64)]) -> Vec<PlacementResult> {
        let answer = |value| PlacementAnswer {
            value,
            load_seconds: 1.0,
            ready_seconds: 1.0,
            placement: Default::default(),
            problem: None,
        };
        let both = rounds.iter().zip(1..).flat_map(|((default, aligned), round)| {
            [("default", *default), ("aligned", *aligned)].map(|(arm, value)| {
                let case = PlacementCase { arm: arm.to_owned(), round };
                PlacementResult::new(case, Ok(answer(value)))
            })
        });
        both.collect()
    }

    fn verdict(better: BetterName, rounds: &[(f64, f64)]) -> Verdict {
        verdicts(&plan(better), &RULES, &results(rounds))[1].verdict
    }

    #[test]
    fn a_difference_beyond_all_spread_is_clear_after_some_rounds() {
        let far: Vec<(f64, f64)> = (0..6).map(|at| (100.0 + f64::from(at), 120.0)).collect();
        assert_eq!(verdict(BetterName::More, &far[..3]), Verdict::TooFewRounds);
        assert_eq!(verdict(BetterName::More, &far[..5]), Verdict::Better);
        assert_eq!(verdict(BetterName::Less, &far[..5]), Verdict::Worse);
        let plan = plan(BetterName::More);
        assert!(!is_clear(&plan, &RULES, &results(&far), 4));
        assert!(is_clear(&plan, &RULES, &results(&far), 6), "five rounds were enough");
        assert!(!is_clear(&plan, &RULES, &[], 1));
    }

    #[test]
    fn equal_values_are_the_same_and_scattered_ones_are_noise() {
        let equal: Vec<(f64, f64)> = (0..6).map(|_| (100.0, 100.5)).collect();
        assert_eq!(verdict(BetterName::More, &equal), Verdict::Same);
        let noise: Vec<(f64, f64)> =
            (0..6).map(|at| (90.0 + 4.0 * f64::from(at), 110.0 - 3.0 * f64::from(at))).collect();
        assert_eq!(verdict(BetterName::More, &noise), Verdict::WithinNoise);
        assert_eq!(verdict(BetterName::More, &[]), Verdict::Missing);
    }

    #[test]
    fn ratios_above_one_are_better_for_times_too() {
        let slower = [(1.0, 2.0); 5];
        let found = verdicts(&plan(BetterName::Less), &RULES, &results(&slower));
        assert_eq!(found[1].change.unwrap().ratio, 0.5);
    }
}
