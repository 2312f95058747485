//! Typed ids of the kernel and of Atoll, and quantities with their unit in the type.

use std::fmt;
use std::str::FromStr;

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

/// Why a text is not a number of bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BytesError {
    /// It cannot be parsed.
    #[error("invalid amount of memory '{0}'; expected a size such as 8GiB or 512MB, or bytes")]
    Invalid(String),
    /// It is too large.
    #[error("amount of memory '{0}' is too large")]
    TooLarge(String),
    /// It is less than one byte.
    #[error(
        "amount of memory '{0}' is less than a byte; expected a size such as 8GiB or 512MB, or bytes"
    )]
    TooSmall(String),
}

impl FromStr for Bytes {
    type Err = BytesError;

    /// Parses `8GiB`, `512 MB`, `1.5g` or a number of bytes. `K`, `M`, `G` and `T`, with or without `iB`,
    /// are powers of 1024; `KB`, `MB`, `GB` and `TB` powers of 1000.
    fn from_str(text: &str) -> Result<Self, BytesError> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let number = number.parse::<f64>().ok().zip(factor(unit.trim()));
        let (number, factor) = number.ok_or_else(|| BytesError::Invalid(text.to_owned()))?;
        let bytes = number * factor;
        match bytes {
            ..1.0 => Err(BytesError::TooSmall(text.to_owned())),
            _ if bytes < u64::MAX as f64 => Ok(Self(bytes as u64)),
            _ => Err(BytesError::TooLarge(text.to_owned())),
        }
    }
}

fn factor(unit: &str) -> Option<f64> {
    let unit = unit.to_ascii_lowercase();
    let letter = unit.chars().next().unwrap_or('b');
    let power = "bkmgt".find(letter)? as i32;
    match unit.strip_prefix(letter).unwrap_or_default() {
        "" | "ib" if letter != 'b' || unit.len() <= 1 => Some(1024f64.powi(power)),
        "b" if letter != 'b' => Some(1000f64.powi(power)),
        _ => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_in_binary_and_decimal_units() {
        for (text, bytes) in [
            ("4096", 4096),
            ("10b", 10),
            ("8GiB", 8 << 30),
            ("8 gib", 8 << 30),
            ("1.5g", 3 << 29),
            ("512MB", 512_000_000),
            ("2K", 2048),
        ] {
            assert_eq!(text.parse::<Bytes>().unwrap(), Bytes(bytes), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_amounts() {
        for text in ["", "GiB", "-1", "8 apples", "1.2.3G", "0", "99999999999T", "8bb", "8bib", "é"]
        {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        let told = "0".parse::<Bytes>().unwrap_err().to_string();
        assert!(told.contains("less than a byte"), "{told}");
    }
}
