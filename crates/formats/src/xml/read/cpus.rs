//! Cpus with their packages, cores and caches, from the objects around each PU.

use std::collections::{BTreeMap, HashMap};

use super::{ReadIndex, size};
use crate::xml::infos::{self, Fields};
use crate::xml::parts::{ObjectKind, XmlCpuKind, XmlObject};
use crate::xml::scan::XmlPosition;
use crate::{FormatError, NAMED_CPUS_MAX};
use atoll_topology::assemble::{CachePart, CpuPart};
use atoll_topology::{Bytes, Cache, CacheKind, CpuId, CpuKind, CpuSet, Die, PackageId, mask};

impl ReadIndex<'_> {
    pub(super) fn cpu_parts(
        &self,
        packages: &HashMap<CpuId, PackageId>,
    ) -> Result<Vec<CpuPart>, FormatError> {
        let part = |(&id, &object): (&CpuId, &usize)| {
            let node = self.home[&id];
            let around = || self.document.around(object);
            let core = around().find(|(_, object)| object.kind == ObjectKind::Core);
            let package = around().find(|(_, object)| object.kind == ObjectKind::Package);
            let package = package
                .map(|(index, object)| PackageId(object.os_index.unwrap_or(index as u32)))
                .or_else(|| packages.get(&id).copied());
            Ok(CpuPart {
                id,
                package: package.unwrap_or(PackageId(node.0)),
                node,
                core: core.map_or(id, |(index, _)| self.below[&index][0]),
                cache: self.cache_part(object)?,
            })
        };
        self.cpus.iter().map(part).collect()
    }

    /// The cpu's last-level cache, or the domain that the file marks.
    fn cache_part(&self, cpu: usize) -> Result<CachePart, FormatError> {
        let around = || self.document.around(cpu);
        if let Some((index, object)) = around().find(|(_, object)| object.is_domain) {
            return domain_part(object, self.below[&index][0]);
        }
        let data = around().filter_map(|(index, object)| match object.kind {
            ObjectKind::Cache { level, kind } if kind != CacheKind::Instruction => {
                Some((level, index))
            }
            _ => None,
        });
        Ok(match data.max() {
            Some((level, index)) => CachePart {
                leader: self.below[&index][0],
                level: Some(level),
                size: size(self.document.objects[index].cache_size),
            },
            // Not a cpu number: stands for all cpus of the node without a cache.
            None => CachePart { leader: CpuId(u32::MAX), level: None, size: None },
        })
    }

    pub(super) fn caches(&self) -> Result<Vec<Cache>, FormatError> {
        let mut caches = Vec::new();
        let mut named = Named::default();
        for (&index, cpus) in &self.below {
            let object = &self.document.objects[index];
            if let ObjectKind::Cache { level, kind } = object.kind
                && !object.is_domain
            {
                let cpus = cpus.iter().copied().collect();
                let ways = match object.cache_ways {
                    0 => None,
                    ways => Some(ways.max(0) as u32),
                };
                let (bytes, line) = (size(object.cache_size), size(object.cache_line));
                caches.push(Cache { level, kind, cpus, size: bytes, line, ways });
            }
        }
        for info in self.infos("atoll.cache") {
            let cache = infos::read_cache(info)?;
            named.add(&cache.cpus, info.place)?;
            caches.push(cache);
        }
        Ok(caches)
    }

    /// Dies of the tree, in their packages, and loose ones.
    pub(super) fn dies(&self) -> Result<Vec<Die>, FormatError> {
        let mut dies = Vec::new();
        let mut named = Named::default();
        for (&index, cpus) in &self.below {
            let object = &self.document.objects[index];
            let mut around = self.document.around(index);
            let package = around.find(|(_, object)| object.kind == ObjectKind::Package);
            if let (ObjectKind::Die, Some((place, package))) = (object.kind, package) {
                let package = PackageId(package.os_index.unwrap_or(place as u32));
                let id = object.os_index.unwrap_or(index as u32);
                dies.push(Die { id, package, cpus: cpus.iter().copied().collect() });
            }
        }
        for info in self.infos("atoll.die") {
            let die = infos::read_die(info)?;
            named.add(&die.cpus, info.place)?;
            dies.push(die);
        }
        Ok(dies)
    }

    /// Kinds of cpus: from Atoll's infos, or else hwloc's.
    pub(super) fn cpu_kinds(&self) -> Result<Vec<CpuKind>, FormatError> {
        if self.info("atoll.sources").is_some() {
            let mut named = Named::default();
            let kind = |info| {
                let kind = infos::read_cpu_kind(info)?;
                named.add(&kind.cpus, info.place)?;
                Ok(kind)
            };
            return self.infos("atoll.cpu_kind").map(kind).collect();
        }
        let mut kinds = Vec::new();
        let mut named = Named::default();
        for (kind, number) in self.document.cpu_kinds.iter().zip(0..) {
            let cpus: CpuSet = mask::parse(&kind.cpuset)
                .ok_or_else(|| kind.place.fail_at(&kind.cpuset, mask::EXPECTED))?;
            named.add(&cpus, kind.place)?;
            let cpus: CpuSet = cpus.iter().filter(|cpu| self.cpus.contains_key(cpu)).collect();
            if !cpus.is_empty() {
                kinds.push(CpuKind { name: kind_name(kind, number), cpus });
            }
        }
        Ok(kinds)
    }

    /// Packages of cpus that are not objects of the tree; adds their models to `models`.
    pub(super) fn loose_packages(
        &self,
        models: &mut BTreeMap<PackageId, String>,
    ) -> Result<HashMap<CpuId, PackageId>, FormatError> {
        let mut packages = HashMap::new();
        let mut named = Named::default();
        for info in self.infos("atoll.package") {
            let fields = Fields::parse(info, "model")?;
            let id = PackageId(fields.need_parsed("id")?);
            let cpus = fields.cpus()?;
            named.add(&cpus, info.place)?;
            packages.extend(cpus.iter().map(|cpu| (cpu, id)));
            if fields.text("model").is_some() {
                models.insert(id, fields.free_text("model")?);
            }
        }
        Ok(packages)
    }

    /// Models of the packages of the tree.
    pub(super) fn models(&self, models: &mut BTreeMap<PackageId, String>) {
        for (index, object) in self.document.objects.iter().enumerate() {
            let info = |name| object.infos.iter().find(|info| info.name == name);
            let exact = info("atoll.model").and_then(|info| infos::unescape(&info.value));
            let model = exact.or_else(|| info("CPUModel").map(|info| info.value.clone()));
            if object.kind == ObjectKind::Package
                && let Some(model) = model
            {
                models.insert(PackageId(object.os_index.unwrap_or(index as u32)), model);
            }
        }
    }
}

