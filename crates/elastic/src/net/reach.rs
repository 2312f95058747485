//! Enumerates the reachable states of small nets, so that invariants can be checked in all of them.

use std::collections::{BTreeMap, VecDeque};

use super::{Marking, Net};

/// The reachable states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Every state, with its number of enabled transitions.
    pub states: BTreeMap<Marking, usize>,
    /// How often each transition is enabled, over all states.
    pub fired: Vec<usize>,
    /// Whether states were left out because of the limit.
    pub is_cut: bool,
}

/// Enumerates the states from the first one. `surroundings` returns the states that the environment can make of one:
/// the next measurements.
pub fn reachable(
    net: &Net,
    first: Marking,
    parameter: &impl Fn(&str) -> Option<i64>,
    surroundings: impl Fn(&Marking) -> Vec<Marking>,
    states_max: usize,
) -> Reached {
    let mut reached =
        Reached { states: BTreeMap::new(), fired: vec![0; net.transitions.len()], is_cut: false };
    let mut waiting = VecDeque::from([first]);
    while let Some(marking) = waiting.pop_front() {
        if reached.states.contains_key(&marking) {
            continue;
        }
        if reached.states.len() >= states_max {
            reached.is_cut = true;
            break;
        }
        let firings = net.enabled(&marking, parameter);
        for firing in &firings {
            reached.fired[firing.transition] += 1;
            waiting.extend(net.fire(&marking, firing, parameter));
        }
        waiting.extend(surroundings(&marking));
        reached.states.insert(marking, firings.len());
    }
    reached
}
