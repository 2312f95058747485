//! A target that a run follows.

use atoll_elastic::session::TargetSession;

/// A target with its place among the others.
pub(super) struct Followed {
    pub(super) session: TargetSession,
    pub(super) priority: i64,
    /// Nothing was decided yet.
    pub(super) is_new: bool,
    /// It has ended, or may not be followed any longer.
    pub(super) is_over: bool,
}
