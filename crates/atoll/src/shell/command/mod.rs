//! `.commands`, which psql users type with a backslash.

pub(super) mod copy;
mod help;
mod import;
mod set;
mod show;
mod tables;

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Shell;
use super::stop::Stop;
use super::target::OutputTarget;
use atoll_tools::terminal;
use atoll_topology::nearest_name;

/// A command: its names, of which help shows the first, and its help text.
pub(super) struct ShellCommand {
    pub(super) names: &'static [&'static str],
    arguments: &'static str,
    help: &'static str,
    example: &'static str,
    kind: CommandKind,
}

#[derive(Clone, Copy)]
enum CommandKind {
    Bail,
    Cd,
    Conninfo,
    Copy,
    Databases,
    Describe,
    Echo,
    Expanded,
    Explain,
    Extensions,
    Functions,
    Headers,
    Help,
    Import,
    Indexes,
    MaxRows,
    Mode,
    NullValue,
    Once,
    Open,
    Output,
    Print,
    Quit,
    Read,
    Schema,
    Schemas,
    Separator,
    Shell,
    Show,
    Tables,
    Timer,
    Views,
    Width,
}

const fn command(
    names: &'static [&'static str],
    arguments: &'static str,
    help: &'static str,
    example: &'static str,
    kind: CommandKind,
) -> ShellCommand {
    ShellCommand { names, arguments, help, example, kind }
}

