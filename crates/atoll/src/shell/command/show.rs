//! `.show`.

use super::super::Shell;
use super::super::settings::Explain;
use super::super::stop::Stop;

impl Shell {
    /// Prints the settings under the names of their commands.
    pub(super) fn show_settings(&mut self) -> Result<(), Stop> {
        let settings = &self.settings;
        let switch = |is_on: bool| if is_on { "on" } else { "off" };
        let explain = match settings.explain {
            Explain::Off => "off",
            Explain::On => "on",
            Explain::Analyze => "analyze",
        };
        let widths: Vec<String> = settings.widths.iter().map(ToString::to_string).collect();
        let quoted = |text: &Option<String>| match text {
            Some(text) => format!("{text:?}"),
            None => "the mode's default".to_owned(),
        };
        let rows = [
            ("bail", switch(settings.bail).to_owned()),
            ("echo", switch(settings.echo).to_owned()),
            ("explain", explain.to_owned()),
            ("headers", switch(settings.headers).to_owned()),
            ("maxrows", settings.rows_max.unwrap_or(0).to_string()),
            ("mode", settings.mode.name().to_owned()),
            ("nullvalue", quoted(&settings.null)),
            ("separator", quoted(&settings.separator)),
            ("timer", switch(settings.timer).to_owned()),
            ("width", widths.join(" ")),
        ];
        for (name, value) in rows {
            writeln!(self.target.writer(), "{name:>10}: {value}")?;
        }
        Ok(self.target.writer().flush()?)
    }
}
