//! Which machine a command is about: this one, a declared one, or a described one.

use std::io;
use std::path::Path;
use std::sync::Once;

use anyhow::Context;
use atoll_formats::dump;
use atoll_formats::store::StoreError;
use atoll_sys::Root;
use atoll_topology::{Allowed, Knowledge, Machine};

use super::harmless;
use crate::exit::CommandError;
use crate::terminal;

/// hwloc's variable: a machine file that replaces this machine.
const HWLOC_XMLFILE: &str = "HWLOC_XMLFILE";

/// The flags that choose a machine.
#[derive(clap::Args, Debug)]
pub(crate) struct MachineArgs {
    /// Another machine than this: a TOML, hwloc XML or dump file, the text of numactl -H, '-' for
    /// stdin, a directory with a copy of its sys and proc, or a name that 'topo machines' lists
    /// [default: $HWLOC_XMLFILE or this machine]
    #[arg(short, long, value_name = "FILE|DIR|NAME", global = true, conflicts_with = "synthetic")]
    machine: Option<String>,
    /// A machine that is described, such as 'node:4 core:2 pu:1'
    #[arg(long, value_name = "DESCRIPTION", global = true)]
    synthetic: Option<String>,
}

/// A machine with its facts.
pub(crate) struct ChosenMachine {
    pub(crate) known: Knowledge,
    /// Its sysfs and procfs, if any.
    pub(crate) root: Option<Root>,
}

impl MachineArgs {
    /// Whether it is the machine this runs on.
    pub(super) fn is_live(&self) -> bool {
        self.name().is_none() && self.synthetic.is_none()
    }

    fn name(&self) -> Option<String> {
        let file = || std::env::var(HWLOC_XMLFILE).ok().filter(|name| !name.is_empty());
        self.machine.clone().or_else(file)
    }

    /// The machine with its facts. For this machine they include earlier measurements;
    /// where those figures cannot be read, stderr says so.
    pub(crate) fn chosen(&self) -> Result<ChosenMachine, CommandError> {
        if let Some(text) = &self.synthetic {
            let machine = Machine::synthetic(text).map_err(anyhow::Error::from)?;
            return Ok(ChosenMachine { known: Knowledge::from_machine(machine), root: None });
        }
        match self.name() {
            Some(name) => {
                let chosen = named(&name)?;
                warn_of_assumptions(&chosen.known.machine);
                Ok(chosen)
            }
            None => Ok(ChosenMachine { known: live()?, root: Some(Root::live()) }),
        }
    }
}

/// This machine with its measurements. If the environment names no directory for figures, none
/// were kept, and there is nothing to warn of.
pub fn live() -> Result<Knowledge, CommandError> {
    let live = atoll_formats::store::live().context("cannot discover this machine")?;
    if let Some(warning) = live.warning.filter(|it| !matches!(it, StoreError::NoDirectory)) {
        terminal::say(format_args!("warning: {warning}"));
    }
    warn_of_assumptions(&live.knowledge.machine);
    Ok(live.knowledge)
}

/// Says on stderr, once, that the machine's files leave something out or contradict each other.
fn warn_of_assumptions(machine: &Machine) {
    static SAID: Once = Once::new();
    let Some((first, more)) = machine.assumptions.split_first() else { return };
    SAID.call_once(|| match more.len() {
        0 => terminal::say(format_args!("warning: {}", harmless(first))),
        more => terminal::say(format_args!(
            "warning: {}; and {more} more, which 'topo' lists under 'Assumed'",
            harmless(first)
        )),
    });
}

fn named(name: &str) -> Result<ChosenMachine, CommandError> {
    if atoll_formats::shipped().iter().any(|(shipped, _)| *shipped == name) {
        let known = atoll_formats::open(name).map_err(anyhow::Error::from)?;
        return Ok(ChosenMachine { known, root: None });
    }
    if Path::new(name).is_dir() {
        return Ok(at(Root::at(name), name)?);
    }
    let text = match name {
        "-" => atoll_formats::read_from(io::stdin(), name),
        _ => atoll_formats::read(name),
    };
    Ok(parsed(&text.map_err(anyhow::Error::from)?, name)?)
}

fn parsed(text: &str, file: &str) -> anyhow::Result<ChosenMachine> {
    if !dump::is_dump(text) {
        return Ok(ChosenMachine { known: atoll_formats::parse(text, file)?, root: None });
    }
    at(dump::open(text, file)?, file)
}

/// The machine whose sysfs and procfs lie under a root, as far as the process of that tree may use it.
fn at(root: Root, name: &str) -> anyhow::Result<ChosenMachine> {
    let allowed = Allowed::of_process(&root);
    let known = Knowledge::discover_at(&root, &allowed).with_context(|| name.to_owned())?;
    Ok(ChosenMachine { known, root: Some(root) })
}
