//! Statements about pools, which sqlparser does not know.
//!
//! ```text
//! CREATE POOL reports ON NODE 1
//! CREATE POOL reports ON CORES 2-3,6     cores as `atoll topo` numbers them, all hardware threads of each
//! DROP POOL reports
//! ```

use atoll_topology::{CoreId, CpuSet, Machine, NodeId, SET_NUMBER_MAX};
use datafusion::common::{
    DataFusionError, Result, exec_datafusion_err, exec_err, plan_datafusion_err,
};
use datafusion::logical_expr::{LogicalPlan, Statement as PlanStatement};

use crate::database::{Pools, Workers};
use atoll_sql_common::settings::{HOME, parse_home};
use atoll_sql_parse::syntax::{is_at_end, next_name, next_word, parser_of};

/// The setting of the pool whose workers run a session's statements.
const POOL: &str = "atoll.pool";

/// A statement about a pool.
#[derive(Debug, PartialEq)]
pub(in crate::session) enum PoolStatement {
    Create { name: String, place: PoolPlace },
    Drop { name: String },
}

/// The location of a pool.
#[derive(Debug, PartialEq)]
pub(in crate::session) enum PoolPlace {
    Node(NodeId),
    Cores(Vec<CoreId>),
}

impl PoolStatement {
    /// Parses the text; `None` if it is another statement.
    ///
    /// # Errors
    /// If CREATE POOL or DROP POOL is followed by something unexpected.
    pub(in crate::session) fn parse(sql: &str) -> Result<Option<Self>> {
        let Some(mut parser) = parser_of(sql, &["create", "drop"]) else { return Ok(None) };
        let drops = next_word(&mut parser) == "drop";
        if next_word(&mut parser) != "pool" {
            return Ok(None);
        }
        let name = next_name(&mut parser).ok_or_else(expected)?;
        if drops {
            return match is_at_end(&parser) {
                true => Ok(Some(Self::Drop { name })),
                false => Err(expected()),
            };
        }
        let (on, what, read) = (next_word(&mut parser), next_word(&mut parser), parser.index());
        let rest = parser.into_tokens().into_iter().skip(read);
        let rest: String = rest.map(|token| token.token.to_string()).collect();
        let place = match (on.as_str(), what.as_str()) {
            ("on", "node") => PoolPlace::Node(NodeId(rest.parse().map_err(|_| expected())?)),
            ("on", "cores") => PoolPlace::Cores(numbers(&rest).ok_or_else(expected)?),
            _ => return Err(expected()),
        };
        Ok(Some(Self::Create { name, place }))
    }
}

impl PoolPlace {
    /// Its cpus.
    ///
    /// # Errors
    /// If the machine has no such node or core.
    pub(in crate::session) fn cpus(&self, machine: &Machine) -> Result<CpuSet> {
        match self {
            Self::Node(id) => match machine.node(*id) {
                Some(node) if !node.cpus.is_empty() => Ok(node.cpus.clone()),
                _ => {
                    let nodes: Vec<String> =
                        machine.nodes_with_cpus().map(|node| node.id.to_string()).collect();
                    exec_err!("node {id} has no cpus; nodes with cpus: {}", nodes.join(", "))
                }
            },
            Self::Cores(ids) => {
                let mut cpus = CpuSet::new();
                for id in ids {
                    let core = machine.cores.iter().find(|core| core.id == *id);
                    let core = core.ok_or_else(|| {
                        let count = machine.cores.len();
                        exec_datafusion_err!(
                            "core {id} does not exist; the machine has {count} cores, from 0"
                        )
                    })?;
                    cpus = cpus.union(&core.cpus);
                }
                Ok(cpus)
            }
        }
    }
}

/// The home that a statement sets, if it sets one.
///
/// # Errors
/// If the machine has no such node.
pub(in crate::session) fn home_set(
    plan: &LogicalPlan,
    machine: &Machine,
) -> Result<Option<Option<NodeId>>> {
    match plan {
        LogicalPlan::Statement(PlanStatement::SetVariable(set)) if set.variable == HOME => {
            let home = parse_home(&set.value)?;
            if let Some(id) = home
                && machine.node(id).is_none()
            {
                let nodes: Vec<_> = machine.nodes.iter().map(|node| node.id.to_string()).collect();
                return exec_err!("unknown node {id}; the machine's nodes: {}", nodes.join(", "));
            }
            Ok(Some(home))
        }
        _ => Ok(None),
    }
}

/// The pool that a statement sets for the session, if it does: its workers, or `None` for the common ones.
///
/// # Errors
/// If there is no such pool.
pub(in crate::session) fn pool_set(
    plan: &LogicalPlan,
    pools: &Pools,
) -> Result<Option<Option<Workers>>> {
    match plan {
        LogicalPlan::Statement(PlanStatement::SetVariable(set)) if set.variable == POOL => {
            let named = |name: &str| pools.named(name).map(Some);
            Ok(Some(if set.value.is_empty() { None } else { named(&set.value)? }))
        }
        _ => Ok(None),
    }
}

/// The numbers of a list such as `2-3,6`.
fn numbers(list: &str) -> Option<Vec<CoreId>> {
    let mut all = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last > SET_NUMBER_MAX {
            return None;
        }
        all.extend((first..=last).map(CoreId));
    }
    Some(all)
}

fn expected() -> DataFusionError {
    plan_datafusion_err!(
        "expected CREATE POOL name ON NODE 1, CREATE POOL name ON CORES 2-3,6 or DROP POOL name"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_on_a_node_or_on_cores() {
        let of = |sql: &str| PoolStatement::parse(sql).expect(sql);
        let create = |name: &str, place| Some(PoolStatement::Create { name: name.into(), place });
        let cores = |ids: &[u32]| PoolPlace::Cores(ids.iter().copied().map(CoreId).collect());
        assert_eq!(
            of("create  pool Reports on node 1;"),
            create("reports", PoolPlace::Node(NodeId(1)))
        );
        assert_eq!(
            of("CREATE POOL \"Big One\" ON CORES 2 - 4 , 7 -- and so on"),
            create("Big One", cores(&[2, 3, 4, 7]))
        );
        assert_eq!(of("DROP POOL reports"), Some(PoolStatement::Drop { name: "reports".into() }));
        assert_eq!(of("CREATE TABLE pool (a INT)"), None);
        assert_eq!(of("DROP TABLE pool"), None);
        // The parser reports the error.
        assert_eq!(of("DROP POOL 'a"), None);
        for wrong in [
            "CREATE POOL",
            "CREATE POOL a",
            "CREATE POOL a ON",
            "CREATE POOL a ON NODE",
            "CREATE POOL a ON NODE x",
            "CREATE POOL a ON CORES",
            "CREATE POOL a ON CORES 3-1",
            "CREATE POOL a ON CORES 0-99999999999",
            "CREATE POOL a ON CORES 0-9999999",
            "DROP POOL a CASCADE",
        ] {
            let error = PoolStatement::parse(wrong).expect_err(wrong).to_string();
            assert!(error.contains("expected CREATE POOL name ON NODE 1"), "{wrong}: {error}");
        }
    }
}
