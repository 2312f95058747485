//! Sets of cpus and of nodes in the kernel's list notation (`0-3,8`).

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;

use crate::{CpuId, NodeId};

/// Largest number in a set: beyond any Linux build (`NR_CPUS` is at most 8192), and small enough that hostile input
/// cannot make a set exhaust memory.
pub const SET_NUMBER_MAX: u32 = 65_535;

/// A set of ids, ordered by number.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdSet<T> {
    numbers: BTreeSet<u32>,
    id: PhantomData<T>,
}

/// A set of cpus.
pub type CpuSet = IdSet<CpuId>;
/// A set of nodes.
pub type NodeSet = IdSet<NodeId>;

/// Why a text is not a set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a set of numbers: {reason}; expected a list such as 0-3,8")]
pub struct SetError {
    /// The text as given, its first 80 characters.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

impl<T: From<u32> + Into<u32> + Copy> IdSet<T> {
    /// The empty set.
    pub fn new() -> Self {
        Self { numbers: BTreeSet::new(), id: PhantomData }
    }

    /// Parses the kernel's list notation; blank text is the empty set.
    pub fn parse(text: &str) -> Result<Self, SetError> {
        let fail =
            |reason: String| SetError { text: text.trim().chars().take(80).collect(), reason };
        let number = |part: &str| -> Result<u32, SetError> {
            match part.trim().parse::<u32>() {
                Ok(n) if n <= SET_NUMBER_MAX => Ok(n),
                Ok(n) => Err(fail(format!("{n} is above {SET_NUMBER_MAX}"))),
                Err(_) => Err(fail(format!("'{:.40}' is not a number", part.trim()))),
            }
        };
        if text.trim().is_empty() {
            return Ok(Self::new());
        }
        let mut ranges = Vec::new();
        for part in text.trim().split(',') {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(fail(format!("the range {first}-{last} runs backwards")));
            }
            ranges.push((first, last));
        }
        Ok(Self { numbers: numbers_in(ranges), id: PhantomData })
    }

    /// Adds an id; returns whether it is new.
    pub fn insert(&mut self, id: T) -> bool {
        self.numbers.insert(id.into())
    }

    /// Removes an id; returns whether it was present.
    pub fn remove(&mut self, id: T) -> bool {
        self.numbers.remove(&id.into())
    }

    /// Whether the id is in the set.
    pub fn contains(&self, id: T) -> bool {
        self.numbers.contains(&id.into())
    }

    /// Number of ids.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The smallest id.
    pub fn first(&self) -> Option<T> {
        self.numbers.first().copied().map(T::from)
    }

    /// The largest id.
    pub fn last(&self) -> Option<T> {
        self.numbers.last().copied().map(T::from)
    }

    /// The ids in rising order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = T> + '_ {
        self.numbers.iter().copied().map(T::from)
    }

    /// Ids in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        self.numbers.intersection(&other.numbers).copied().map(T::from).collect()
    }

    /// Ids in either set.
    pub fn union(&self, other: &Self) -> Self {
        self.numbers.union(&other.numbers).copied().map(T::from).collect()
    }

    /// Ids in this set and not in the other.
    pub fn difference(&self, other: &Self) -> Self {
        self.numbers.difference(&other.numbers).copied().map(T::from).collect()
    }

    /// Whether every id of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.numbers.is_subset(&other.numbers)
    }
}

/// Numbers of inclusive ranges. Each number is visited once even if ranges overlap, so that the cost of hostile input
/// is linear in its length.
fn numbers_in(mut ranges: Vec<(u32, u32)>) -> BTreeSet<u32> {
    ranges.sort_unstable();
    let mut numbers = BTreeSet::new();
    let mut next = 0;
    for (first, last) in ranges {
        numbers.extend(first.max(next)..=last);
        next = next.max(last + 1);
    }
    numbers
}

impl<T: From<u32> + Into<u32> + Copy> Default for IdSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: From<u32> + Into<u32> + Copy> FromIterator<T> for IdSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(ids: I) -> Self {
        Self { numbers: ids.into_iter().map(Into::into).collect(), id: PhantomData }
    }
}

impl<T> fmt::Display for IdSet<T> {
    /// The kernel's list notation, shortest form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers = self.numbers.iter().copied().peekable();
        let mut separator = "";
        while let Some(first) = numbers.next() {
            let mut last = first;
            while numbers.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl<T> fmt::Debug for IdSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

impl<T> serde::Serialize for IdSet<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
