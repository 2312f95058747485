//! CASCADE, SET NULL, SET DEFAULT: rows that follow their parents.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{ArrowError, Field, Schema};
use hashbrown::{HashMap, HashSet};

use super::{
    Action, ActionKind, ActionRows, ROWS_LOCKED_MAX, Reference, ReferenceWork, ReferentialActions,
};
use crate::change::ChangeStep;
use crate::database::error::{ConcurrentChange, TransactionError};
use crate::database::options::Written;
use crate::database::transaction::{Result, Transaction};
use crate::ids::{RowId, TableId};
use crate::lock::{LockMode, LockTarget};
use crate::table::{Key, Row, TableChange, TableError};

impl Transaction {
    /// Carries out an action, and records the work that follows from it.
    pub(super) async fn act(
        &mut self,
        action: Action,
        actions: &dyn ReferentialActions,
        work: &mut ReferenceWork,
    ) -> Result<Written> {
        let table = action.reference.0;
        let whole = LockTarget::Table(table);
        self.lock(whole, LockMode::Shared).await?;
        let Some(reference) = self.reference(&action.reference)? else { return Ok(Written::Done) };
        let keys = child_keys(&reference, &action);
        let wanted: HashSet<Key> = keys.keys().cloned().collect();
        let found = reference.child.rows_with_keys(&reference.columns, &wanted)?;
        if found.is_empty() {
            return Ok(Written::Done);
        }
        let is_whole =
            found.len() > ROWS_LOCKED_MAX || self.locks.holds(&whole, LockMode::Exclusive);
        if is_whole {
            self.lock(whole, LockMode::Exclusive).await?;
        } else {
            for (row, _) in &found {
                self.lock(LockTarget::Row(table, *row), LockMode::Exclusive).await?;
            }
        }
        // While it waited, others may have changed keys of rows, but no row has got one of these.
        let Some(reference) = self.reference(&action.reference)? else { return Ok(Written::Done) };
        let has_key = |(row, key): &(RowId, Key)| {
            reference.child.key_of(*row, &reference.columns).as_ref() == Some(key)
        };
        let rows: Vec<(RowId, Key)> = found.into_iter().filter(has_key).collect();
        if rows.is_empty() {
            return Ok(Written::Done);
        }
        if self.is_repeatable() {
            let newest = self.read_newest();
            // It must not change rows that it does not see: an error if there are any.
            let _ = self.compare(&newest, table, rows.iter().map(|(row, _)| *row))?;
        }
        match changed(&reference, &action, &rows, &keys, actions)? {
            Some(change) => self.write_action(table, change, is_whole, work).await,
            None => self.stale(ConcurrentChange::Update),
        }
    }

    /// Keeps a change of locked rows.
    async fn write_action(
        &mut self,
        table: TableId,
        mut change: TableChange,
        is_whole: bool,
        work: &mut ReferenceWork,
    ) -> Result<Written> {
        if !is_whole {
            let newest = self.read_newest();
            self.lock_changed_keys(table, &change, &newest).await?;
        }
        let made = self.make(table, &mut change)?;
        self.check_keys(table, &change, &made)?;
        self.collect_references(table, &change, &made, work)?;
        let mut after = (*made.own).clone();
        after.set_table(table, made.after, made.newest.next_epoch());
        self.keep(ChangeStep::Table(table, change), &made.newest, after)?;
        Ok(Written::Done)
    }
}

/// The keys of affected rows, each with its new key.
fn child_keys(reference: &Reference, action: &Action) -> HashMap<Key, Option<Key>> {
    let of_child = |(key, other): (&Key, &Option<Key>)| {
        let followed = other.as_ref().and_then(|other| reference.to_child(other));
        Some((reference.to_child(key)?, followed))
    };
    action.keys.iter().filter_map(of_child).collect()
}

/// The change that an action makes to rows. Returns None if the definition of the table is unknown.
fn changed(
    reference: &Reference,
    action: &Action,
    rows: &[(RowId, Key)],
    keys: &HashMap<Key, Option<Key>>,
    actions: &dyn ReferentialActions,
) -> Result<Option<TableChange>> {
    let mut change = TableChange::default();
    if action.kind == ActionKind::Delete {
        change.deleted = rows.iter().map(|(row, _)| row.get()).collect();
        return Ok(Some(change));
    }
    let (child, codec) = (&reference.child, reference.child.codec());
    let before: Vec<Row> = rows.iter().filter_map(|(row, _)| child.row(*row)).collect();
    let all: Vec<usize> = (0..codec.schema().fields().len()).collect();
    let mut columns = codec.decode_arrays(&before, &all)?;
    let mut defaults: &[usize] = &[];
    match action.kind {
        ActionKind::Follow => {
            let followed = followed(reference, rows, keys)?;
            let values = codec.decode_keys(&reference.columns, &followed)?;
            for (at, values) in reference.columns.iter().zip(values) {
                columns[*at] = values;
            }
        }
        ActionKind::SetDefault => defaults = &reference.key.columns,
        ActionKind::SetNull | ActionKind::Delete => {
            for at in &reference.key.columns {
                columns[*at] = new_null_array(codec.schema().field(*at).data_type(), rows.len());
            }
        }
    }
    let table = action.reference.0;
    let written = match actions.written(table, child.definition(), columns, defaults) {
        ActionRows::Written(columns) => columns,
        ActionRows::Unknown => return Ok(None),
        ActionRows::Refused => return Err(TransactionError::ActionRefused),
    };
    let encoded = codec.encode(&batch(codec.schema(), written, rows.len())?)?;
    change.updated = rows.iter().map(|(row, _)| *row).zip(encoded).collect();
    Ok(Some(change))
}

/// The new key of each row.
fn followed<'k>(
    reference: &Reference,
    rows: &[(RowId, Key)],
    keys: &'k HashMap<Key, Option<Key>>,
) -> Result<Vec<&'k Key>> {
    let too_large = || {
        let names = reference.child.codec().names_of(&reference.columns).join(", ");
        TableError::from(ArrowError::CastError(format!(
            "the new key is out of range for the type of the columns ({names}) that refer to it"
        )))
    };
    let followed = rows.iter().map(|(_, key)| keys.get(key).and_then(Option::as_ref));
    Ok(followed.map(|key| key.ok_or_else(too_large)).collect::<std::result::Result<_, _>>()?)
}

/// Rows of all columns, with NULL allowed anywhere.
fn batch(schema: &Schema, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let fields = schema.fields().iter().zip(&columns);
    let fields =
        fields.map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(schema, columns, &options);
    Ok(batch.map_err(TableError::from)?)
}
