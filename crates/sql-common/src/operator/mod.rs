//! Shared code of Atoll's operators and optimizer rules.
//!
//! - [`PassThroughExec`] is an operator that passes on the rows of its one input; its [`PassThrough`] defines
//!   what it does with them.
//! - [`leaf`] generates the methods of an operator without inputs.
//! - [`delegate_to`] generates the methods of an operator that wraps another one.
//! - [`StatementParts`] shows the plans of a statement that has several parts.
//! - [`BottomUp`] is a rule that looks at one operator of a plan at a time.
//! - [`changed_context`] is the context for inputs that run with other settings.

mod bottom_up;
mod context;
mod leaf;
mod pass_through;
mod stand_in;
mod statement_parts;

pub use bottom_up::{BottomUp, OperatorRule};
pub use context::changed_context;
pub use leaf::leaf;
pub use pass_through::{PassThrough, PassThroughExec};
pub use stand_in::delegate_to;
pub use statement_parts::{StatementParts, StatementPartsPlanner};
