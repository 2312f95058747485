//! `ON COMMIT` of temporary tables, when a transaction that wrote them commits.

use std::collections::BTreeSet;

use super::own::OwnBase;
use super::{Result, Transaction};
use crate::change::{CatalogChange, ChangeStep};
use crate::change::{Relation, RelationName};
use crate::ids::TableId;
use crate::table::{OnCommit, TableChange};

impl Transaction {
    /// Carries out `ON COMMIT` of the temporary tables that were created or written.
    pub(super) fn end_temporary(&mut self) -> Result<()> {
        let written: BTreeSet<TableId> = self.own.steps().filter_map(temporary_table).collect();
        written.into_iter().try_for_each(|table| self.end_table(table))
    }

    fn end_table(&mut self, id: TableId) -> Result<()> {
        let newest = self.read_newest();
        let own = self.own.on(OwnBase::Newest, &newest, &self.database.environment)?;
        let (Some(table), Some(name)) = (own.table(id), own.table_name(id)) else { return Ok(()) };
        match table.definition().on_commit {
            OnCommit::PreserveRows => Ok(()),
            OnCommit::DeleteRows => {
                let emptied = TableChange { truncated: true, ..TableChange::default() };
                self.follow(ChangeStep::Table(id, emptied))
            }
            OnCommit::Drop => {
                let identities = table.definition().identities.iter().flatten();
                let sequences: Vec<_> =
                    identities.map(|identity| Relation::Sequence(identity.sequence)).collect();
                let in_schema = own.relations_of(&name.schema);
                let of_table = in_schema.filter(|(_, relation)| sequences.contains(relation));
                let mut dropped: Vec<RelationName> =
                    of_table.map(|(name, _)| name.clone()).collect();
                dropped.push(name.clone());
                let drop = |name| ChangeStep::Catalog(CatalogChange::Drop { name });
                dropped.into_iter().try_for_each(|name| self.follow(drop(name)))
            }
        }
    }

    /// Keeps a step made by the transaction itself.
    fn follow(&mut self, step: ChangeStep) -> Result<()> {
        let newest = self.read_newest();
        let environment = &self.database.environment;
        let mut after = (*self.own.on(OwnBase::Newest, &newest, environment)?).clone();
        after.apply_step(&step, environment)?;
        self.keep(step, &newest, after)
    }
}

fn temporary_table(step: &ChangeStep) -> Option<TableId> {
    let table = match step {
        ChangeStep::Table(table, _) => table,
        ChangeStep::Catalog(CatalogChange::CreateTable { id, .. }) => id,
        _ => return None,
    };
    table.is_temporary().then_some(*table)
}
