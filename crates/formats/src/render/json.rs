//! A machine as JSON.

use serde_json::{Value, json};

use atoll_topology::{Cache, Domain, HugePages, Limits, Machine, Node, SideCache};

/// The machine as JSON. The keys are stable: keys may be added, but never change their meaning.
///
/// | Key | Value |
/// |---|---|
/// | `name` | host name, file name or synthetic description |
/// | `sources` | where facts come from: `structure`, `memory`, `memory_free`, `caches`, `distances`, `pages`, `links`, each `measured`, `observed`, `discovered`, `declared`, `synthetic` or `assumed` |
/// | `memory_bytes`, `memory_free_bytes` | of all nodes together |
/// | `page_size_bytes`, `huge_page_size_bytes` | the latter null without transparent huge pages |
/// | `packages` | `id`, `model` (or null), `cpus` |
/// | `nodes` | `id`, `package` (or null), `cpus`, `memory_bytes`, `memory_free_bytes`, `near` (cpus nearest to a memory-only node), `huge_pages`: `size_bytes`, `total`, `free` of each pool, `side_caches`: `level`, `size_bytes`, `line_bytes` (or null) |
/// | `dies` | `id`, `package`, `cpus`; of packages with several dies |
/// | `cpu_kinds` | `name`, `cpus`; if there are several kinds of cpus |
/// | `domains` | `id`, `node`, `cpus`, `cache_level` and `cache_bytes` (or null) |
/// | `cores` | `id`, `domain`, `cpus` |
/// | `cpus` | `id`, `core`, `domain`, `node`, `package` |
/// | `caches` | `level`, `kind` (`data`, `instruction`, `unified`), `cpus`, `size_bytes`, `line_bytes`, `ways` (or null) |
/// | `links` | `id`, `a`, `b` (nodes), `kind` |
/// | `distances` | `nodes`: ids in the order of rows and columns; `matrix`: rows (from) of columns (to) |
/// | `hidden` | `cpus`, `nodes` that exist but are not allowed |
/// | `assumptions` | texts: what was missing or wrong in the machine's files, and what is assumed instead |
/// | `limits` | `memory` (or null): `bytes`, `file`; `cpu_time` (or null): `cpus`, `file` |
///
/// Sets of cpus and nodes are texts in the kernel's list notation (`0-3,8`), sizes are numbers of
/// bytes.
pub fn json(machine: &Machine) -> Value {
    json!({
        "name": machine.name,
        "sources": sources(machine),
        "memory_bytes": machine.memory(),
        "memory_free_bytes": machine.memory_free(),
        "page_size_bytes": machine.page_size,
        "huge_page_size_bytes": machine.huge_page_size,
        "packages": machine.packages,
        "nodes": machine.nodes.iter().map(node).collect::<Vec<_>>(),
        "domains": machine.domains.iter().map(domain).collect::<Vec<_>>(),
        "cores": machine.cores,
        "cpus": machine.cpus,
        "caches": machine.caches.iter().map(cache).collect::<Vec<_>>(),
        "links": machine.links,
        "distances": {
            "nodes": machine.nodes.iter().map(|node| node.id).collect::<Vec<_>>(),
            "matrix": machine.distances,
        },
        "hidden": machine.hidden,
        "limits": limits(&machine.limits),
        "dies": machine.dies,
        "cpu_kinds": machine.cpu_kinds,
        "assumptions": machine.assumptions,
    })
}

fn sources(machine: &Machine) -> Value {
    json!({
        "structure": machine.source,
        "memory": machine.memory_source,
        "memory_free": machine.memory_free_source,
        "caches": machine.caches_source,
        "distances": machine.distances_source,
        "pages": machine.pages_source,
        "links": machine.links_source,
    })
}

fn node(node: &Node) -> Value {
    json!({
        "id": node.id,
        "package": node.package,
        "cpus": node.cpus,
        "memory_bytes": node.memory,
        "memory_free_bytes": node.memory_free,
        "near": node.near,
        "huge_pages": node.huge_pages.iter().map(huge_pages).collect::<Vec<_>>(),
        "side_caches": node.side_caches.iter().map(side_cache).collect::<Vec<_>>(),
    })
}

fn huge_pages(pool: &HugePages) -> Value {
    json!({ "size_bytes": pool.size, "total": pool.total, "free": pool.free })
}

fn side_cache(cache: &SideCache) -> Value {
    json!({ "level": cache.level, "size_bytes": cache.size, "line_bytes": cache.line })
}

fn cache(cache: &Cache) -> Value {
    json!({
        "level": cache.level,
        "kind": cache.kind,
        "cpus": cache.cpus,
        "size_bytes": cache.size,
        "line_bytes": cache.line,
        "ways": cache.ways,
    })
}

fn domain(domain: &Domain) -> Value {
    json!({
        "id": domain.id,
        "node": domain.node,
        "cpus": domain.cpus,
        "cache_level": domain.cache_level,
        "cache_bytes": domain.cache,
    })
}

fn limits(limits: &Limits) -> Value {
    json!({
        "memory": limits.memory.as_ref().map(|limit| json!({
            "bytes": limit.bytes,
            "file": limit.file,
        })),
        "cpu_time": limits.cpu_time.as_ref().map(|limit| json!({
            "cpus": limit.cpus,
            "file": limit.file,
        })),
    })
}
