//! Relations in FROM, and clauses that become relations.

pub(super) mod asof;
pub(super) mod by_name;
pub(super) mod grouped_rows;
pub(super) mod json_rows;
pub(super) mod lateral;
pub(super) mod list_rows;
pub(super) mod percent;
pub(super) mod pivot;
pub(super) mod planned;
pub(super) mod positional;
pub(super) mod row_aliases;
pub(super) mod sampled;
pub(super) mod ties;
pub(super) mod unpivot;
pub(super) mod using;
pub(super) mod waiting_values;
