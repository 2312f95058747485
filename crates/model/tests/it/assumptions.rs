//! Assumptions outside of their range are rejected.

use atoll_model::{Assumption, Assumptions, Costs};
use atoll_topology::Knowledge;

/// Every assumption, to be changed.
fn fields(assumptions: &mut Assumptions) -> Vec<&mut Assumption> {
    let Assumptions {
        latency_local,
        latency_remote,
        latency_l2,
        latency_llc,
        line_clean,
        line_dirty,
        walk,
        frequency,
        instructions_per_cycle,
        compute_per_access,
        in_flight,
        bandwidth_controller,
        bandwidth_link,
        busy_cpus,
    } = assumptions;
    vec![
        latency_local,
        latency_remote,
        latency_l2,
        latency_llc,
        line_clean,
        line_dirty,
        walk,
        frequency,
        instructions_per_cycle,
        compute_per_access.get_or_insert(Assumption::new(1.0, "test")),
        in_flight,
        bandwidth_controller,
        bandwidth_link,
        busy_cpus.get_or_insert(Assumption::new(1.0, "test")),
    ]
}

#[test]
fn every_assumption_outside_of_its_range_is_rejected_by_name() {
    let known = Knowledge::from_machine(atoll_testkit::machines::two_nodes());
    let count = fields(&mut Assumptions::default()).len();
    let mut names = Vec::new();
    for field in 0..count {
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            let mut assumptions = Assumptions::default();
            fields(&mut assumptions)[field].value = bad;
            let error = Costs::from_knowledge(&known, &assumptions).unwrap_err();
            names.push(error.name);
            assert!(error.to_string().contains("give a number from"), "{error}");
        }
    }
    names.dedup();
    assert_eq!(names.len(), count, "each has a name of its own: {names:?}");
}

#[test]
fn fewer_than_one_access_in_flight_and_no_clock_are_refused() {
    let known = Knowledge::from_machine(atoll_testkit::machines::one_node());
    let refused = |change: fn(&mut Assumptions)| {
        let mut assumptions = Assumptions::default();
        change(&mut assumptions);
        Costs::from_knowledge(&known, &assumptions).is_err()
    };
    assert!(refused(|a| a.in_flight.value = 0.5));
    assert!(refused(|a| a.frequency.value = 0.0));
    assert!(refused(|a| a.instructions_per_cycle.value = 0.0));
    assert!(refused(|a| a.bandwidth_link.value = 0.0));
    assert!(!refused(|a| a.walk.value = 0.0));
}