/// The name of a kind as discovery would give it, from hwloc's infos.
fn kind_name(kind: &XmlCpuKind<'_>, number: u32) -> String {
    let info = |name: &str| kind.infos.iter().find(|info| info.name == name);
    let value = |name: &str| info(name).map(|info| info.value.as_str());
    match value("CoreType") {
        Some("IntelCore") => return "P cores".to_owned(),
        Some("IntelAtom") => return "E cores".to_owned(),
        _ => {}
    }
    if let Some(capacity) = value("LinuxCapacity") {
        return format!("capacity {capacity}");
    }
    match value("FrequencyMaxMHz").and_then(|megahertz| megahertz.parse::<u32>().ok()) {
        Some(megahertz) => format!("up to {:.1} GHz", f64::from(megahertz) * 1e-3),
        None => value("CoreType").map_or_else(|| format!("kind {number}"), str::to_owned),
    }
}

/// Limits the cpus that infos name.
#[derive(Default)]
struct Named(usize);

impl Named {
    fn add(&mut self, cpus: &CpuSet, place: XmlPosition<'_>) -> Result<(), FormatError> {
        self.0 += cpus.len();
        match self.0 > NAMED_CPUS_MAX {
            true => Err(place.fail("too many cpus in infos", format!("at most {NAMED_CPUS_MAX}"))),
            false => Ok(()),
        }
    }
}

/// The domain of an object marked as such.
fn domain_part(object: &XmlObject<'_>, leader: CpuId) -> Result<CachePart, FormatError> {
    if let ObjectKind::Cache { level, .. } = object.kind {
        return Ok(CachePart { leader, level: Some(level), size: size(object.cache_size) });
    }
    let Some(info) = object.infos.iter().find(|info| info.name == "atoll.domain") else {
        return Ok(CachePart { leader, level: None, size: None });
    };
    let fields = Fields::parse(info, "")?;
    Ok(CachePart { leader, level: fields.get("level")?, size: fields.get("size")?.map(Bytes) })
}
