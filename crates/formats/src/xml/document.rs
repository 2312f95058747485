//! Builds a topology file from elements: objects in a tree, distances, memory attributes, infos and kinds of cpus.
//! What Atoll does not use (devices, `support`, user data) is skipped.

use super::facts::ATTRIBUTES;
use super::parts::{AttributeValue, Distances, ObjectKind, XmlCpuKind, XmlInfo, XmlObject};
use super::scan::{Element, Scanner, Token};
use crate::FormatError;
use atoll_topology::{CacheKind, SET_NUMBER_MAX};

/// A topology file.
#[derive(Debug)]
pub(super) struct XmlDocument<'a> {
    pub(super) file: &'a str,
    /// The first is the machine; an object comes after its parent.
    pub(super) objects: Vec<XmlObject<'a>>,
    pub(super) allowed_cpuset: Option<String>,
    pub(super) allowed_nodeset: Option<String>,
    pub(super) distances: Vec<Distances<'a>>,
    pub(super) attributes: Vec<AttributeValue<'a>>,
    pub(super) cpu_kinds: Vec<XmlCpuKind<'a>>,
    /// Infos of the file, where version 3 has those of the machine.
    pub(super) infos: Vec<XmlInfo<'a>>,
}

/// The current element of the reader.
#[derive(Clone, Debug)]
enum Inside {
    Topology,
    Object(usize),
    Distances,
    Indexes,
    Values,
    Attribute(usize),
    CpuKind,
    Ignored,
}

impl<'a> XmlDocument<'a> {
    /// Reads a file.
    pub(super) fn parse(text: &'a str, file: &'a str) -> Result<Self, FormatError> {
        let mut scanner = Scanner::new(text, file);
        let mut document = Self {
            file,
            objects: Vec::new(),
            allowed_cpuset: None,
            allowed_nodeset: None,
            distances: Vec::new(),
            attributes: Vec::new(),
            cpu_kinds: Vec::new(),
            infos: Vec::new(),
        };
        let mut stack = Vec::new();
        loop {
            match scanner.next()? {
                Token::Open(element) => stack.push(document.open(stack.last(), &element)?),
                Token::Text(text) => document.text(stack.last(), &text),
                Token::Close => drop(stack.pop()),
                Token::End => break,
            }
        }
        if document.objects.is_empty() {
            let expected = "<object type=\"Machine\" …>";
            return Err(scanner.place().fail("a topology without objects", expected));
        }
        Ok(document)
    }

    fn open(
        &mut self,
        inside: Option<&Inside>,
        element: &Element<'a>,
    ) -> Result<Inside, FormatError> {
        match (inside, element.name.as_str()) {
            (None, "topology") => topology(element),
            (None, name) => Err(element.place.fail(format!("<{name:.40}>"), "<topology>")),
            (Some(Inside::Topology), "object") if self.objects.is_empty() => self.machine(element),
            (Some(Inside::Topology), "object") => {
                Err(element.place.fail("a second outermost <object>", "one, the machine"))
            }
            (Some(Inside::Topology), "info") => info(element, &mut self.infos),
            (Some(Inside::Topology), "distances2") => self.distances(element),
            (Some(Inside::Topology), "cpukind") => {
                let cpuset = element.need("cpuset")?.to_owned();
                let place = element.place;
                self.cpu_kinds.push(XmlCpuKind { cpuset, infos: Vec::new(), place });
                Ok(Inside::CpuKind)
            }
            (Some(Inside::CpuKind), "info") => match self.cpu_kinds.last_mut() {
                Some(kind) => info(element, &mut kind.infos),
                None => Ok(Inside::Ignored),
            },
            (Some(Inside::Topology), "memattr") => {
                let name = element.need("name")?;
                let known = ATTRIBUTES.iter().position(|attribute| attribute.name == name);
                Ok(known.map_or(Inside::Ignored, Inside::Attribute))
            }
            (Some(&Inside::Object(parent)), "object") => self.object(element, Some(parent)),
            (Some(&Inside::Object(object)), "info") => {
                let object = &mut self.objects[object];
                object.is_domain |= element.get("name") == Some("atoll.domain");
                info(element, &mut object.infos)
            }
            (Some(&Inside::Object(object)), "page_type") => self.page_type(element, object),
            (Some(Inside::Distances), "indexes") => Ok(self.numbers(Inside::Indexes)),
            (Some(Inside::Distances), "u64values") => Ok(self.numbers(Inside::Values)),
            (Some(&Inside::Attribute(attribute)), "memattr_value") => {
                self.attribute(element, attribute)
            }
            _ => Ok(Inside::Ignored),
        }
    }

    fn text(&mut self, inside: Option<&Inside>, text: &str) {
        let Some(distances) = self.distances.last_mut() else { return };
        match inside {
            Some(Inside::Indexes) => distances.indexes.push_str(text),
            Some(Inside::Values) => distances.values.push_str(text),
            _ => {}
        }
    }

    /// Starts another list of numbers of the distances.
    fn numbers(&mut self, inside: Inside) -> Inside {
        self.text(Some(&inside), " ");
        inside
    }

    fn machine(&mut self, element: &Element<'a>) -> Result<Inside, FormatError> {
        if element.need("type")? != "Machine" {
            return Err(element.place.fail_at(element.need("type")?, "the type 'Machine'"));
        }
        self.allowed_cpuset = element.get("allowed_cpuset").map(str::to_owned);
        self.allowed_nodeset = element.get("allowed_nodeset").map(str::to_owned);
        self.object(element, None)
    }

