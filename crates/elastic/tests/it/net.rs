//! The net: checks every state of small instances.

use std::collections::BTreeSet;

use atoll_elastic::net::{
    CHECKS, ELSEWHERE, FREE, GIVEN, IDLE, Marking, Net, NetParameters, OBSERVED, OVERLOADED,
    PROVISION, PipelineStep, Reached, STABLE, WATCHING, core_net, first_marking, picture,
    reachable, written,
};

const STATES_MAX: usize = 400_000;
const CONTROL: [usize; 5] = [WATCHING, CHECKS, IDLE, STABLE, OVERLOADED];

/// All possible next measurements: loads on both sides of each threshold, all verdicts, growing and releasing useful or
/// not.
fn observations(marking: &Marking) -> Vec<Marking> {
    if marking.count(WATCHING) == 0 || marking.count(OBSERVED) > 0 {
        return Vec::new();
    }
    let mut next = Vec::new();
    for u in [10, 25, 65, 70] {
        for v in 0..5 {
            for (g, r) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let mut seen = marking.clone();
                seen.put(OBSERVED, vec![u, v, g, r]);
                next.push(seen);
            }
        }
    }
    next
}

fn parameters(cores_min: i64, cores_max: i64) -> NetParameters {
    NetParameters { cores_min, dwell_up: 2, dwell_down: 2, ..NetParameters::published(cores_max) }
}

fn all_states(net: &Net, parameters: &NetParameters, cores: [&[i64]; 3]) -> Reached {
    let [given, free, elsewhere] = cores.map(|cores| cores.iter().copied());
    let first = first_marking(given, free, elsewhere);
    let reached = reachable(net, first, &|name| parameters.named(name), observations, STATES_MAX);
    assert!(!reached.is_cut, "more than {STATES_MAX} states");
    reached
}

/// Enabled transitions except those that move cores between targets.
fn own(net: &Net, marking: &Marking, parameters: &NetParameters) -> BTreeSet<usize> {
    let firings = net.enabled(marking, &|name| parameters.named(name));
    let own = firings.iter().map(|firing| firing.transition);
    own.filter(|transition| net.transitions[*transition].step != PipelineStep::Share).collect()
}

#[test]
fn in_every_state_tokens_are_conserved_and_the_next_step_is_the_only_one() {
    let net = core_net();
    for (least, most, cores) in [
        (1, 1, [&[0][..], &[][..], &[][..]]),
        (1, 3, [&[0], &[1, 2], &[]]),
        (2, 3, [&[0, 2], &[1], &[]]),
        (1, 2, [&[1], &[0], &[2]]),
    ] {
        let parameters = parameters(least, most);
        let total = cores.iter().map(|cores| cores.len()).sum::<usize>();
        let reached = all_states(&net, &parameters, cores);
        for marking in reached.states.keys() {
            let controls: usize = CONTROL.iter().map(|place| marking.count(*place)).sum();
            assert_eq!((controls, marking.count(PROVISION)), (1, 1), "{marking:?}");
            let (n, f) = (marking.count(GIVEN), marking.count(FREE));
            assert_eq!(n + f + marking.count(ELSEWHERE), total, "{marking:?}");
            let provision = marking.tokens(PROVISION).next().unwrap();
            assert_eq!(provision[..], [n as i64, f as i64], "{marking:?}");
            assert!((least..=most).contains(&(n as i64)), "{marking:?}");
            let is_waiting = marking.count(WATCHING) == 1 && marking.count(OBSERVED) == 0;
            let own = own(&net, marking, &parameters);
            assert_eq!(own.len(), usize::from(!is_waiting), "{own:?} in {marking:?}");
        }
    }
}

#[test]
fn every_observation_is_answered_in_a_few_firings() {
    let net = core_net();
    let parameters = parameters(1, 3);
    let reached = all_states(&net, &parameters, [&[0], &[1, 2], &[]]);
    for marking in reached.states.keys() {
        let mut states = vec![marking.clone()];
        for _ in 0..6 {
            let fire = |marking: &Marking| {
                let firings = net.enabled(marking, &|name| parameters.named(name));
                let own = firings.into_iter().filter(|firing| {
                    net.transitions[firing.transition].step != PipelineStep::Share
                });
                let next = own.map(|it| net.fire(marking, &it, &|name| parameters.named(name)));
                next.map(Option::unwrap).collect::<Vec<_>>()
            };
            states = states.iter().flat_map(fire).collect();
        }
        assert!(states.is_empty(), "{marking:?} still fires");
    }
}

#[test]
fn every_transition_can_fire() {
    let net = core_net();
    let reached = all_states(&net, &parameters(1, 3), [&[0], &[1], &[2]]);
    for (transition, fired) in net.transitions.iter().zip(&reached.fired) {
        assert!(*fired > 0, "{} never fires", transition.name);
    }
}

#[test]
fn states_beyond_the_limit_are_left_out_and_reported() {
    let parameters = parameters(1, 3);
    let first = first_marking([0], [1, 2], []);
    let lookup = |name: &str| parameters.named(name);
    let reached = reachable(&core_net(), first, &lookup, observations, 10);
    assert!(reached.is_cut && reached.states.len() == 10);
}

#[test]
fn the_net_is_written_with_its_guards_and_drawn() {
    let (net, parameters) = (core_net(), NetParameters::published(16));
    let text = written(&net, &|name| parameters.named(name));
    for line in [
        "  allocate         overloaded for dwell_up observations, and growing may pay",
        "    takes  Overloaded<a, g>, Provision<n, f>, Free<c>",
        "    when   dwell_up <= a + 1 and g = 1 and n < cores_max and 1 <= f",
        "    puts   Watching<0, 0>, Provision<n + 1, f - 1>, Given<c>",
        "    when   u * n < (thmax - hysteresis) * (n - 1)",
        "  thmax            70",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}\nin\n{text}");
    }
    let svg = picture(&net);
    for transition in &net.transitions {
        assert!(svg.contains(&format!(">{}: ", transition.name)), "{}", transition.name);
    }
    assert!(svg.contains("thmin &lt; u &lt; thmax"));
}
