//! Facts as infos, complete and exact; and path facts that hwloc has memory attributes for (`Latency` in ns,
//! bandwidths in MiB/s, rounded) also as memory attributes, for programs that use hwloc.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use super::infos::{self, Fields};
use super::parts::{AttributeValue, XmlInfo};
use super::scan::XmlPosition;
use crate::FormatError;
use atoll_topology::{Conditions, Fact, Quantity, Source, Spread, Subject};

/// One GB/s in MiB/s, the unit of hwloc's bandwidths.
const MIB_PER_GB: f64 = 1e9 / (1 << 20) as f64;

/// A memory attribute of hwloc and its quantity.
pub(super) struct Attribute {
    pub(super) name: &'static str,
    /// hwloc's `hwloc_memattr_flag_e`: 1 higher or 2 lower is better, 4 has initiators.
    pub(super) flags: u32,
    pub(super) quantity: Quantity,
}

/// The attributes, those with exactly the quantity's meaning first.
pub(super) const ATTRIBUTES: [Attribute; 5] = [
    Attribute { name: "ReadLatency", flags: 6, quantity: Quantity::Latency },
    Attribute { name: "ReadBandwidth", flags: 5, quantity: Quantity::ReadBandwidth },
    Attribute { name: "WriteBandwidth", flags: 5, quantity: Quantity::WriteBandwidth },
    Attribute { name: "Latency", flags: 6, quantity: Quantity::Latency },
    Attribute { name: "Bandwidth", flags: 5, quantity: Quantity::ReadBandwidth },
];

impl Attribute {
    /// The figure in the attribute's unit.
    pub(super) fn value_of(&self, fact: &Fact) -> u64 {
        let scale = if self.quantity == Quantity::Latency { 1.0 } else { MIB_PER_GB };
        (fact.value * scale).round() as u64
    }

    /// The fact of a path from a value of the attribute.
    pub(super) fn fact(&self, value: &AttributeValue<'_>, subject: Subject) -> Fact {
        let scale = if self.quantity == Quantity::Latency { 1.0 } else { MIB_PER_GB };
        let origin = format!("{}, memory attribute {}", value.place.file, self.name);
        let figure = value.value as f64 / scale;
        Fact::new(subject, self.quantity, figure, Source::Declared, origin)
    }
}

/// `path 0-1 latency value=131.5 threads=4 source=measured origin=…`
pub(super) fn write(fact: &Fact) -> String {
    let mut text = format!("{} {} value={:?}", fact.subject, fact.quantity, fact.value);
    if let Some(threads) = fact.conditions.threads {
        let _ = write!(text, " threads={threads}");
    }
    if let Some(load) = fact.conditions.load {
        let _ = write!(text, " load={load:?}");
    }
    if let Some(Spread { min, max, runs }) = fact.spread {
        let _ = write!(text, " min={min:?} max={max:?} runs={runs}");
    }
    if let Some(at) = fact.at {
        let _ = write!(text, " at={}", write_time(at));
    }
    let _ = write!(text, " source={} origin={}", fact.source.name(), infos::escape(&fact.origin));
    text
}

/// Parses the output of [`write`].
pub(super) fn read(info: &XmlInfo<'_>) -> Result<Fact, FormatError> {
    let place = info.place;
    let expected = "a fact such as 'path 0-1 latency value=131.5 source=measured origin=…'";
    let fail = || place.fail_at(&info.value, expected);
    let (head, rest) = info.value.split_once(" value=").ok_or_else(fail)?;
    let (subject, quantity) = head.rsplit_once(' ').ok_or_else(fail)?;
    let rest = &info.value[info.value.len() - rest.len() - "value=".len()..];
    let fields = Fields::parse_text(rest, "origin", place)?;
    let value = fields.finite("value")?;
    Ok(Fact {
        subject: Subject::named(subject).ok_or_else(fail)?,
        quantity: Quantity::named(quantity).ok_or_else(fail)?,
        conditions: Conditions { threads: fields.get("threads")?, load: fields.finite("load")? },
        value: fields.parsed("value", value)?,
        spread: read_spread(&fields)?,
        source: fields.parsed("source", Source::named(fields.need("source")?))?,
        origin: fields.free_text("origin")?,
        at: read_at(&fields, place)?,
    })
}

fn read_spread(fields: &Fields<'_>) -> Result<Option<Spread>, FormatError> {
    let Some(runs) = fields.get("runs")? else { return Ok(None) };
    let end = |key| fields.parsed(key, fields.finite(key)?);
    Ok(Some(Spread { min: end("min")?, max: end("max")?, runs }))
}

fn read_at(fields: &Fields<'_>, place: XmlPosition<'_>) -> Result<Option<SystemTime>, FormatError> {
    let Some(text) = fields.text("at") else { return Ok(None) };
    let expected = "seconds since 1970 such as 1763767881.000000000";
    read_time(text).map(Some).ok_or_else(|| place.fail_at(text, expected))
}

/// Seconds since 1970 with nanoseconds, negative before 1970.
fn write_time(at: SystemTime) -> String {
    let (sign, time) = match at.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => ("", since),
        Err(error) => ("-", error.duration()),
    };
    format!("{sign}{}.{:09}", time.as_secs(), time.subsec_nanos())
}

fn read_time(text: &str) -> Option<SystemTime> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (seconds, nanos) = digits.split_once('.')?;
    let nanos = nanos.parse().ok().filter(|&count| nanos.len() == 9 && count < 1_000_000_000)?;
    let time = Duration::new(seconds.parse().ok()?, nanos);
    match sign {
        1 => SystemTime::UNIX_EPOCH.checked_add(time),
        _ => SystemTime::UNIX_EPOCH.checked_sub(time),
    }
}
