//! Latency of a path that carries a load: one thread measures latency while all other cores of its
//! node read the same memory, throttled step by step.

use std::time::Duration;

use atoll_topology::{Conditions, Fact, Quantity};

use super::{PathContext, bandwidth, latency};
use crate::crew::{WorkerSpec, on_cpu, with_crew};
use crate::samples::Samples;
use crate::stream::ThreadJob;
use crate::{MeasureStepError, chain, seats};

/// Pauses of a load thread between two blocks of 8 KiB, longest first: from about 1 GB/s per thread to the maximum.
const PAUSES_NS: [u64; 8] = [8000, 4000, 2000, 1000, 500, 250, 100, 0];

/// The pauses that are measured.
pub(crate) fn pauses(thorough: bool) -> Vec<Duration> {
    let steps = PAUSES_NS.iter().step_by(if thorough { 1 } else { 3 });
    let mut pauses: Vec<_> = steps.copied().map(Duration::from_nanos).collect();
    if pauses.last() != Some(&Duration::ZERO) {
        pauses.push(Duration::ZERO);
    }
    pauses
}

/// One fact per load, with the achieved load as its condition.
pub(crate) fn measure(
    context: PathContext<'_>,
    chain: &[u8],
    stream: &[u8],
) -> Result<Vec<Fact>, MeasureStepError> {
    let pauses = pauses(context.options.thorough);
    pauses.into_iter().map(|pause| under(context, chain, stream, pause)).collect()
}

fn under(
    context: PathContext<'_>,
    chain: &[u8],
    stream: &[u8],
    pause: Duration,
) -> Result<Fact, MeasureStepError> {
    let PathContext { machine, kernel, options, from, .. } = context;
    let cpu = seats::for_latency(machine, from).ok_or(MeasureStepError::Starved)?;
    let cpus = seats::beside(machine, from, cpu);
    let shares = stream.chunks(bandwidth::share(stream.len(), cpus.len()));
    let workers = cpus.iter().zip(shares).map(|(cpu, share)| WorkerSpec {
        cpu: *cpu,
        job: ThreadJob::Read(share),
        pause,
    });
    let walked = with_crew(kernel, options.run_time_max(), workers.collect(), |load| {
        on_cpu(kernel, cpu, || latency::walks(chain::lines(chain), options, Some(load)))
    })?;
    let (latencies, loads): (Vec<f64>, Vec<f64>) = walked.into_iter().unzip();
    let latency = Samples::new(latencies).ok_or(MeasureStepError::Starved)?;
    let load = Samples::new(loads).ok_or(MeasureStepError::Starved)?.median();
    let conditions = Conditions { threads: None, load: Some(load) };
    Ok(latency.fact(context.subject(), Quantity::LoadedLatency, conditions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_rise_to_all_that_threads_can_read() {
        for thorough in [false, true] {
            let pauses = pauses(thorough);
            assert!(pauses.is_sorted_by(|a, b| a > b), "{pauses:?}");
            assert_eq!(pauses.last(), Some(&Duration::ZERO));
        }
    }
}
