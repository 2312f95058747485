//! Facts: from groups of the structure that name their origin, from packages and links, from the sections named by
//! quantity, and from `[[fact]]`, in this order.

use std::time::SystemTime;

use super::reader::{TomlItem, TomlTable};
use super::structure::Origins;
use super::{Defaults, cpus, links};
use crate::FormatError;
use atoll_topology::{
    Conditions, CpuId, Fact, LinkId, Machine, NodeId, Quantity, Source, Spread, Subject,
};

const KEYS: [&str; 14] = [
    "quantity", "unit", "subject", "value", "min", "max", "runs", "values", "matrix", "threads",
    "load", "source", "origin", "at",
];
/// Quantities with their own section.
const SECTIONS: [Quantity; 8] = [
    Quantity::Latency,
    Quantity::LoadedLatency,
    Quantity::ReadBandwidth,
    Quantity::WriteBandwidth,
    Quantity::CopyBandwidth,
    Quantity::CrossTrafficBandwidth,
    Quantity::SaturationThreads,
    Quantity::CoreToCore,
];
/// Memory limit for all facts of a file: enough for the core-to-core figures of 1,024 cpus. Each fact has its own
/// copy of its origin, so a small file could demand far more.
const MEMORY_MAX: usize = 256 << 20;

/// All facts of the file.
pub(super) fn facts(
    top: &TomlTable<'_>,
    defaults: &Defaults<'_>,
    machine: &Machine,
    origins: &Origins<'_>,
) -> Result<Vec<Fact>, FormatError> {
    let mut facts = FigureEntries { machine, list: Vec::new(), memory: 0 };
    facts.structure(top, origins)?;
    facts.packages(top, defaults)?;
    facts.links(top, defaults)?;
    for quantity in SECTIONS {
        for table in top.tables(quantity.name())? {
            facts.section(&table, Some(quantity), defaults)?;
        }
    }
    for table in top.tables("fact")? {
        facts.section(&table, None, defaults)?;
    }
    Ok(facts.list)
}

/// The attributes that the facts of a section share.
#[derive(Clone, Copy)]
struct Common<'a> {
    quantity: Quantity,
    conditions: Conditions,
    source: Source,
    origin: &'a str,
    at: Option<SystemTime>,
}

impl<'a> Common<'a> {
    fn read(
        table: &TomlTable<'a>,
        quantity: Quantity,
        defaults: &Defaults<'a>,
    ) -> Result<Self, FormatError> {
        if let Some(unit) = table.get("unit")
            && unit.text()? != quantity.unit()
        {
            return Err(unit.wrong(format!("\"{}\", the unit of {quantity}", quantity.unit())));
        }
        let within = defaults.within(table)?;
        let conditions = Conditions {
            threads: table.get("threads").map(|item| item.number(u32::MAX)).transpose()?,
            load: table.get("load").map(TomlItem::figure).transpose()?,
        };
        let at = table.get("at").map(TomlItem::time).transpose()?;
        Ok(Self { quantity, conditions, source: within.source, origin: within.origin, at })
    }

    fn fact(&self, subject: Subject, value: f64, spread: Option<Spread>) -> Fact {
        Fact {
            conditions: self.conditions,
            spread,
            at: self.at,
            ..Fact::new(subject, self.quantity, value, self.source, self.origin)
        }
    }
}

struct FigureEntries<'a> {
    machine: &'a Machine,
    list: Vec<Fact>,
    /// Memory that the facts take.
    memory: usize,
}