    fn object(
        &mut self,
        element: &Element<'a>,
        parent: Option<usize>,
    ) -> Result<Inside, FormatError> {
        let kind = kind(element)?;
        let numbered = matches!(kind, ObjectKind::Node | ObjectKind::Pu);
        let index_max = if numbered { SET_NUMBER_MAX } else { u32::MAX };
        self.objects.push(XmlObject {
            kind,
            parent,
            os_index: element.number("os_index", index_max.into())?.map(|index| index as u32),
            gp_index: gp_index(element)?,
            cpuset: element.get("cpuset").map(str::to_owned),
            nodeset: element.get("nodeset").map(str::to_owned),
            complete_nodeset: element.get("complete_nodeset").map(str::to_owned),
            depth: element.number("depth", u32::MAX.into())?.unwrap_or_default() as u32,
            cache_size: element.number("cache_size", u64::MAX)?.unwrap_or_default(),
            cache_line: element.number("cache_linesize", u64::MAX)?.unwrap_or_default(),
            cache_ways: ways(element)?,
            memory: element.number("local_memory", u64::MAX)?.unwrap_or_default(),
            pages: Vec::new(),
            infos: Vec::new(),
            is_domain: false,
            place: element.place,
        });
        Ok(Inside::Object(self.objects.len() - 1))
    }

    fn page_type(&mut self, element: &Element<'a>, object: usize) -> Result<Inside, FormatError> {
        let size = element.number("size", u64::MAX)?.unwrap_or_default();
        let count = element.number("count", u64::MAX)?.unwrap_or_default();
        if size > 0 {
            self.objects[object].pages.push((size, count));
        }
        Ok(Inside::Ignored)
    }

    fn distances(&mut self, element: &Element<'a>) -> Result<Inside, FormatError> {
        self.distances.push(Distances {
            name: element.get("name").map(str::to_owned),
            of: element.need("type")?.to_owned(),
            kind: element.number("kind", u64::MAX)?.unwrap_or_default(),
            by_gp_index: element.get("indexing") == Some("gp"),
            count: element.number("nbobjs", SET_NUMBER_MAX.into())?.unwrap_or_default() as usize,
            indexes: String::new(),
            values: String::new(),
            place: element.place,
        });
        Ok(Inside::Distances)
    }

    fn attribute(
        &mut self,
        element: &Element<'a>,
        attribute: usize,
    ) -> Result<Inside, FormatError> {
        let is_node = element.get("target_obj_type") == Some("NUMANode");
        self.attributes.push(AttributeValue {
            attribute,
            target: element.number("target_obj_gp_index", u64::MAX)?.filter(|_| is_node),
            value: element.number("value", u64::MAX)?.unwrap_or_default(),
            initiator_cpuset: element.get("initiator_cpuset").map(str::to_owned),
            initiator_gp_index: element.number("initiator_obj_gp_index", u64::MAX)?,
            place: element.place,
        });
        Ok(Inside::Ignored)
    }
}

fn topology(element: &Element<'_>) -> Result<Inside, FormatError> {
    let expected = "what 'lstopo --of xml' of hwloc 2 or later writes (version=\"2.0\")";
    let version = element.get("version");
    match version.and_then(|version| version.split('.').next()) {
        Some("2" | "3") => Ok(Inside::Topology),
        None | Some("1") => Err(element.place.fail("a topology of hwloc 1", expected)),
        _ => Err(element.place.fail_at(version.unwrap_or_default(), expected)),
    }
}

fn info<'a>(element: &Element<'a>, infos: &mut Vec<XmlInfo<'a>>) -> Result<Inside, FormatError> {
    let name = element.need("name")?.to_owned();
    infos.push(XmlInfo { name, value: element.need("value")?.to_owned(), place: element.place });
    Ok(Inside::Ignored)
}

fn kind(element: &Element<'_>) -> Result<ObjectKind, FormatError> {
    Ok(match element.need("type")? {
        "Machine" => ObjectKind::Machine,
        "Package" => ObjectKind::Package,
        "Die" => ObjectKind::Die,
        "MemCache" => ObjectKind::MemoryCache,
        "NUMANode" => ObjectKind::Node,
        "Core" => ObjectKind::Core,
        "PU" => ObjectKind::Pu,
        other => match cache_level(other) {
            Some(level) => ObjectKind::Cache { level, kind: cache_kind(other, element)? },
            None => ObjectKind::Other,
        },
    })
}

/// The level in `L2Cache`, `L1iCache` or `L1dCache`.
fn cache_level(name: &str) -> Option<u32> {
    let level = name.strip_prefix('L')?.strip_suffix("Cache")?;
    level.trim_end_matches(['i', 'd']).parse().ok().filter(|level| (1..=9).contains(level))
}

fn cache_kind(name: &str, element: &Element<'_>) -> Result<CacheKind, FormatError> {
    Ok(match element.number("cache_type", 2)? {
        Some(0) => CacheKind::Unified,
        Some(1) => CacheKind::Data,
        Some(_) => CacheKind::Instruction,
        None if name.ends_with("iCache") => CacheKind::Instruction,
        None => CacheKind::Unified,
    })
}

/// Ways of associativity: hwloc writes 0 for unknown and -1 for a fully associative cache.
fn ways(element: &Element<'_>) -> Result<i64, FormatError> {
    if element.get("cache_associativity") == Some("-1") {
        return Ok(-1);
    }
    let ways = element.number("cache_associativity", u32::MAX.into())?;
    Ok(ways.unwrap_or_default() as i64)
}

/// `gp_index`, or `id="obj12"` if version 3 has only that.
fn gp_index(element: &Element<'_>) -> Result<Option<u64>, FormatError> {
    let id = element.get("id").and_then(|id| id.strip_prefix("obj")?.parse().ok());
    Ok(element.number("gp_index", u64::MAX)?.or(id))
}
