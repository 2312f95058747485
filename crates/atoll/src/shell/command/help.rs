//! `.help`.

use super::super::Shell;
use super::super::stop::Stop;
use super::{COMMANDS, ShellCommand, find};

const REST: &str = "
Commands may start with a backslash as well. Statements end with a semicolon. Ctrl-C cancels the
query that runs. SELECT … FROM 'file.parquet' reads a file; so do .csv, .json and .arrow files.
";

impl Shell {
    pub(super) fn help(&mut self, name: &str) -> Result<(), Stop> {
        let out = self.target.writer();
        if !name.is_empty() {
            let command = find(name.trim_start_matches(['.', '\\']))?;
            let (usage, help, example) = (usage(command), command.help, command.example);
            writeln!(out, "{usage}\n    {help}\n    For example: {example}")?;
            return Ok(out.flush()?);
        }
        for command in &COMMANDS {
            let (usage, help, example) = (usage(command), command.help, command.example);
            writeln!(out, "{usage:<26} {help}: {example}")?;
        }
        out.write_all(REST.as_bytes())?;
        Ok(out.flush()?)
    }
}

/// `.mode [MODE]`
pub(super) fn usage(command: &ShellCommand) -> String {
    let names: Vec<String> = command.names.iter().map(|name| format!(".{name}")).take(2).collect();
    format!("{} {}", names.join(", "), command.arguments).trim_end().to_owned()
}
