//! A machine as JSON, for programs and scripts.

use serde_json::{Value, json};

use atoll_topology::{Cache, Domain, HugePages, Limits, Machine, Node};

/// The machine as JSON. The keys are stable: they may grow in number, never change their meaning.
///
/// | Key | Value |
/// |---|---|
/// | `name` | host name, file name or synthetic description |
/// | `sources` | where facts come from: `structure`, `memory`, `caches`, `distances`, `pages`, `links`, each `measured`, `discovered`, `declared`, `synthetic` or `assumed` |
/// | `memory_bytes`, `memory_free_bytes` | of all nodes together |
/// | `page_size_bytes`, `huge_page_size_bytes` | the latter null without transparent huge pages |
/// | `packages` | `id`, `model` (or null), `cpus` |
/// | `nodes` | `id`, `package` (or null), `cpus`, `memory_bytes`, `memory_free_bytes`, `huge_pages`: `size_bytes`, `total`, `free` of each pool |
/// | `domains` | `id`, `node`, `cpus`, `cache_level` and `cache_bytes` (or null) |
/// | `cores` | `id`, `domain`, `cpus` |
/// | `cpus` | `id`, `core`, `domain`, `node`, `package` |
/// | `caches` | `level`, `kind` (`data`, `instruction`, `unified`), `cpus`, `size_bytes`, `line_bytes`, `ways` (or null) |
/// | `links` | `id`, `a`, `b` (nodes), `kind` |
/// | `distances` | `nodes`: ids in the order of rows and columns; `matrix`: rows (from) of columns (to) |
/// | `hidden` | `cpus`, `nodes` that are there and not allowed |
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
    })
}

fn sources(machine: &Machine) -> Value {
    json!({
        "structure": machine.source,
        "memory": machine.memory_source,
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
        "huge_pages": node.huge_pages.iter().map(huge_pages).collect::<Vec<_>>(),
    })
}

fn huge_pages(pool: &HugePages) -> Value {
    json!({ "size_bytes": pool.size, "total": pool.total, "free": pool.free })
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
