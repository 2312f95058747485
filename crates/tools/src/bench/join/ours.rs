//! Atoll's joins, summing the payloads of both sides.

use anyhow::Result;
use atoll_primitives::PrimitiveError;
use atoll_primitives::join::mpsm::{MpsmOptions, mpsm_join};
use atoll_primitives::join::{JoinInput, JoinKind, Joined, Matches, hash_join};
use atoll_primitives::shuffle::{Moved, Order, Shuffle};
use atoll_runtime::{Coordination, StepReport};

use super::Algorithm;
use super::data::Sides;
use crate::bench::rivals::check::Check;
use crate::bench::rivals::columns::Table;
use crate::bench::rivals::paired::{Outcome, Own, timed};
use crate::bench::rivals::rig::Rig;

/// Adds up what one worker finds.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    matches: u64,
    build: u64,
    probe: u64,
}

impl Matches for Sums {
    fn pairs(&mut self, left: &[u64], right: &[u64]) -> Result<(), PrimitiveError> {
        let sum = |words: &[u64]| words.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word));
        self.matches += left.len() as u64;
        self.build = self.build.wrapping_add(sum(left));
        self.probe = self.probe.wrapping_add(sum(right));
        Ok(())
    }
}

/// A variant, ready to run.
pub(super) fn own<'a>(rig: &'a Rig, sides: &'a Sides, algorithm: Algorithm) -> Own<'a> {
    let run = move || {
        let join = || sums(rig, &sides.build, &sides.probe);
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
fn sort_merge(rig: &Rig, sides: &Sides) -> Result<Outcome> {
    let (dimension, fact) = (input(&sides.build), input(&sides.probe));
    let ring =
        Shuffle { order: Order::Ring, moved: Moved::Pulled, coordination: Coordination::Tight };
    let options = MpsmOptions { shuffle: ring, remote: None };
    let join =
        || rig.wait(mpsm_join(&rig.context, &fact, &dimension, options, |_| Sums::default()));
    let (seconds, (sums, report)) = timed(join)?;
    let swap = |sums: Sums| Sums { build: sums.probe, probe: sums.build, ..sums };
    let sums: Vec<Sums> = sums.into_iter().map(swap).collect();
    let note = format!("remote runs are those of the {:?} table", report.remote);
    let phases = report.phases.iter();
    let phases = phases.map(|phase| (phase.name.to_owned(), phase.time.as_secs_f64())).collect();
    Ok(Outcome { phases, ..outcome(seconds, &sums, Some(note), &[]) })
}

/// Joins two tables by hash, summing the payloads of what matches.
///
/// # Errors
/// When memory is out.
pub(crate) fn sums(rig: &Rig, build: &Table, probe: &Table) -> Result<Joined<Sums>> {
    let (build, probe) = (input(build), input(probe));
    rig.wait(hash_join(&rig.context, &build, &probe, JoinKind::Inner, |_| Sums::default()))
}

fn input(table: &Table) -> JoinInput {
    JoinInput::new(table.parts.clone(), [0]).with_payload(1)
}

fn outcome(seconds: f64, sums: &[Sums], note: Option<String>, steps: &[StepReport]) -> Outcome {
    let add = |of: fn(&Sums) -> u64| sums.iter().map(of).fold(0, u64::wrapping_add);
    let (build, probe) = (add(|it| it.build) as i64, add(|it| it.probe) as i64);
    let check = Check::of_join(add(|it| it.matches), build, probe);
    let phases = steps.iter().map(|step| (step.name.clone(), step.time.as_secs_f64()));
    Outcome { seconds, check, note, phases: phases.collect() }
}
