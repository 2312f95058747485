//! Kinds of joins.

/// Which rows a join returns, in SQL's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// Pairs of equal keys.
    Inner,
    /// Pairs, and left rows without a match.
    Left,
    /// Pairs, and right rows without a match.
    Right,
    /// Pairs, and rows of both sides without a match.
    Full,
    /// Left rows that have a match, once each.
    LeftSemi,
    /// Right rows that have a match, once each.
    RightSemi,
    /// Left rows without a match.
    LeftAnti,
    /// Right rows without a match.
    RightAnti,
}

/// Which rows of one side are returned without a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnmatchedRows {
    None,
    Matched,
    Unmatched,
}

impl JoinKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Inner,
        Self::Left,
        Self::Right,
        Self::Full,
        Self::LeftSemi,
        Self::RightSemi,
        Self::LeftAnti,
        Self::RightAnti,
    ];

    /// Whether pairs are returned.
    pub fn has_pairs(self) -> bool {
        matches!(self, Self::Inner | Self::Left | Self::Right | Self::Full)
    }

    pub(super) fn left_alone(self) -> UnmatchedRows {
        match self {
            Self::Left | Self::Full | Self::LeftAnti => UnmatchedRows::Unmatched,
            Self::LeftSemi => UnmatchedRows::Matched,
            _ => UnmatchedRows::None,
        }
    }

    pub(super) fn right_alone(self) -> UnmatchedRows {
        match self {
            Self::Right | Self::Full | Self::RightAnti => UnmatchedRows::Unmatched,
            Self::RightSemi => UnmatchedRows::Matched,
            _ => UnmatchedRows::None,
        }
    }
}
