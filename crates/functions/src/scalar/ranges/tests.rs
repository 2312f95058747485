//! Ranges against sets of integers, and answers of PostgreSQL 15.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::point::RangePoint;
use super::set::{RangeBound, RangeSet};
use super::{RangeForm, RangeType};
use crate::temporal::StatementClock;

/// In UTC, and in the default styles.
fn clock() -> StatementClock<'static> {
    StatementClock::default()
}

const INTS: RangeForm = RangeForm::multi(RangeType::Int4);

#[test]
fn texts_are_those_of_postgresql() {
    use RangeType::{Date, Int4, Int8, Num, Ts, Tstz};
    for (of, text, wanted) in [
        (Int4, "[1,5]", Ok("[1,6)")),
        (Int4, " ( 1 , 5 ] ", Ok("[2,6)")),
        (Int4, "(1,2)", Ok("empty")),
        (Int4, "[3,3)", Ok("empty")),
        (Int4, "(3,3]", Ok("empty")),
        (Int4, "[3,3]", Ok("[3,4)")),
        (Int4, "EMPTY ", Ok("empty")),
        (Int4, "(,)", Ok("(,)")),
        (Int4, "[,]", Ok("(,)")),
        (Int4, "[1,\"5\")", Ok("[1,5)")),
        (Int4, "[\\1,5)", Ok("[1,5)")),
        (Int4, "(2147483647,2147483647]", Ok("empty")),
        (Int4, "[1,5", Err("22P02")),
        (Int4, "1,5]", Err("22P02")),
        (Int4, "[1]", Err("22P02")),
        (Int4, "[1,2,3]", Err("22P02")),
        (Int4, "[1,2]x", Err("22P02")),
        (Int4, "empty x", Err("22P02")),
        (Int4, "", Err("22P02")),
        (Int4, "[\"\",5)", Err("22P02")),
        (Int4, "[a,5)", Err("22P02")),
        (Int4, "[5,1]", Err("22000")),
        (Int4, "[1,99999999999]", Err("22003")),
        (Int4, "[1,2147483647]", Err("22003")),
        (Int8, "[1,9223372036854775806]", Ok("[1,9223372036854775807)")),
        (Int8, "[1,9223372036854775807]", Err("22003")),
        (Num, "[1.10,2.0]", Ok("[1.10,2.0]")),
        (Num, "(1,1.0)", Ok("empty")),
        (Num, "[-0.0,1e3]", Ok("[0.0,1000]")),
        (Num, "[nan,]", Ok("[NaN,)")),
        (Num, "[-inf,infinity]", Ok("[-Infinity,Infinity]")),
        (Date, "[2024-01-01,2024-01-31]", Ok("[2024-01-01,2024-02-01)")),
        (Date, "(-infinity,infinity]", Ok("(-infinity,infinity]")),
        (Date, "[x,)", Err("22007")),
        (Ts, "[2024-01-01,2024-01-02]", Ok("[\"2024-01-01 00:00:00\",\"2024-01-02 00:00:00\"]")),
        (Tstz, "[2024-01-01 10:00+02,)", Ok("[\"2024-01-01 08:00:00+00\",)")),
    ] {
        let found = RangeForm::range(of).canonical(text, clock());
        let found = found.as_deref().map_err(|failure| failure.state);
        assert_eq!(found, wanted, "{text}");
    }
}

#[test]
fn multiranges_have_gaps_between_their_ranges() {
    for (text, wanted) in [
        ("{}", Ok("{}")),
        (" { } ", Ok("{}")),
        ("{empty}", Ok("{}")),
        ("{[1,3),[2,5), [7,8]}", Ok("{[1,5),[7,9)}")),
        ("{[5,6),[1,2), empty}", Ok("{[1,2),[5,6)}")),
        ("{[1,2),[2,3)}", Ok("{[1,3)}")),
        ("{(,)}", Ok("{(,)}")),
        ("{[1,3)", Err("22P02")),
        ("{1}", Err("22P02")),
        ("{} x", Err("22P02")),
        ("[1,3)", Err("22P02")),
        ("{[1,2)[3,4)}", Err("22P02")),
        ("{,[1,2)}", Err("22P02")),
    ] {
        let found = INTS.canonical(text, clock());
        assert_eq!(found.as_deref().map_err(|failure| failure.state), wanted, "{text}");
    }
}

#[test]
fn a_zone_of_the_session_is_that_of_texts_without_one() {
    let form = RangeForm::range(RangeType::Tstz);
    let berlin = StatementClock { time_zone: Some("Europe/Berlin"), ..StatementClock::default() };
    let text = form.canonical("[2024-01-01 10:00,2024-07-01 10:00+00)", berlin).expect("a range");
    assert_eq!(text, "[\"2024-01-01 09:00:00+00\",\"2024-07-01 10:00:00+00\")");
    let zone = "Europe/Berlin".parse().expect("it is known");
    let shown = form.text(&form.read(&text, clock()).expect("a range"), Some(zone));
    assert_eq!(shown, "[\"2024-01-01 10:00:00+01\",\"2024-07-01 12:00:00+02\")");
}

fn order(form: RangeForm, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    form.read(text, clock()).expect(text).write_order(&mut out);
    out
}

