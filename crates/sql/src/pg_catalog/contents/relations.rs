//! Schemas, tables, columns, indexes, constraints and sequences.

use std::sync::Arc;

use atoll_store::database::{SequenceDefinition, is_temporary_schema};
use atoll_store::table::{
    Deferral, Identity, IdentityKind, IndexKey, ReferentialAction, TableDefinition,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::ResolvedTableReference;

use super::domains;
use super::roles::role_oid;
use crate::catalog::{Catalogs, ObjectComments};
use crate::pg_catalog::default_text;
use crate::pg_catalog::objects::{
    ConstraintKind, PgIndex, PgObjects, PgReference, PgRelation, RelationOf, named_checks,
};
use crate::pg_catalog::oid::{Oid, OidSpace};
use crate::pg_catalog::rows::{Datum, Rows};
use crate::role::rights::{ObjectRights, Owned};
use crate::table_text::generated_sql;
use atoll_sql_common::names::CATALOG;
use atoll_sql_common::pg_type::{PgType, TypeEntry, domain_oid, type_oid};

/// Access methods: heap, and those of indexes.
const HEAP: Oid = 2;
pub(super) const BTREE: Oid = 403;
pub(super) const INDEX_METHODS: [(&str, Oid); 6] = [
    ("btree", BTREE),
    ("hash", 405),
    ("gist", 783),
    ("gin", 2742),
    ("brin", 3580),
    ("spgist", 4000),
];

/// The tables `pg_class` and `pg_namespace`.
pub(super) const CLASSES: Oid = 1259;
const CONSTRAINTS: Oid = 2606;
pub(super) const NAMESPACES: Oid = 2615;

/// The default collation of texts: by their bytes.
pub(super) const DEFAULT_COLLATION: Oid = 100;

/// The operator class that indexes are shown to use.
pub(super) const OPERATORS: Oid = 10_000;

pub(super) fn namespaces(objects: &PgObjects, rows: &mut Rows) {
    for (name, oid) in &objects.schemas {
        let owner = objects.owner(&Owned::Schema(name.to_string()));
        rows.add([
            ("oid", (*oid).into()),
            ("nspname", name.into()),
            ("nspowner", role_oid(&owner).into()),
            ("nspacl", acl(objects, &Owned::Schema(name.to_string()), &owner)),
        ]);
    }
}

/// The rights granted on an object.
fn acl(objects: &PgObjects, object: &Owned, owner: &str) -> Datum {
    let rights = ObjectRights::for_object(&objects.version, object);
    let items = rights.items(owner, object.rights(&objects.version));
    match items.is_empty() {
        true => Datum::Null,
        false => Datum::List(items.into_iter().map(Datum::Text).collect()),
    }
}

/// The comments that COMMENT ON sets on relations, their columns and constraints, and on schemas.
pub(super) fn descriptions(objects: &PgObjects, rows: &mut Rows) {
    let mut add = |of: Oid, class: Oid, column: usize, comment: &str| {
        rows.add([
            ("objoid", of.into()),
            ("classoid", class.into()),
            ("objsubid", column.into()),
            ("description", comment.into()),
        ]);
    };
    for (name, oid) in &objects.schemas {
        let comments =
            ObjectComments::for_object(&objects.version, &Owned::Schema(name.to_string()));
        comments.own.iter().for_each(|own| add(*oid, NAMESPACES, 0, own));
    }
    for relation in super::user_relations(objects) {
        let comments = ObjectComments::for_object(&objects.version, &relation.owned());
        comments.own.iter().for_each(|own| add(relation.oid, CLASSES, 0, own));
        let Some(table) = relation.table() else { continue };
        for (at, field) in table.definition().columns.fields().iter().enumerate() {
            let comment = comments.columns.get(field.name());
            comment.into_iter().for_each(|comment| add(relation.oid, CLASSES, at + 1, comment));
        }
        let of_table = objects.constraints.iter();
        let of_table = of_table.filter(|it| objects.relations[it.table].oid == relation.oid);
        for constraint in of_table {
            let comment = comments.constraints.get(&*constraint.name);
            comment.into_iter().for_each(|comment| add(constraint.oid, CONSTRAINTS, 0, comment));
        }
    }
}

/// The columns of a relation.
fn columns_of(relation: &PgRelation, names: &Catalogs) -> SchemaRef {
    match &relation.of {
        RelationOf::Table(table) | RelationOf::Materialized { table, .. } => {
            Arc::clone(&table.definition().columns)
        }
        RelationOf::Own(table) => table.schema(),
        RelationOf::Declared(table) => Arc::clone(&table.schema),
        RelationOf::View(_) => {
            let at = ResolvedTableReference {
                catalog: CATALOG.into(),
                schema: relation.schema_name.as_ref().into(),
                table: relation.name.as_ref().into(),
            };
            let view = names.table(&at).ok().flatten();
            view.map_or_else(|| Arc::new(Schema::empty()), |view| view.schema())
        }
        RelationOf::Sequence(_) | RelationOf::Index { .. } => Arc::new(Schema::empty()),
    }
}

/// Whether a relation can be read.
fn is_populated(relation: &PgRelation) -> bool {
    match &relation.of {
        RelationOf::Materialized { made, .. } => made.is_populated,
        _ => true,
    }
}

pub(super) fn classes(objects: &PgObjects, names: &Catalogs, rows: &mut Rows) {
    for relation in &objects.relations {
        let definition = relation.table().map(|table| table.definition());
        let kind = relation.kind();
        let columns = match &relation.of {
            RelationOf::Index { index, .. } => index.columns().count(),
            _ => columns_of(relation, names).fields().len(),
        };
        let method = match (&relation.of, kind) {
            (RelationOf::Index { index, .. }, _) => {
                let mut known = INDEX_METHODS.iter();
                known.find(|(name, _)| *name == &*index.parts.method).map_or(BTREE, |it| it.1)
            }
            (_, "r" | "m") => HEAP,
            _ => 0,
        };
        let count = relation.table().map_or(-1.0, |table| table.rows() as f64);
        let pages = relation.table().map_or(0, |table| table.memory_bytes().div_ceil(8192));
        rows.add([
            ("oid", relation.oid.into()),
            ("relname", (&relation.name).into()),
            ("relnamespace", relation.schema.into()),
            ("relowner", role_oid(&objects.owner_of(relation)).into()),
            ("relam", method.into()),
            ("relfilenode", relation.oid.into()),
            ("relpages", pages.into()),
            ("reltuples", count.into()),
            ("relhasindex", definition.is_some_and(|it| it.has_indexes()).into()),
            (
                "relpersistence",
                if is_temporary_schema(&relation.schema_name) { "t" } else { "p" }.into(),
            ),
            ("relkind", kind.into()),
            ("relnatts", columns.into()),
            ("relchecks", definition.map_or(0, |it| named_checks(it).count()).into()),
            ("relhasrules", (kind == "v").into()),
            // As in PostgreSQL, where triggers check foreign keys.
            ("relhastriggers", objects.has_references(relation).into()),
            ("relispopulated", is_populated(relation).into()),
            ("relreplident", "d".into()),
        ]);
        let is_stored = !matches!(
            relation.of,
            RelationOf::Own(_) | RelationOf::Declared(_) | RelationOf::Index { .. }
        );
        if is_stored {
            rows.set("relacl", acl(objects, &relation.owned(), &objects.owner_of(relation)));
        }
    }
}

pub(super) fn attributes(objects: &PgObjects, names: &Catalogs, rows: &mut Rows) {
    for relation in &objects.relations {
        let definition = relation.table().map(|table| table.definition().as_ref());
        if let RelationOf::Index { table, index } = &relation.of {
            let Some(of) = objects.relation(*table).and_then(PgRelation::table) else { continue };
            let fields = of.definition().columns.fields();
            let keys = index.parts.keys.iter().map(|key| key.column);
            for (at, column) in keys.chain(index.parts.included.iter().copied()).enumerate() {
                let Some(field) = fields.get(column) else { continue };
                let field = match index.parts.expression(at) {
                    Some(sql) if index.parts.is_of_catalog => {
                        &Field::new(function_name(sql), DataType::Utf8View, true)
                    }
                    Some(sql) => &field.as_ref().clone().with_name(function_name(sql)),
                    None => field.as_ref(),
                };
                attribute(relation.oid, at, field, None, rows);
            }
            continue;
        }
        for (at, field) in columns_of(relation, names).fields().iter().enumerate() {
            attribute(relation.oid, at, field, definition, rows);
            let domain =
                domain_oid(field).filter(|it| objects.types.domain_numbered(*it).is_some());
            if let Some(domain) = domain {
                rows.set("atttypid", i64::from(domain).into());
            }
        }
    }
}

/// The name of the column of an index that is an expression.
fn function_name(sql: &str) -> String {
    match sql.split_once('(') {
        Some((name, _)) if !name.is_empty() => name.to_lowercase(),
        _ => "expr".to_owned(),
    }
}

fn attribute(
    relation: Oid,
    at: usize,
    field: &Field,
    definition: Option<&TableDefinition>,
    rows: &mut Rows,
) {
    let of = PgType::of_field(field);
    let entry = TypeEntry::numbered(of.oid);
    let default = definition.and_then(|it| default_of(it, at));
    let is_computed = default.as_ref().is_some_and(|(_, is_computed)| *is_computed);
    let identity = definition.and_then(|it| it.identity(at));
    let identity = match identity.map(|it| it.kind) {
        Some(IdentityKind::Always) => "a",
        Some(IdentityKind::ByDefault) => "d",
        Some(IdentityKind::Serial) | None => "",
    };
    rows.add([
        ("attrelid", relation.into()),
        ("attname", field.name().as_str().into()),
        ("atttypid", i64::from(of.oid).into()),
        ("attstattarget", (-1_i64).into()),
        ("attlen", i64::from(of.length).into()),
        ("attnum", (at + 1).into()),
        ("attndims", usize::from(PgType::item_of(of.oid).is_some()).into()),
        ("attcacheoff", (-1_i64).into()),
        ("atttypmod", i64::from(of.modifier).into()),
        ("attbyval", (matches!(of.length, 1 | 2 | 4 | 8)).into()),
        ("attalign", "i".into()),
        ("attstorage", if of.length == -1 { "x" } else { "p" }.into()),
        ("attnotnull", (definition.is_some() && !field.is_nullable()).into()),
        ("atthasdef", default.is_some().into()),
        ("attidentity", identity.into()),
        ("attgenerated", if is_computed { "s" } else { "" }.into()),
        ("attislocal", true.into()),
        (
            "attcollation",
            entry.map_or(0, |it| if it.category == "S" { DEFAULT_COLLATION } else { 0 }).into(),
        ),
    ]);
}

/// The OID of a column's default.
pub(super) fn default_oid(relation: &PgRelation, at: usize) -> Oid {
    OidSpace::Constraint.named(relation.oid, &at.to_string())
}

/// The text of a column's default, or of the expression of a generated one.
pub(super) fn default_of(definition: &TableDefinition, at: usize) -> Option<(String, bool)> {
    if definition.identity(at).is_some() {
        return None;
    }
    let text = definition.defaults.get(at)?.as_deref()?;
    match generated_sql(text) {
        Some(computed) => Some((computed, true)),
        None => Some((text.to_owned(), false)),
    }
}

pub(super) fn defaults(objects: &PgObjects, rows: &mut Rows) {
    for relation in &objects.relations {
        let Some(table) = relation.table() else { continue };
        for (at, column) in table.definition().columns.fields().iter().enumerate() {
            let Some((text, _)) = default_of(table.definition(), at) else { continue };
            rows.add([
                ("oid", default_oid(relation, at).into()),
                ("adrelid", relation.oid.into()),
                ("adnum", (at + 1).into()),
                ("adbin", default_text::shown(objects, &text, column).into()),
            ]);
        }
    }
}

pub(super) fn indexes(objects: &PgObjects, rows: &mut Rows) {
    for relation in &objects.relations {
        let RelationOf::Index { table, index } = &relation.of else { continue };
        // Bits of PostgreSQL: 1 is DESC, 2 is NULLS FIRST.
        let option = |key: &IndexKey| i64::from(key.descending) | (i64::from(key.nulls_first) << 1);
        rows.add([
            ("indexrelid", relation.oid.into()),
            ("indrelid", (*table).into()),
            ("indnatts", index.columns().count().into()),
            ("indnkeyatts", index.parts.keys.len().into()),
            ("indisunique", index.parts.is_unique.into()),
            ("indnullsnotdistinct", index.parts.nulls_not_distinct.into()),
            ("indisprimary", index.is_primary.into()),
            ("indimmediate", (index.deferral == Deferral::Never).into()),
            ("indisvalid", true.into()),
            ("indisready", true.into()),
            ("indislive", true.into()),
            ("indkey", index.columns().map(|at| at.map_or(0, |at| at + 1)).collect()),
            ("indcollation", index.parts.keys.iter().map(|_| 0_i64).collect()),
            ("indclass", index.parts.keys.iter().map(|_| OPERATORS).collect()),
            ("indoption", index.parts.keys.iter().map(option).collect()),
            ("indexprs", expressions(index).into()),
            ("indpred", index.parts.condition.as_ref().into()),
        ]);
    }
}

/// The expressions of an index, as `pg_get_expr` shows them.
fn expressions(index: &PgIndex) -> Option<String> {
    let expressions = index.parts.expressions.iter().flatten().map(|sql| sql.to_string());
    let expressions: Vec<String> = expressions.collect();
    (!expressions.is_empty()).then(|| expressions.join(", "))
}

pub(super) fn constraints(objects: &PgObjects, rows: &mut Rows) {
    for constraint in &objects.constraints {
        let table = &objects.relations[constraint.table];
        let kind = match constraint.kind {
            ConstraintKind::Primary => "p",
            ConstraintKind::Unique => "u",
            ConstraintKind::Check => "c",
            ConstraintKind::Foreign => "f",
        };
        let columns: Datum = match constraint.columns.is_empty() {
            true => Datum::Null,
            false => constraint.columns.iter().map(|at| at + 1).collect(),
        };
        rows.add([
            ("oid", constraint.oid.into()),
            ("conname", (&constraint.name).into()),
            ("connamespace", table.schema.into()),
            ("contype", kind.into()),
            ("convalidated", true.into()),
            ("conrelid", table.oid.into()),
            ("conindid", constraint.index.into()),
            ("confupdtype", " ".into()),
            ("confdeltype", " ".into()),
            ("confmatchtype", " ".into()),
            ("conislocal", true.into()),
            ("connoinherit", (kind != "c").into()),
            ("conkey", columns),
            ("conbin", constraint.check.as_ref().into()),
            ("condeferrable", (constraint.deferral != Deferral::Never).into()),
            ("condeferred", (constraint.deferral == Deferral::InitiallyDeferred).into()),
        ]);
        let Some(PgReference { key, parent, .. }) = &constraint.references else { continue };
        rows.set("confrelid", objects.relations[*parent].oid.into());
        rows.set("confupdtype", action_letter(key.on_update).into());
        rows.set("confdeltype", action_letter(key.on_delete).into());
        rows.set("confmatchtype", if key.is_full { "f" } else { "s" }.into());
        rows.set("confkey", key.parent_columns.iter().map(|at| at + 1).collect());
    }
    domains::constraints(objects, rows);
}

fn action_letter(action: ReferentialAction) -> &'static str {
    match action {
        ReferentialAction::NoAction => "a",
        ReferentialAction::Restrict => "r",
        ReferentialAction::Cascade => "c",
        ReferentialAction::SetNull => "n",
        ReferentialAction::SetDefault => "d",
    }
}

