//! The record of a counted run: a JSON file with all that its views show.

mod check;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use atoll_model::{AssumptionError, Assumptions, Costs, Estimate, FlowsError};
use atoll_simulation::{Report, Traffic};
use atoll_topology::Knowledge;
use serde::{Deserialize, Serialize};

use crate::flows::flows;
use crate::{RunOutcome, RunRequest};

/// Version of [`RunRecord`]'s JSON.
pub const RECORD_VERSION: u32 = 1;
/// Longest record that is read: 64 nodes, 64 regions and a long series fit.
const LENGTH_MAX: u64 = 256 << 20;

/// A counted run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`RECORD_VERSION`].
    pub version: u32,
    /// Version of Atoll that wrote it.
    pub atoll: String,
    /// Command and settings.
    pub run: RunDescription,
    /// The machine as it was booted, as a machine file.
    pub machine: String,
    /// The counts.
    pub report: Report,
    /// Time that the machine itself would take for all of it.
    pub estimate: Estimate,
    /// The same for each region, in the order of the report's.
    pub regions: Vec<RegionTime>,
}

/// Command, machine and settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunDescription {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Name of the machine.
    pub machine: String,
    /// Parts cut from the machine, and assumptions.
    pub notes: Vec<String>,
    /// By how much the modelled caches are smaller than the machine's.
    pub cache_divisor: u32,
    /// Automatic NUMA balancing; None if the kernel's own setting was left.
    pub balancing: Option<bool>,
    /// The program's exit code.
    pub code: u8,
    /// From starting the emulator to starting the program, s.
    pub boot_seconds: f64,
    /// From starting the emulator to its end, s.
    pub wall_seconds: f64,
    /// Version of the emulator.
    pub qemu_version: String,
    /// Release of the guest's kernel.
    pub kernel_release: String,
}

/// Time of a region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegionTime {
    /// Its number.
    pub number: u8,
    /// The estimate; the figures stand in that of the whole run.
    pub estimate: Estimate,
}

/// Why there is no record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunRecordError {
    /// The file cannot be read.
    #[error("cannot read {file}: {source}; give a file that `atoll lab run --report` wrote")]
    Read {
        /// The file.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not a record.
    #[error(
        "{file} is not a record of a run: {what}; give one that `atoll lab run --report` \
             wrote"
    )]
    Malformed {
        /// The file.
        file: String,
        /// The fault.
        what: String,
    },
    /// The record is of another version.
    #[error(
        "{file} is a record of version {found}, this is version {RECORD_VERSION}; \
         read it with the `atoll` that wrote it, or run again"
    )]
    Version {
        /// The file.
        file: String,
        /// Its version.
        found: u32,
    },
    /// The counts are not of the machine.
    #[error(transparent)]
    Flows(#[from] FlowsError),
    /// An assumption that no machine fulfils.
    #[error(transparent)]
    Assumption(#[from] AssumptionError),
}

/// The part of a record that all versions have.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl RunRecord {
    /// The record of a run; None if nothing was counted.
    pub fn try_from_outcome(
        request: &RunRequest,
        outcome: &RunOutcome,
        assumptions: &Assumptions,
    ) -> Result<Option<Self>, RunRecordError> {
        let Some(report) = outcome.report.clone() else { return Ok(None) };
        let known = outcome.guest.knowledge();
        let words = request.command.iter().map(|word| word.to_string_lossy().into_owned());
        let run = RunDescription {
            command: words.collect(),
            machine: known.machine.name.clone(),
            notes: outcome.guest.notes().iter().chain(&outcome.notes).cloned().collect(),
            cache_divisor: outcome.guest.cache_divisor(),
            balancing: request.balancing,
            code: outcome.code,
            boot_seconds: outcome.boot.as_secs_f64(),
            wall_seconds: outcome.wall.as_secs_f64(),
            qemu_version: outcome.qemu_version.clone(),
            kernel_release: outcome.kernel_release.clone(),
        };
        Self::new(run, known, report, assumptions).map(Some)
    }

    /// A record, with the time that its machine would take.
    pub fn new(
        run: RunDescription,
        known: &Knowledge,
        report: Report,
        assumptions: &Assumptions,
    ) -> Result<Self, RunRecordError> {
        let costs = Costs::from_knowledge(known, assumptions)?;
        let estimate =
            |traffic: &Traffic| Estimate::from_flows(&costs, &flows(&report.setup, traffic));
        let regions = report.regions.iter().map(|region| {
            let estimate = Estimate { figures: Vec::new(), ..estimate(&region.traffic)? };
            Ok(RegionTime { number: region.number, estimate })
        });
        let regions = regions.collect::<Result<_, RunRecordError>>()?;
        Ok(Self {
            version: RECORD_VERSION,
            atoll: env!("CARGO_PKG_VERSION").to_owned(),
            run,
            machine: atoll_formats::toml::write(known),
            estimate: estimate(&report.total)?,
            regions,
            report,
        })
    }

    /// Reads a record from a file.
    pub fn read(path: &Path) -> Result<Self, RunRecordError> {
        let file = path.display().to_string();
        let wrong = |source| RunRecordError::Read { file: file.clone(), source };
        let mut text = String::new();
        let mut reader = File::open(path).map_err(wrong)?.take(LENGTH_MAX + 1);
        let length = reader.read_to_string(&mut text).map_err(wrong)?;
        if length as u64 > LENGTH_MAX {
            let what = format!("it is longer than {} MiB", LENGTH_MAX >> 20);
            return Err(RunRecordError::Malformed { file, what });
        }
        Self::parse(&text, &file)
    }

    /// Reads a record from its JSON; `file` is the name that errors carry.
    pub fn parse(text: &str, file: &str) -> Result<Self, RunRecordError> {
        let malformed = |what: String| RunRecordError::Malformed { file: file.to_owned(), what };
        let json = |error: serde_json::Error| malformed(error.to_string());
        let Versioned { version } = serde_json::from_str(text).map_err(json)?;
        if version != RECORD_VERSION {
            return Err(RunRecordError::Version { file: file.to_owned(), found: version });
        }
        let record: Self = serde_json::from_str(text).map_err(json)?;
        record.check().map_err(malformed)?;
        Ok(record)
    }

    /// The record as JSON, ending in a line break.
    pub fn json(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("a record is made of numbers and texts under texts") + "\n"
    }

    /// The same counts under other assumptions.
    pub fn assuming(&self, assumptions: &Assumptions) -> Result<Self, RunRecordError> {
        let (run, report) = (self.run.clone(), self.report.clone());
        let record = Self::new(run, &self.known()?, report, assumptions)?;
        Ok(Self { atoll: self.atoll.clone(), ..record })
    }

    /// The machine as it was booted.
    pub fn known(&self) -> Result<Knowledge, RunRecordError> {
        let file = "machine of the record";
        atoll_formats::toml::parse(&self.machine, file).map_err(|error| RunRecordError::Malformed {
            file: file.to_owned(),
            what: error.to_string(),
        })
    }

    /// The record of one region alone; None if there is no such region.
    pub fn of_region(&self, number: u8) -> Option<Self> {
        let region = self.report.regions.iter().find(|region| region.number == number)?;
        let time = self.regions.iter().find(|time| time.number == number)?;
        let (total, series) = (region.traffic.clone(), region.series.clone());
        let report = Report { total, regions: Vec::new(), series, ..self.report.clone() };
        let figures = self.estimate.figures.clone();
        let estimate = Estimate { figures, ..time.estimate.clone() };
        Some(Self { report, estimate, regions: Vec::new(), ..self.clone() })
    }
}
