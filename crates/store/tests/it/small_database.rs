//! A database with one table, `t (id BIGINT PRIMARY KEY, value TEXT NOT NULL)` and an index over `value`, changed as an
//! SQL engine would.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, StringViewArray};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema};
use atoll_placement::{Arena, Strategy};
use atoll_store::database::{
    CatalogChange, Database, DatabaseVersion, LockScope, RelationName, StoreEnvironment,
    Transaction, TransactionError, TransactionOptions, Written,
};
use atoll_store::log::GroupCommit;
use atoll_store::table::{
    Deferral, Index, IndexKey, Key, Row, RowCodec, TableChange, TableDefinition, Unique,
    stored_schema,
};
use atoll_store::{RowId, TableId};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;

use crate::stepped::block_on;

pub(crate) type Result<T> = std::result::Result<T, TransactionError>;

pub(crate) fn environment() -> StoreEnvironment {
    let machine = Arc::new(machines::four_nodes());
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    let arena = Arena::new(Arc::clone(&machine), kernel, None);
    StoreEnvironment { machine, arena }
}

pub(crate) fn definition() -> TableDefinition {
    let columns = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("value", DataType::Utf8, false),
    ]);
    let columns = stored_schema(&Arc::new(columns));
    let unique =
        Unique { name: "t_pkey".into(), columns: vec![0], is_primary: true, ..Unique::default() };
    let keys = vec![IndexKey { column: 1, descending: false, nulls_first: false }];
    let index = Index { name: "t_value".into(), keys, ..Index::default() };
    TableDefinition {
        uniques: vec![unique],
        indexes: vec![index],
        ..TableDefinition::new(columns, Strategy::Aligned)
    }
}

pub(crate) fn name(name: &str) -> RelationName {
    RelationName::new("public", name)
}

/// A database and its table.
#[derive(Debug)]
pub(crate) struct SmallDatabase {
    pub(crate) database: Arc<Database>,
    pub(crate) table: TableId,
    pub(crate) codec: Arc<RowCodec>,
}

impl SmallDatabase {
    pub(crate) fn new() -> Self {
        Self::start(None)
    }

    /// A new one over this log, or none.
    pub(crate) fn start(log: Option<GroupCommit>) -> Self {
        let version = DatabaseVersion::with_schemas(["public".into()]);
        Self::over(Database::start(version, environment(), log))
    }

    /// A new one in a database without tables.
    pub(crate) fn over(database: Arc<Database>) -> Self {
        Self::with_definition(database, definition())
    }

    /// A new one whose primary key is checked at COMMIT.
    pub(crate) fn with_deferred_key() -> Self {
        let version = DatabaseVersion::with_schemas(["public".into()]);
        let mut definition = definition();
        definition.uniques[0].deferral = Deferral::InitiallyDeferred;
        Self::with_definition(Database::start(version, environment(), None), definition)
    }

    fn with_definition(database: Arc<Database>, definition: TableDefinition) -> Self {
        let table = database.new_table_id("public");
        let definition = Arc::new(definition);
        let codec = Arc::new(RowCodec::new(&definition.columns).unwrap());
        let mut transaction = database.begin(TransactionOptions::default());
        transaction.statement(true).unwrap();
        let create = CatalogChange::CreateTable { name: name("t"), id: table, definition };
        assert_eq!(block_on(transaction.define(create)).unwrap(), Written::Done);
        block_on(transaction.commit()).unwrap();
        Self { database, table, codec }
    }

