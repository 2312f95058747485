//! Data that hwloc cannot represent, as infos named `atoll.…`: `key=value` fields separated by spaces; the last value
//! may contain spaces. Free text is ASCII with `\u{…}` for the rest, because hwloc drops other characters when it
//! rewrites a file.

use std::fmt::Write;
use std::str::FromStr;

use super::parts::XmlInfo;
use super::scan::XmlPosition;
use crate::FormatError;
use atoll_topology::{
    Cache, CacheKind, CpuKind, CpuSet, CpuTimeLimit, Die, HugePages, Link, LinkId, MemoryLimit,
    PackageId,
};

/// Fields of an info. There are few keys, so a list is fast enough.
pub(super) struct Fields<'a> {
    fields: Vec<(&'a str, &'a str)>,
    place: XmlPosition<'a>,
}

/// Maximum number of fields of an info: a fact has 10.
const FIELDS_MAX: usize = 16;

impl<'a> Fields<'a> {
    /// Parses fields; the one named `tail` extends to the end of the text.
    pub(super) fn parse(info: &'a XmlInfo<'a>, tail: &str) -> Result<Self, FormatError> {
        Self::parse_text(&info.value, tail, info.place)
    }

    pub(super) fn parse_text(
        text: &'a str,
        tail: &str,
        place: XmlPosition<'a>,
    ) -> Result<Self, FormatError> {
        let mut fields = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (key, after) = rest
                .split_once('=')
                .filter(|(key, _)| !key.contains(' ') && fields.len() < FIELDS_MAX)
                .ok_or_else(|| place.fail_at(rest, "fields such as 'key=value'"))?;
            let (value, left) = match after.split_once(' ') {
                Some(parts) if key != tail => parts,
                _ => (after, ""),
            };
            fields.push((key, value));
            rest = left;
        }
        Ok(Self { fields, place })
    }

    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.fields.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    pub(super) fn need(&self, key: &str) -> Result<&'a str, FormatError> {
        let found = || format!("an info without '{key}='");
        self.text(key).ok_or_else(|| self.place.fail(found(), format!("'{key}=…'")))
    }

    /// A parsed value, if the key exists.
    pub(super) fn get<T: FromStr>(&self, key: &str) -> Result<Option<T>, FormatError> {
        self.text(key).map(|text| self.parsed(key, text.parse().ok())).transpose()
    }

    pub(super) fn need_parsed<T: FromStr>(&self, key: &str) -> Result<T, FormatError> {
        self.parsed(key, self.need(key)?.parse().ok())
    }

    /// A finite number.
    pub(super) fn finite(&self, key: &str) -> Result<Option<f64>, FormatError> {
        match self.get::<f64>(key)? {
            Some(value) if !value.is_finite() => self.parsed(key, None),
            value => Ok(value),
        }
    }

    /// Free text.
    pub(super) fn free_text(&self, key: &str) -> Result<String, FormatError> {
        self.parsed(key, unescape(self.need(key)?))
    }

    /// A set of cpus.
    pub(super) fn cpus(&self) -> Result<CpuSet, FormatError> {
        self.parsed("cpus", CpuSet::parse(self.need("cpus")?).ok())
    }

    /// The value, or an error that names the key.
    pub(super) fn parsed<T>(&self, key: &str, value: Option<T>) -> Result<T, FormatError> {
        let text = self.text(key).unwrap_or_default();
        let found = || format!("{key}={text:.60}");
        value.ok_or_else(|| self.place.fail(found(), format!("a value that '{key}' can have")))
    }
}

/// Free text as ASCII, with backslashes escaped.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            ' '..='~' if character != '\\' => escaped.push(character),
            _ => drop(write!(escaped, "\\u{{{:x}}}", u32::from(character))),
        }
    }
    escaped
}

/// Reverses [`escape`].
pub(super) fn unescape(escaped: &str) -> Option<String> {
    let mut parts = escaped.split("\\u{");
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let (code, rest) = part.split_once('}')?;
        text.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
        text.push_str(rest);
    }
    Some(text)
}

/// ` key=value` if there is a value.
fn option<T: ToString>(key: &str, value: Option<T>) -> String {
    value.map_or_else(String::new, |value| format!(" {key}={}", value.to_string()))
}

pub(super) fn write_cache(cache: &Cache) -> String {
    let mut text = format!("level={} kind={}", cache.level, kind_name(cache.kind));
    text += &option("size", cache.size.map(|size| size.0));
    text += &option("line", cache.line.map(|line| line.0));
    text += &option("ways", cache.ways);
    text + &format!(" cpus={}", cache.cpus)
}

