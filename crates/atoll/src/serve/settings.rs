//! The settings of `atoll serve`: flags take precedence over variables, variables over the file, the file over
//! defaults.
//!
//! The keys of the file are the flags. What clap knows of a flag (its name, its values, whether it may be repeated)
//! determines how its key is read. Settings of the file become flags in front of those of the command line:
//!
//! ```text
//! arguments ──▶ clap ──▶ which file, and which flags and variables are set
//! file ──▶ keys, types, values checked, with their lines ──▶ flags for the rest
//! arguments with these flags ──▶ clap ──▶ ServeArgs
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use atoll_formats::FormatError;
use atoll_formats::toml::reader::{TomlItem, TomlTable, read_document};
use atoll_server::LoginRules;
use atoll_tools::exit::{CommandError, Exit};
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};

use crate::cli::{AtollCommand, Cli, ServeArgs};

/// The settings file in a data directory.
const FILE: &str = "atoll.toml";

/// The key of the login rules, which are not a flag.
const LOGIN: &str = "login";

/// The subcommand.
const SERVE: &str = "serve";

/// Flags that are not settings.
const NOT_SETTINGS: [&str; 5] = ["config", "show_config", "json", "help", "version"];

/// All settings.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) args: ServeArgs,
    /// Who may log in from where; None if the file has no rules.
    pub(crate) rules: Option<LoginRules>,
    /// The file; None if there is none.
    pub(crate) file: Option<PathBuf>,
    /// The settings by name.
    pub(crate) all: Vec<Setting>,
}

/// A setting and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) kind: SettingKind,
    /// None if it is not set.
    pub(crate) values: Option<Vec<String>>,
    pub(crate) source: SettingSource,
}

/// Type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingKind {
    Switch,
    Number,
    Text,
    Texts,
}

/// Source of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingSource {
    Flag,
    Environment,
    File,
    Default,
}

/// Contents of a file.
struct FileSettings {
    rules: Option<LoginRules>,
    /// Names of settings, and the equivalent flags.
    given: Vec<(String, Vec<String>)>,
}

impl Settings {
    /// Resolves all settings from the parsed command line.
    pub(crate) fn from_args(
        args: &ServeArgs,
        matches: &ArgMatches,
        arguments: &[OsString],
    ) -> Result<Self, CommandError> {
        let Some(file) = file_of(args) else {
            let all = settings(of_serve(matches), &[]);
            return Ok(Self { args: args.clone(), rules: None, file: None, all });
        };
        let FileSettings { rules, mut given } = read(&file)?;
        let serve = of_serve(matches);
        given.retain(|(name, _)| !is_given(serve, name));
        let names: Vec<&str> = given.iter().map(|(name, _)| name.as_str()).collect();
        let failed = |error: clap::Error| {
            let message = error.render().to_string();
            let message = message.trim_start_matches("error: ").trim_end();
            CommandError::with(Exit::Usage, format!("{}: {message}", file.display()))
        };
        let matches = Cli::command().try_get_matches_from(with_flags(arguments, &given));
        let matches = matches.map_err(failed)?;
        let args = match Cli::from_arg_matches(&matches).map_err(failed)?.command {
            AtollCommand::Serve(args) => *args,
            _ => args.clone(),
        };
        let all = settings(of_serve(&matches), &names);
        Ok(Self { args, rules, file: Some(file), all })
    }

    /// Reads the current login rules from the file. If there was a file, it must still exist.
    pub(crate) fn rules_now(&self) -> Result<Option<LoginRules>, CommandError> {
        let file = self.file.clone().or_else(|| file_of(&self.args));
        file.map_or(Ok(None), |file| read(&file).map(|settings| settings.rules))
    }
}

/// The file named by a flag, or the one in the data directory.
fn file_of(args: &ServeArgs) -> Option<PathBuf> {
    let in_data = || args.data.as_ref().map(|data| data.join(FILE)).filter(|file| file.exists());
    args.config.clone().or_else(in_data)
}

fn read(file: &Path) -> Result<FileSettings, CommandError> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| CommandError::with(Exit::Usage, format!("{name}: {error}")))?;
    let read = read_document(&text, &name, |top| FileSettings::read(&top));
    read.map_err(|error| CommandError::with(Exit::Usage, error))
}

impl FileSettings {
    fn read(top: &TomlTable<'_>) -> Result<Self, FormatError> {
        let command = serve_command();
        let args: Vec<&Arg> = setting_args(&command).collect();
        let mut known: Vec<&str> = args.iter().map(|arg| arg.get_id().as_str()).collect();
        known.push(LOGIN);
        top.keys(&known)?;
        let mut given = Vec::new();
        for arg in args {
            let name = arg.get_id().as_str();
            if let Some(item) = top.get(name) {
                given.push((name.to_owned(), flags(arg, item)?));
            }
        }
        Ok(Self { rules: LoginRules::read(top)?, given })
    }
}

/// The flags equivalent to an item; none for a switch that is off.
fn flags(arg: &Arg, item: TomlItem<'_>) -> Result<Vec<String>, FormatError> {
    let name = arg.get_id().as_str().replace('_', "-");
    let values = match SettingKind::from_arg(arg) {
        SettingKind::Switch => {
            return Ok(Vec::from_iter(item.flag()?.then(|| format!("--{name}"))));
        }
        SettingKind::Number => vec![item.whole(u64::MAX)?.to_string()],
        SettingKind::Text => vec![item.text()?.to_owned()],
        SettingKind::Texts if item.is_text() => vec![item.text()?.to_owned()],
        SettingKind::Texts => {
            let texts = item.items("texts")?.map(|item| item.text().map(str::to_owned));
            texts.collect::<Result<_, _>>()?
        }
    };
    let flags: Vec<String> = values.iter().map(|value| format!("--{name}={value}")).collect();
    match flags.iter().find_map(|flag| refusal(flag)) {
        Some(expected) => Err(item.wrong(expected)),
        None => Ok(flags),
    }
}

