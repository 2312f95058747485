//! Terms and guards: numbers, names of token fields, parameters, sums and products; comparisons of them, and
//! conjunctions and disjunctions.

use std::fmt;
use std::ops::{Add, Mul, Sub};

/// A term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// A number.
    Number(i64),
    /// A field of a token, by its name on the arc; else a parameter of the net.
    Name(&'static str),
    /// A sum.
    Sum(Box<Term>, Box<Term>),
    /// A difference.
    Difference(Box<Term>, Box<Term>),
    /// A product.
    Product(Box<Term>, Box<Term>),
}

/// The field or parameter with this name.
pub(super) const fn name(name: &'static str) -> Term {
    Term::Name(name)
}

impl Term {
    /// Its value; `lookup` resolves names. Returns None for an unknown name or a value beyond 64 bits.
    pub fn value(&self, lookup: &impl Fn(&str) -> Option<i64>) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Name(name) => lookup(name),
            Self::Sum(a, b) => a.value(lookup)?.checked_add(b.value(lookup)?),
            Self::Difference(a, b) => a.value(lookup)?.checked_sub(b.value(lookup)?),
            Self::Product(a, b) => a.value(lookup)?.checked_mul(b.value(lookup)?),
        }
    }

    fn factor(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sum(..) | Self::Difference(..) => write!(f, "({self})"),
            _ => write!(f, "{self}"),
        }
    }
}

impl From<i64> for Term {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl<T: Into<Term>> Add<T> for Term {
    type Output = Self;
    fn add(self, other: T) -> Self {
        Self::Sum(Box::new(self), Box::new(other.into()))
    }
}

impl<T: Into<Term>> Sub<T> for Term {
    type Output = Self;
    fn sub(self, other: T) -> Self {
        Self::Difference(Box::new(self), Box::new(other.into()))
    }
}

impl<T: Into<Term>> Mul<T> for Term {
    type Output = Self;
    fn mul(self, other: T) -> Self {
        Self::Product(Box::new(self), Box::new(other.into()))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
            Self::Sum(a, b) => write!(f, "{a} + {b}"),
            Self::Difference(a, b) => {
                write!(f, "{a} - ")?;
                b.factor(f)
            }
            Self::Product(a, b) => {
                a.factor(f)?;
                f.write_str(" * ")?;
                b.factor(f)
            }
        }
    }
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Less than.
    Less,
    /// Less than or equal.
    AtMost,
    /// Equal.
    Equal,
}

/// A guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// A comparison of two terms.
    Compare(Term, Comparison, Term),
    /// All of these hold; true if empty.
    All(Vec<Guard>),
    /// One of these holds.
    Any(Vec<Guard>),
}

impl Guard {
    /// Always holds.
    pub const ALWAYS: Self = Self::All(Vec::new());

    /// Whether it holds; false if it cannot be computed.
    pub fn holds(&self, lookup: &impl Fn(&str) -> Option<i64>) -> bool {
        self.decided(lookup) == Some(true)
    }

    /// Whether it holds for the known names; None if they do not decide it.
    pub fn decided(&self, lookup: &impl Fn(&str) -> Option<i64>) -> Option<bool> {
        match self {
            Self::All(all) => decided(all, lookup, false),
            Self::Any(any) => decided(any, lookup, true),
            Self::Compare(a, comparison, b) => {
                let (a, b) = (a.value(lookup)?, b.value(lookup)?);
                Some(match comparison {
                    Comparison::Less => a < b,
                    Comparison::AtMost => a <= b,
                    Comparison::Equal => a == b,
                })
            }
        }
    }

    /// Both.
    pub(super) fn and(self, other: Self) -> Self {
        match self {
            Self::All(mut all) => {
                all.push(other);
                Self::All(all)
            }
            first => Self::All(vec![first, other]),
        }
    }

    /// Either.
    pub(super) fn or(self, other: Self) -> Self {
        match self {
            Self::Any(mut any) => {
                any.push(other);
                Self::Any(any)
            }
            first => Self::Any(vec![first, other]),
        }
    }
}

/// The result of several guards, of which one equal to `enough` decides.
fn decided(guards: &[Guard], lookup: &impl Fn(&str) -> Option<i64>, enough: bool) -> Option<bool> {
    let mut is_known = true;
    for guard in guards {
        match guard.decided(lookup) {
            Some(holds) if holds == enough => return Some(enough),
            Some(_) => {}
            None => is_known = false,
        }
    }
    is_known.then_some(!enough)
}

pub(super) fn less(a: impl Into<Term>, b: impl Into<Term>) -> Guard {
    Guard::Compare(a.into(), Comparison::Less, b.into())
}

pub(super) fn at_most(a: impl Into<Term>, b: impl Into<Term>) -> Guard {
    Guard::Compare(a.into(), Comparison::AtMost, b.into())
}

pub(super) fn equal(a: impl Into<Term>, b: impl Into<Term>) -> Guard {
    Guard::Compare(a.into(), Comparison::Equal, b.into())
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compare(a, Comparison::Less, b) => write!(f, "{a} < {b}"),
            Self::Compare(a, Comparison::AtMost, b) => write!(f, "{a} <= {b}"),
            Self::Compare(a, Comparison::Equal, b) => write!(f, "{a} = {b}"),
            Self::All(all) if all.is_empty() => f.write_str("always"),
            Self::All(all) => joined(f, all, " and ", |guard| matches!(guard, Self::Any(_))),
            Self::Any(any) => joined(f, any, " or ", |guard| matches!(guard, Self::All(_))),
        }
    }
}

fn joined(
    f: &mut fmt::Formatter<'_>,
    guards: &[Guard],
    word: &str,
    in_parentheses: impl Fn(&Guard) -> bool,
) -> fmt::Result {
    for (i, guard) in guards.iter().enumerate() {
        if i > 0 {
            f.write_str(word)?;
        }
        match in_parentheses(guard) {
            true => write!(f, "({guard})")?,
            false => write!(f, "{guard}")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_is_printed_and_evaluated() {
        let surplus = less(name("u") * name("n"), (name("most") - 10) * (name("n") - 1));
        assert_eq!(surplus.to_string(), "u * n < (most - 10) * (n - 1)");
        let guard = surplus.and(equal(name("v"), 0).or(at_most(1, name("f"))));
        assert_eq!(guard.to_string(), "u * n < (most - 10) * (n - 1) and (v = 0 or 1 <= f)");
        let lookup = |values: [i64; 5]| {
            move |name: &str| {
                ["u", "n", "most", "v", "f"].iter().position(|it| *it == name).map(|i| values[i])
            }
        };
        assert!(guard.holds(&lookup([29, 2, 70, 0, 0])));
        assert!(guard.holds(&lookup([29, 2, 70, 3, 1])));
        assert!(!guard.holds(&lookup([29, 2, 70, 3, 0])));
        assert!(!guard.holds(&lookup([30, 2, 70, 0, 0])));
    }

    #[test]
    fn a_guard_without_a_value_does_not_hold() {
        let nothing = |_: &str| None;
        assert!(!at_most(name("u"), 1).holds(&nothing));
        assert_eq!((Term::Number(i64::MAX) + 1).value(&nothing), None);
        assert!(Guard::ALWAYS.holds(&nothing));
        assert!(!Guard::Any(Vec::new()).holds(&nothing));
    }
}
