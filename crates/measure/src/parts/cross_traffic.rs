//! A flow under cross traffic: all cpus of one node read a destination while all cpus of every other
//! node read it too, over its memory controller and the links that lead to it.

use std::time::Duration;

use atoll_topology::{Conditions, CpuId, Fact, Quantity};

use super::{PathContext, bandwidth};
use crate::crew::{WorkerSpec, rates, with_crew};
use crate::samples::Samples;
use crate::stream::ThreadJob;
use crate::{MeasureStepError, seats};

/// Bandwidth of the flow, a fact whose conditions are its threads and the load of the others.
pub(crate) fn measure(
    context: PathContext<'_>,
    stream: &[u8],
) -> Result<Vec<Fact>, MeasureStepError> {
    let PathContext { machine, kernel, options, from, .. } = context;
    let flow = seats::in_order(machine, from);
    let others = machine.nodes_with_cpus().filter(|node| node.id != from.id);
    let others = others.flat_map(|node| seats::in_order(machine, node));
    let cpus: Vec<CpuId> = flow.iter().copied().chain(others).collect();
    let shares = stream.chunks(bandwidth::share(stream.len(), cpus.len()));
    let workers = cpus.iter().zip(shares).map(|(cpu, share)| WorkerSpec {
        cpu: *cpu,
        job: ThreadJob::Read(share),
        pause: Duration::ZERO,
    });
    let measured = with_crew(kernel, options.run_time_max(), workers.collect(), |counters| {
        rates(counters, flow.len(), options)
    })?;
    let (flows, loads): (Vec<f64>, Vec<f64>) = measured.into_iter().unzip();
    let rate = Samples::new(flows).ok_or(MeasureStepError::Starved)?;
    let load = Samples::new(loads).ok_or(MeasureStepError::Starved)?.median();
    let conditions = Conditions { threads: Some(flow.len() as u32), load: Some(load) };
    Ok(vec![rate.fact(context.subject(), Quantity::CrossTrafficBandwidth, conditions)])
}
