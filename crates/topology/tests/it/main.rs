//! What each family proves:
//!
//! - `sets`: list notation survives a round trip, and hostile lists are refused cheaply;
//! - `set_notation`: numactl's notation is resolved correctly, and nothing else is accepted;
//! - `machine`: queries are correct on uneven machines;
//! - `builder`: a described machine is complete, or a precise error;
//! - `synthetic`: descriptions give the described machine, and no text makes the parser panic;
//! - `round_trip`: discovery reads back every fake machine exactly as it was written;
//! - `generated`: discovery returns generated machines unchanged, also from the equivalent files of old kernels and
//!   copies;
//! - `odd_shapes`: what kernels, firmware and containers leave out or do differently;
//! - `limits`: control groups of both versions, nested and seen from containers;
//! - `malformed`: a file that cannot be parsed is named, and the machine is described without it;
//! - `live`: the machine that runs the tests matches `/proc`;
//! - `hmat`: the firmware's memory facts, caches of all levels and huge pages are read as written;
//! - `knowledge`: the right one of several facts is chosen, and facts are displayed well;
//! - `routes`: a route is the best of all paths, and assumed links are marked as such;
//! - `questions`: answers are as good as the best of an exhaustive search;
//! - `check`: every check reports its anomaly and is silent without it.

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