#[test]
fn ranges_have_the_order_of_postgresql() {
    let rising = [
        "empty",
        "(,-5)",
        "(,5)",
        "(,5]",
        "(,)",
        "[-2.5,1)",
        "(-2.5,1)",
        "[-0.01,0)",
        "[0,1)",
        "[0,1]",
        "[0,1.5)",
        "[0,10)",
        "[0,)",
        "(0,1)",
        "[0.5,1)",
        "[9,10)",
        "[10,11)",
        "[NaN,)",
    ];
    let of = RangeForm::range(RangeType::Num);
    for pair in rising.windows(2) {
        assert!(order(of, pair[0]) < order(of, pair[1]), "{} {}", pair[0], pair[1]);
    }
    assert_eq!(order(of, "[1.0,2)"), order(of, "[1,2.00)"));
    let rising = ["{}", "{(,1)}", "{[1,2)}", "{[1,2),[3,4)}", "{[1,2),[4,5)}", "{[1,3)}"];
    for pair in rising.windows(2) {
        assert!(order(INTS, pair[0]) < order(INTS, pair[1]), "{} {}", pair[0], pair[1]);
    }
}

/// The values from -3 to 12, beyond which there are only infinite bounds.
type Model = BTreeSet<i64>;

const ALL: std::ops::Range<i64> = -3..13;

#[derive(Clone, Debug)]
struct Given {
    lower: (Option<i64>, bool),
    upper: (Option<i64>, bool),
}

fn given() -> impl Strategy<Value = Given> {
    let bound = || (prop::option::weighted(0.8, 0_i64..10), any::<bool>());
    (bound(), bound()).prop_map(|(one, two)| match (one.0, two.0) {
        (Some(from), Some(to)) if from > to => Given { lower: two, upper: one },
        _ => Given { lower: one, upper: two },
    })
}

impl Given {
    fn model(&self) -> Model {
        let (lower, upper) = (self.lower, self.upper);
        let is_in = |value: &i64| {
            lower.0.is_none_or(|from| from < *value || from == *value && lower.1)
                && upper.0.is_none_or(|to| *value < to || to == *value && upper.1)
        };
        ALL.filter(is_in).collect()
    }

    fn set(&self) -> RangeSet {
        let bound = |(value, is_inclusive): (Option<i64>, bool)| RangeBound {
            value: value.map(RangePoint::Whole),
            is_inclusive,
        };
        RangeSet::of_bounds(RangeType::Int4, bound(self.lower), bound(self.upper))
            .expect("in order")
    }
}

fn model(all: &[Given]) -> Model {
    all.iter().flat_map(Given::model).collect()
}

fn set(all: &[Given]) -> RangeSet {
    RangeSet::union(all.iter().map(Given::set))
}

/// The values of a set.
fn values(set: &RangeSet) -> Model {
    ALL.filter(|value| set.contains(&RangeSet::of_value(RangePoint::Whole(*value)).discrete()))
        .collect()
}

impl RangeSet {
    /// A single integer as ranges of integers have it.
    fn discrete(&self) -> Self {
        let bounds = self.bounds().next().expect("a value");
        Self::of_bounds(RangeType::Int4, bounds.0, bounds.1).expect("in order")
    }
}

proptest! {
    #[test]
    fn sets_have_the_values_of_their_model(
        one in prop::collection::vec(given(), 0..4),
        two in prop::collection::vec(given(), 0..4),
    ) {
        let (left, right) = (set(&one), set(&two));
        let (is_in, is_there) = (model(&one), model(&two));
        prop_assert_eq!(values(&left), is_in.clone());
        prop_assert_eq!(left.is_empty(), is_in.is_empty());
        let union = RangeSet::union([left.clone(), right.clone()]);
        prop_assert_eq!(values(&union), &is_in | &is_there);
        prop_assert_eq!(values(&left.intersection(&right)), &is_in & &is_there);
        prop_assert_eq!(values(&left.difference(&right)), &is_in - &is_there);
        prop_assert_eq!(left.contains(&right), is_there.is_subset(&is_in));
        prop_assert_eq!(left.overlaps(&right), !is_in.is_disjoint(&is_there));
        let ends = (is_in.first(), is_in.last(), is_there.first(), is_there.last());
        let (before, ends_within, starts_within) = match ends {
            (Some(from), Some(to), Some(first), Some(last)) => (to < first, to <= last, from >= first),
            _ => (false, false, false),
        };
        prop_assert_eq!(left.is_before(&right), before);
        prop_assert_eq!(left.ends_within(&right), ends_within);
        prop_assert_eq!(left.starts_within(&right), starts_within);
        let touches = |to: Option<&i64>, from: Option<&i64>| matches!((to, from), (Some(to), Some(from)) if to + 1 == *from);
        let adjacent = touches(ends.1, ends.2) || touches(ends.3, ends.0);
        prop_assert_eq!(left.is_adjacent(&right), adjacent);
        // What is written is read as the same, and what is equal has one text.
        let text = INTS.text(&union, None);
        prop_assert_eq!(INTS.canonical(&text, clock()), Ok(text.clone()));
        let other_way = RangeSet::union(two.iter().chain(&one).map(Given::set));
        prop_assert_eq!(INTS.text(&other_way, None), text);
    }

    #[test]
    fn orders_are_those_of_bounds(one in given(), two in given()) {
        let (left, right) = (one.set(), two.set());
        let bytes = |set: &RangeSet| {
            let mut out = Vec::new();
            set.write_order(&mut out);
            out
        };
        prop_assert_eq!(bytes(&left).cmp(&bytes(&right)), left.cmp(&right));
        prop_assert_eq!(left == right, one.model() == two.model());
    }

    #[test]
    fn texts_are_read_or_refused(text in "[\\[({]?[0-9a-z,.:\"\\\\ -]{0,16}[\\])}]?") {
        for form in RangeForm::all() {
            if let Ok(canonical) = form.canonical(&text, clock()) {
                prop_assert_eq!(form.canonical(&canonical, clock()), Ok(canonical.clone()));
            }
        }
    }
}
