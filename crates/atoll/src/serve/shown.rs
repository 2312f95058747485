//! The output of `atoll serve --show-config`.

use serde_json::{Map, Value, json};

use super::settings::{Setting, SettingKind, SettingSource, Settings};

/// Column of a setting's source.
const COLUMN: usize = 48;

/// The settings in the form of a file, each with its source.
pub(super) fn as_toml(settings: &Settings) -> String {
    let mut text = match &settings.file {
        Some(file) => format!("# settings from {}\n", file.display()),
        None => "# no settings file\n".to_owned(),
    };
    for setting in &settings.all {
        text.push_str(&match written(setting) {
            Some(value) => {
                let written = format!("{} = {value}", setting.name);
                format!("{written:COLUMN$} # {}\n", setting.source.name())
            }
            None => format!("# {} is not set\n", setting.name),
        });
    }
    let rules = settings.rules.as_ref().map_or(0, |rules| rules.count());
    text.push_str(&format!("# rules for log-ins ([[login]]): {rules}\n"));
    text
}

/// The same as one JSON document.
pub(super) fn as_json(settings: &Settings) -> Value {
    let setting = |setting: &Setting| {
        let shown = json!({ "value": value(setting), "source": setting.source.name() });
        (setting.name.clone(), shown)
    };
    json!({
        "file": settings.file.as_ref().map(|file| file.display().to_string()),
        "settings": settings.all.iter().map(setting).collect::<Map<_, _>>(),
        "login_rules": settings.rules.as_ref().map_or(0, |rules| rules.count()),
    })
}

impl SettingSource {
    fn name(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::File => "file",
            Self::Default => "default",
        }
    }
}

fn value(setting: &Setting) -> Value {
    let Some(values) = &setting.values else { return Value::Null };
    let first = values.first().map_or("", String::as_str);
    match setting.kind {
        SettingKind::Switch => (first == "true").into(),
        SettingKind::Number => first.parse::<u64>().map_or(Value::Null, Value::from),
        SettingKind::Text => first.into(),
        SettingKind::Texts => values.clone().into(),
    }
}

/// A value in TOML, which is the same as JSON for the types of settings.
fn written(setting: &Setting) -> Option<String> {
    match value(setting) {
        Value::Null => None,
        value => Some(value.to_string()),
    }
}
