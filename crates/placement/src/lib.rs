//! placement
mod budget;
mod error;
mod kernel;

pub use budget::{Budget, BudgetExceeded};
pub use error::KernelError;
pub use kernel::{Kernel, Mapping, Policy};
