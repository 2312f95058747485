//! The objects of a database, with their OIDs: schemas, relations and constraints, as one statement sees them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use atoll_sql_common::names::quote_identifier;
use atoll_store::database::{
    DatabaseVersion, Relation, RelationName, SequenceState, StoredStatement,
};
use atoll_store::table::{
    CatalogIndex, Check, Deferral, ForeignKey, Index, TableDefinition, TableVersion, Unique,
};
use datafusion::catalog::TableProvider;

use super::contents::OWNER_NAME;
use super::declared::{DeclaredTable, INFORMATION_TABLES, PG_TABLES};
use super::oid::{Oid, OidSpace, PG_CATALOG, PUBLIC, TakenOids};
use crate::catalog::{Catalogs, MaterializedView};
use crate::role::rights::{ObjectRights, Owned};
use crate::table_text::{IndexParts, checked_domain, columns_named};
use atoll_sql_common::names::{
    INFORMATION_SCHEMA, PG_CATALOG_SCHEMA, SCHEMA, SYSTEM_SCHEMA, SearchPath,
};
use atoll_sql_common::pg_type::type_of_check;
use atoll_sql_common::user_type::UserTypes;

/// The OID of the schema `information_schema`.
const INFORMATION: Oid = 13_000;

/// A relation.
#[derive(Debug)]
pub(super) struct PgRelation {
    pub(super) oid: Oid,
    pub(super) schema: Oid,
    pub(super) schema_name: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) of: RelationOf,
}

/// The kind of a relation.
#[derive(Debug)]
pub(super) enum RelationOf {
    Table(Arc<TableVersion>),
    View(Arc<StoredStatement>),
    Materialized {
        table: Arc<TableVersion>,
        made: Arc<MaterializedView>,
    },
    Sequence(Arc<SequenceState>),
    /// An index of a table.
    Index {
        table: Oid,
        index: PgIndex,
    },
    /// A table of the session's own, or one of the system.
    Own(Arc<dyn TableProvider>),
    Declared(&'static DeclaredTable),
}

/// An index, of a constraint or by itself.
#[derive(Debug)]
pub(super) struct PgIndex {
    pub(super) parts: IndexParts,
    pub(super) is_primary: bool,
    /// Whether and how the check of its constraint can be deferred.
    pub(super) deferral: Deferral,
}

impl PgIndex {
    fn from_unique(unique: &Unique) -> Self {
        let (is_primary, deferral) = (unique.is_primary, unique.deferral);
        Self { parts: IndexParts::from_unique(unique), is_primary, deferral }
    }

    fn from_index(index: &Index) -> Self {
        Self::not_unique(IndexParts::from_index(index))
    }

    fn from_catalog(index: &CatalogIndex) -> Self {
        Self::not_unique(IndexParts::from_catalog(index))
    }

    fn not_unique(parts: IndexParts) -> Self {
        Self { parts, is_primary: false, deferral: Deferral::Never }
    }

    /// Numbers of its columns: the key, then those of INCLUDE; `None` for expressions.
    pub(super) fn columns(&self) -> impl Iterator<Item = Option<usize>> + '_ {
        let keys = self.parts.keys.iter().enumerate();
        let keys = keys.map(|(place, key)| match self.parts.expression(place) {
            Some(_) => None,
            None => Some(key.column),
        });
        keys.chain(self.parts.included.iter().copied().map(Some))
    }
}

/// The kind of a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConstraintKind {
    Primary,
    Unique,
    Check,
    Foreign,
}

/// A constraint of a table.
#[derive(Debug)]
pub(super) struct PgConstraint {
    pub(super) oid: Oid,
    pub(super) name: Arc<str>,
    /// The index of the table in the relations.
    pub(super) table: usize,
    pub(super) kind: ConstraintKind,
    /// Numbers of its columns, from 0.
    pub(super) columns: Vec<usize>,
    /// Its index, or 0.
    pub(super) index: Oid,
    /// The condition of a CHECK.
    pub(super) check: Option<Arc<str>>,
    /// The target of a FOREIGN KEY.
    pub(super) references: Option<PgReference>,
    /// Whether and how its check can be deferred.
    pub(super) deferral: Deferral,
}

