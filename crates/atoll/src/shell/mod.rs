//! `atoll sql`: a shell for people and scripts for programs, on one code path.
//!
//! Lines come from the terminal (`interactive`) or from a file, a pipe or the command line (`lines`). `inputs` joins
//! them to statements, `.commands` and the rows of COPY (`copied`). `statement` runs a statement: its result goes to
//! the `target` in the mode of `settings`, while `interrupt` waits for Ctrl-C. `command` runs a command. Every failure
//! is a [`Stop`]: it ends a script, unless `.bail off` is set; the shell reports it and continues.

mod command;
mod complete;
mod copied;
mod highlight;
mod inputs;
mod interactive;
mod interrupt;
mod lines;
mod script;
mod settings;
mod statement;
mod stop;
mod target;
mod tpch;
mod views;

use std::io::{IsTerminal, stderr, stdin};

use atoll_sql::Session;

use crate::cli::{Script, SqlArgs};
use crate::engine::Engine;
use atoll_tools::exit::{CommandError, Exit};
use inputs::CopyRows;
use interrupt::Interrupts;
use lines::ScriptLines;
use settings::ShellSettings;
use stop::Stop;
use target::OutputTarget;

/// A session with the state of its shell.
struct Shell {
    session: Session,
    settings: ShellSettings,
    target: OutputTarget,
    /// The target that returns after the next result.
    target_before: Option<OutputTarget>,
    interrupts: Interrupts,
    /// Nesting depth of `.read`.
    depth: usize,
    /// Whether a script continued after a failure.
    has_failed: bool,
}

/// Runs the command.
pub(crate) async fn run(args: &SqlArgs, scripts: Vec<Script>) -> Result<(), CommandError> {
    let views = views::statements(&args.files)?;
    let engine = Engine::start(&args.engine, args.data.clone(), args.salvage)?;
    let is_interactive = scripts.is_empty() && stdin().is_terminal();
    let has_progress = !args.engine.no_progress && stderr().is_terminal();
    let mut settings = ShellSettings::new(args.mode, is_interactive, has_progress);
    settings.headers = !args.no_header;
    settings.null.clone_from(&args.null_value);
    let mut shell = Shell {
        session: engine.session.clone(),
        settings,
        target: OutputTarget::stdout(),
        target_before: None,
        interrupts: Interrupts::listen()?,
        depth: 0,
        has_failed: false,
    };
    shell.tell_missing();
    if let Some(scale) = args.tpch {
        shell.load_tpch(scale).await.map_err(CommandError::from)?;
    }
    for view in &views {
        shell.create_view(view).await.map_err(CommandError::from)?;
    }
    let done = match (is_interactive, scripts.is_empty()) {
        (true, _) => shell.converse(&engine).await,
        (false, true) => {
            shell.run_lines("stdin", ScriptLines::from_reader(stdin()), CopyRows::Behind).await
        }
        (false, false) => shell.run_scripts(scripts).await,
    };
    match done {
        Ok(()) | Err(Stop::Left) if shell.has_failed && !is_interactive => {
            Err(CommandError::quietly(Exit::Statement))
        }
        Ok(()) | Err(Stop::Left) => Ok(()),
        Err(stop) => Err(stop.into()),
    }
}
