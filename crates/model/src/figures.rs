//! The figures that an estimate is based on.

use std::collections::HashMap;

use atoll_topology::{Fact, Source};
use serde::{Deserialize, Serialize};

use crate::Assumption;

/// A figure that was used, or several of one kind, source and origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// Its value; the smallest of several.
    pub least: f64,
    /// The largest of several.
    pub most: f64,
    /// Unit of both.
    pub unit: String,
    /// Its source.
    pub source: Source,
    /// Its origin.
    pub origin: String,
}

/// Collects figures in the order in which they are first used.
#[derive(Default)]
pub(crate) struct Ledger<'a> {
    figures: Vec<Figure>,
    places: HashMap<(&'static str, Source, &'a str), usize>,
}

impl<'a> Ledger<'a> {
    /// Records a fact and returns its value.
    pub(crate) fn fact(&mut self, name: &'static str, unit: &str, fact: &'a Fact) -> f64 {
        self.note(name, (fact.value, unit), fact.source, &fact.origin)
    }

    /// Records an assumption and returns its value.
    pub(crate) fn assumed(
        &mut self,
        name: &'static str,
        unit: &str,
        assumption: &'a Assumption,
    ) -> f64 {
        self.note(name, (assumption.value, unit), Source::Assumed, &assumption.origin)
    }

    /// Records a value and returns it.
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