/// What was expected instead of a value that the flag rejects.
fn refusal(flag: &str) -> Option<String> {
    let error = Cli::command().try_get_matches_from(["atoll", SERVE, flag]).err()?;
    if let Some(ContextValue::Strings(names)) = error.get(ContextKind::ValidValue)
        && !names.is_empty()
    {
        return Some(format!("one of {}", names.join(", ")));
    }
    let Some(cause) = std::error::Error::source(&error) else { return Some("a value".to_owned()) };
    let cause = cause.to_string();
    Some(match cause.split_once("expected ") {
        Some((_, expected)) => expected.to_owned(),
        None => format!("a valid value ({cause})"),
    })
}

impl SettingKind {
    fn from_arg(arg: &Arg) -> Self {
        let takes = arg.get_value_parser().type_id();
        match arg.get_action() {
            ArgAction::SetTrue => Self::Switch,
            ArgAction::Append => Self::Texts,
            _ if takes == std::any::TypeId::of::<u64>() => Self::Number,
            _ if takes == std::any::TypeId::of::<usize>() => Self::Number,
            _ => Self::Text,
        }
    }
}

/// The subcommand as clap knows it.
fn serve_command() -> Command {
    Cli::command().find_subcommand(SERVE).cloned().unwrap_or_default()
}

/// The flags that are settings.
fn setting_args(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !NOT_SETTINGS.contains(&arg.get_id().as_str()))
}

/// The matches of the subcommand.
fn of_serve(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand_matches(SERVE).unwrap_or(matches)
}

/// Whether a flag or its variable sets it.
fn is_given(serve: &ArgMatches, name: &str) -> bool {
    let source = serve.value_source(name);
    matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
}

/// The arguments, with flags inserted in front of the subcommand's own.
fn with_flags(arguments: &[OsString], given: &[(String, Vec<String>)]) -> Vec<OsString> {
    let (before, after) = arguments.split_at(arguments.len().min(2));
    let flags = given.iter().flat_map(|(_, flags)| flags.iter().map(OsString::from));
    before.iter().cloned().chain(flags).chain(after.iter().cloned()).collect()
}

/// All settings; `names` come from a file.
fn settings(serve: &ArgMatches, of_file: &[&str]) -> Vec<Setting> {
    let setting = |arg: &Arg| {
        let (name, kind) = (arg.get_id().as_str(), SettingKind::from_arg(arg));
        let source = match serve.value_source(name) {
            _ if of_file.contains(&name) => SettingSource::File,
            Some(ValueSource::CommandLine) => SettingSource::Flag,
            Some(ValueSource::EnvVariable) => SettingSource::Environment,
            _ => SettingSource::Default,
        };
        let texts = |value: &std::ffi::OsStr| value.to_string_lossy().into_owned();
        let values = match kind {
            SettingKind::Switch => Some(vec![serve.get_flag(name).to_string()]),
            _ => serve.get_raw(name).map(|values| values.map(texts).collect()),
        };
        Setting { name: name.to_owned(), kind, values, source }
    };
    setting_args(&serve_command()).map(setting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<(String, Vec<String>)>, FormatError> {
        read_document(text, "atoll.toml", |top| FileSettings::read(&top)).map(|read| read.given)
    }

    #[test]
    fn every_flag_is_a_key_of_its_kind() {
        let text = "data = 'shop'\nlisten = ['127.0.0.1:1', '[::1]:2']\nthreads = 2\nstrict = true\n\
                    insecure_listen = false\nmemory_limit = '1GiB'\nslow_query_ms = 0\n";
        let mut given = read_text(text).expect("settings");
        given.sort();
        let flags: Vec<OsString> =
            with_flags(&["atoll".into(), "serve".into(), "-d".into()], &given);
        let flags: Vec<&str> = flags.iter().filter_map(|flag| flag.to_str()).collect();
        assert_eq!(
            flags,
            [
                "atoll",
                "serve",
                "--data=shop",
                "--listen=127.0.0.1:1",
                "--listen=[::1]:2",
                "--memory-limit=1GiB",
                "--slow-query-ms=0",
                "--strict",
                "--threads=2",
                "-d",
            ]
        );
    }

    #[test]
    fn mistakes_are_named_by_file_and_line() {
        for (text, line, expected) in [
            ("\nlisen = '127.0.0.1:1'", 2, "'listen'"),
            ("tls-cert = 'x'", 1, "'tls_cert'"),
            ("config = 'x'", 1, "unknown key 'config'"),
            ("threads = '4'", 1, "a whole number"),
            ("strict = 1", 1, "true or false"),
            ("data = 7", 1, "a text"),
            ("data = ''", 1, "a value"),
            ("listen = ['127.0.0.1']", 1, "an address and port"),
            ("max_connections = 0", 1, "1..=4294967295"),
            ("tls = 'maybe'", 1, "one of optional, required"),
            ("memory_limit = 'lots'", 1, "a size such as"),
            ("placement = 'x'", 1, "placement is \"x\""),
            ("log_level = 'loud'", 1, "one of error, warning, info, debug"),
            ("[[login]]\nmethod = 'scam'", 2, "\"scram\""),
            ("data = ", 1, "a TOML document"),
        ] {
            let error = read_text(text).expect_err(text).to_string();
            assert!(error.starts_with(&format!("atoll.toml:{line}: ")), "{text}: {error}");
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
