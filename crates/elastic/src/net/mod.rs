//! A Predicate/Transition net as data: places that hold tokens, and transitions with guards over them.
//!
//! A token is a tuple of numbers, its colour. An arc into a transition names the fields of the token that it takes; the
//! guard is a formula over these names and the parameters of the net; an arc out of it computes a new token. A
//! transition fires under a *binding*, one value for each name. If several tokens fit (which core is released?), there
//! are several bindings: the net determines which acts are right, a mode which of them is best.
//!
//! | File | Contents |
//! |---|---|
//! | `formula` | terms and guards, evaluated and printed |
//! | `marking` | the tokens on all places |
//! | `firing` | enabled transitions and their bindings |
//! | `cores` | the net of the mechanism (Dominico 2018, section 3) |
//! | `reach` | every reachable state, for small instances |
//! | `text`, `svg` | the net for people |

mod cores;
mod firing;
mod formula;
mod marking;
mod reach;
mod svg;
mod text;

pub use cores::{
    CHECKS, ELSEWHERE, FREE, GIVEN, IDLE, NetParameters, OBSERVED, OVERLOADED, PROVISION, STABLE,
    Verdict, WATCHING, core_net, first_marking,
};
pub use firing::{Firing, TokenBinding};
pub use formula::{Comparison, Guard, Term};
pub use marking::{Marking, Token};
pub use reach::{Reached, reachable};
pub use svg::picture;
pub use text::written;

/// A place: where tokens wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its name.
    pub name: &'static str,
    /// Names of the fields of its tokens.
    pub fields: &'static [&'static str],
    /// What a token on it means.
    pub meaning: &'static str,
}

/// An arc from a place: takes a token and names its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputArc {
    /// Index of the place.
    pub place: usize,
    /// A name for each field.
    pub names: Vec<&'static str>,
}

/// An arc to a place: puts a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputArc {
    /// Index of the place.
    pub place: usize,
    /// A term for each field.
    pub fields: Vec<Term>,
}

/// The step of a transition in the rule-condition-action pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PipelineStep {
    /// Takes the measurements of the monitors.
    Monitor,
    /// Evaluates the invariant.
    Evaluate,
    /// Changes which cores the target has.
    Act,
    /// Leaves the cores as they are.
    Keep,
    /// Moves cores between targets.
    Share,
}

/// A transition: takes tokens and puts others if its guard holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Its name, as traces show it.
    pub name: &'static str,
    /// The rule in words.
    pub rule: &'static str,
    /// Its step.
    pub step: PipelineStep,
    /// Input arcs.
    pub inputs: Vec<InputArc>,
    /// The guard.
    pub guard: Guard,
    /// Output arcs.
    pub outputs: Vec<OutputArc>,
}

/// Places and transitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Net {
    /// The places; arcs name them by index.
    pub places: Vec<Place>,
    /// The transitions.
    pub transitions: Vec<Transition>,
}

impl Net {
    /// The transition of that name.
    pub fn transition(&self, name: &str) -> Option<usize> {
        self.transitions.iter().position(|transition| transition.name == name)
    }
}
