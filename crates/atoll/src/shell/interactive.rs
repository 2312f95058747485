//! The shell for people: line editor, history, completion, colours.

use std::borrow::Cow;
use std::io::{IsTerminal, stdout};
use std::path::PathBuf;

use atoll_sql::Session;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::history::FileHistory;
use rustyline::{
    Behavior, ColorMode, CompletionType, Config, Context, Editor, Helper, Hinter, Validator,
};

use super::Shell;
use super::complete::CompletionNames;
use super::highlight::highlighted;
use super::inputs::{CopyRows, Inputs, is_command};
use super::stop::Stop;
use crate::engine::Engine;
use atoll_tools::terminal;

const PROMPT: &str = "atoll> ";

/// The prompt for the continuation of a statement or of the rows of a COPY.
const PROMPT_WITHIN: &str = "atoll-> ";

/// Callbacks of the line editor.
#[derive(Default, Helper, Hinter, Validator)]
struct Typing {
    names: CompletionNames,
    files: FilenameCompleter,
}

impl Completer for Typing {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..pos];
        let is_quoted = typed.matches('\'').count() % 2 == 1;
        let is_argument = is_command(typed) && typed.contains(char::is_whitespace);
        if is_quoted || is_argument {
            return self.files.complete_path(line, pos);
        }
        let (start, words) = self.names.complete(typed);
        let pair = |word: String| Pair { display: word.clone(), replacement: word };
        Ok((start, words.into_iter().map(pair).collect()))
    }
}

impl Highlighter for Typing {
    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        if is_command(line) { Cow::Borrowed(line) } else { highlighted(line) }
    }

    fn highlight_char(&self, _line: &str, _pos: usize, _kind: CmdKind) -> bool {
        true
    }
}

impl Shell {
    /// Reads and runs input until the user quits.
    pub(super) async fn converse(&mut self, engine: &Engine) -> Result<(), Stop> {
        greet(engine);
        if let Some(file) = home_file(".atollrc").filter(|file| file.exists()) {
            let done = self.run_file(&file).await;
            said(done)?;
        }
        let mut editor = editor().map_err(|error| no_terminal(&error))?;
        let history = home_file(".atoll_history");
        if let Some(history) = &history {
            // There is no history on the first run.
            let _ = editor.load_history(history);
        }
        let done = self.answer(&mut editor).await;
        if let Some(history) = &history
            && let Err(error) = editor.save_history(history)
        {
            terminal::say(format_args!("cannot write {}: {error}", history.display()));
        }
        done
    }

    async fn answer(&mut self, editor: &mut Editor<Typing, FileHistory>) -> Result<(), Stop> {
        let mut typed = Typed::new(&self.session);
        loop {
            if let (Some(typing), true) = (editor.helper_mut(), typed.text.is_empty()) {
                typing.names = CompletionNames::from_session(&self.session).await;
            }
            match editor.readline(if typed.text.is_empty() { PROMPT } else { PROMPT_WITHIN }) {
                Ok(text) => {
                    self.interrupts.forget().await;
                    let done = self.run_typed(&mut typed, &text).await;
                    if done.is_err() || typed.inputs.is_idle() {
                        // Losing the history is not an error.
                        let _ = editor.add_history_entry(typed.text.trim_end());
                        typed = Typed::new(&self.session);
                    }
                    said(done)?;
                }
                Err(ReadlineError::Interrupted) => typed = Typed::new(&self.session),
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(no_terminal(&error)),
            }
        }
    }

    /// Runs what ends with these lines; pasted text may have several.
    async fn run_typed(&mut self, typed: &mut Typed, text: &str) -> Result<(), Stop> {
        typed.text.push_str(text);
        typed.text.push('\n');
        let mut found = Vec::new();
        for line in text.split('\n') {
            found.extend(typed.inputs.line(line)?);
        }
        for input in found {
            self.run_input(&input).await?;
        }
        Ok(())
    }
}

/// Input since the last run.
struct Typed {
    text: String,
    inputs: Inputs,
}

impl Typed {
    fn new(session: &Session) -> Self {
        Self { text: String::new(), inputs: Inputs::for_session(session, CopyRows::Behind) }
    }
}

/// Reports an error and continues, unless the user quits.
fn said(done: Result<(), Stop>) -> Result<(), Stop> {
    match done {
        Err(Stop::Failed(failure)) => terminal::say_error(failure.message()),
        Err(Stop::Interrupted) => terminal::say("cancelled"),
        Err(Stop::Left) => return Err(Stop::Left),
        Ok(()) => {}
    }
    Ok(())
}

fn greet(engine: &Engine) {
    let session = &engine.session;
    let nodes = session.machine().nodes.len();
    let workers = session.runtime().worker_count();
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    terminal::say(format_args!(
        "Atoll {}: {nodes} node{}, {workers} worker{}, at most {} of memory. .help lists the \
         commands, Ctrl-D exits.",
        env!("CARGO_PKG_VERSION"),
        plural(nodes),
        plural(workers),
        engine.memory_limit,
    ));
}

fn editor() -> rustyline::Result<Editor<Typing, FileHistory>> {
    let is_colored = terminal::colors(stdout().is_terminal());
    // If results go elsewhere, the prompt uses the terminal itself.
    let behavior = if stdout().is_terminal() { Behavior::Stdio } else { Behavior::PreferTerm };
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .color_mode(if is_colored { ColorMode::Enabled } else { ColorMode::Disabled })
        .behavior(behavior)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(Typing::default()));
    Ok(editor)
}

fn home_file(name: &str) -> Option<PathBuf> {
    Some(std::env::home_dir()?.join(name))
}

fn no_terminal(error: &ReadlineError) -> Stop {
    Stop::failed(format!("cannot read the terminal: {error}; give statements with -c or -f"))
}
