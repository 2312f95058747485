//! Latency of an idle path: one thread follows a chain through memory, each read waiting for the one
//! before.
//!
//! A repetition is the median of many batches of a thousand reads: a batch is long compared to a clock read and short
//! compared to a time slice, so that interrupts and other processes disturb few of them.

use std::hint::black_box;
use std::time::{Duration, Instant};

use atoll_topology::{Conditions, Fact, Quantity};

use super::PathContext;
use crate::chain::{self, LineChain};
use crate::crew::{Counters, on_cpu, rate};
use crate::options::{MeasureOptions, STARVED};
use crate::samples::Samples;
use crate::{MeasureStepError, seats};

/// Reads between clock reads: about 0.1 ms.
const BATCH: usize = 1024;

/// Latency of the path, a fact.
pub(crate) fn measure(
    context: PathContext<'_>,
    chain: &[u8],
) -> Result<Vec<Fact>, MeasureStepError> {
    let cpu = seats::for_latency(context.machine, context.from).ok_or(MeasureStepError::Starved)?;
    let lines = chain::lines(chain);
    let walked = on_cpu(context.kernel, cpu, || walks(lines, context.options, None))?;
    let latencies = walked.into_iter().map(|walk| walk.0).collect();
    let samples = Samples::new(latencies).ok_or(MeasureStepError::Starved)?;
    Ok(vec![samples.fact(context.subject(), Quantity::Latency, Conditions::default())])
}

/// Latency of a read in ns, and the concurrent GB/s of the counters' threads, in each repetition. Runs on the calling
/// thread.
pub(crate) fn walks(
    lines: &LineChain,
    options: &MeasureOptions,
    load: Option<&Counters>,
) -> Result<Vec<(f64, f64)>, MeasureStepError> {
    let loaded = || load.map_or((0, 0), |counters| counters.read(usize::MAX));
    let idle = |before| load.is_some_and(|counters| counters.is_idle(usize::MAX, before));
    let (mut at, _) = walk_for(lines, 0, options.warm_up, options)?;
    let mut walks = Vec::new();
    for _ in 0..options.repetitions {
        let before = (Instant::now(), loaded());
        let (mut end, mut batches) = walk_for(lines, at, options.window, options)?;
        while idle(before.1) && before.0.elapsed() < STARVED {
            let (later, more) = walk_for(lines, end, Duration::ZERO, options)?;
            end = later;
            batches.extend(more);
        }
        let (time, bytes) = (before.0.elapsed(), loaded().0 - before.1.0);
        at = end;
        let latency = Samples::new(batches).ok_or(MeasureStepError::Starved)?.median();
        walks.push((latency, rate(bytes, time)));
    }
    Ok(walks)
}

/// Follows the chain for a time; returns the line reached and the ns per read of each batch, at least one.
fn walk_for(
    lines: &LineChain,
    mut at: usize,
    time: Duration,
    options: &MeasureOptions,
) -> Result<(usize, Vec<f64>), MeasureStepError> {
    let start = Instant::now();
    let mut batches = Vec::new();
    let mut before = start;
    loop {
        at = black_box(chain::walk(lines, at, BATCH));
        let now = Instant::now();
        batches.push((now - before).as_nanos() as f64 / BATCH as f64);
        before = now;
        if options.is_cancelled() {
            return Err(MeasureStepError::Cancelled);
        }
        if now - start >= time {
            return Ok((at, batches));
        }
    }
}
