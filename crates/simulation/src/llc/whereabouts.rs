//! Which domains may have a line.

use std::ops::Range;

/// No domain, one, or more: in a byte, because there is one for each line of RAM. All domains that
/// have the line are among them, and some that have given it up: to take those out would mean to read
/// the byte of each line that falls out of a cache, which is seldom near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sharers(u8);

impl Sharers {
    /// In no domain.
    pub(crate) const NOWHERE: Self = Self(0);
    /// Perhaps in every domain.
    pub(crate) const ANYWHERE: Self = Self(u8::MAX);

    /// In no domain but this one.
    #[inline]
    pub(crate) fn only(domain: usize) -> Self {
        u8::try_from(domain + 1).map_or(Self::ANYWHERE, Self)
    }

    /// The domains to search, of so many.
    #[inline]
    pub(crate) fn search(self, domains: usize) -> Range<usize> {
        match self {
            Self::NOWHERE => 0..0,
            Self::ANYWHERE => 0..domains,
            Self(one) => usize::from(one) - 1..usize::from(one),
        }
    }

    /// After a domain has got the line beside those that have it.
    #[inline]
    pub(crate) fn and(self, domain: usize) -> Self {
        let one = Self::only(domain);
        if self == Self::NOWHERE || self == one { one } else { Self::ANYWHERE }
    }
}
