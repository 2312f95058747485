//! Every state that a net can reach: for small instances, so that what must always hold is looked at
//! in all of them.

use std::collections::{BTreeMap, VecDeque};

use super::{Marking, Net};

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Every state, with the number of transitions that may fire in it.
    pub states: BTreeMap<Marking, usize>,
    /// How often each transition may fire, in all states together.
    pub fired: Vec<usize>,
    /// Whether states were left out because there are more than asked for.
    pub is_cut: bool,
}

/// Enumerates the states from the first one. `surroundings` are the states that the world outside of
/// the net can make of one: what monitors may see next.
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
