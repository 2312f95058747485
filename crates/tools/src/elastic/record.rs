//! Traces: every look and decision as CSV, as JSON lines, or as a picture.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use atoll_elastic::trace::{HEADER, TraceRow, parse, picture as drawn};
use atoll_process::inspect::{NodeMap, ProcessId, ThreadReader};
use atoll_sys::{Root, thread_cpu_time, write_whole};
use clap::ValueHint;

use crate::exit::{CommandError, Exit};

/// Shortest time between two looks at threads for a trace.
const THREADS_EVERY: Duration = Duration::from_millis(100);
/// Pause after a look, in multiples of its cost: half a percent of a cpu.
const THREADS_COST: u32 = 200;
/// Share of a cpu from which a thread counts as running.
const RUNNING: f64 = 0.05;
/// Rows that are kept for a picture.
const ROWS_MAX: usize = 100_000;

/// Where a trace goes.
enum Sink {
    Nothing,
    Csv(BufWriter<File>),
    Lines(BufWriter<File>),
    Picture(PathBuf, Vec<TraceRow>),
}

/// Writes a trace.
pub(super) struct Recorder {
    sink: Sink,
    seen: RunningThreads,
}

impl Recorder {
    /// Into a file, by its suffix; without one nothing is recorded.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, CommandError> {
        let sink = match path {
            None => Sink::Nothing,
            Some(path) => sink(path)?,
        };
        Ok(Self { sink, seen: RunningThreads::default() })
    }

    /// Adds a row, with the threads that run.
    pub(super) fn add(
        &mut self,
        mut row: TraceRow,
        processes: &[ProcessId],
        at: Duration,
    ) -> Result<(), CommandError> {
        if matches!(self.sink, Sink::Nothing) {
            return Ok(());
        }
        row.threads = self.seen.look(processes, at);
        match &mut self.sink {
            Sink::Nothing => {}
            Sink::Csv(file) => writeln!(file, "{}", row.line())?,
            Sink::Lines(file) => {
                let line = serde_json::to_string(&row).context("a row cannot be written")?;
                writeln!(file, "{line}")?;
            }
            Sink::Picture(_, rows) if rows.len() < ROWS_MAX => rows.push(row),
            Sink::Picture(..) => {}
        }
        Ok(())
    }

    /// Writes the rest.
    pub(super) fn finish(self) -> Result<(), CommandError> {
        match self.sink {
            Sink::Nothing => {}
            Sink::Csv(mut file) | Sink::Lines(mut file) => file.flush()?,
            Sink::Picture(path, rows) => write_whole(&path, drawn(&rows).as_bytes())
                .with_context(|| format!("{}", path.display()))?,
        }
        Ok(())
    }
}

fn sink(path: &Path) -> Result<Sink, CommandError> {
    let create = || {
        let file = File::create(path).with_context(|| format!("{}", path.display()))?;
        Ok::<_, CommandError>(BufWriter::new(file))
    };
    match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("csv") => {
            let mut file = create()?;
            writeln!(file, "{HEADER}")?;
            Ok(Sink::Csv(file))
        }
        Some("jsonl") => Ok(Sink::Lines(create()?)),
        Some("svg") => Ok(Sink::Picture(path.to_owned(), Vec::new())),
        _ => {
            let message =
                format!("{}: expected a name that ends in .csv, .jsonl or .svg", path.display());
            Err(CommandError::with(Exit::Usage, message))
        }
    }
}

/// Threads that run, and on which cpus.
#[derive(Default)]
pub(super) struct RunningThreads {
    readers: BTreeMap<ProcessId, ThreadReader>,
    last: Vec<(u32, u32)>,
    next: Duration,
}

impl RunningThreads {
    /// As (cpu, thread); the last result if it is too soon to look again.
    pub(super) fn look(&mut self, processes: &[ProcessId], at: Duration) -> Vec<(u32, u32)> {
        if at >= self.next {
            let before = thread_cpu_time();
            self.read(processes, at);
            let cost = thread_cpu_time().saturating_sub(before);
            self.next = at + THREADS_EVERY.max(cost * THREADS_COST);
        }
        self.last.clone()
    }

    fn read(&mut self, processes: &[ProcessId], at: Duration) {
        let root = Root::live();
        let nodes = NodeMap::default();
        self.readers.retain(|id, _| processes.contains(id));
        self.last.clear();
        for id in processes {
            let reader = self.readers.entry(*id).or_insert_with(|| ThreadReader::new(id.pid));
            // A thread that has ended runs on no cpu.
            if reader.list(&root).and_then(|()| reader.read(&root, &nodes, at)).is_err() {
                continue;
            }
            let running = reader.threads().filter(|it| it.cpu_share.unwrap_or(0.0) >= RUNNING);
            self.last.extend(running.map(|thread| (thread.cpu.0, thread.tid)));
        }
    }
}

/// Arguments of `picture`.
#[derive(clap::Args, Debug)]
pub(super) struct PictureArgs {
    /// The trace, as `--trace FILE.csv` wrote it
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The picture
    #[arg(short, long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    output: PathBuf,
}

pub(super) fn picture(args: &PictureArgs) -> Result<(), CommandError> {
    let text =
        std::fs::read_to_string(&args.file).with_context(|| format!("{}", args.file.display()))?;
    let rows = parse(&text).map_err(|error| {
        CommandError::with(Exit::Usage, format!("{}: {error}", args.file.display()))
    })?;
    write_whole(&args.output, drawn(&rows).as_bytes())
        .with_context(|| format!("{}", args.output.display()))?;
    Ok(())
}
