//! The columns of a query: their names, stars, and the facts needed about them before planning.

pub(super) mod aliases;
pub(super) mod columns_call;
pub(super) mod names;
pub(super) mod needs;
pub(super) mod order_by_all;
pub(super) mod postgres_names;
pub(super) mod reused;
pub(super) mod stars;
pub(super) mod table_stars;
