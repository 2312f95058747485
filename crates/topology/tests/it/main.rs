//! What each family proves:
//!
//! - `sets`: list notation survives a round trip, and hostile lists are refused cheaply;
//! - `machine`: questions to a machine have the right answers on uneven ones;
//! - `builder`: a described machine is whole, or a precise error;
//! - `synthetic`: descriptions give the machine they say, and no text makes the parser panic;
//! - `round_trip`: discovery reads back every fake machine exactly as it was written;
//! - `odd_shapes`: what kernels, firmware and containers leave out or do differently;
//! - `limits`: control groups of both versions, nested and seen from containers;
//! - `malformed`: a file that cannot be understood is an error that names it;
//! - `live`: the machine that runs the tests is what `/proc` says it is;
//! - `render`: trees as people see them, JSON as programs do.

mod builder;
mod limits;
mod live;
mod machine;
mod malformed;
mod odd_shapes;
mod render;
mod round_trip;
mod sets;
mod synthetic;
mod tree;
