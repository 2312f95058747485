//! The process of a case: it places itself, opens the engine, works, and reports times and memory.

use std::fs;
use std::io::{BufRead, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use atoll_process::launch::MachineCounters;
use atoll_sys::{ProcessUsage, Root, process_usage};
use atoll_topology::Machine;

use super::case::{KvAnswer, KvRequest, KvUsage, KvWork};
use super::engine::KvEngine;
use super::work;
use crate::memory;
use crate::protocol::Failed;
use crate::trials::placement::{self, MemoryNow};

/// Reads a request, does it, and answers.
///
/// # Errors
/// If the request is missing, or writing the answer fails.
pub(crate) fn serve(mut input: impl BufRead, output: &mut impl Write) -> Result<()> {
    let mut line = String::new();
    input.read_line(&mut line).context("cannot read the request")?;
    let request: KvRequest = serde_json::from_str(&line).context("not a request")?;
    let line = match answer(&request) {
        Ok(answer) => serde_json::to_string(&answer)?,
        Err(error) => serde_json::to_string(&Failed { error: format!("{error:#}") })?,
    };
    writeln!(output, "{line}").and_then(|()| output.flush()).context("the benchmark has ended")
}

fn answer(request: &KvRequest) -> Result<KvAnswer> {
    let machine = Machine::discover().context("this machine cannot be described")?;
    let mut seen = placement::applied(&machine, &request.arm)?;
    let own = std::process::id();
    let before_opening = MemoryNow::read(&machine, own)?;
    let engine = request.engine.open(&request.options)?;
    let mut answer =
        KvAnswer { version: engine.version(), settings: engine.settings(), ..KvAnswer::default() };
    let (mut meter, before) = (Meter::default(), MachineCounters::read(&Root::live()));
    let checked = meter.during(|| worked(request, &*engine, &mut answer))?;
    seen.threads = std::mem::take(&mut answer.placement.threads);
    let moved = MachineCounters::read(&Root::live()).since(&before);
    seen.pages_migrated = moved.get("numa_pages_migrated");
    placement::read_back(&machine, own, &before_opening, &mut seen)?;
    if request.is_checked {
        let contents = work::contents(&*engine, &request.records).context("reading all records")?;
        let newest = contents.newest;
        ensure!(
            newest == checked,
            "write {newest} is the newest where {checked} were acknowledged"
        );
        answer.contents = Some(contents);
    }
    meter.during(|| {
        drop(engine);
        Ok(())
    })?;
    answer.usage = meter.usage;
    answer.usage.database_kb = disk_bytes(&request.options.directory)? / 1024;
    answer.usage.process_kb = memory::of_this_process("VmHWM")? / 1024;
    answer.placement = seen;
    Ok(answer)
}

/// Does the work; the number of the newest write.
fn worked(request: &KvRequest, engine: &dyn KvEngine, answer: &mut KvAnswer) -> Result<u64> {
    let KvRequest { records, written, .. } = request;
    let newest = match request.work {
        KvWork::Probe => return Ok(*written),
        KvWork::Load { random } => {
            answer.writes = Some(work::load(engine, records, random)?);
            0
        }
        KvWork::ReadWhileWriting { readers } => {
            let time = Duration::from_secs_f64(request.seconds);
            let mixed = work::read_while_writing(engine, records, readers, time, *written)?;
            answer.writes = Some(mixed.writes);
            answer.reads = Some(mixed.reads);
            answer.placement.threads = mixed.readers;
            mixed.written
        }
    };
    engine.sync()?;
    Ok(newest)
}

/// Adds up what some stretches take.
#[derive(Default)]
struct Meter {
    usage: KvUsage,
}

impl Meter {
    fn during<T>(&mut self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let (before, start) = (process_usage(), Instant::now());
        let done = act();
        self.usage.wall_s += start.elapsed().as_secs_f64();
        let after = process_usage();
        let seconds = |of: fn(ProcessUsage) -> Duration| (of(after) - of(before)).as_secs_f64();
        self.usage.user_s += seconds(|it| it.time_user);
        self.usage.system_s += seconds(|it| it.time_system);
        self.usage.voluntary_switches += after.switches_voluntary - before.switches_voluntary;
        self.usage.involuntary_switches += after.switches_involuntary - before.switches_involuntary;
        done
    }
}

/// Space that the files of a directory take, those below it included.
fn disk_bytes(directory: &Path) -> Result<u64> {
    let mut bytes = 0;
    let entries = fs::read_dir(directory);
    for entry in entries.with_context(|| format!("cannot list {}", directory.display()))? {
        let entry = entry?;
        bytes += match entry.metadata() {
            Ok(about) if about.is_dir() => disk_bytes(&entry.path())?,
            Ok(about) => about.blocks() * 512,
            // A file may go at any moment: a log that is needed no more.
            Err(_) => 0,
        };
    }
    Ok(bytes)
}
