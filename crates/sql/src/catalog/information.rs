//! `information_schema`: tables that DataFusion or this file fills, with PostgreSQL's columns, and those of `pg_catalog`.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use atoll_store::database::{DatabaseVersion, SequenceDefinition};
use atoll_store::table::TableDefinition;
use datafusion::arrow::array::{
    ArrayRef, RecordBatch, RecordBatchOptions, StringArray, StringBuilder, UInt64Builder,
    new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::cmp::eq;
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{
    CatalogProviderList, MemTable, SchemaProvider, Session as SessionTrait, TableProvider,
};
use datafusion::common::Result;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::{ExecutionPlan, collect};

use super::{Catalogs, SystemSchemas};
use crate::table::PlacedTable;
use crate::table_text::{generated_sql, identity_words, is_generated};
use atoll_functions::sql_name;
use atoll_sql_common::functions::Functions;
use atoll_sql_common::names::{CATALOG, PG_CATALOG_SCHEMA};
use atoll_sql_common::pg_type::{
    PgType, domain_oid, enum_of, information_type, type_name, type_oid,
};
use atoll_sql_common::user_type::{UserTypes, enum_oid};

/// The table of columns.
const COLUMNS: &str = "columns";

/// The same with Atoll's names of types, for DESCRIBE and the shell. It is not listed.
const ATOLL_COLUMNS: &str = "atoll_columns";

/// The table of views.
const VIEWS: &str = "views";

/// Those that DataFusion fills.
const OF_DATAFUSION: [&str; 3] = ["parameters", "schemata", "tables"];

/// The schema over the names of one moment.
#[derive(Debug)]
pub(super) struct InformationSchema {
    names: Catalogs,
    others: InformationSchemaProvider,
}

impl InformationSchema {
    pub(super) fn new(names: Catalogs) -> Self {
        let others = InformationSchemaProvider::new(Arc::new(names.clone()));
        Self { names, others }
    }

    /// Names of PostgreSQL's tables.
    fn declared(&self) -> Vec<&'static str> {
        self.names.system().map_or_else(Vec::new, |system| system.information_tables())
    }

    /// The columns, with PostgreSQL's names of types or Atoll's.
    async fn columns(
        &self,
        system: &dyn SystemSchemas,
        has_atoll_types: bool,
    ) -> Result<RecordBatch> {
        let mut columns = ColumnRows {
            has_atoll_types,
            version: self.names.stored_version(),
            types: self.names.user_types(),
            ..ColumnRows::default()
        };
        for catalog_name in self.names.catalog_names() {
            let Some(catalog) = self.names.catalog(&catalog_name) else { continue };
            for schema_name in catalog.schema_names() {
                let Some(schema) = catalog.schema(&schema_name) else { continue };
                for table_name in schema.table_names() {
                    if let Some(table) = schema.table(&table_name).await? {
                        let at: [&str; 3] = [&catalog_name, &schema_name, &table_name];
                        columns.add(at, table.as_ref(), &|default, column| {
                            system.default_text(&self.names, default, column)
                        });
                    }
                }
            }
        }
        columns.batch()
    }

    /// The views, with their texts.
    async fn views(&self) -> Result<RecordBatch> {
        const NAMES: [&str; 4] = ["table_catalog", "table_schema", "table_name", "view_definition"];
        const ANSWERS: [(&str, &str); 6] = [
            ("check_option", "NONE"),
            ("is_updatable", "NO"),
            ("is_insertable_into", "NO"),
            ("is_trigger_updatable", "NO"),
            ("is_trigger_deletable", "NO"),
            ("is_trigger_insertable_into", "NO"),
        ];
        let mut texts: [StringBuilder; 4] = Default::default();
        for catalog_name in self.names.catalog_names() {
            let Some(catalog) = self.names.catalog(&catalog_name) else { continue };
            for schema_name in catalog.schema_names() {
                let Some(schema) = catalog.schema(&schema_name) else { continue };
                for table_name in schema.table_names() {
                    let table = schema.table(&table_name).await?;
                    let Some(view) = table.filter(|table| table.table_type() == TableType::View)
                    else {
                        continue;
                    };
                    let text = view.get_table_definition();
                    let at = [&catalog_name, &schema_name, &table_name].map(|name| Some(&**name));
                    for (texts, value) in texts.iter_mut().zip(at.into_iter().chain([text])) {
                        texts.append_option(value);
                    }
                }
            }
        }
        let columns = texts.map(|mut texts| Arc::new(texts.finish()) as ArrayRef);
        let rows = columns[0].len();
        let named = NAMES.into_iter().zip(columns);
        let answers = ANSWERS.into_iter().map(|(name, answer)| {
            (name, Arc::new(StringArray::from(vec![answer; rows])) as ArrayRef)
        });
        let nullable = named.chain(answers).map(|(name, values)| (name, values, true));
        Ok(RecordBatch::try_from_iter_with_nullable(nullable)?)
    }
}

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        let declared = self.declared().into_iter().map(str::to_owned);
        let all: BTreeSet<String> = self.others.table_names().into_iter().chain(declared).collect();
        all.into_iter().collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let name = name.to_ascii_lowercase();
        let has_atoll_types = name == ATOLL_COLUMNS;
        let name = if has_atoll_types { COLUMNS.to_owned() } else { name };
        let declared =
            self.names.system().and_then(|it| Some((it, it.information_columns(&name)?)));
        let Some((system, schema)) = declared else { return self.others.table(&name).await };
        let rows = match name.as_str() {
            COLUMNS => self.columns(system.as_ref(), has_atoll_types).await?,
            VIEWS => self.views().await?,
            name if OF_DATAFUSION.contains(&name) => {
                let of = self.others.table(name).await?;
                return Ok(of.map(|of| Arc::new(ConformedTable { of, schema }) as _));
            }
            name => return Ok(Arc::clone(system).information_table(&self.names, name)),
        };
        let rows = conformed(&rows, &schema)?;
        Ok(Some(Arc::new(MemTable::try_new(schema, vec![vec![rows]])?)))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.others.table_exist(name) || self.declared().contains(&name)
    }
}