/// The target of a FOREIGN KEY.
#[derive(Debug)]
pub(super) struct PgReference {
    pub(super) key: ForeignKey,
    /// The index of the table in the relations.
    pub(super) parent: usize,
    /// The index of its constraint in the constraints.
    pub(super) unique: Option<usize>,
}

/// All objects.
#[derive(Debug, Default)]
pub(crate) struct PgObjects {
    pub(super) version: Arc<DatabaseVersion>,
    /// The schemas in which unqualified names are looked up.
    pub(super) path: SearchPath,
    /// The types that users created.
    pub(super) types: UserTypes,
    pub(super) schemas: BTreeMap<Arc<str>, Oid>,
    pub(super) relations: Vec<PgRelation>,
    pub(super) constraints: Vec<PgConstraint>,
    by_oid: HashMap<Oid, usize>,
    by_name: HashMap<(Oid, Arc<str>), usize>,
}

impl PgRelation {
    /// Its letter in `pg_class`.
    pub(super) fn kind(&self) -> &'static str {
        match &self.of {
            RelationOf::Table(_) => "r",
            RelationOf::View(_) => "v",
            RelationOf::Materialized { .. } => "m",
            RelationOf::Sequence(_) => "S",
            RelationOf::Index { .. } => "i",
            RelationOf::Own(_) if &*self.schema_name == SYSTEM_SCHEMA => "f",
            RelationOf::Own(table) => match table.table_type() {
                datafusion::logical_expr::TableType::View => "v",
                _ => "r",
            },
            RelationOf::Declared(table) if table.is_view() => "v",
            RelationOf::Declared(_) => "r",
        }
    }

    /// The object that carries its rights.
    pub(super) fn owned(&self) -> Owned {
        Owned::Relation(RelationName::new(Arc::clone(&self.schema_name), Arc::clone(&self.name)))
    }

    /// Its table in the store.
    pub(super) fn table(&self) -> Option<&Arc<TableVersion>> {
        match &self.of {
            RelationOf::Table(table) | RelationOf::Materialized { table, .. } => Some(table),
            _ => None,
        }
    }
}

impl Catalogs {
    /// All objects, with their OIDs.
    pub(crate) fn objects(&self) -> Arc<PgObjects> {
        self.computed(PgObjects::from_catalogs)
    }
}

impl PgObjects {
    fn from_catalogs(names: &Catalogs) -> Self {
        let (version, path) = (names.stored_version(), names.path().clone());
        let types = names.user_types();
        let mut objects = Self { version, path, types, ..Self::default() };
        let mut taken = TakenOids::default();
        objects.add_schemas(names, &mut taken);
        objects.add_declared(PG_CATALOG_SCHEMA, PG_CATALOG, &PG_TABLES);
        objects.add_declared(INFORMATION_SCHEMA, INFORMATION, &INFORMATION_TABLES);
        objects.add_own(names, &mut taken);
        objects.add_stored(&mut taken);
        objects.add_constraints(&mut taken);
        objects
    }

    fn add_schemas(&mut self, names: &Catalogs, taken: &mut TakenOids) {
        let fixed =
            [(PG_CATALOG_SCHEMA, PG_CATALOG), (INFORMATION_SCHEMA, INFORMATION), (SCHEMA, PUBLIC)];
        let is_there = |name: &str| name != SCHEMA || names.has_schema(name);
        for (name, oid) in fixed.into_iter().filter(|(name, _)| is_there(name)) {
            self.schemas.insert(name.into(), taken.take(oid));
        }
        for name in names.schemas() {
            if names.lists(&name) && is_there(&name) && !self.schemas.contains_key(&name) {
                let oid = taken.take(OidSpace::Name.named(0, &name));
                self.schemas.insert(name, oid);
            }
        }
    }

    fn add_declared(&mut self, schema_name: &str, schema: Oid, tables: &'static [DeclaredTable]) {
        let schema_name: Arc<str> = schema_name.into();
        for table in tables {
            let (oid, name) = (table.oid, table.name.into());
            let (schema_name, of) = (Arc::clone(&schema_name), RelationOf::Declared(table));
            self.add(PgRelation { oid, schema, schema_name, name, of });
        }
    }