impl FigureEntries<'_> {
    fn add(&mut self, table: &TomlTable<'_>, fact: Fact) -> Result<(), FormatError> {
        self.memory += size_of::<Fact>() + fact.origin.len();
        if self.memory > MEMORY_MAX {
            let found = format!("more than {} facts", self.list.len());
            let expected = format!("facts and origins of at most {} MiB", MEMORY_MAX >> 20);
            return Err(table.fail(found, expected));
        }
        self.list.push(fact);
        Ok(())
    }

    /// Memory, last-level caches and distances, if the file names their origin.
    fn structure(&mut self, top: &TomlTable<'_>, origins: &Origins<'_>) -> Result<(), FormatError> {
        let machine = self.machine;
        if let (source, Some(origin)) = origins.memory {
            for node in machine.nodes.iter().filter(|node| node.memory.0 > 0) {
                let (subject, value) = (Subject::Node(node.id), node.memory.0 as f64);
                self.add(top, Fact::new(subject, Quantity::Memory, value, source, origin))?;
            }
        }
        if let (source, Some(origin)) = origins.caches {
            for domain in &machine.domains {
                let (subject, Some(size)) = (Subject::Domain(domain.id), domain.cache) else {
                    continue;
                };
                self.add(top, Fact::new(subject, Quantity::Cache, size.0 as f64, source, origin))?;
            }
        }
        if let (source, Some(origin)) = origins.distances {
            for (from, row) in machine.nodes.iter().zip(&machine.distances) {
                for (to, &value) in machine.nodes.iter().zip(row) {
                    let subject = Subject::Path { from: from.id, to: to.id };
                    let value = f64::from(value);
                    self.add(top, Fact::new(subject, Quantity::Distance, value, source, origin))?;
                }
            }
        }
        Ok(())
    }

    fn packages(
        &mut self,
        top: &TomlTable<'_>,
        defaults: &Defaults<'_>,
    ) -> Result<(), FormatError> {
        for table in top.tables("package")? {
            let Some(item) = table.get("frequency") else { continue };
            for id in cpus::package_ids(&table)? {
                let subject = Subject::Package(id);
                self.known(&item, subject)?;
                self.figure(&table, item, subject, Quantity::Frequency, defaults)?;
            }
        }
        Ok(())
    }

    fn links(&mut self, top: &TomlTable<'_>, defaults: &Defaults<'_>) -> Result<(), FormatError> {
        let mut first = 0;
        for table in top.tables("link")? {
            let defaults = defaults.within(&table)?;
            let last = first + links::count(&table)? as u32;
            for quantity in Quantity::ALL {
                let Some(item) = table.get(quantity.name()) else { continue };
                for id in first..last {
                    self.figure(&table, item, Subject::Link(LinkId(id)), quantity, &defaults)?;
                }
            }
            first = last;
        }
        Ok(())
    }

    /// A figure that is a key of its subject: a number, or a table with more attributes.
    fn figure<'a>(
        &mut self,
        table: &TomlTable<'a>,
        item: TomlItem<'a>,
        subject: Subject,
        quantity: Quantity,
        defaults: &Defaults<'a>,
    ) -> Result<(), FormatError> {
        if !item.is_table() {
            let value = value(item, quantity)?;
            let fact = Fact::new(subject, quantity, value, defaults.source, defaults.origin);
            return self.add(table, fact);
        }
        let inner = item.table()?;
        const KEYS: [&str; 10] =
            ["value", "unit", "min", "max", "runs", "threads", "load", "source", "origin", "at"];
        inner.keys(&KEYS)?;
        let common = Common::read(&inner, quantity, defaults)?;
        let value = value(inner.need("value", "the figure")?, quantity)?;
        self.add(table, common.fact(subject, value, spread(&inner)?))
    }

    fn section<'a>(
        &mut self,
        table: &TomlTable<'a>,
        quantity: Option<Quantity>,
        defaults: &Defaults<'a>,
    ) -> Result<(), FormatError> {
        table.keys(&KEYS)?;
        let quantity = match (quantity, table.get("quantity")) {
            (None, _) => named(table.need("quantity", "the quantity of the figures")?)?,
            (Some(quantity), None) => quantity,
            (Some(quantity), Some(item)) => {
                return Err(item.wrong(format!("no 'quantity' in [{quantity}]")));
            }
        };
        let common = Common::read(table, quantity, defaults)?;
        match (table.get("matrix"), table.get("values"), table.get("subject")) {
            (Some(matrix), None, None) => self.matrix(table, matrix, &common),
            (None, Some(values), None) => {
                for item in values.items("figures")? {
                    let row = item.table()?;
                    row.keys(&["subject", "value", "min", "max", "runs"])?;
                    self.single(&row, &common)?;
                }
                Ok(())
            }
            (None, None, Some(_)) => self.single(table, &common),
            _ => Err(table.fail(
                format!("[{}] of {quantity} has no figures, or several forms of them", table.name),
                "one of 'subject' with 'value', 'values' and 'matrix'",
            )),
        }
    }

    fn single<'a>(
        &mut self,
        table: &TomlTable<'a>,
        common: &Common<'a>,
    ) -> Result<(), FormatError> {
        let item = table.need("subject", "what the figure is about, such as \"path 0-1\"")?;
        let value = value(table.need("value", "the figure")?, common.quantity)?;
        let spread = spread(table)?;
        let subjects = match item.is_text() {
            true => vec![item],
            false => item.items("subjects")?.collect(),
        };
        for item in subjects {
            let subject = Subject::named(item.text()?);
            let subject = subject.ok_or_else(|| {
                item.wrong("\"machine\", \"node 0\", \"package 0\", \"domain 0\", \"link 0\", \"path 0-1\" or \"cpus 0-5\"")
            })?;
            self.known(&item, subject)?;
            self.add(table, common.fact(subject, value, spread))?;
        }
        Ok(())
    }

    /// Rejects a subject that the machine does not have. Hidden parts are valid subjects.
    fn known(&self, item: &TomlItem<'_>, subject: Subject) -> Result<(), FormatError> {
        self.machine
            .has_or_hides(subject)
            .then_some(())
            .ok_or_else(|| item.wrong(format!("something that the machine has, not {subject}")))
    }

    /// Rows (from) of columns (to) in the order of the nodes, or of the cpus, by id.
    fn matrix<'a>(
        &mut self,
        table: &TomlTable<'a>,
        item: TomlItem<'a>,
        common: &Common<'a>,
    ) -> Result<(), FormatError> {
        let subjects = matrix_subjects(self.machine, common.quantity);
        let size = subjects.len();
        let expected = format!("{size} rows of {size} figures, one for each {}", subjects.what());
        let rows = item.items("rows")?;
        if rows.len() != size {
            return Err(item.wrong(expected));
        }
        for (from, row) in rows.enumerate() {
            let cells = row.items("figures")?;
            if cells.len() != size {
                return Err(row.wrong(expected));
            }
            for (to, cell) in cells.enumerate() {
                if cell.is_text() && cell.text()? == "-" {
                    continue;
                }
                let value = value(cell, common.quantity)?;
                self.add(table, common.fact(subjects.pair(from, to), value, None))?;
            }
        }
        Ok(())
    }
}

