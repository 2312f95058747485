//! What each family proves:
//!
//! - `sets`: list notation survives a round trip, and hostile lists are refused cheaply;
//! - `set_notation`: numactl's notation means on a machine what it says, and nothing else is read;
//! - `machine`: questions to a machine have the right answers on uneven ones;
//! - `builder`: a described machine is whole, or a precise error;
//! - `synthetic`: descriptions give the machine they say, and no text makes the parser panic;
//! - `round_trip`: discovery reads back every fake machine exactly as it was written;
//! - `odd_shapes`: what kernels, firmware and containers leave out or do differently;
//! - `limits`: control groups of both versions, nested and seen from containers;
//! - `malformed`: a file that cannot be understood is an error that names it;
//! - `toml`: machine files survive a round trip, and every mistake is an error with its line;
//! - `machines`: those that ship are whole and have the published figures;
//! - `live`: the machine that runs the tests is what `/proc` says it is;
//! - `hmat`: what firmware tells of memory, caches of all levels and huge pages are read as written;
//! - `knowledge`: of several facts the right one is believed, and facts read well;
//! - `routes`: a route is the best of all ways, and assumed links are no more than they claim;
//! - `questions`: answers are as good as the best of all possible ones;
//! - `store`: measured figures survive, belong to their machine, and are never lost to a mistake;
//! - `dump`: a machine is the same from its dump, and a damaged dump is an error with its line;
//! - `corpus`: recorded and written machines are shown as the text beside their dump;
//! - `xml`: any knowledge survives hwloc XML, and lstopo reads and writes the same machine;
//! - `numactl`: what numactl prints is printed to the byte and read;
//! - `mutations`: a damaged file of any format is read or refused with its line;
//! - `svg`, `ascii`: pictures are well-formed, complete and of bounded size, names stay text;
//! - `check`: every check fires on its oddity and is silent without it;
//! - `render`: trees as people see them, JSON as programs do.

mod ascii;
mod builder;
mod check;
mod corpus;
mod dump;
mod hmat;
mod knowledge;
mod limits;
mod live;
mod machine;
mod machines;
mod malformed;
mod mutations;
mod numactl;
mod odd_shapes;
mod questions;
mod render;
mod round_trip;
mod routes;
mod set_notation;
mod sets;
mod store;
mod svg;
mod synthetic;
mod toml;
mod tree;
mod xml;

/// This crate's folder, as cargo tells at run time: checkouts may share a target directory.
fn crate_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests").into()
}
