//! Sets of values that are ranges, or made of ranges.
//!
//! A bound is a cut between values: before or after one of them, or before or after all. So `[1,5)` goes from the cut before
//! 1 to the one before 5, and all of PostgreSQL's operators compare cuts. A range is a set of at most one span, and a
//! multirange one of any number.

use super::form::{RangeForm, RangeType};
use super::point::RangePoint;
use crate::failure::FunctionFailure;

/// Which side of a value a cut is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Before,
    After,
}

/// A place between values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cut {
    Start,
    At(RangePoint, Side),
    End,
}

/// A bound of a range as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeBound {
    /// The value; None if the range has no end on this side.
    pub value: Option<RangePoint>,
    /// Whether the value is in the range.
    pub is_inclusive: bool,
}

/// The values between two cuts; there are some.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) lower: Cut,
    pub(super) upper: Cut,
}

/// A range or multirange.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RangeSet {
    /// In their order; no two touch.
    spans: Vec<Span>,
}

impl Span {
    /// Returns the values between cuts, if there are any.
    pub(super) fn between(lower: Cut, upper: Cut) -> Option<Self> {
        (lower < upper).then_some(Self { lower, upper })
    }

    /// Returns the values of a type between bounds, with those of integers and dates written as `[)`; None for no values.
    fn of_bounds(
        of: RangeType,
        lower: RangeBound,
        upper: RangeBound,
    ) -> Result<Option<Self>, FunctionFailure> {
        if let (Some(from), Some(to)) = (&lower.value, &upper.value)
            && from > to
        {
            let message = "range lower bound must be less than or equal to range upper bound";
            return Err(FunctionFailure { state: "22000", message: message.to_owned() });
        }
        let side = |is_after: bool| if is_after { Side::After } else { Side::Before };
        let lower = lower.value.map_or(Cut::Start, |at| Cut::At(at, side(!lower.is_inclusive)));
        let upper = upper.value.map_or(Cut::End, |at| Cut::At(at, side(upper.is_inclusive)));
        let Some(span) = Self::between(lower, upper) else { return Ok(None) };
        Ok(Self::between(before_next(of, span.lower)?, before_next(of, span.upper)?))
    }

    fn contains(&self, other: &Self) -> bool {
        self.lower <= other.lower && other.upper <= self.upper
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.lower < other.upper && other.lower < self.upper
    }
}

/// The cut after an integer or a date is the one before the next.
fn before_next(of: RangeType, cut: Cut) -> Result<Cut, FunctionFailure> {
    let Cut::At(value, Side::After) = &cut else { return Ok(cut) };
    Ok(match of.next(value)? {
        Some(next) => Cut::At(next, Side::Before),
        None => cut,
    })
}

impl RangeSet {
    /// Returns the values between bounds.
    ///
    /// # Errors
    /// If the lower bound is greater than the upper one, or a value has no next one.
    pub fn of_bounds(
        of: RangeType,
        lower: RangeBound,
        upper: RangeBound,
    ) -> Result<Self, FunctionFailure> {
        Ok(Self { spans: Span::of_bounds(of, lower, upper)?.into_iter().collect() })
    }

    /// Returns a single value.
    pub(super) fn of_value(value: RangePoint) -> Self {
        let (lower, upper) = (Cut::At(value.clone(), Side::Before), Cut::At(value, Side::After));
        Self { spans: vec![Span { lower, upper }] }
    }

    /// Returns all values of sets.
    pub fn union(sets: impl IntoIterator<Item = Self>) -> Self {
        let mut all: Vec<Span> = sets.into_iter().flat_map(|set| set.spans).collect();
        all.sort();
        let mut spans: Vec<Span> = Vec::with_capacity(all.len());
        for span in all {
            match spans.last_mut().filter(|last| span.lower <= last.upper) {
                Some(last) if last.upper < span.upper => last.upper = span.upper,
                Some(_) => {}
                None => spans.push(span),
            }
        }
        Self { spans }
    }

