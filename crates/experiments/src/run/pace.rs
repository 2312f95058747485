//! How many accesses a run makes: as many as take some time on this machine.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use atoll_topology::Bytes;

use super::RunConditions;
use crate::access::{AccessSequence, read, touch};
use crate::{Arm, ExperimentError, Home, Kind, array};

/// Time of an undisturbed repetition.
const TIME: Duration = Duration::from_millis(300);
/// Time of the trial.
const TRIAL: Duration = Duration::from_millis(20);
/// Accesses between two looks at the clock.
const BATCH: u64 = 4096;
/// Fewest accesses of a run.
const ACCESSES_MIN: u64 = 10_000;
/// Approximate ratio of the times of dependent and independent accesses: up to ten are under way.
const DEPENDENT: u64 = 5;

/// Accesses by size of the array.
#[derive(Debug, Default)]
pub(super) struct Paces(BTreeMap<Bytes, u64>);

impl Paces {
    pub(super) fn accesses(
        &mut self,
        conditions: &RunConditions<'_>,
        arm: &Arm,
    ) -> Result<u64, ExperimentError> {
        let independent = match self.0.get(&arm.size_run) {
            Some(accesses) => *accesses,
            None => {
                let accesses = trial(conditions, arm)?;
                self.0.insert(arm.size_run, accesses);
                accesses
            }
        };
        Ok(match arm.kind {
            Kind::Independent => independent,
            Kind::Dependent => (independent / DEPENDENT).max(ACCESSES_MIN),
        })
    }
}

fn trial(conditions: &RunConditions<'_>, arm: &Arm) -> Result<u64, ExperimentError> {
    let way = arm.groups.first().and_then(|group| group.threads.first());
    let cpu = way.and_then(|way| way.at(0));
    let cpu = cpu.ok_or_else(|| ExperimentError::Part("no thread has a cpu".to_owned()))?;
    let (machine, kernel) = (conditions.machine, conditions.kernel);
    let mut memory = array::allocate(machine, kernel, &Home::Local, arm.size_run, cpu)?;
    let bytes = memory.as_atomic_bytes();
    std::hint::black_box(touch(bytes, false));
    let mut random = AccessSequence::new(0, 0);
    let (start, mut done) = (Instant::now(), 0_u64);
    while start.elapsed() < TRIAL {
        std::hint::black_box(read(bytes, &mut random, BATCH));
        done += BATCH;
    }
    let share = TIME.as_secs_f64() / start.elapsed().as_secs_f64();
    Ok(((done as f64 * share) as u64).max(ACCESSES_MIN))
}
