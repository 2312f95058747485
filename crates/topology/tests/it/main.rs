//! What each family proves:
//!
//! - `sets`: list notation survives a round trip, and hostile lists are refused cheaply;
//! - `set_notation`: numactl's notation means on a machine what it says, and nothing else is read;
//! - `machine`: questions to a machine have the right answers on uneven ones;
//! - `builder`: a described machine is whole, or a precise error;
//! - `synthetic`: descriptions give the machine they say, and no text makes the parser panic;
//! - `round_trip`: discovery reads back every fake machine exactly as it was written;
//! - `generated`: what discovery says of machines that do not exist is what their generator meant, and what
//!   old kernels and copies make of the same files says the same;
//! - `odd_shapes`: what kernels, firmware and containers leave out or do differently;
//! - `limits`: control groups of both versions, nested and seen from containers;
//! - `malformed`: a file that cannot be understood is named, and the machine described without it;
//! - `live`: the machine that runs the tests is what `/proc` says it is;
//! - `hmat`: what firmware tells of memory, caches of all levels and huge pages are read as written;
//! - `knowledge`: of several facts the right one is believed, and facts read well;
//! - `routes`: a route is the best of all ways, and assumed links are not more than they claim;
//! - `questions`: answers are as good as the best of all possible ones;
//! - `check`: every check fires on its oddity and is silent without it.

mod builder;
mod check;
mod generated;
mod hmat;
mod knowledge;
mod limits;
mod live;
mod machine;
mod malformed;
mod odd_shapes;
mod questions;
mod round_trip;
mod routes;
mod set_notation;
mod sets;
mod synthetic;
