//! From a parsed statement to its plan.

mod argument_types;
pub(super) mod column_origin;
pub(super) mod declared_operands;
pub(super) mod domains;
pub(super) mod expand;
pub(super) mod frame_parameters;
pub(super) mod grouped_keys;
pub(super) mod modifying_with;
pub(super) mod planner;
pub(super) mod planning_times;
pub(super) mod query_planner;
pub(super) mod routine_calls;
pub(super) mod rule_parameters;
pub(super) mod same_names;
pub(super) mod steps;
pub(super) mod wide_tables;
