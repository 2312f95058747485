//! Enabled transitions, and firing.

use super::{Marking, Net, Token, Transition};

/// A value for each name of a transition's input arcs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenBinding {
    values: Vec<(&'static str, i64)>,
}

impl TokenBinding {
    /// The value of a name.
    pub fn value(&self, name: &str) -> Option<i64> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// The names and values, in the order of the arcs.
    pub fn values(&self) -> &[(&'static str, i64)] {
        &self.values
    }

    /// Binds the fields of a token to these names; None if a name has another value already.
    fn with(&self, names: &[&'static str], token: &Token) -> Option<Self> {
        let mut values = self.values.clone();
        for (name, value) in names.iter().zip(token) {
            match self.value(name) {
                Some(known) if known != *value => return None,
                Some(_) => {}
                None => values.push((name, *value)),
            }
        }
        Some(Self { values })
    }
}

/// An enabled transition, with its binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firing {
    /// Index of the transition.
    pub transition: usize,
    /// The values.
    pub binding: TokenBinding,
}

impl Net {
    /// All enabled firings, in the order of transitions and then of tokens.
    pub fn enabled(
        &self,
        marking: &Marking,
        parameter: &impl Fn(&str) -> Option<i64>,
    ) -> Vec<Firing> {
        let mut firings = Vec::new();
        for (transition, it) in self.transitions.iter().enumerate() {
            let bindings = bindings(it, marking, parameter);
            firings.extend(bindings.into_iter().map(|binding| Firing { transition, binding }));
        }
        firings
    }

    /// Fires; None if a token is missing or a term has no value.
    pub fn fire(
        &self,
        marking: &Marking,
        firing: &Firing,
        parameter: &impl Fn(&str) -> Option<i64>,
    ) -> Option<Marking> {
        let transition = self.transitions.get(firing.transition)?;
        let lookup = |name: &str| firing.binding.value(name).or_else(|| parameter(name));
        let mut next = marking.clone();
        for arc in &transition.inputs {
            let token: Token = arc.names.iter().map(|name| lookup(name)).collect::<Option<_>>()?;
            if !next.take(arc.place, &token) {
                return None;
            }
        }
        for arc in &transition.outputs {
            let token = arc.fields.iter().map(|term| term.value(&lookup)).collect::<Option<_>>()?;
            next.put(arc.place, token);
        }
        Some(next)
    }
}

/// All ways to take a token from each input place such that the guard holds. A way is abandoned as soon as the guard
/// fails on the names bound so far: most guards are about the control token, which comes first, and not about each pair
/// of cores.
fn bindings(
    transition: &Transition,
    marking: &Marking,
    parameter: &impl Fn(&str) -> Option<i64>,
) -> Vec<TokenBinding> {
    let decided = |binding: &TokenBinding| {
        transition.guard.decided(&|name: &str| binding.value(name).or_else(|| parameter(name)))
    };
    let mut found = vec![TokenBinding::default()];
    for arc in &transition.inputs {
        let extended = found.iter().flat_map(|binding| {
            marking.tokens(arc.place).filter_map(|token| binding.with(&arc.names, token))
        });
        found = extended.filter(|binding| decided(binding) != Some(false)).collect();
    }
    found.retain(|binding| decided(binding) == Some(true));
    found
}