/// A table of DataFusion with PostgreSQL's columns. Those of functions list the ones that sessions share, too.
#[derive(Debug)]
struct ConformedTable {
    of: Arc<dyn TableProvider>,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for ConformedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        self.of.table_type()
    }

    async fn scan(
        &self,
        session: &dyn SessionTrait,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = self.of.scan(session, None, &[], None).await?;
        let rows = collect(all, Functions::for_session(session).task_context()).await?;
        let rows = rows.iter().map(|rows| conformed(rows, &self.schema));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let rows = MemorySourceConfig::try_new_exec(&[rows], self.schema(), projection.cloned())?;
        Ok(rows)
    }
}

/// Rows with these columns: those of the same names in their types, and otherwise what is true of all rows, or NULL.
fn conformed(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let column = |field: &Arc<Field>| -> Result<ArrayRef> {
        if let Some(values) = rows.column_by_name(field.name()) {
            return Ok(cast(values, field.data_type())?);
        }
        let answer: ArrayRef = match (field.name().as_str(), rows.column_by_name("table_type")) {
            ("is_insertable_into", Some(kinds)) => {
                let views = eq(kinds, &StringArray::new_scalar("VIEW"))?;
                let [yes, no] = ["YES", "NO"].map(StringArray::new_scalar);
                zip(&views, &no, &yes)?
            }
            ("is_typed", _) => Arc::new(StringArray::from(vec!["NO"; rows.num_rows()])),
            _ => return Ok(new_null_array(field.data_type(), rows.num_rows())),
        };
        Ok(answer)
    };
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// The columns of `columns` that are texts and describe a column's type and values.
const OF_COLUMN: [&str; 19] = [
    "domain_catalog",
    "domain_schema",
    "domain_name",
    "data_type",
    "udt_catalog",
    "udt_schema",
    "udt_name",
    "dtd_identifier",
    "is_self_referencing",
    "is_identity",
    "identity_generation",
    "identity_start",
    "identity_increment",
    "identity_maximum",
    "identity_minimum",
    "identity_cycle",
    "is_generated",
    "generation_expression",
    "is_updatable",
];

/// Those that are numbers.
const OF_SIZES: [&str; 6] = [
    "numeric_precision",
    "numeric_precision_radix",
    "numeric_scale",
    "character_maximum_length",
    "character_octet_length",
    "datetime_precision",
];

/// The rows of `columns`.
#[derive(Default)]
struct ColumnRows {
    /// Whether `data_type` has Atoll's names.
    has_atoll_types: bool,
    version: Arc<DatabaseVersion>,
    types: UserTypes,
    /// Catalog, schema and table of each.
    at: [StringBuilder; 3],
    names: StringBuilder,
    positions: UInt64Builder,
    defaults: StringBuilder,
    nullable: StringBuilder,
    /// Those of `OF_COLUMN`.
    texts: [StringBuilder; 19],
    /// Those of `OF_SIZES`.
    sizes: [UInt64Builder; 6],
}

impl ColumnRows {
    fn add(
        &mut self,
        at: [&str; 3],
        table: &dyn TableProvider,
        shown_default: &dyn Fn(&str, &Field) -> String,
    ) {
        let definition = table.downcast_ref::<PlacedTable>().map(PlacedTable::definition);
        for (column, field) in table.schema().fields().iter().enumerate() {
            for (names, name) in self.at.iter_mut().zip(at) {
                names.append_value(name);
            }
            self.names.append_value(field.name());
            self.positions.append_value(column as u64 + 1);
            self.nullable.append_value(yes_or_no(field.is_nullable()));
            let identity = definition.and_then(|it| it.identity(column));
            let default = definition.and_then(|it| it.defaults[column].as_deref());
            // The numbers of an identity come from its sequence, not from a default; computed columns have none.
            let is_value = |default: &&str| identity.is_none() && !is_generated(default);
            self.defaults.append_option(
                default.filter(is_value).map(|default| shown_default(default, field)),
            );
            let texts = self.texts_of(field, column, definition.map(Arc::as_ref));
            for (texts, text) in self.texts.iter_mut().zip(texts) {
                texts.append_option(text);
            }
            for (sizes, size) in self.sizes.iter_mut().zip(sizes(field)) {
                sizes.append_option(size);
            }
        }
    }

    /// The values of `OF_COLUMN`.
    fn texts_of(
        &self,
        field: &Field,
        column: usize,
        definition: Option<&TableDefinition>,
    ) -> [Option<String>; 19] {
        let computed = definition.and_then(|it| generated_sql(it.defaults[column].as_deref()?));
        let identity = definition.and_then(|it| it.identity(column));
        let sequence = identity.and_then(|it| self.version.sequence(it.sequence));
        let sequence = sequence.map(|state| state.definition.as_ref());
        let number = |of: fn(&SequenceDefinition) -> i64| sequence.map(|it| of(it).to_string());
        let text = |text: &str| Some(text.to_owned());
        let of_user = enum_of(field).and_then(|oid| self.types.numbered(oid));
        let (data_type, name) = match (of_user, enum_oid(field.data_type())) {
            (Some(of), Some(_)) if self.has_atoll_types => {
                (of.shown(self.types.is_visible(of)), of.name.to_string())
            }
            (Some(of), Some(_)) => ("USER-DEFINED".to_owned(), of.name.to_string()),
            (Some(of), None) => ("ARRAY".to_owned(), format!("_{}", of.name)),
            (None, _) if self.has_atoll_types => {
                (sql_name(field.data_type()).to_string(), type_name(field))
            }
            (None, _) => (information_type(field), type_name(field)),
        };
        let domain = domain_oid(field).and_then(|oid| self.types.domain_numbered(oid));
        [
            domain.and_then(|_| text(CATALOG)),
            domain.and_then(|it| text(&it.schema)),
            domain.and_then(|it| text(&it.name)),
            Some(data_type),
            text(CATALOG),
            text(of_user.map_or(PG_CATALOG_SCHEMA, |of| &*of.schema)),
            Some(name),
            Some((column + 1).to_string()),
            text("NO"),
            text(yes_or_no(identity.is_some())),
            identity.map(|it| identity_words(it.kind).to_owned()),
            number(|it| it.start),
            number(|it| it.increment),
            number(|it| it.max),
            number(|it| it.min),
            text(yes_or_no(sequence.is_some_and(|it| it.cycle))),
            text(if computed.is_some() { "ALWAYS" } else { "NEVER" }),
            computed,
            text(yes_or_no(definition.is_some())),
        ]
    }

    fn batch(mut self) -> Result<RecordBatch> {
        let [catalogs, schemas, tables] = self.at.map(|mut names| names.finish());
        let texts = |texts: StringArray| -> ArrayRef { Arc::new(texts) };
        let of_column = OF_COLUMN.into_iter().zip(self.texts);
        let of_column = of_column.map(|(name, mut values)| (name, texts(values.finish())));
        let of_sizes = OF_SIZES.into_iter().zip(self.sizes);
        let of_sizes =
            of_sizes.map(|(name, mut values)| (name, Arc::new(values.finish()) as ArrayRef));
        let known = [
            ("table_catalog", texts(catalogs)),
            ("table_schema", texts(schemas)),
            ("table_name", texts(tables)),
            ("column_name", texts(self.names.finish())),
            ("ordinal_position", Arc::new(self.positions.finish()) as ArrayRef),
            ("column_default", texts(self.defaults.finish())),
            ("is_nullable", texts(self.nullable.finish())),
        ];
        let columns = known.into_iter().chain(of_column).chain(of_sizes);
        let columns = columns.map(|(name, values)| (name, values, true));
        Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
    }
}

fn yes_or_no(is: bool) -> &'static str {
    if is { "YES" } else { "NO" }
}

