//! The program to start, with placeholders for an instance's own values.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use atoll_topology::{CpuSet, Machine};

use super::error::LaunchError;
use super::plan::InstancePlan;

/// A program with its arguments and additional environment variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name or path.
    pub name: OsString,
    /// Arguments.
    pub arguments: Vec<OsString>,
    /// Environment variables in addition to Atoll's own.
    pub environment: Vec<(OsString, OsString)>,
}

impl Program {
    /// The program of an instance: in its arguments and environment `{i}`, `{node}`, `{domain}` and
    /// `{cpus}` are replaced by the instance's number, node, domain, and list of cpus (all usable ones,
    /// if its threads are free). Other braces stay.
    pub fn of_instance(
        &self,
        machine: &Machine,
        instance: &InstancePlan,
    ) -> Result<Self, LaunchError> {
        let all = || machine.cpus.iter().map(|cpu| cpu.id).collect::<CpuSet>();
        let values = [
            ("{i}", Some(instance.index.to_string())),
            ("{node}", Some(instance.node.to_string())),
            ("{domain}", instance.domain.map(|domain| domain.to_string())),
            ("{cpus}", Some(instance.cpus.clone().unwrap_or_else(all).to_string())),
        ];
        let fill = |text: &OsString| filled(text, &values);
        Ok(Self {
            name: fill(&self.name)?,
            arguments: self.arguments.iter().map(fill).collect::<Result<_, _>>()?,
            environment: self
                .environment
                .iter()
                .map(|(name, value)| Ok((name.clone(), fill(value)?)))
                .collect::<Result<_, LaunchError>>()?,
        })
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.name);
        command.args(&self.arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Becomes the program: same process, and the affinity and policy of the calling thread. Returns only
/// when that fails.
#[doc(alias = "execve")]
pub fn replace(program: &Program) -> LaunchError {
    LaunchError::of_start(program.name.clone(), program.command().exec())
}

type Values<'a> = [(&'a str, Option<String>)];

/// Replaces every placeholder in the text, from left to right; replacements are not
/// searched again.
fn filled(text: &OsStr, values: &Values<'_>) -> Result<OsString, LaunchError> {
    let mut rest = text.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    while let Some(at) = rest.iter().position(|byte| *byte == b'{') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let holder = values.iter().find(|(holder, _)| rest.starts_with(holder.as_bytes()));
        match holder {
            Some((_, None)) => return Err(LaunchError::NoDomain),
            Some((holder, Some(value))) => {
                out.extend_from_slice(value.as_bytes());
                rest = &rest[holder.len()..];
            }
            None => {
                out.push(b'{');
                rest = &rest[1..];
            }
        }
    }
    out.extend_from_slice(rest);
    Ok(OsString::from_vec(out))
}