pub(super) fn sequences(objects: &PgObjects, rows: &mut Rows) {
    for relation in &objects.relations {
        let RelationOf::Sequence(state) = &relation.of else { continue };
        let definition = &state.definition;
        rows.add([
            ("seqrelid", relation.oid.into()),
            ("seqtypid", sequence_type(objects, relation, definition).into()),
            ("seqstart", definition.start.into()),
            ("seqincrement", definition.increment.into()),
            ("seqmax", definition.max.into()),
            ("seqmin", definition.min.into()),
            ("seqcache", i64::from(definition.cache).into()),
            ("seqcycle", definition.cycle.into()),
        ]);
    }
}

/// The type of a sequence: that of the column that owns it, if it has all numbers of the sequence, or BIGINT.
pub(super) fn sequence_type(
    objects: &PgObjects,
    sequence: &PgRelation,
    definition: &SequenceDefinition,
) -> Oid {
    let is_it = |owned: &Option<Identity>| {
        let number = owned.map(|owned| OidSpace::Sequence.numbered(owned.sequence.get()));
        number == Some(sequence.oid)
    };
    let owner = objects.relations.iter().filter_map(PgRelation::table).find_map(|table| {
        let definition = table.definition();
        let at = definition.identities.iter().position(is_it)?;
        Some(definition.columns.field(at).data_type().clone())
    });
    let fits = |least: i64, most: i64| definition.min >= least && definition.max <= most;
    match owner {
        Some(DataType::Int16) if fits(i16::MIN.into(), i16::MAX.into()) => type_oid::INT2.into(),
        Some(DataType::Int32) if fits(i32::MIN.into(), i32::MAX.into()) => type_oid::INT4.into(),
        _ => type_oid::INT8.into(),
    }
}