    /// Tables of the session's own, which the store does not keep.
    fn add_own(&mut self, names: &Catalogs, taken: &mut TakenOids) {
        for (schema_name, name, table) in names.own_tables() {
            // As in PostgreSQL, its views are in the schema of its temporary tables.
            let temporary = names.temporary_schema().filter(|_| &*schema_name != SYSTEM_SCHEMA);
            let schema_name = temporary.map_or(schema_name, Arc::clone);
            let schema = match self.schemas.get(&schema_name) {
                Some(schema) => *schema,
                None if temporary.is_some() => {
                    let schema = taken.take(OidSpace::Name.named(0, &schema_name));
                    self.schemas.insert(Arc::clone(&schema_name), schema);
                    schema
                }
                None => continue,
            };
            let oid = taken.take(OidSpace::Relation.named(schema, &name));
            self.add(PgRelation { oid, schema, schema_name, name, of: RelationOf::Own(table) });
        }
    }

    fn add_stored(&mut self, taken: &mut TakenOids) {
        let version = Arc::clone(&self.version);
        for (at, relation) in version.relations() {
            let Some(schema) = self.schemas.get(&at.schema).copied() else { continue };
            let (oid, of) = match relation {
                Relation::Table(id) => {
                    let Some(table) = version.table(*id) else { continue };
                    let table = Arc::clone(table);
                    let of = match MaterializedView::find(&version, at).ok().flatten() {
                        Some(made) => RelationOf::Materialized { table, made: Arc::new(made) },
                        None => RelationOf::Table(table),
                    };
                    (OidSpace::Table.numbered(id.get()), of)
                }
                Relation::Sequence(id) => {
                    let Some(state) = version.sequence(*id) else { continue };
                    (OidSpace::Sequence.numbered(id.get()), RelationOf::Sequence(Arc::clone(state)))
                }
                Relation::View(view) => {
                    let oid = OidSpace::Relation.named(schema, &at.name);
                    (oid, RelationOf::View(Arc::clone(view)))
                }
                Relation::External(_) => continue,
            };
            let (oid, schema_name, name) =
                (taken.take(oid), Arc::clone(&at.schema), Arc::clone(&at.name));
            self.add(PgRelation { oid, schema, schema_name, name, of });
        }
    }

    fn add_constraints(&mut self, taken: &mut TakenOids) {
        for table in 0..self.relations.len() {
            let Some(version) = self.relations[table].table() else { continue };
            let definition = Arc::clone(version.definition());
            for unique in &definition.uniques {
                let index = PgIndex::from_unique(unique);
                let index = self.add_index(table, &unique.name, index, taken);
                if unique.is_index {
                    continue;
                }
                let kind = match unique.is_primary {
                    true => ConstraintKind::Primary,
                    false => ConstraintKind::Unique,
                };
                let columns = unique.columns.clone();
                self.add_constraint(table, &unique.name, kind, columns, index, None, taken);
                if let Some(added) = self.constraints.last_mut() {
                    added.deferral = unique.deferral;
                }
            }
            for index in &definition.indexes {
                self.add_index(table, &index.name, PgIndex::from_index(index), taken);
            }
            for index in &definition.catalog_indexes {
                self.add_index(table, &index.name, PgIndex::from_catalog(index), taken);
            }
            for check in named_checks(&definition) {
                let sql = Some(Arc::clone(&check.sql));
                let kind = ConstraintKind::Check;
                let columns = columns_named(&check.sql, &definition.columns);
                self.add_constraint(table, &check.name, kind, columns, 0, sql, taken);
            }
        }
        for table in 0..self.relations.len() {
            let Some(version) = self.relations[table].table() else { continue };
            let definition = Arc::clone(version.definition());
            for key in &definition.foreign_keys {
                self.add_foreign_key(table, &definition, key, taken);
            }
        }
    }