    /// Returns each span as a range.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Self> {
        self.spans.iter().map(|span| Self { spans: vec![span.clone()] })
    }

    /// Returns the bytes that it takes, without the digits of numbers.
    pub(super) fn size(&self) -> usize {
        self.spans.capacity() * size_of::<Span>()
    }

    /// Returns the bounds of the ranges.
    pub fn bounds(&self) -> impl Iterator<Item = (RangeBound, RangeBound)> {
        let bound = |cut: &Cut, inclusive: Side| match cut {
            Cut::Start | Cut::End => RangeBound { value: None, is_inclusive: false },
            Cut::At(value, side) => {
                RangeBound { value: Some(value.clone()), is_inclusive: *side == inclusive }
            }
        };
        let bounds =
            move |span: &Span| (bound(&span.lower, Side::Before), bound(&span.upper, Side::After));
        self.spans.iter().map(bounds)
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the span from its first to its last value.
    pub(super) fn whole(&self) -> Option<Span> {
        let (first, last) = (self.spans.first()?, self.spans.last()?);
        Some(Span { lower: first.lower.clone(), upper: last.upper.clone() })
    }

    /// Returns it as a value of a type: of ranges, the one from its first to its last value.
    pub(super) fn merged_if(self, form: RangeForm) -> Self {
        if form.is_multi { self } else { self.merged() }
    }

    /// Returns the range from its first to its last value.
    pub(super) fn merged(&self) -> Self {
        Self { spans: self.whole().into_iter().collect() }
    }

    /// Whether all values of another set are in it.
    pub(super) fn contains(&self, other: &Self) -> bool {
        other.spans.iter().all(|part| self.spans.iter().any(|span| span.contains(part)))
    }

    /// Whether sets have a value in common.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        other.spans.iter().any(|part| self.spans.iter().any(|span| span.overlaps(part)))
    }

    /// Whether a relation holds between the whole spans of two sets that have values.
    fn related(&self, other: &Self, holds: impl Fn(&Span, &Span) -> bool) -> bool {
        matches!((self.whole(), other.whole()), (Some(left), Some(right)) if holds(&left, &right))
    }

    /// Whether all of its values are less than those of another set.
    pub(super) fn is_before(&self, other: &Self) -> bool {
        self.related(other, |left, right| left.upper <= right.lower)
    }

    /// Whether it has no value greater than all of another set.
    pub(super) fn ends_within(&self, other: &Self) -> bool {
        self.related(other, |left, right| left.upper <= right.upper)
    }

    /// Whether it has no value less than all of another set.
    pub(super) fn starts_within(&self, other: &Self) -> bool {
        self.related(other, |left, right| left.lower >= right.lower)
    }

    /// Whether they touch: they share no value, and no value lies between them.
    pub(super) fn is_adjacent(&self, other: &Self) -> bool {
        self.related(other, |left, right| left.upper == right.lower || right.upper == left.lower)
    }

    /// Returns the values that both sets have.
    pub(super) fn intersection(&self, other: &Self) -> Self {
        let spans = self.spans.iter().flat_map(|span| {
            other.spans.iter().filter_map(move |part| {
                let lower = (&span.lower).max(&part.lower);
                let upper = (&span.upper).min(&part.upper);
                Span::between(lower.clone(), upper.clone())
            })
        });
        Self { spans: spans.collect() }
    }

    /// Returns the values that another set does not have.
    pub(super) fn difference(&self, other: &Self) -> Self {
        let mut spans = Vec::new();
        for span in &self.spans {
            let mut rest = span.lower.clone();
            for part in other.spans.iter().filter(|part| part.overlaps(span)) {
                spans.extend(Span::between(rest, part.lower.clone()));
                rest = part.upper.clone();
            }
            spans.extend(Span::between(rest, span.upper.clone()));
        }
        Self { spans }
    }

    /// Writes bytes that compare as PostgreSQL compares the values: without values first, then by lower bounds, then by upper
    /// ones.
    pub fn write_order(&self, out: &mut Vec<u8>) {
        for span in &self.spans {
            for cut in [&span.lower, &span.upper] {
                match cut {
                    Cut::Start => out.push(1),
                    Cut::End => out.push(3),
                    Cut::At(value, side) => {
                        out.push(2);
                        value.write_order(out);
                        out.push(u8::from(*side == Side::After));
                    }
                }
            }
        }
        out.push(0);
    }

    /// Returns the set as a value of a type.
    ///
    /// # Errors
    /// If the result of `operation` must be one range and is not.
    pub(super) fn of_form(self, form: RangeForm, operation: &str) -> Result<Self, FunctionFailure> {
        if form.is_multi || self.spans.len() < 2 {
            return Ok(self);
        }
        let message = format!("result of range {operation} would not be contiguous");
        Err(FunctionFailure { state: "22000", message })
    }
}
