//! The levels of a synthetic description, by hwloc's names.

use crate::{Bytes, CacheKind};

/// The type of a level's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelKind {
    Package,
    Die,
    /// Structure without a meaning.
    Group,
    Node,
    Cache {
        level: u32,
        kind: CacheKind,
    },
    Core,
    Pu,
}

/// A level: the number of its objects, and their attributes.
#[derive(Debug)]
pub(super) struct Level<'a> {
    pub(super) kind: LevelKind,
    /// Objects of this level on the whole machine.
    pub(super) total: u32,
    pub(super) attributes: Attributes<'a>,
}

/// Memory at each object of a level, as `[NUMANode]` after it.
#[derive(Debug)]
pub(super) struct AttachedNode {
    /// Number of levels outside of it; 0 is the whole machine.
    pub(super) depth: usize,
    pub(super) memory: Option<Bytes>,
    pub(super) side_cache: Option<Bytes>,
}

/// The attributes in parentheses after a level.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes<'a> {
    /// Memory of a node, size of a cache.
    pub(super) size: Option<Bytes>,
    /// Size of the cache in front of a node's memory.
    pub(super) side_cache: Option<Bytes>,
    /// The numbering of the objects.
    pub(super) indexes: Option<IndexesText<'a>>,
}

/// A text such as `0,2,1,3`, `2*2:1*2` or `pack:core`, and its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexesText<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl LevelKind {
    /// Parses a level's name, in upper or lower case.
    pub(super) fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        Some(match name.as_str() {
            "pack" | "package" | "socket" => Self::Package,
            "die" => Self::Die,
            "node" | "numa" | "numanode" => Self::Node,
            "domain" => Self::Cache { level: 3, kind: CacheKind::Unified },
            "core" => Self::Core,
            "pu" | "cpu" => Self::Pu,
            "tile" | "module" => Self::Group,
            group if group.trim_end_matches(|digit: char| digit.is_ascii_digit()) == "group" => {
                Self::Group
            }
            other => return cache(other),
        })
    }

    /// Its name in messages.
    pub(super) fn name(self) -> String {
        match self {
            Self::Package => "pack".to_owned(),
            Self::Die => "die".to_owned(),
            Self::Group => "group".to_owned(),
            Self::Node => "node".to_owned(),
            Self::Core => "core".to_owned(),
            Self::Pu => "pu".to_owned(),
            Self::Cache { level, kind } => {
                let kind = match kind {
                    CacheKind::Data => "d",
                    CacheKind::Instruction => "i",
                    CacheKind::Unified => "",
                };
                format!("l{level}{kind}")
            }
        }
    }

    /// Levels for a description of only numbers, from the outside in, without the innermost, which is the cpus. hwloc
    /// prefers nodes, packages and cores, then caches, then groups.
    pub(super) fn unnamed(count: usize, has_nodes: bool) -> Vec<Self> {
        let cache = |level, kind| Self::Cache { level, kind };
        let nodes = usize::from(count > 0 && !has_nodes);
        let packages = usize::from(count > nodes);
        let cores = usize::from(count > nodes + packages);
        let left = count - nodes - packages - cores;
        let caches: &[(u32, CacheKind)] = match left {
            0 => &[],
            1 => &[(2, CacheKind::Unified)],
            2 => &[(2, CacheKind::Unified), (1, CacheKind::Data)],
            3 => &[(3, CacheKind::Unified), (2, CacheKind::Unified), (1, CacheKind::Data)],
            _ => &[
                (3, CacheKind::Unified),
                (2, CacheKind::Unified),
                (1, CacheKind::Data),
                (1, CacheKind::Instruction),
            ],
        };
        let mut kinds = vec![Self::Group; left - caches.len()];
        kinds.extend([Self::Package].iter().take(packages));
        kinds.extend([Self::Node].iter().take(nodes));
        kinds.extend(caches.iter().map(|&(level, kind)| cache(level, kind)));
        kinds.extend([Self::Core].iter().take(cores));
        kinds
    }
}

/// `l3`, `l3u`, `l3cache`, `l1d`, `l1icache`; instructions have no cache beyond the third level.
fn cache(name: &str) -> Option<LevelKind> {
    let name = name.strip_prefix('l')?;
    let name = name.strip_suffix("cache").unwrap_or(name);
    let level = name.chars().next()?.to_digit(10).filter(|level| (1..=5).contains(level))?;
    let kind = match &name[1..] {
        "" | "u" => CacheKind::Unified,
        "d" => CacheKind::Data,
        "i" if level <= 3 => CacheKind::Instruction,
        _ => return None,
    };
    Some(LevelKind::Cache { level, kind })
}