    fn add_foreign_key(
        &mut self,
        table: usize,
        definition: &TableDefinition,
        key: &ForeignKey,
        taken: &mut TakenOids,
    ) {
        let Some(parent) = self.place_of(key) else { return };
        let unique = self.relations[parent].table().and_then(|parent| {
            let of_parent = parent.definition();
            let found = key.referenced(definition, of_parent)?;
            Some(Arc::clone(&of_parent.uniques[found.unique].name))
        });
        let is_it = |it: &PgConstraint| it.table == parent && unique.as_ref() == Some(&it.name);
        let unique = self.constraints.iter().position(is_it);
        let index = unique.map_or(0, |unique| self.constraints[unique].index);
        let (kind, columns) = (ConstraintKind::Foreign, key.columns.clone());
        self.add_constraint(table, &key.name, kind, columns, index, None, taken);
        if let Some(added) = self.constraints.last_mut() {
            added.references = Some(PgReference { key: key.clone(), parent, unique });
            added.deferral = key.deferral;
        }
    }

    /// The index of the table that a foreign key refers to.
    fn place_of(&self, key: &ForeignKey) -> Option<usize> {
        let at = self.version.table_name(key.parent)?;
        let schema = *self.schemas.get(&at.schema)?;
        self.by_name.get(&(schema, Arc::clone(&at.name))).copied()
    }

    /// Whether a relation has foreign keys or is referenced by one.
    pub(super) fn has_references(&self, relation: &PgRelation) -> bool {
        self.constraints.iter().any(|constraint| {
            let is_it = |at: usize| self.relations[at].oid == relation.oid;
            let references = constraint.references.as_ref();
            references.is_some_and(|it| is_it(constraint.table) || is_it(it.parent))
        })
    }

    fn add_index(
        &mut self,
        table: usize,
        name: &Arc<str>,
        index: PgIndex,
        taken: &mut TakenOids,
    ) -> Oid {
        let of = &self.relations[table];
        let oid = taken.take(OidSpace::Index.named(of.oid, name));
        let index = PgRelation {
            oid,
            schema: of.schema,
            schema_name: Arc::clone(&of.schema_name),
            name: Arc::clone(name),
            of: RelationOf::Index { table: of.oid, index },
        };
        self.add(index);
        oid
    }

    #[expect(clippy::too_many_arguments, reason = "each is a part of the constraint")]
    fn add_constraint(
        &mut self,
        table: usize,
        name: &Arc<str>,
        kind: ConstraintKind,
        columns: Vec<usize>,
        index: Oid,
        check: Option<Arc<str>>,
        taken: &mut TakenOids,
    ) {
        let oid = taken.take(OidSpace::Constraint.named(self.relations[table].oid, name));
        let name = Arc::clone(name);
        let (references, deferral) = (None, Deferral::Never);
        self.constraints.push(PgConstraint {
            oid,
            name,
            table,
            kind,
            columns,
            index,
            check,
            references,
            deferral,
        });
    }

    fn add(&mut self, relation: PgRelation) {
        let at = self.relations.len();
        self.by_oid.insert(relation.oid, at);
        self.by_name.entry((relation.schema, Arc::clone(&relation.name))).or_insert(at);
        self.relations.push(relation);
    }

    /// The relation with an OID.
    pub(super) fn relation(&self, oid: Oid) -> Option<&PgRelation> {
        self.by_oid.get(&oid).map(|at| &self.relations[*at])
    }

    /// The relation that a text names: `t`, `s.t`, `"T"`.
    pub(super) fn relation_named(&self, text: &str) -> Option<&PgRelation> {
        let parts = name_parts(text)?;
        let in_schema = |schema: &str, name: &str| {
            let schema = *self.schemas.get(schema)?;
            let at = self.by_name.get(&(schema, Arc::from(name)))?;
            self.relations.get(*at)
        };
        match parts.as_slice() {
            [name] => {
                let before = self.path.before_listed().map(|own| &**own);
                let listed = self.path.listed().iter().map(|schema| &**schema);
                let mut schemas = before.into_iter().chain([PG_CATALOG_SCHEMA]).chain(listed);
                schemas.find_map(|schema| in_schema(schema, name))
            }
            [schema, name] | [_, schema, name] => in_schema(schema, name),
            _ => None,
        }
    }