/// The subjects of the rows and columns of a matrix.
pub(super) enum MatrixSubjects {
    Nodes(Vec<NodeId>),
    Cpus(Vec<CpuId>),
}

impl MatrixSubjects {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Nodes(ids) => ids.len(),
            Self::Cpus(ids) => ids.len(),
        }
    }

    /// Subject of a cell.
    pub(super) fn pair(&self, from: usize, to: usize) -> Subject {
        match self {
            Self::Nodes(ids) => Subject::Path { from: ids[from], to: ids[to] },
            Self::Cpus(ids) => Subject::CpuPair { from: ids[from], to: ids[to] },
        }
    }

    fn what(&self) -> &'static str {
        match self {
            Self::Nodes(_) => "node",
            Self::Cpus(_) => "cpu",
        }
    }
}

pub(super) fn matrix_subjects(machine: &Machine, quantity: Quantity) -> MatrixSubjects {
    match quantity {
        Quantity::CoreToCore => {
            MatrixSubjects::Cpus(machine.cpus.iter().map(|cpu| cpu.id).collect())
        }
        _ => MatrixSubjects::Nodes(machine.nodes.iter().map(|node| node.id).collect()),
    }
}

/// A figure in the quantity's unit; bytes may have a unit suffix.
fn value(item: TomlItem<'_>, quantity: Quantity) -> Result<f64, FormatError> {
    match item.is_text() && quantity.unit() == "bytes" {
        true => item.size().map(|size| size.0 as f64),
        false => item.figure(),
    }
}

fn named(item: TomlItem<'_>) -> Result<Quantity, FormatError> {
    let names = || Quantity::ALL.map(Quantity::name).join(", ");
    Quantity::named(item.text()?).ok_or_else(|| item.wrong(format!("one of {}", names())))
}

/// Minimum, maximum and number of repetitions: all three or none.
fn spread(table: &TomlTable<'_>) -> Result<Option<Spread>, FormatError> {
    let any = table.get("min").or(table.get("max")).or(table.get("runs"));
    if any.is_none() {
        return Ok(None);
    }
    let max = table.need("max", "the largest of the runs")?;
    let spread = Spread {
        min: table.need("min", "the smallest of the runs")?.figure()?,
        max: max.figure()?,
        runs: table.need("runs", "the number of runs")?.number(u32::MAX)?,
    };
    match spread.min <= spread.max {
        true => Ok(Some(spread)),
        false => Err(max.wrong("no less than 'min'")),
    }
}