/// All commands, ordered by name.
pub(super) static COMMANDS: [ShellCommand; 33] = [
    command(
        &["bail"],
        "on|off",
        "Stop a script at its first error; off: continue after errors",
        ".bail off",
        CommandKind::Bail,
    ),
    command(&["cd"], "DIR", "Change the working directory", ".cd data", CommandKind::Cd),
    command(
        &["conninfo"],
        "",
        "Show the database, its location, and the user",
        "\\conninfo",
        CommandKind::Conninfo,
    ),
    command(
        &["copy"],
        "TABLE FROM|TO FILE …",
        "COPY in one line, as in psql; the file name needs no quotes",
        "\\copy visits TO visits.csv CSV HEADER",
        CommandKind::Copy,
    ),
    command(&["databases", "l"], "", "List the databases", ".databases", CommandKind::Databases),
    command(
        &["describe", "d"],
        "[PATTERN]",
        "Describe the columns of tables whose names match; without a pattern, of all",
        "\\d visit*",
        CommandKind::Describe,
    ),
    command(
        &["echo"],
        "on|off",
        "Print each statement before it runs; \\echo TEXT prints a text, as .print does",
        ".echo on",
        CommandKind::Echo,
    ),
    command(
        &["expanded", "x"],
        "[on|off]",
        "Switch between modes line and box",
        "\\x",
        CommandKind::Expanded,
    ),
    command(
        &["explain"],
        "on|off|analyze",
        "Show the plans of queries instead of their rows",
        ".explain analyze",
        CommandKind::Explain,
    ),
    command(
        &["extensions", "dx"],
        "",
        "List the extensions",
        ".extensions",
        CommandKind::Extensions,
    ),
    command(
        &["functions", "df"],
        "[PATTERN]",
        "List the functions whose names contain the pattern; * matches anything",
        ".functions json*",
        CommandKind::Functions,
    ),
    command(
        &["headers", "header"],
        "on|off",
        "Show column names above results",
        ".headers off",
        CommandKind::Headers,
    ),
    command(
        &["help", "?"],
        "[COMMAND]",
        "List the commands, or show one with an example",
        ".help import",
        CommandKind::Help,
    ),
    command(
        &["import"],
        "FILE TABLE",
        "Insert the rows of a file into a table, created if missing",
        ".import 'my visits.csv' visits",
        CommandKind::Import,
    ),
    command(
        &["indexes", "di"],
        "[PATTERN]",
        "List the indexes of primary keys and unique constraints",
        ".indexes visit*",
        CommandKind::Indexes,
    ),
    command(
        &["maxrows"],
        "N",
        "Maximum number of rows shown, first and last; 0 for all",
        ".maxrows 100",
        CommandKind::MaxRows,
    ),
    command(
        &["mode"],
        "[MODE]",
        "box, table, csv, json, ndjson, markdown, line, tabs or list",
        ".mode csv",
        CommandKind::Mode,
    ),
    command(
        &["nullvalue"],
        "[TEXT]",
        "Text for NULL; without one, the mode's default",
        ".nullvalue -",
        CommandKind::NullValue,
    ),
    command(
        &["once"],
        "FILE",
        "Write the next result to a file",
        ".once counts.csv",
        CommandKind::Once,
    ),
    command(
        &["open"],
        "[DIR [--salvage]]",
        "Open the database in a directory, created if missing; with --salvage, read what is left of a \
         damaged one; without a directory, a new one in memory",
        ".open shop",
        CommandKind::Open,
    ),
    command(
        &["output", "o"],
        "[FILE]",
        "Write results to a file; without one, to stdout again",
        ".output report.md",
        CommandKind::Output,
    ),
    command(&["print"], "[TEXT]", "Print a text to the output", ".print done", CommandKind::Print),
    command(&["quit", "exit", "q"], "", "Exit (as Ctrl-D does)", ".quit", CommandKind::Quit),
    command(&["read", "i"], "FILE", "Run a script", ".read setup.sql", CommandKind::Read),
    command(
        &["schema"],
        "[PATTERN]",
        "Show the statements that create tables and views; without a pattern, of all",
        ".schema visit*",
        CommandKind::Schema,
    ),
    command(&["schemas", "dn"], "", "List the schemas", ".schemas", CommandKind::Schemas),
    command(
        &["separator"],
        "[TEXT]",
        "Separator of csv, tabs and list; without one, the mode's default",
        ".separator ;",
        CommandKind::Separator,
    ),
    command(
        &["shell", "system", "!"],
        "COMMAND",
        "Run a shell command",
        ".shell ls *.csv",
        CommandKind::Shell,
    ),
    command(&["show"], "", "Show the current settings", ".show", CommandKind::Show),
    command(
        &["tables", "dt"],
        "[PATTERN]",
        "List tables and views; system tables only if the pattern matches them",
        ".tables atoll.*",
        CommandKind::Tables,
    ),
    command(
        &["timer", "timing"],
        "on|off",
        "Print the time each statement takes",
        ".timer on",
        CommandKind::Timer,
    ),
    command(&["views", "dv"], "[PATTERN]", "List views", ".views recent*", CommandKind::Views),
    command(
        &["width"],
        "[N …]",
        "Column widths, 0 to fit the values; without arguments, for all columns",
        ".width 10 0 20",
        CommandKind::Width,
    ),
];

