//! Which domains may have a line.

use std::ops::Range;

/// No domain, one, or more: in a byte, because there is one for each line of RAM. It includes all domains that
/// have the line, and some that have given it up: removing those would require access to
/// the byte of each evicted line, which is rarely cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sharers(u8);

impl Sharers {
    /// In no domain.
    pub(crate) const NOWHERE: Self = Self(0);
    /// Perhaps in every domain.
    pub(crate) const ANYWHERE: Self = Self(u8::MAX);

    /// In no domain except this one.
    #[inline]
    pub(crate) fn only(domain: usize) -> Self {
        u8::try_from(domain + 1).map_or(Self::ANYWHERE, Self)
    }

    /// The domains to search, out of this many.
    #[inline]
    pub(crate) fn search(self, domains: usize) -> Range<usize> {
        match self {
            Self::NOWHERE => 0..0,
            Self::ANYWHERE => 0..domains,
            Self(one) => usize::from(one) - 1..usize::from(one),
        }
    }

    /// After a domain has got the line in addition to those that have it.
    #[inline]
    pub(crate) fn and(self, domain: usize) -> Self {
        let one = Self::only(domain);
        if self == Self::NOWHERE || self == one { one } else { Self::ANYWHERE }
    }
}
