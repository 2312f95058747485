//! Numbers.

pub(super) mod angles;
pub(super) mod decimals;
pub(super) mod numbers;
pub(super) mod rounded;
pub(super) mod templates;
pub(super) mod truncated;
