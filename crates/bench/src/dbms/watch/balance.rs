//! How pages and threads of each instance are spread over nodes while its clients run: a short series of looks.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use atoll_topology::Machine;
use serde::{Deserialize, Serialize};

use super::WatchEnd;
use crate::dbms::instance::InstanceSeat;
use crate::trials::ServerLooks;

/// A look.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::dbms) struct BalanceSample {
    /// Since the clients started.
    pub(in crate::dbms) seconds: f64,
    /// Bytes of resident memory on each node, beside those of the program and its libraries.
    pub(in crate::dbms) nodes: BTreeMap<u32, u64>,
    /// Threads by the node on which they ran last.
    pub(in crate::dbms) threads: BTreeMap<u32, u32>,
    /// Cpus that threads used on each node, since the look before.
    pub(in crate::dbms) busy_cpus: BTreeMap<u32, f64>,
}

impl BalanceSample {
    /// Shares of pages and of cpu time on a node.
    pub(in crate::dbms) fn shares(&self, node: u32) -> (Option<f64>, Option<f64>) {
        let bytes = self.nodes.iter().map(|(node, bytes)| (*node, *bytes as f64));
        let cpus = self.busy_cpus.iter().map(|(node, cpus)| (*node, *cpus));
        (share(bytes, node), share(cpus, node))
    }
}

fn share(all: impl Iterator<Item = (u32, f64)>, node: u32) -> Option<f64> {
    let (own, sum) = all.fold((0.0, 0.0), |(own, sum), (at, value)| {
        (if at == node { own + value } else { own }, sum + value)
    });
    (sum > 0.0).then(|| own / sum)
}

/// Looks at all instances so often in so much time, in the middle of equal parts; a series for each of them.
///
/// # Errors
/// When an instance is gone at the start.
pub(in crate::dbms) fn series(
    seats: &[&InstanceSeat],
    machine: &Machine,
    count: u32,
    time: Duration,
    end: &WatchEnd,
) -> Result<Vec<Vec<BalanceSample>>> {
    let begun = Instant::now();
    let looks = seats.iter().map(|seat| ServerLooks::new(machine, seat.process));
    let mut looks = looks.collect::<Result<Vec<_>>>()?;
    let mut all = vec![Vec::new(); seats.len()];
    for number in 0..count {
        let at = time.mul_f64((f64::from(number) + 0.5) / f64::from(count));
        if end.comes_within(at.saturating_sub(begun.elapsed())) {
            break;
        }
        for (looks, series) in looks.iter_mut().zip(&mut all) {
            let seconds = begun.elapsed().as_secs_f64();
            series.extend(looks.now().map(|found| BalanceSample {
                seconds,
                nodes: found.seen.nodes.clone(),
                threads: found.seen.threads.clone(),
                busy_cpus: found.busy_cpus.clone(),
            }));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_node() {
        let sample = BalanceSample {
            nodes: BTreeMap::from([(0, 3), (1, 1)]),
            busy_cpus: BTreeMap::from([(1, 0.5)]),
            ..BalanceSample::default()
        };
        assert_eq!(sample.shares(0), (Some(0.75), Some(0.0)));
        assert_eq!(BalanceSample::default().shares(0), (None, None));
    }
}
