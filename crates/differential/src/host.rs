//! Machines that Atoll runs on: this one, or a fake one whose kernel is simulated.

use std::sync::Arc;

use anyhow::{Result, bail};
use atoll_bench::worker::{Host, this_machine};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;

/// This machine, or the fake one of that name.
pub(crate) fn host(name: Option<&str>) -> Result<Host> {
    let machine = Arc::new(match name {
        None => return this_machine(),
        Some("two_nodes") => machines::two_nodes(),
        Some("sub_numa_clusters") => machines::sub_numa_clusters(),
        Some("eight_uneven_nodes") => machines::eight_uneven_nodes(),
        Some(other) => bail!(
            "unknown machine '{other}'; expected one of two_nodes, sub_numa_clusters, \
             eight_uneven_nodes"
        ),
    });
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    Ok((machine, kernel))
}
