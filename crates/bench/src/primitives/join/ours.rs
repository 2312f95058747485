//! Atoll's joins, summing the payloads of both sides.

use anyhow::Result;
use atoll_primitives::join::Joined;
use atoll_primitives::join::mpsm::{MpsmOptions, mpsm_join};
use atoll_primitives::shuffle::{Moved, Order, Shuffle};
use atoll_runtime::{Coordination, StepReport};
use atoll_tools::workload::{JoinSums, Rig, join_input, join_sums, timed};

use super::Algorithm;
use super::data::Sides;
use crate::check::Check;
use crate::primitives::contest::{ContestOutcome, Own};

/// A variant, ready to run.
pub(super) fn own<'a>(rig: &'a Rig, sides: &'a Sides, algorithm: Algorithm) -> Own<'a> {
    let run = move || {
        let join = || join_sums(rig, &sides.build, &sides.probe);
        let (seconds, Joined { consumers, report }) = timed(join)?;
        let note = format!("{:?}: {}", report.variant, report.reason);
        Ok(outcome(seconds, &consumers, Some(note), &report.steps))
    };
    match algorithm {
        Algorithm::Radix => Own { name: "radix".to_owned(), run: Box::new(run) },
        Algorithm::Mpsm => {
            Own { name: "mpsm".to_owned(), run: Box::new(move || sort_merge(rig, sides)) }
        }
    }
}

/// The sort-merge join: the larger table is the fact table.
fn sort_merge(rig: &Rig, sides: &Sides) -> Result<ContestOutcome> {
    let (dimension, fact) = (join_input(&sides.build), join_input(&sides.probe));
    let ring =
        Shuffle { order: Order::Ring, moved: Moved::Pulled, coordination: Coordination::Tight };
    let options = MpsmOptions { shuffle: ring, remote: None };
    let join =
        || rig.wait(mpsm_join(&rig.context, &fact, &dimension, options, |_| JoinSums::default()));
    let (seconds, (sums, report)) = timed(join)?;
    let swap = |sums: JoinSums| JoinSums { build: sums.probe, probe: sums.build, ..sums };
    let sums: Vec<JoinSums> = sums.into_iter().map(swap).collect();
    let note = format!("remote runs are those of the {:?} table", report.remote);
    let phases = report.phases.iter();
    let phases = phases.map(|phase| (phase.name.to_owned(), phase.time.as_secs_f64())).collect();
    Ok(ContestOutcome { phases, ..outcome(seconds, &sums, Some(note), &[]) })
}

fn outcome(
    seconds: f64,
    sums: &[JoinSums],
    note: Option<String>,
    steps: &[StepReport],
) -> ContestOutcome {
    let add = |of: fn(&JoinSums) -> u64| sums.iter().map(of).fold(0, u64::wrapping_add);
    let (build, probe) = (add(|it| it.build) as i64, add(|it| it.probe) as i64);
    let check = Check::of_join(add(|it| it.matches), build, probe);
    let phases = steps.iter().map(|step| (step.name.clone(), step.time.as_secs_f64()));
    ContestOutcome { seconds, check, note, phases: phases.collect() }
}
