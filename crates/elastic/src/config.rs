//! The configuration file for several targets.
//!
//! ```toml
//! interval_ms = 100
//!
//! [[target]]
//! name = "oltp"
//! unit = "postgresql@15-main.service"
//! priority = 10
//! work = "command:psql -Atc 'SELECT sum(xact_commit) FROM pg_stat_database'"
//! policy = { mode = "adaptive", cores_min = 2 }
//!
//! [[target]]
//! name = "olap"
//! pid = 4711
//! policy = { mode = "sparse", cores_max = 12 }
//! ```

use std::collections::BTreeSet;

use crate::decide::CorePolicy;

/// Time between two looks, ms.
const INTERVAL_MS: u64 = 100;
/// Bounds of the interval.
const INTERVAL_MS_MIN: u64 = 10;
const INTERVAL_MS_MAX: u64 = 60_000;

/// The whole file.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElasticConfig {
    /// Time between two looks, ms.
    #[serde(default = "usual_interval")]
    pub interval_ms: u64,
    /// The targets.
    #[serde(rename = "target")]
    pub targets: Vec<TargetConfig>,
}

fn usual_interval() -> u64 {
    INTERVAL_MS
}

/// A target.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetConfig {
    /// Its name in messages, traces and metrics.
    pub name: String,
    /// A process and its children.
    pub pid: Option<u32>,
    /// A control group.
    pub cgroup: Option<String>,
    /// A unit of systemd.
    pub unit: Option<String>,
    /// Targets with higher priority get cores first.
    #[serde(default)]
    pub priority: i64,
    /// What counts as work: `cpu`, `calls` or `command:COMMAND`.
    pub work: Option<String>,
    /// The DBMS, for its knob and counter: `postgres:host=/run/postgresql`.
    pub dbms: Option<String>,
    /// How to decide on its cores; `cores_min` is its minimum share.
    #[serde(default)]
    pub policy: CorePolicy,
}

/// Why a file is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It is not TOML, or not of this form.
    #[error("{0}")]
    Form(String),
    /// It names no target.
    #[error("no target; expected at least one [[target]]")]
    Empty,
    /// The interval.
    #[error("interval_ms = {0}: expected {INTERVAL_MS_MIN} to {INTERVAL_MS_MAX}")]
    Interval(u64),
    /// Two targets have the same name.
    #[error("two targets are named '{0}'; give each a name of its own")]
    Twice(String),
    /// A target names nothing, or several things.
    #[error("target '{0}': expected one of pid, cgroup and unit")]
    Named(String),
}

impl ElasticConfig {
    /// Parses a file's text.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let config: Self =
            toml::from_str(text).map_err(|error| ConfigError::Form(error.to_string()))?;
        if config.targets.is_empty() {
            return Err(ConfigError::Empty);
        }
        if !(INTERVAL_MS_MIN..=INTERVAL_MS_MAX).contains(&config.interval_ms) {
            return Err(ConfigError::Interval(config.interval_ms));
        }
        let mut names = BTreeSet::new();
        for target in &config.targets {
            if !names.insert(&target.name) {
                return Err(ConfigError::Twice(target.name.clone()));
            }
            let named = [target.pid.is_some(), target.cgroup.is_some(), target.unit.is_some()];
            if named.into_iter().filter(|is_named| *is_named).count() != 1 {
                return Err(ConfigError::Named(target.name.clone()));
            }
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::Mode;

    #[test]
    fn a_file_names_targets_with_their_policies() {
        let text = "[[target]]\nname = 'a'\nunit = 'a.service'\npriority = 10\n\
            policy = { mode = 'sparse', cores_min = 2 }\n[[target]]\nname = 'b'\npid = 7\n";
        let config = ElasticConfig::parse(text).unwrap();
        assert_eq!((config.interval_ms, config.targets.len()), (100, 2));
        let policy = &config.targets[0].policy;
        assert_eq!((policy.mode, policy.cores_min, policy.thmax), (Mode::Sparse, 2, 70));
        assert_eq!(config.targets[1].policy, CorePolicy::default());
    }

    #[test]
    fn an_invalid_file_is_refused_with_the_expected_value() {
        let target = "[[target]]\nname = 'a'\npid = 7\n";
        for (text, message) in [
            ("target = []".to_owned(), "at least one"),
            (target.replace("pid", "pidd"), "unknown field `pidd`"),
            (format!("{target}cgroup = '/x'"), "one of pid, cgroup and unit"),
            ("[[target]]\nname = 'a'".to_owned(), "one of pid, cgroup and unit"),
            (format!("{target}{target}"), "two targets are named 'a'"),
            (format!("interval_ms = 1\n{target}"), "expected 10 to 60000"),
            (format!("{target}policy = {{ mode = 'x' }}"), "unknown variant `x`"),
            (format!("{target}policy = {{ thmix = 1 }}"), "unknown field `thmix`"),
        ] {
            let error = ElasticConfig::parse(&text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}\n{error}");
        }
    }
}
