//! Assigns cores through systemd: the run-time property `AllowedCPUs` of a unit, so that systemd and Atoll do not write
//! the same cpuset.

use std::process::Command;
use std::sync::Arc;

use atoll_topology::CpuSet;

use super::{ActuateError, Applied, Journal, Record};

/// Requests to systemd, as a trait, so that tests can fake it.
pub trait UnitCalls: std::fmt::Debug {
    /// A property of a unit.
    fn property(&self, unit: &str, name: &str) -> Result<String, ActuateError>;

    /// Sets its `AllowedCPUs` until the next boot; an empty text removes the setting.
    fn set_cpus(&self, unit: &str, cpus: &str) -> Result<(), ActuateError>;
}

/// The running systemd.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveUnits;

impl UnitCalls for LiveUnits {
    fn property(&self, unit: &str, name: &str) -> Result<String, ActuateError> {
        systemctl(&["show", "--property", name, "--value", "--", unit])
    }

    fn set_cpus(&self, unit: &str, cpus: &str) -> Result<(), ActuateError> {
        let property = format!("AllowedCPUs={cpus}");
        systemctl(&["set-property", "--runtime", "--", unit, &property]).map(|_| ())
    }
}

fn systemctl(arguments: &[&str]) -> Result<String, ActuateError> {
    let failed = |reason: String| ActuateError::Unit { arguments: arguments.join(" "), reason };
    let output = Command::new("systemctl")
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| failed(format!("{error}; is systemd running here?")))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

/// Assigns cores by a unit.
#[derive(Debug)]
pub struct UnitActuator {
    calls: Arc<dyn UnitCalls>,
    unit: String,
    before: Option<String>,
    written: Option<CpuSet>,
}

impl UnitActuator {
    /// An actuator for this unit.
    pub fn new(calls: Arc<dyn UnitCalls>, unit: &str) -> Self {
        Self { calls, unit: unit.to_owned(), before: None, written: None }
    }

    /// The unit.
    pub fn name(&self) -> &str {
        &self.unit
    }

    pub(super) fn apply(
        &mut self,
        journal: &mut Journal,
        cpus: &CpuSet,
    ) -> Result<Applied, ActuateError> {
        if self.written.as_ref() == Some(cpus) {
            return Ok(Applied::default());
        }
        let found = self.calls.property(&self.unit, "AllowedCPUs")?;
        match &self.written {
            None => {
                let (unit, before) = (self.unit.clone(), found.clone());
                journal.write(&[Record::UnitSet { unit, before }])?;
                self.before = Some(found);
            }
            Some(written) if set_of(&found).as_ref() != Some(written) => {
                let (path, written) =
                    (format!("AllowedCPUs of {}", self.unit), written.to_string());
                return Err(ActuateError::GroupChanged { path, written, found });
            }
            Some(_) => {}
        }
        self.calls.set_cpus(&self.unit, &cpus.to_string())?;
        self.written = Some(cpus.clone());
        Ok(Applied::default())
    }

    pub(super) fn restore(&mut self) -> Vec<String> {
        let (Some(before), Some(_)) = (self.before.take(), self.written.take()) else {
            return Vec::new();
        };
        let error = self.calls.set_cpus(&self.unit, &before.replace(' ', ",")).err();
        error.map(|error| error.to_string()).into_iter().collect()
    }
}

/// systemd separates lists by blanks.
fn set_of(text: &str) -> Option<CpuSet> {
    CpuSet::parse(&text.split_whitespace().collect::<Vec<_>>().join(",")).ok()
}
