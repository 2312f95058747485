//! The figures that an estimate rests on, for its reader.

use std::collections::HashMap;

use atoll_topology::{Fact, Source};
use serde::{Deserialize, Serialize};

use crate::Assumption;

/// A figure that was used, or several of one kind, source and origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is of.
    pub name: String,
    /// Its value; of several the smallest.
    pub least: f64,
    /// Of several the largest.
    pub most: f64,
    /// Unit of both.
    pub unit: String,
    /// How far it can be trusted.
    pub source: Source,
    /// Who says so.
    pub origin: String,
}

/// Collects figures in the order in which they are first used.
#[derive(Default)]
pub(crate) struct Ledger<'a> {
    figures: Vec<Figure>,
    places: HashMap<(&'static str, Source, &'a str), usize>,
}

impl<'a> Ledger<'a> {
    /// Notes a fact and gives its value.
    pub(crate) fn fact(&mut self, name: &'static str, unit: &str, fact: &'a Fact) -> f64 {
        self.note(name, (fact.value, unit), fact.source, &fact.origin)
    }

    /// Notes an assumption and gives its value.
    pub(crate) fn assumed(
        &mut self,
        name: &'static str,
        unit: &str,
        assumption: &'a Assumption,
    ) -> f64 {
        self.note(name, (assumption.value, unit), Source::Assumed, &assumption.origin)
    }

    /// Notes a value and gives it back.
    pub(crate) fn note(
        &mut self,
        name: &'static str,
        (value, unit): (f64, &str),
        source: Source,
        origin: &'a str,
    ) -> f64 {
        let place = *self.places.entry((name, source, origin)).or_insert_with(|| {
            self.figures.push(Figure {
                name: name.to_owned(),
                least: value,
                most: value,
                unit: unit.to_owned(),
                source,
                origin: origin.to_owned(),
            });
            self.figures.len() - 1
        });
        let figure = &mut self.figures[place];
        figure.least = figure.least.min(value);
        figure.most = figure.most.max(value);
        value
    }

    pub(crate) fn into_figures(self) -> Vec<Figure> {
        self.figures
    }
}