impl Shell {
    /// Runs a command, given with its dot or backslash.
    pub(super) async fn run_command(&mut self, text: &str) -> Result<(), Stop> {
        let (name, argument) = parts(text);
        let command = find(name)?;
        let argument = argument.as_str();
        let settings = &mut self.settings;
        match command.kind {
            CommandKind::Bail => set::switch(&mut settings.bail, command, argument),
            CommandKind::Cd => set::directory(argument),
            CommandKind::Conninfo => self.connection().await,
            CommandKind::Copy => self.run_statement(&copy::statement(raw_argument(text)), 1).await,
            CommandKind::Databases => self.run_plainly("SHOW DATABASES").await,
            CommandKind::Describe => self.columns_of(argument).await,
            // psql's spelling.
            CommandKind::Echo if text.starts_with('\\') => self.print(argument),
            CommandKind::Echo => set::switch(&mut settings.echo, command, argument),
            CommandKind::Expanded => set::expanded(settings, command, argument),
            CommandKind::Explain => set::explain(settings, argument),
            CommandKind::Extensions => self.run_plainly(tables::EXTENSIONS).await,
            CommandKind::Functions => self.functions(argument).await,
            CommandKind::Headers => set::switch(&mut settings.headers, command, argument),
            CommandKind::Help => self.help(argument),
            CommandKind::Import => self.import(raw_argument(text)).await,
            CommandKind::Indexes => self.indexes(argument).await,
            CommandKind::MaxRows => set::rows_max(settings, argument),
            CommandKind::Mode => set::mode(settings, argument),
            CommandKind::NullValue => {
                settings.null = (!argument.is_empty()).then(|| argument.to_owned());
                Ok(())
            }
            CommandKind::Once if argument.is_empty() => Err(no_file("once")),
            CommandKind::Once => self.once(argument),
            CommandKind::Open => self.open(argument).await,
            CommandKind::Output => self.output(argument),
            CommandKind::Print => self.print(argument),
            CommandKind::Quit => Err(Stop::Left),
            CommandKind::Read if argument.is_empty() => Err(no_file("read")),
            CommandKind::Read => self.run_file(Path::new(argument)).await,
            CommandKind::Schema => self.definitions(argument).await,
            CommandKind::Schemas => self.run_plainly("SHOW SCHEMAS").await,
            CommandKind::Separator => {
                settings.separator = set::separator(raw_argument(text));
                Ok(())
            }
            CommandKind::Shell => self.system(raw_argument(text)),
            CommandKind::Show => self.show_settings(),
            CommandKind::Tables => self.tables(argument).await,
            CommandKind::Timer => set::switch(&mut settings.timer, command, argument),
            CommandKind::Views => self.views(argument).await,
            CommandKind::Width => set::widths(settings, argument),
        }
    }

    fn print(&mut self, text: &str) -> Result<(), Stop> {
        writeln!(self.target.writer(), "{text}")?;
        Ok(self.target.writer().flush()?)
    }

    /// Switches to another database on the same workers.
    async fn open(&mut self, argument: &str) -> Result<(), Stop> {
        let (directory, salvage) = match argument.strip_suffix("--salvage") {
            Some(directory) => (directory.trim_end(), true),
            None => (argument, false),
        };
        if salvage && directory.is_empty() {
            return Err(Stop::failed(".open --salvage expects a directory"));
        }
        let directory = (!directory.is_empty()).then(|| PathBuf::from(directory));
        // It may be the directory of the current database.
        let before = self.session.database().clone();
        let opened = before.reopen(directory, salvage).await;
        self.session = opened.map_err(|error| Stop::failed(error.message()))?;
        self.tell_missing();
        Ok(())
    }

    /// Reports the missing parts of a salvaged database.
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
            file => opened(file)?,
        };
        Ok(())
    }

    /// Makes a file the target of the next result; `output_again` restores the previous target.
    fn once(&mut self, file: &str) -> Result<(), Stop> {
        let before = std::mem::replace(&mut self.target, opened(file)?);
        self.target_before.get_or_insert(before);
        Ok(())
    }

    /// Runs a shell command, whose output goes to the terminal.
    fn system(&mut self, command: &str) -> Result<(), Stop> {
        if command.is_empty() {
            return Err(Stop::failed(".shell expects a command, as in .shell ls"));
        }
        self.target.writer().flush()?;
        let ended = Command::new("sh").args(["-c", command]).status();
        let ended =
            ended.map_err(|error| Stop::failed(format!("cannot run '{command}': {error}")))?;
        if ended.success() {
            return Ok(());
        }
        Err(Stop::failed(format!("'{command}' failed with {ended}")))
    }
}

fn opened(file: &str) -> Result<OutputTarget, Stop> {
    OutputTarget::file(Path::new(file))
        .map_err(|error| Stop::failed(format!("cannot write {file}: {error}")))
}

fn no_file(command: &str) -> Stop {
    Stop::failed(format!(".{command} expects a file name"))
}

pub(super) fn find(name: &str) -> Result<&'static ShellCommand, Stop> {
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

/// The text after the name, unchanged.
fn raw_argument(text: &str) -> &str {
    text.split_once(char::is_whitespace).map_or("", |(_, argument)| argument.trim())
}

/// Name and argument, without quotes around the argument and a semicolon after it.
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
    fn an_unknown_command_suggests_a_similar_name() {
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
