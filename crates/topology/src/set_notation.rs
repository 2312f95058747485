//! Sets in numactl's notation: `0-3,8`, `+0-1` (relative to the allowed set), `!0`, `all`, `same`.
//!
//! Parsing is independent of a machine; [`SetSpec::resolve`] applies a set to what is allowed and what exists. Octal
//! numbers and signs in the middle of a list, which numactl accepts, are errors here.

use std::fmt;
use std::str::FromStr;

use crate::{IdSet, SetError};

/// A parsed set, before it is resolved on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetSpec {
    /// `same`: the set written elsewhere on the command line.
    Same,
    /// `all`: everything allowed.
    All,
    /// A list of numbers, after the signs `!` (everything allowed except these) and `+` (positions in the allowed set,
    /// from 0).
    List {
        /// Whether it is prefixed with `!`.
        is_inverted: bool,
        /// Whether it is prefixed with `+`.
        is_relative: bool,
        /// Its numbers or positions.
        numbers: IdSet<u32>,
    },
}

/// Why a text is not a set in this notation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetSpecError {
    /// The list cannot be parsed.
    #[error(transparent)]
    List(#[from] SetError),
    /// An ambiguous or empty notation.
    #[error("'{text}' is not a set: {reason}; expected 0-3,8 or +0-1 or !0 or all or same")]
    Notation {
        /// The text as given, its first 80 characters.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A node named by a device.
    #[error(
        "'{text}' names a node by a device, which is not supported; find its number in \
         /sys/class/net/DEVICE/device/numa_node, /sys/block/DEVICE/device/numa_node or \
         /sys/bus/pci/devices/ADDRESS/numa_node, and write that"
    )]
    Device {
        /// The text as given, its first 80 characters.
        text: String,
    },
}

/// A set resolved on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedSet<T> {
    /// What exists and is allowed.
    pub usable: IdSet<T>,
    /// What exists but is not allowed.
    pub forbidden: IdSet<T>,
    /// What does not exist; for a relative set, the positions beyond the end.
    pub missing: IdSet<T>,
}

impl FromStr for SetSpec {
    type Err = SetSpecError;

    /// Parses the notation. Numbers are limited as in [`IdSet::parse`].
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        match text {
            "same" => return Ok(Self::Same),
            "all" => return Ok(Self::All),
            _ => {}
        }
        let (is_inverted, rest) = sign(text, '!');
        let (is_relative, list) = sign(rest, '+');
        check(text, list)?;
        Ok(Self::List { is_inverted, is_relative, numbers: IdSet::parse(list)? })
    }
}

impl SetSpec {
    /// Resolves the set where `allowed` may be used and `all` exists; `allowed` counts as existing.
    /// [`Same`](Self::Same), a reference to another set, is treated as [`All`](Self::All); the caller, who knows the
    /// other set, replaces it before.
    pub fn resolve<T>(&self, allowed: &IdSet<T>, all: &IdSet<T>) -> ResolvedSet<T>
    where
        T: From<u32> + Into<u32> + Copy,
    {
        let named = match self {
            Self::Same | Self::All => return usable(allowed.clone()),
            Self::List { is_relative: true, numbers, .. } => at_positions(numbers, allowed),
            Self::List { numbers, .. } => absolute(numbers, allowed, all),
        };
        match self {
            Self::List { is_inverted: true, .. } => ResolvedSet {
                usable: allowed.difference(&named.usable),
                // Excluded, so neither refused nor missing.
                ..usable(IdSet::new())
            },
            _ => named,
        }
    }
}

fn usable<T: From<u32> + Into<u32> + Copy>(usable: IdSet<T>) -> ResolvedSet<T> {
    ResolvedSet { usable, forbidden: IdSet::new(), missing: IdSet::new() }
}

fn absolute<T>(numbers: &IdSet<u32>, allowed: &IdSet<T>, all: &IdSet<T>) -> ResolvedSet<T>
where
    T: From<u32> + Into<u32> + Copy,
{
    let named: IdSet<T> = numbers.iter().map(T::from).collect();
    let existing = all.union(allowed);
    ResolvedSet {
        usable: named.intersection(allowed),
        forbidden: named.intersection(&existing).difference(allowed),
        missing: named.difference(&existing),
    }
}

fn at_positions<T>(positions: &IdSet<u32>, allowed: &IdSet<T>) -> ResolvedSet<T>
where
    T: From<u32> + Into<u32> + Copy,
{
    let mut resolved = usable(IdSet::new());
    for (position, id) in (0_u32..).zip(allowed.iter()) {
        if positions.contains(position) {
            resolved.usable.insert(id);
        }
    }
    let count = allowed.len() as u32;
    resolved.missing = positions.iter().filter(|at| *at >= count).map(T::from).collect();
    resolved
}

fn sign(text: &str, sign: char) -> (bool, &str) {
    match text.strip_prefix(sign) {
        Some(rest) => (true, rest),
        None => (false, text),
    }
}

fn check(text: &str, list: &str) -> Result<(), SetSpecError> {
    let shown = || text.chars().take(80).collect::<String>();
    let is_device = list.split_once(':').is_some_and(|(kind, _)| {
        !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphabetic())
    });
    if is_device {
        return Err(SetSpecError::Device { text: shown() });
    }
    match fault(list) {
        Some(reason) => Err(SetSpecError::Notation { text: shown(), reason }),
        None => Ok(()),
    }
}

fn fault(list: &str) -> Option<&'static str> {
    let mut numbers = list.split([',', '-']).map(str::trim);
    if list.is_empty() {
        Some("it names nothing")
    } else if list.contains(['+', '!']) {
        Some("a sign stands once, before the whole list, and ! before +")
    } else if matches!(list, "all" | "same") {
        Some("all and same take no sign")
    } else if numbers.any(|number| number.len() > 1 && number.starts_with('0')) {
        Some("a number with a leading zero is octal or hexadecimal to numactl; write it in decimal")
    } else {
        None
    }
}

impl fmt::Display for SetSpec {
    /// The notation, shortest form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => f.write_str("same"),
            Self::All => f.write_str("all"),
            Self::List { is_inverted, is_relative, numbers } => {
                let signs = [(*is_inverted, '!'), (*is_relative, '+')];
                for (_, sign) in signs.into_iter().filter(|(is_set, _)| *is_set) {
                    write!(f, "{sign}")?;
                }
                write!(f, "{numbers}")
            }
        }
    }
}
