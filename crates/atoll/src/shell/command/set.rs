//! Commands that change settings.

use super::super::settings::{Explain, ShellSettings};
use super::super::stop::Stop;
use super::ShellCommand;
use super::help::usage;
use crate::output::Mode;
use atoll_tools::terminal;
use atoll_topology::nearest_name;

/// `on` or `off`; without an argument, toggles.
pub(super) fn switch(value: &mut bool, command: &ShellCommand, argument: &str) -> Result<(), Stop> {
    *value = match argument {
        "on" | "true" | "1" => true,
        "off" | "false" | "0" => false,
        "" => !*value,
        other => {
            return Err(Stop::failed(format!(
                "expected on or off, found '{other}'; usage: {}",
                usage(command)
            )));
        }
    };
    Ok(())
}

pub(super) fn explain(settings: &mut ShellSettings, argument: &str) -> Result<(), Stop> {
    settings.explain = match argument {
        "on" => Explain::On,
        "off" => Explain::Off,
        "analyze" => Explain::Analyze,
        other => {
            return Err(Stop::failed(format!(
                "invalid argument '{other}' for .explain; expected \
                                             on, off or analyze"
            )));
        }
    };
    Ok(())
}

pub(super) fn mode(settings: &mut ShellSettings, argument: &str) -> Result<(), Stop> {
    if argument.is_empty() {
        terminal::say(settings.mode.name());
        return Ok(());
    }
    let unknown = || {
        let names = Mode::NAMES.join(", ");
        let help = nearest_name(argument, Mode::NAMES)
            .map_or_else(|| format!("modes: {names}"), |near| format!("did you mean {near}?"));
        Stop::failed(format!("unknown mode '{argument}'; {help}"))
    };
    settings.mode = Mode::named(argument).ok_or_else(unknown)?;
    Ok(())
}

pub(super) fn rows_max(settings: &mut ShellSettings, argument: &str) -> Result<(), Stop> {
    let rows: usize = argument.parse().map_err(|_| {
        Stop::failed(format!(
            "invalid argument '{argument}' for .maxrows; expected a \
                                           number, 0 for all rows"
        ))
    })?;
    settings.rows_max = (rows > 0).then_some(rows);
    Ok(())
}

/// Mode line or mode box; without an argument, toggles.
pub(super) fn expanded(
    settings: &mut ShellSettings,
    command: &ShellCommand,
    argument: &str,
) -> Result<(), Stop> {
    let mut is_expanded = settings.mode == Mode::Line;
    switch(&mut is_expanded, command, argument)?;
    settings.mode = match (is_expanded, settings.mode) {
        (true, _) => Mode::Line,
        (false, Mode::Line) => Mode::Box,
        (false, mode) => mode,
    };
    Ok(())
}

/// The separator, in which `\t` is a tab; None for the mode's default.
pub(super) fn separator(argument: &str) -> Option<String> {
    let inner =
        ['\'', '"'].iter().find_map(|quote| argument.strip_prefix(*quote)?.strip_suffix(*quote));
    let text = inner.unwrap_or(argument);
    (!text.is_empty()).then(|| text.replace("\\t", "\t"))
}

/// Changes the working directory.
pub(super) fn directory(argument: &str) -> Result<(), Stop> {
    if argument.is_empty() {
        return Err(Stop::failed(".cd expects a directory, as in .cd data"));
    }
    std::env::set_current_dir(argument)
        .map_err(|error| Stop::failed(format!("cannot change to '{argument}': {error}")))
}

pub(super) fn widths(settings: &mut ShellSettings, argument: &str) -> Result<(), Stop> {
    let widths = argument.split_whitespace().map(str::parse::<usize>);
    settings.widths = widths.collect::<Result<_, _>>().map_err(|_| {
        Stop::failed(format!(
            "invalid argument '{argument}' for .width; expected numbers, as in .width 10 0 20"
        ))
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_arguments_keep_the_settings() {
        let mut settings = ShellSettings::new(Mode::Box, true, false);
        mode(&mut settings, "csv").unwrap();
        rows_max(&mut settings, "0").unwrap();
        explain(&mut settings, "analyze").unwrap();
        widths(&mut settings, "3 0").unwrap();
        for bad in ["cvs", "-1", "maybe"] {
            assert!(widths(&mut settings, bad).is_err());
            assert!(mode(&mut settings, bad).is_err());
            assert!(rows_max(&mut settings, bad).is_err());
            assert!(explain(&mut settings, bad).is_err());
        }
        assert_eq!(settings.mode, Mode::Csv);
        assert_eq!(settings.rows_max, None);
        assert_eq!(settings.widths, [3, 0]);
        assert_eq!(settings.explain, Explain::Analyze);
    }

    #[test]
    fn expanded_toggles_between_line_and_box() {
        let command = super::super::find("x").unwrap();
        let mut settings = ShellSettings::new(Mode::Csv, true, false);
        for (argument, mode) in
            [("off", Mode::Csv), ("", Mode::Line), ("on", Mode::Line), ("", Mode::Box)]
        {
            expanded(&mut settings, command, argument).unwrap();
            assert_eq!(settings.mode, mode, "{argument}");
        }
        assert_eq!(separator("\\t"), Some("\t".to_owned()));
        assert_eq!(separator(""), None);
    }

    #[test]
    fn a_switch_is_set_or_toggled() {
        let timer = super::super::find("timer").unwrap();
        let mut value = true;
        switch(&mut value, timer, "off").unwrap();
        assert!(!value);
        switch(&mut value, timer, "").unwrap();
        assert!(value);
        assert!(switch(&mut value, timer, "perhaps").is_err());
    }
}
