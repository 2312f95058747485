//! Case after case, group by group; each result is kept at once, and a signal ends the run between cases.

use std::fmt::Display;

use anyhow::Result;
use atoll_tools::terminal;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::progress::Progress;
use super::results::{CaseResult, TrialCase, TrialResults};
use super::stop::RunStop;

/// A benchmark of many cases. Cases come in groups, whose later cases need what earlier ones made, such as a
/// database: after a case that fails, the rest of its group is left out.
pub(crate) trait Trials {
    /// A case by its settings.
    type Case: TrialCase;
    /// What a case finds.
    type Answer: Clone + Serialize + DeserializeOwned;

    /// Seconds that a case is expected to take.
    fn seconds(&self, case: &Self::Case) -> f64;

    /// Whether a case is still to be measured, by the results so far.
    fn is_wanted(
        &self,
        _case: &Self::Case,
        _so_far: &[CaseResult<Self::Case, Self::Answer>],
    ) -> bool {
        true
    }

    /// Measures the case at this place of a group. Cases before it may have been measured by an earlier run.
    ///
    /// # Errors
    /// Why it failed; the run goes on with the next group.
    fn measure(&mut self, group: &[Self::Case], at: usize) -> Result<Self::Answer>;

    /// What a case found, in a few words.
    fn words(&self, case: &Self::Case, answer: &Self::Answer) -> String;

    /// Removes what the cases of a group share.
    ///
    /// # Errors
    /// These end the run.
    fn end_group(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Subjects one after the other, each in repetitions, in which the arms take turns.
pub(crate) fn turns<'a, S: Copy>(
    subjects: &'a [S],
    runs: u32,
    arms: &'a [String],
) -> impl Iterator<Item = (S, u32, &'a String)> {
    let of_subject = move |subject: &S| {
        let subject = *subject;
        (0..runs).flat_map(move |run| arms.iter().map(move |arm| (subject, run, arm)))
    };
    subjects.iter().flat_map(of_subject)
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct TrialOutcome<C, A> {
    /// Those of earlier runs included, in the order of the groups.
    pub(crate) results: Vec<CaseResult<C, A>>,
    /// A signal ended it.
    pub(crate) is_stopped: bool,
}

/// Measures all cases that have no result yet.
///
/// # Errors
/// When results cannot be kept, or a group cannot be ended.
pub(crate) fn run_groups<T: Trials, P>(
    trials: &mut T,
    groups: &[Vec<T::Case>],
    kept: &TrialResults<P>,
    stop: &RunStop,
) -> Result<TrialOutcome<T::Case, T::Answer>> {
    let expected = groups.iter().flatten().map(|case| trials.seconds(case)).sum();
    let mut progress = Progress::new(expected);
    let mut results = Vec::new();
    for group in groups {
        if stop.is_stopped() {
            break;
        }
        let done = run_group(trials, group, kept, stop, &mut progress, &mut results);
        trials.end_group()?;
        done?;
    }
    Ok(TrialOutcome { results, is_stopped: stop.is_stopped() })
}

fn run_group<T: Trials, P>(
    trials: &mut T,
    group: &[T::Case],
    kept: &TrialResults<P>,
    stop: &RunStop,
    progress: &mut Progress,
    results: &mut Vec<CaseResult<T::Case, T::Answer>>,
) -> Result<()> {
    for (at, case) in group.iter().enumerate() {
        if stop.is_stopped() {
            break;
        }
        let seconds = trials.seconds(case);
        if !trials.is_wanted(case, results) {
            progress.skip(seconds);
            continue;
        }
        if let Some(result) = kept.get(case)? {
            progress.skip(seconds);
            results.push(result);
            continue;
        }
        let measured = trials.measure(group, at);
        if stop.is_stopped() && measured.is_err() {
            break;
        }
        let result = CaseResult::new(case.clone(), measured);
        kept.put(&result)?;
        let left = progress.add(seconds);
        terminal::say(format_args!("{} ({left} left)", line(trials, &result)));
        let is_failed = result.error.is_some();
        results.push(result);
        if is_failed {
            break;
        }
    }
    Ok(())
}

/// A result in a line.
fn line<T: Trials>(trials: &T, result: &CaseResult<T::Case, T::Answer>) -> impl Display {
    let CaseResult { case, answer, error } = result;
    match answer {
        Some(answer) => format!("{case}: {}", trials.words(case, answer)),
        None => format!("{case}: failed: {}", error.as_deref().unwrap_or_default()),
    }
}
