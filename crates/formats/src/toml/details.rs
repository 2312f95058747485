//! Rare sections: dies, kinds of cpus, and the assumptions of discovery.

use super::reader::{TomlItem, TomlTable};
use crate::{FormatError, NAMED_CPUS_MAX};
use atoll_topology::{CPUS_MAX, CpuKind, CpuSet, Die, PackageId};

/// Maximum number of assumptions.
const ASSUMPTIONS_MAX: usize = 1024;

pub(super) fn dies(top: &TomlTable<'_>) -> Result<Vec<Die>, FormatError> {
    let mut named = NamedCpus::default();
    let die = |table: TomlTable<'_>| {
        table.keys(&["id", "package", "cpus"])?;
        let id = table.need("id", "the die's number")?.number(u32::MAX)?;
        let package = table.need("package", "the package it lies in")?.number(u32::MAX)?;
        Ok(Die { id, package: PackageId(package), cpus: named.cpus(&table)? })
    };
    top.tables("die")?.into_iter().map(die).collect()
}

pub(super) fn cpu_kinds(top: &TomlTable<'_>) -> Result<Vec<CpuKind>, FormatError> {
    let mut named = NamedCpus::default();
    let kind = |table: TomlTable<'_>| {
        table.keys(&["name", "cpus"])?;
        let name = table.need("name", "what cpus of this kind are called")?.text()?.to_owned();
        Ok(CpuKind { name, cpus: named.cpus(&table)? })
    };
    top.tables("cpu_kind")?.into_iter().map(kind).collect()
}

pub(super) fn assumptions(top: &TomlTable<'_>) -> Result<Vec<String>, FormatError> {
    let Some(item) = top.get("assumptions") else { return Ok(Vec::new()) };
    let items = item.items("texts")?;
    if items.len() > ASSUMPTIONS_MAX {
        return Err(item.wrong(format!("at most {ASSUMPTIONS_MAX} texts")));
    }
    items.map(|item| TomlItem::text(item).map(str::to_owned)).collect()
}

/// Limits the number of cpus that entries name, so that a short file cannot demand much work.
#[derive(Default)]
struct NamedCpus(usize);

impl NamedCpus {
    fn cpus(&mut self, table: &TomlTable<'_>) -> Result<CpuSet, FormatError> {
        let item = table.need("cpus", "its cpus, a set such as \"0-3\"")?;
        let cpus: CpuSet = item.set()?;
        self.0 += cpus.len();
        match self.0 > NAMED_CPUS_MAX || cpus.len() > CPUS_MAX as usize {
            true => Err(item.wrong(format!("at most {NAMED_CPUS_MAX} cpus in all"))),
            false => Ok(cpus),
        }
    }
}
