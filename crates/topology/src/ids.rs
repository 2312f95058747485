//! The numbers by which the kernel names things, and quantities with their unit in the type.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<u32> for $name {
            fn from(number: u32) -> Self {
                Self(number)
            }
        }

        impl From<$name> for u32 {
            fn from(id: $name) -> u32 {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id!(
    /// A NUMA node, by the kernel's number. Numbers may be sparse: never an index into a list.
    NodeId
);
id!(
    /// A package (socket), by the kernel's number.
    PackageId
);
id!(
    /// A domain: the cores that share a last-level cache. Numbered by Atoll, densely from 0, in the
    /// order of the smallest cpu of each.
    DomainId
);
id!(
    /// A core, numbered by Atoll, densely from 0, in the order of the smallest cpu of each: the
    /// kernel's core numbers repeat from package to package.
    CoreId
);
id!(
    /// A hardware thread, by the kernel's number.
    CpuId
);
id!(
    /// An interconnect link, numbered densely from 0 in the order of [`Machine::links`](crate::Machine).
    LinkId
);

/// A number of bytes.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    /// Binary units with one decimal from 10 KiB on: `512 B`, `31.2 GiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        if unit == 0 {
            f.pad(&format!("{} B", self.0))
        } else {
            f.pad(&format!("{value:.1} {}", UNITS[unit]))
        }
    }
}

/// A time in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, PartialOrd, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub f64);

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1} ns", self.0))
    }
}
