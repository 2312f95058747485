//! What each family proves:
//!
//! - `toml`: machine files survive a round trip, and every mistake is an error with its line;
//! - `machines`: the shipped machines are complete and have the published figures;
//! - `store`: measured figures persist, belong to their machine, and are never lost to a mistake;
//! - `dump`: a machine is the same from its dump, and a damaged dump is an error with its line;
//! - `corpus`: recorded and written machines are shown as the text next to their dump;
//! - `xml`: any knowledge survives hwloc XML, and lstopo reads and writes the same machine;
//! - `xml_told`: what hwloc XML states is distinguished from assumptions, and written where hwloc expects it;
//! - `numactl`: the output of numactl is reproduced byte for byte and parsed;
//! - `generated`: generated machines, intact and damaged, survive every format that can represent them;
//! - `mutations`: a damaged file of any format is parsed or rejected with its line;
//! - `svg`, `ascii`: pictures are well-formed, complete and of limited size, and names are escaped;
//! - `render`: trees for people, JSON for programs;
//! - `facts`: facts as JSON have all their keys.

mod ascii;
mod corpus;
mod dump;
mod facts;
mod generated;
mod machines;
mod mutations;
mod numactl;
mod render;
mod store;
mod svg;
mod toml;
mod xml;
mod xml_told;

/// This crate's folder, from cargo at run time: checkouts may share a target directory.
fn crate_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests").into()
}
