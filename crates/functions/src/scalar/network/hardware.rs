//! MAC addresses.

use std::fmt;

/// The six bytes of a MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HardwareAddress(pub(super) [u8; 6]);

impl HardwareAddress {
    /// Reads one of the forms that PostgreSQL takes: six bytes after colons or hyphens, two halves of six digits, three
    /// groups of four digits after points or hyphens, or twelve digits.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        for (separator, count) in [(':', 6), ('-', 6), (':', 2), ('-', 2), ('.', 3), ('-', 3)] {
            let groups: Vec<&str> = text.split(separator).collect();
            if groups.len() == count {
                return Self::from_groups(&groups);
            }
        }
        Self::from_groups(&[text])
    }

    fn from_groups(groups: &[&str]) -> Option<Self> {
        let width = 12 / groups.len();
        let fits = |group: &&str| {
            // Single bytes may have one digit.
            let lengths = if width == 2 { 1..=2 } else { width..=width };
            lengths.contains(&group.len()) && group.bytes().all(|it| it.is_ascii_hexdigit())
        };
        if !groups.iter().all(fits) {
            return None;
        }
        let digits: String = groups.iter().map(|group| format!("{group:0>width$}")).collect();
        let word = u64::from_str_radix(&digits, 16).ok()?;
        let [_, _, bytes @ ..] = word.to_be_bytes();
        Some(Self(bytes))
    }

    /// Returns the maker's part, with the rest zero.
    pub(super) fn truncated(self) -> Self {
        let [a, b, c, ..] = self.0;
        Self([a, b, c, 0, 0, 0])
    }
}

impl fmt::Display for HardwareAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}
