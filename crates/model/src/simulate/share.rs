//! Max-min fair shares.

use super::interconnect::{Interconnect, Usage};

/// Rates below this share of the smallest capacity count as zero, which guards against rounding.
const EPSILON: f64 = 1e-9;

impl Interconnect {
    /// Bytes per nanosecond (GB/s) of each flow, max-min fair: all rates grow equally until a resource is exhausted or
    /// a thread reaches its maximum; the affected flows are fixed, the others continue.
    pub(super) fn rates(&self, flows: &[&Usage]) -> Vec<f64> {
        let mut left = self.left(flows);
        let mut rates = vec![0.0; flows.len()];
        let mut growing: Vec<usize> = (0..flows.len()).collect();
        while !growing.is_empty() {
            let mut demand = vec![0.0; left.len()];
            for flow in &growing {
                for (resource, part) in &flows[*flow].parts {
                    demand[*resource] += part / flows[*flow].bytes;
                }
            }
            let used_up = |(left, demand): (&f64, &f64)| match *demand > 0.0 {
                true => left / demand,
                false => f64::INFINITY,
            };
            let by_resource = left.iter().zip(&demand).map(used_up).fold(f64::INFINITY, f64::min);
            let alone = |flow: &usize| flows[*flow].bytes / flows[*flow].least - rates[*flow];
            let by_thread = growing.iter().map(alone).fold(f64::INFINITY, f64::min);
            let grown = by_resource.min(by_thread).max(0.0);
            growing.iter().for_each(|flow| rates[*flow] += grown);
            left.iter_mut().zip(&demand).for_each(|(left, demand)| *left -= grown * demand);
            let is_held = |flow: &usize| {
                let usage = flows[*flow];
                let spent = |(resource, _): &(usize, f64)| {
                    left[*resource] <= EPSILON * self.capacities[*resource]
                };
                rates[*flow] >= usage.bytes / usage.least * (1.0 - EPSILON)
                    || usage.parts.iter().any(spent)
            };
            growing.retain(|flow| !is_held(flow));
        }
        rates
    }

    /// Capacity of each resource for these flows: reduced where data of several nodes meets.
    fn left(&self, flows: &[&Usage]) -> Vec<f64> {
        let mut met: Vec<Vec<usize>> = vec![Vec::new(); self.wires];
        for flow in flows {
            for resource in &flow.data {
                if !met[*resource].contains(&flow.at) {
                    met[*resource].push(flow.at);
                }
            }
        }
        let mut left = self.capacities.clone();
        for (left, met) in left.iter_mut().zip(met) {
            *left *= self.protocol.meeting.powi(met.len().saturating_sub(1) as i32);
        }
        left
    }
}
