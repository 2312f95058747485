//! What `measure` promises, on fake machines with a simulated kernel (there figures mean nothing, and
//! which facts and notes there are means everything) and on the machine the tests run on.

mod fake;
mod independent;
mod live;
mod support;
mod trouble;
