//! How a machine is written.

use std::ffi::OsStr;
use std::path::Path;
use std::time::SystemTime;

use atoll_formats::numactl::{DistanceWidth, HardwareError};
use atoll_formats::{dump, render};
use atoll_sys::Root;
use atoll_topology::Knowledge;
use clap::ValueEnum;

use super::which::ChosenMachine;
use crate::exit::{CommandError, Exit};

/// The machine's name in a dump: dumps are sent to others, so they do not reveal the host name.
const DUMP_NAME: &str = "dump";

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A text tree
    Tree,
    /// Boxes in plain text
    Ascii,
    /// A picture
    Svg,
    /// One JSON document
    Json,
    /// hwloc XML, version 2
    Xml,
    /// A machine file
    Toml,
    /// What numactl -H prints, up to 2.0.18
    Numactl,
    /// What numactl -H prints from 2.0.19 on (wider columns)
    NumactlWide,
    /// The kernel's files about the machine in one, to be sent with a report
    Dump,
}

impl Format {
    /// The format that the suffix of a file name asks for.
    pub(super) fn of_file(file: &Path) -> Option<Self> {
        match file.extension().and_then(OsStr::to_str)? {
            "svg" => Some(Self::Svg),
            "json" => Some(Self::Json),
            "xml" => Some(Self::Xml),
            "toml" => Some(Self::Toml),
            "txt" => Some(Self::Ascii),
            "dump" => Some(Self::Dump),
            _ => None,
        }
    }

    /// The machine in this format, ending in a line break.
    pub(super) fn write(self, chosen: &ChosenMachine) -> Result<String, CommandError> {
        let known = &chosen.known;
        Ok(match self {
            Self::Tree => render::tree_with_facts(known),
            Self::Ascii => render::ascii(known),
            Self::Svg => render::svg(known),
            Self::Json => json(known),
            Self::Xml => atoll_formats::xml::write(known),
            Self::Toml => atoll_formats::toml::write(known),
            Self::Numactl => numactl(chosen, DistanceWidth::Narrow)?,
            Self::NumactlWide => numactl(chosen, DistanceWidth::Wide)?,
            Self::Dump => dump::gather(files_of(chosen, "a dump")?, DUMP_NAME),
        })
    }
}

/// The machine as [`render::json`] writes it, with its facts under `facts`.
fn json(known: &Knowledge) -> String {
    let mut document = render::json(&known.machine);
    document["facts"] = render::facts_json(known.all_facts(), SystemTime::now());
    format!("{document:#}\n")
}

/// Byte for byte the output of numactl; without NUMA that is one line on stdout and code 1.
fn numactl(chosen: &ChosenMachine, columns: DistanceWidth) -> Result<String, CommandError> {
    let Some(root) = &chosen.root else {
        return Ok(atoll_formats::numactl::write(&chosen.known.machine, columns));
    };
    atoll_formats::numactl::hardware(root, columns).map_err(|error| match error {
        HardwareError::NoNuma => match super::print(&format!("{error}\n")) {
            Ok(()) => CommandError::quietly(Exit::Statement),
            Err(ends) => ends,
        },
        error => anyhow::Error::from(error).into(),
    })
}

/// The kernel's files of a machine.
pub(super) fn files_of<'a>(
    chosen: &'a ChosenMachine,
    what: &str,
) -> Result<&'a Root, CommandError> {
    let no_files = || {
        let name = &chosen.known.machine.name;
        CommandError::with(
            Exit::NotHere,
            format_args!(
                "{what} needs the kernel's files, which the description of machine '{name}' does \
                 not include; leave out --machine and --synthetic, or give a dump file"
            ),
        )
    };
    chosen.root.as_ref().ok_or_else(no_files)
}