    /// Whether the search path finds a relation by its unqualified name.
    pub(super) fn finds(&self, relation: &PgRelation) -> bool {
        let found = self.relation_named(&quote_identifier(&relation.name));
        found.is_some_and(|found| found.oid == relation.oid)
    }

    /// The name of a relation, qualified if the search path does not find it.
    pub(super) fn shown_name(&self, relation: &PgRelation) -> String {
        let name = quote_identifier(&relation.name);
        match self.finds(relation) {
            true => name.into_owned(),
            false => format!("{}.{name}", quote_identifier(&relation.schema_name)),
        }
    }

    /// Whether a schema exists.
    pub(super) fn has_schema(&self, name: &str) -> bool {
        self.schemas.contains_key(name)
    }

    /// Whether a text names a relation.
    pub(crate) fn has_relation(&self, text: &str) -> bool {
        self.relation_named(text).is_some()
    }

    /// The role that owns a relation.
    pub(super) fn owner_of(&self, relation: &PgRelation) -> String {
        match &relation.of {
            RelationOf::Own(_) | RelationOf::Declared(_) => OWNER_NAME.to_owned(),
            RelationOf::Index { table, .. } => match self.relation(*table) {
                Some(table) => self.owner_of(table),
                None => OWNER_NAME.to_owned(),
            },
            _ => self.owner(&relation.owned()),
        }
    }

    /// The role that owns an object; by default that of the process.
    pub(super) fn owner(&self, object: &Owned) -> String {
        let owner = ObjectRights::for_object(&self.version, object).owner;
        owner.unwrap_or_else(|| OWNER_NAME.to_owned())
    }

    /// The constraint with an OID, and its table.
    pub(super) fn constraint(&self, oid: Oid) -> Option<(&PgConstraint, &PgRelation)> {
        let constraint = self.constraints.iter().find(|constraint| constraint.oid == oid)?;
        Some((constraint, &self.relations[constraint.table]))
    }

    /// The name of a schema.
    pub(super) fn schema_name(&self, oid: Oid) -> Option<&Arc<str>> {
        self.schemas.iter().find(|(_, schema)| **schema == oid).map(|(name, _)| name)
    }
}

/// The parts of a name as PostgreSQL reads it; `None` if it is not one.
pub(super) fn name_parts(text: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        let (part, behind) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (mut part, mut at) = (String::new(), 0);
                loop {
                    let end = at + quoted[at..].find('"')?;
                    part.push_str(&quoted[at..end]);
                    at = end + 1;
                    if !quoted[at..].starts_with('"') {
                        break;
                    }
                    part.push('"');
                    at += 1;
                }
                (part, quoted[at..].trim_start())
            }
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                (rest[..end].trim().to_lowercase(), &rest[end..])
            }
        };
        if part.is_empty() {
            return None;
        }
        parts.push(part);
        match behind.strip_prefix('.') {
            Some(next) => rest = next.trim_start(),
            None if behind.is_empty() => return Some(parts),
            None => return None,
        }
    }
}

/// The CHECK constraints of a table, except for those that belong to the types of its columns.
pub(super) fn named_checks(definition: &TableDefinition) -> impl Iterator<Item = &Check> {
    let is_of_type = |check: &&Check| {
        let mut fields = definition.columns.fields().iter();
        fields.any(|field| type_of_check(&check.sql, field.name()).is_some())
            || checked_domain(&check.sql).is_some()
    };
    definition.checks.iter().filter(move |check| !is_of_type(check))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_parts() {
        let parts = |text: &str| name_parts(text).map(|parts| parts.join("|"));
        assert_eq!(parts("Public.T").as_deref(), Some("public|t"));
        assert_eq!(parts("\"A.\"\"b\".c").as_deref(), Some("A.\"b|c"));
        assert_eq!(parts("\"open"), None);
        assert_eq!(parts("a."), None);
        assert_eq!(parts("\"a\"b"), None);
    }
}
