//! `.commands`, which psql's users type with a backslash.

mod help;
mod set;
mod tables;

use std::path::{Path, PathBuf};

use super::Shell;
use super::stop::Stop;
use super::target::OutputTarget;
use atoll_tools::terminal;
use atoll_topology::nearest_name;

/// A command: its names, the first of which help shows, and what help says of it.
pub(super) struct ShellCommand {
    pub(super) names: &'static [&'static str],
    arguments: &'static str,
    help: &'static str,
    kind: CommandKind,
}

#[derive(Clone, Copy)]
enum CommandKind {
    Bail,
    Echo,
    Explain,
    Functions,
    Help,
    MaxRows,
    Mode,
    Open,
    Output,
    Quit,
    Read,
    Schema,
    Tables,
    Timer,
}

const fn command(
    names: &'static [&'static str],
    arguments: &'static str,
    help: &'static str,
    kind: CommandKind,
) -> ShellCommand {
    ShellCommand { names, arguments, help, kind }
}

/// All commands, ordered by name.
pub(super) static COMMANDS: [ShellCommand; 14] = [
    command(
        &["bail"],
        "on|off",
        "End a script at its first error; off: go on after errors",
        CommandKind::Bail,
    ),
    command(&["echo"], "on|off", "Print each statement before it runs", CommandKind::Echo),
    command(
        &["explain"],
        "on|off|analyze",
        "Show the plans of queries instead of their rows",
        CommandKind::Explain,
    ),
    command(
        &["functions", "df"],
        "[PATTERN]",
        "List the functions whose names have the pattern in them; * stands for anything",
        CommandKind::Functions,
    ),
    command(&["help", "?"], "", "List the commands", CommandKind::Help),
    command(
        &["maxrows"],
        "N",
        "Rows drawn of a result, first and last; 0 for all",
        CommandKind::MaxRows,
    ),
    command(
        &["mode"],
        "[MODE]",
        "box, table, csv, json, ndjson, markdown or line",
        CommandKind::Mode,
    ),
    command(
        &["open"],
        "[DIR [--salvage]]",
        "Open the database in a directory, made where it is missing; with --salvage, read what is left of a \
         damaged one; without a directory, a new one in memory",
        CommandKind::Open,
    ),
    command(
        &["output", "o"],
        "[FILE]",
        "Write results to a file; without one, to stdout again",
        CommandKind::Output,
    ),
    command(&["quit", "exit", "q"], "", "Exit (as Ctrl-D does)", CommandKind::Quit),
    command(&["read", "i"], "FILE", "Run a script", CommandKind::Read),
    command(
        &["schema", "d"],
        "[TABLE]",
        "Columns of a table; without one, all tables",
        CommandKind::Schema,
    ),
    command(&["tables", "dt"], "", "List tables and views", CommandKind::Tables),
    command(
        &["timer", "timing"],
        "on|off",
        "Print the time each statement takes",
        CommandKind::Timer,
    ),
];

impl Shell {
    /// Carries out a command with its dot or backslash.
    pub(super) async fn run_command(&mut self, text: &str) -> Result<(), Stop> {
        let (name, argument) = parts(text);
        let command = find(name)?;
        let argument = argument.as_str();
        match command.kind {
            CommandKind::Bail => set::switch(&mut self.settings.bail, command, argument),
            CommandKind::Echo => set::switch(&mut self.settings.echo, command, argument),
            CommandKind::Explain => set::explain(&mut self.settings, argument),
            CommandKind::Functions => self.functions(argument).await,
            CommandKind::Help => self.help(),
            CommandKind::MaxRows => set::rows_max(&mut self.settings, argument),
            CommandKind::Mode => set::mode(&mut self.settings, argument),
            CommandKind::Open => self.open(argument).await,
            CommandKind::Output => self.output(argument),
            CommandKind::Quit => Err(Stop::Left),
            CommandKind::Read if argument.is_empty() => {
                Err(Stop::failed(".read expects the name of a file"))
            }
            CommandKind::Read => self.run_file(Path::new(argument)).await,
            CommandKind::Schema if !argument.is_empty() => self.columns_of(argument).await,
            CommandKind::Schema | CommandKind::Tables => self.tables().await,
            CommandKind::Timer => set::switch(&mut self.settings.timer, command, argument),
        }
    }