    pub(crate) fn row(&self, id: u64, value: &str) -> Row {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![id as i64])),
            Arc::new(StringArray::from(vec![value])),
        ];
        let schema = self.codec.schema();
        let cast_to =
            |(column, field): (&ArrayRef, &Arc<Field>)| cast(column, field.data_type()).unwrap();
        let columns = columns.iter().zip(schema.fields()).map(cast_to).collect();
        let batch = RecordBatch::try_new(Arc::clone(schema), columns).unwrap();
        self.codec.encode(&batch).unwrap().remove(0)
    }

    pub(crate) fn key(&self, id: u64) -> Key {
        self.codec.key(&self.row(id, ""), &[0]).unwrap()
    }

    pub(crate) fn value(&self, row: Row) -> String {
        let batch = self.codec.decode(&[row]).unwrap();
        batch.column(1).as_string_view().value(0).to_owned()
    }

    pub(crate) fn find(&self, version: &DatabaseVersion, id: u64) -> Option<RowId> {
        version.table(self.table)?.find(0, &self.key(id))
    }

    /// The value of a key, by which the index finds the row too.
    pub(crate) fn get(&self, version: &DatabaseVersion, id: u64) -> Option<String> {
        let (table, row) = (version.table(self.table)?, self.find(version, id)?);
        let value = self.value(table.row(row)?);
        let indexed: [ArrayRef; 1] = [Arc::new(StringViewArray::from(vec![value.as_str()]))];
        let found = table.rows_with(0, &indexed, usize::MAX - 1).unwrap().unwrap();
        assert!(found.contains(&row), "the index does not find '{value}' of key {id}");
        Some(value)
    }

    /// What is committed.
    pub(crate) fn committed(&self, id: u64) -> Option<String> {
        self.get(&self.database.published(), id)
    }

    /// `INSERT`.
    pub(crate) async fn insert(
        &self,
        transaction: &mut Transaction,
        id: u64,
        value: &str,
    ) -> Result<()> {
        loop {
            let version = transaction.statement(true)?;
            let first = version.table(self.table).unwrap().reserve(1);
            let inserted = [(first, self.row(id, value))].into_iter().collect();
            let change = TableChange { inserted, ..TableChange::default() };
            if transaction.write(self.table, change, LockScope::Rows).await? == Written::Done {
                return Ok(());
            }
        }
    }

    /// `UPDATE t SET value = f(value) WHERE id = …`; whether there is such a row.
    pub(crate) async fn update(
        &self,
        transaction: &mut Transaction,
        id: u64,
        value: impl Fn(&str) -> String,
    ) -> Result<bool> {
        loop {
            let version = transaction.statement(true)?;
            let Some(row) = self.find(&version, id) else { return Ok(false) };
            let after = value(&self.get(&version, id).unwrap());
            let updated = [(row, self.row(id, &after))].into_iter().collect();
            let change = TableChange { updated, ..TableChange::default() };
            if transaction.write(self.table, change, LockScope::Rows).await? == Written::Done {
                return Ok(true);
            }
        }
    }

    /// `DELETE FROM t WHERE id = …`; whether there was such a row.
    pub(crate) async fn delete(&self, transaction: &mut Transaction, id: u64) -> Result<bool> {
        loop {
            let version = transaction.statement(true)?;
            let Some(row) = self.find(&version, id) else { return Ok(false) };
            let deleted = [row.get()].into_iter().collect();
            let change = TableChange { deleted, ..TableChange::default() };
            if transaction.write(self.table, change, LockScope::Rows).await? == Written::Done {
                return Ok(true);
            }
        }
    }

    /// `INSERT … ON CONFLICT (id) DO UPDATE SET value = f(value)`.
    pub(crate) async fn upsert(
        &self,
        transaction: &mut Transaction,
        id: u64,
        value: impl Fn(Option<&str>) -> String,
    ) -> Result<()> {
        if self.update(transaction, id, |before| value(Some(before))).await? {
            return Ok(());
        }
        let keys = [Some(self.key(id))];
        let found = transaction.find_conflicts(self.table, 0, &keys).await?;
        match found[0] {
            None => self.insert(transaction, id, &value(None)).await,
            Some(_) => self.update(transaction, id, |before| value(Some(before))).await.map(drop),
        }
    }

    /// Runs one statement in a transaction of its own.
    pub(crate) fn set(&self, id: u64, value: &str) {
        let mut transaction = self.database.begin(TransactionOptions::default());
        block_on(self.upsert(&mut transaction, id, |_| value.to_owned())).unwrap();
        block_on(transaction.commit()).unwrap();
    }
}