/// The values of `OF_SIZES`.
fn sizes(field: &Field) -> [Option<u64>; 6] {
    let [digits, base, scale] = digits(field.data_type());
    let of = PgType::of_field(field);
    let length = u64::try_from(of.modifier - 4).ok();
    let [characters, bytes] = match of.oid {
        type_oid::TEXT => [None, Some(1 << 30)],
        type_oid::VARCHAR | type_oid::BPCHAR => {
            [length, length.map_or(Some(1 << 30), |length| Some(length * 4))]
        }
        _ => [None, None],
    };
    let precision = match of.oid {
        type_oid::DATE => Some(0),
        type_oid::TIME | type_oid::TIMESTAMP | type_oid::TIMESTAMPTZ | type_oid::INTERVAL => {
            Some(6)
        }
        _ => None,
    };
    [digits, base, scale, characters, bytes, precision]
}

fn digits(data_type: &DataType) -> [Option<u64>; 3] {
    let binary = |bits: u64| [Some(bits), Some(2), Some(0)];
    match data_type {
        DataType::Int8 | DataType::UInt8 => binary(8),
        DataType::Int16 | DataType::UInt16 => binary(16),
        DataType::Int32 | DataType::UInt32 => binary(32),
        DataType::Int64 | DataType::UInt64 => binary(64),
        DataType::Float32 => [Some(24), Some(2), None],
        DataType::Float64 => [Some(53), Some(2), None],
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            [Some((*precision).into()), Some(10), u64::try_from(*scale).ok()]
        }
        _ => [None; 3],
    }
}