    /// Leaves the database for another one, on the same workers.
    async fn open(&mut self, argument: &str) -> Result<(), Stop> {
        let (directory, salvage) = match argument.strip_suffix("--salvage") {
            Some(directory) => (directory.trim_end(), true),
            None => (argument, false),
        };
        if salvage && directory.is_empty() {
            return Err(Stop::failed(".open --salvage expects a directory"));
        }
        let directory = (!directory.is_empty()).then(|| PathBuf::from(directory));
        // The directory may be the one that is left.
        let before = self.session.database().clone();
        let opened = before.reopen(directory, salvage).await;
        self.session = opened.map_err(|error| Stop::failed(error.message()))?;
        self.tell_missing();
        Ok(())
    }

    /// Says what of a salvaged database is missing.
    pub(super) fn tell_missing(&self) {
        let report = self.session.database().open_report();
        for part in report.iter().flat_map(|report| &report.missing) {
            terminal::say(format!("missing: {part}"));
        }
    }

    fn output(&mut self, file: &str) -> Result<(), Stop> {
        self.target.writer().flush()?;
        self.target = match file {
            "" | "-" | "stdout" => OutputTarget::stdout(),
            file => OutputTarget::file(Path::new(file))
                .map_err(|error| Stop::failed(format!("{file} cannot be written: {error}")))?,
        };
        Ok(())
    }
}

fn find(name: &str) -> Result<&'static ShellCommand, Stop> {
    let found = COMMANDS.iter().find(|command| command.names.contains(&name));
    found.ok_or_else(|| {
        let names = COMMANDS.iter().flat_map(|command| command.names.iter().copied());
        let help = match nearest_name(name, names.filter(|name| name.len() > 2)) {
            Some(near) => format!("did you mean .{near}?"),
            None => ".help lists the commands".to_owned(),
        };
        Stop::failed(format!("unknown command .{name}; {help}"))
    })
}

/// Name and argument. Quotes around the argument and a semicolon behind it are dropped.
fn parts(text: &str) -> (&str, String) {
    let text = text.trim_start_matches(['.', '\\']).trim_end_matches([' ', ';']);
    let (name, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let argument = argument.trim();
    let unquoted = ['\'', '"'].iter().find_map(|quote| {
        argument.strip_prefix(*quote).and_then(|argument| argument.strip_suffix(*quote))
    });
    (name, unquoted.unwrap_or(argument).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(stop: Stop) -> String {
        match stop {
            Stop::Failed(failure) => failure.message().to_owned(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn commands_are_found_by_all_their_names_and_are_ordered() {
        for command in &COMMANDS {
            for name in command.names {
                assert!(std::ptr::eq(find(name).unwrap().names, command.names));
            }
        }
        assert!(COMMANDS.is_sorted_by_key(|command| command.names[0]));
    }

    #[test]
    fn an_unknown_command_is_told_the_near_name() {
        assert_eq!(
            message(find("tabels").err().unwrap()),
            "unknown command .tabels; did you mean .tables?"
        );
        assert_eq!(
            message(find("frobnicate").err().unwrap()),
            "unknown command .frobnicate; .help lists the commands"
        );
    }

    #[test]
    fn arguments_may_be_quoted_and_end_in_a_semicolon() {
        assert_eq!(parts(".read 'my file.sql';"), ("read", "my file.sql".to_owned()));
        assert_eq!(parts("\\d  t ;"), ("d", "t".to_owned()));
        assert_eq!(parts(".quit"), ("quit", String::new()));
        assert_eq!(parts("."), ("", String::new()));
    }
}