pub(super) fn read_cache(info: &XmlInfo<'_>) -> Result<Cache, FormatError> {
    let fields = Fields::parse(info, "cpus")?;
    let kinds = [CacheKind::Data, CacheKind::Instruction, CacheKind::Unified];
    let kind = kinds.into_iter().find(|&kind| fields.text("kind") == Some(kind_name(kind)));
    Ok(Cache {
        level: fields.need_parsed("level")?,
        kind: fields.parsed("kind", kind)?,
        cpus: fields.cpus()?,
        size: fields.get("size")?.map(atoll_topology::Bytes),
        line: fields.get("line")?.map(atoll_topology::Bytes),
        ways: fields.get("ways")?,
    })
}

fn kind_name(kind: CacheKind) -> &'static str {
    match kind {
        CacheKind::Data => "data",
        CacheKind::Instruction => "instruction",
        CacheKind::Unified => "unified",
    }
}

pub(super) fn write_die(die: &Die) -> String {
    format!("id={} package={} cpus={}", die.id, die.package, die.cpus)
}

pub(super) fn read_die(info: &XmlInfo<'_>) -> Result<Die, FormatError> {
    let fields = Fields::parse(info, "cpus")?;
    let package = PackageId(fields.need_parsed("package")?);
    Ok(Die { id: fields.need_parsed("id")?, package, cpus: fields.cpus()? })
}

pub(super) fn write_cpu_kind(kind: &CpuKind) -> String {
    format!("cpus={} name={}", kind.cpus, escape(&kind.name))
}

pub(super) fn read_cpu_kind(info: &XmlInfo<'_>) -> Result<CpuKind, FormatError> {
    let fields = Fields::parse(info, "name")?;
    Ok(CpuKind { name: fields.free_text("name")?, cpus: fields.cpus()? })
}

pub(super) fn write_link(link: &Link) -> String {
    format!("a={} b={} kind={}", link.a, link.b, escape(&link.kind))
}

pub(super) fn read_link(info: &XmlInfo<'_>, id: LinkId) -> Result<Link, FormatError> {
    let fields = Fields::parse(info, "kind")?;
    let node = |key| Ok(atoll_topology::NodeId(fields.need_parsed(key)?));
    Ok(Link { id, a: node("a")?, b: node("b")?, kind: fields.free_text("kind")? })
}

pub(super) fn write_memory_limit(limit: &MemoryLimit) -> String {
    format!("bytes={} file={}", limit.bytes.0, escape(&limit.file))
}

pub(super) fn read_memory_limit(info: &XmlInfo<'_>) -> Result<MemoryLimit, FormatError> {
    let fields = Fields::parse(info, "file")?;
    let bytes = atoll_topology::Bytes(fields.need_parsed("bytes")?);
    Ok(MemoryLimit { bytes, file: fields.free_text("file")? })
}

pub(super) fn write_cpu_limit(limit: &CpuTimeLimit) -> String {
    format!("cpus={:?} file={}", limit.cpus, escape(&limit.file))
}

pub(super) fn read_cpu_limit(info: &XmlInfo<'_>) -> Result<CpuTimeLimit, FormatError> {
    let fields = Fields::parse(info, "file")?;
    let cpus = fields.finite("cpus")?;
    Ok(CpuTimeLimit { cpus: fields.parsed("cpus", cpus)?, file: fields.free_text("file")? })
}

pub(super) fn write_huge_pages(pages: &HugePages) -> String {
    format!("size={} total={} free={}", pages.size.0, pages.total, pages.free)
}

pub(super) fn read_huge_pages(info: &XmlInfo<'_>) -> Result<HugePages, FormatError> {
    let fields = Fields::parse(info, "")?;
    Ok(HugePages {
        size: atoll_topology::Bytes(fields.need_parsed("size")?),
        total: fields.need_parsed("total")?,
        free: fields.need_parsed("free")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_text_survives_as_printable_ascii() {
        for text in ["", "QPI 6.4 GT/s", "a\\u{41}\\", "Größe\n\t\u{0}😀 x=\"1\" "] {
            let escaped = escape(text);
            assert!(escaped.chars().all(|character| (' '..='~').contains(&character)));
            assert_eq!(unescape(&escaped).as_deref(), Some(text));
        }
        for broken in ["\\u{", "\\u{zz}", "\\u{d800}"] {
            assert_eq!(unescape(broken), None, "{broken}");
        }
    }
}
