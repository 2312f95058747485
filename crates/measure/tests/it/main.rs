//! The contract of `measure`, on fake machines with a simulated kernel (where the figures are meaningless and only the
//! existence of facts and notes counts) and on the machine the tests run on.

mod fake;
mod independent;
mod live;
mod support;
mod trouble;
