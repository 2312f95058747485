//! What each family proves:
//!
//! - `toml`: machine files survive a round trip, and every mistake is an error with its line;
//! - `machines`: those that ship are whole and have the published figures;
//! - `store`: measured figures survive, belong to their machine, and are never lost to a mistake;
//! - `dump`: a machine is the same from its dump, and a damaged dump is an error with its line;
//! - `corpus`: recorded and written machines are shown as the text beside their dump;
//! - `xml`: any knowledge survives hwloc XML, and lstopo reads and writes the same machine;
//! - `xml_told`: what hwloc XML tells is kept apart from what is assumed, and where hwloc has it;
//! - `numactl`: what numactl prints is printed to the byte and read;
//! - `generated`: machines that do not exist, whole and damaged, survive every format that can hold them;
//! - `mutations`: a damaged file of any format is read or refused with its line;
//! - `svg`, `ascii`: pictures are well-formed, complete and of bounded size, names stay text;
//! - `render`: trees as people see them, JSON as programs do;
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

/// This crate's folder, as cargo tells at run time: checkouts may share a target directory.
fn crate_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests").into()
}
