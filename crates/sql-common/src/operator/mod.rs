//! What operators and optimizer rules of ours have in common.
//!
//! - [`PassThroughExec`] is an operator that hands on the rows of its one input; what it does with them is
//!   its [`PassThrough`].
//! - [`leaf`] writes the methods of an operator without inputs.
//! - [`delegate_to`] writes the methods of an operator that stands in for another one.
//! - [`StatementParts`] shows the plans of a statement of several parts.
//! - [`BottomUp`] is a rule that looks at every operator of a plan by itself.
//! - [`changed_context`] is the context for inputs that run in another one.

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
