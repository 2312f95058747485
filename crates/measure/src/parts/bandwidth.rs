//! Bandwidth of a path, by number of threads: reading, writing, copying, and how many readers
//! saturate it.
//!
//! Threads divide the stream among themselves; each loops over its share. Thread counts double up to all cpus of the
//! node. A binary search between the first count that reaches 95 % of the largest bandwidth and the one before it finds
//! the smallest.

use std::time::Duration;

use atoll_topology::{Conditions, CpuId, Fact, Quantity};

use super::PathContext;
use crate::crew::{WorkerSpec, rates, with_crew};
use crate::samples::{Samples, figure};
use crate::stream::ThreadJob;
use crate::{MeasureStepError, seats};

/// A path is saturated at this share of its largest bandwidth.
const SATURATED: f64 = 0.95;

/// Largest share of a thread is a multiple of this: a page, so that no two threads share one.
const SHARE_UNIT: usize = 4096;

/// The operation of the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccessDirection {
    Read,
    Write,
    Copy,
}

impl AccessDirection {
    const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Copy];

    fn quantity(self) -> Quantity {
        match self {
            Self::Read => Quantity::ReadBandwidth,
            Self::Write => Quantity::WriteBandwidth,
            Self::Copy => Quantity::CopyBandwidth,
        }
    }
}

/// Runs of the crew for one path, for the estimate.
pub(crate) fn runs(cpus: usize, thorough: bool) -> u32 {
    let counts = seats::counts(cpus, thorough);
    let halvings = counts.windows(2).map(|pair| (pair[1] - pair[0]).ilog2()).max().unwrap_or(0);
    (AccessDirection::ALL.len() * counts.len()) as u32 + halvings
}

/// Bandwidths of the path and its number of saturating threads, facts.
pub(crate) fn measure(
    context: PathContext<'_>,
    stream: &mut [u8],
) -> Result<Vec<Fact>, MeasureStepError> {
    let cpus = seats::in_order(context.machine, context.from);
    let mut facts = Vec::new();
    for access in AccessDirection::ALL {
        let mut at = |threads| run(context, access, &cpus[..threads], stream);
        let mut curve = Vec::new();
        for threads in seats::counts(cpus.len(), context.options.thorough) {
            curve.push((threads, at(threads)?));
        }
        if access == AccessDirection::Read {
            let least = saturate(&mut curve, at)?;
            facts.push(figure(context.subject(), Quantity::SaturationThreads, least as f64));
        }
        facts.extend(curve.into_iter().map(|(threads, samples)| {
            let conditions = Conditions { threads: Some(threads as u32), load: None };
            samples.fact(context.subject(), access.quantity(), conditions)
        }));
    }
    Ok(facts)
}

/// Fewest threads that reach [`SATURATED`] of the largest bandwidth of the curve, which is ordered by
/// threads and not empty; counts tried on the way are added to it.
fn saturate(
    curve: &mut Vec<(usize, Samples)>,
    mut at: impl FnMut(usize) -> Result<Samples, MeasureStepError>,
) -> Result<usize, MeasureStepError> {
    let largest = curve.iter().map(|point| point.1.median()).fold(0.0, f64::max);
    let reaches = |samples: &Samples| samples.median() >= SATURATED * largest;
    let first = curve.iter().position(|point| reaches(&point.1)).unwrap_or(0);
    let mut high = curve[first].0;
    let mut low = first.checked_sub(1).map_or(0, |before| curve[before].0);
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        let samples = at(middle)?;
        if reaches(&samples) {
            high = middle;
        } else {
            low = middle;
        }
        let place = curve.partition_point(|point| point.0 < middle);
        curve.insert(place, (middle, samples));
    }
    Ok(high)
}

fn run(
    context: PathContext<'_>,
    access: AccessDirection,
    cpus: &[CpuId],
    stream: &mut [u8],
) -> Result<Samples, MeasureStepError> {
    let shares = stream.chunks_mut(share(stream.len(), cpus.len())).take(cpus.len());
    let workers = cpus.iter().zip(shares).map(|(cpu, share)| WorkerSpec {
        cpu: *cpu,
        job: job(access, share),
        pause: Duration::ZERO,
    });
    let measured =
        with_crew(context.kernel, context.options.run_time_max(), workers.collect(), |counters| {
            rates(counters, usize::MAX, context.options)
        })?;
    let rates = measured.into_iter().map(|rate| rate.0).collect();
    Samples::new(rates).ok_or(MeasureStepError::Starved)
}

/// Length of one of `threads` shares of `len` bytes.
pub(crate) fn share(len: usize, threads: usize) -> usize {
    let share = len / threads.max(1);
    if share > SHARE_UNIT { share / SHARE_UNIT * SHARE_UNIT } else { share.max(1) }
}

fn job(access: AccessDirection, share: &mut [u8]) -> ThreadJob<'_> {
    match access {
        AccessDirection::Read => ThreadJob::Read(share),
        AccessDirection::Write => ThreadJob::Write(share),
        AccessDirection::Copy => {
            let (from, to) = share.split_at_mut(share.len() / 2);
            ThreadJob::Copy { from, to: &mut to[..from.len()] }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(threads: usize) -> Samples {
        // A path that saturates at 11 threads.
        Samples::new(vec![threads.min(11) as f64]).unwrap()
    }

    #[test]
    fn the_fewest_saturating_threads_are_found_between_the_doubled_counts() {
        let mut curve: Vec<_> = [1, 2, 4, 8, 16, 20].map(|n| (n, point(n))).into();
        assert_eq!(saturate(&mut curve, |n| Ok(point(n))).unwrap(), 11);
        let counts: Vec<usize> = curve.iter().map(|point| point.0).collect();
        assert!(counts.is_sorted() && counts.len() <= 6 + 3, "{counts:?}");
        let mut flat = vec![(1, point(20)), (2, point(20))];
        assert_eq!(saturate(&mut flat, |n| Ok(point(n))).unwrap(), 1);
    }

    #[test]
    fn shares_are_whole_pages_where_there_is_room_and_never_empty() {
        assert_eq!(share(1 << 20, 3), 85 * 4096);
        assert_eq!(share(1 << 20, 1024), 1024);
        assert_eq!((share(0, 4), share(10, 0)), (1, 10));
    }
}
