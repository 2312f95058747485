//! What depends on what, by which dumps order their statements; the rules of views; the extension that the objects of
//! Atoll itself belong to, so that they are not dumped.

use atoll_store::database::Relation;

use super::foreign;
use super::relations::{CLASSES, NAMESPACES, default_of, default_oid};
use crate::pg_catalog::default_text::sequences_in;
use crate::pg_catalog::definition::relations_of_view;
use crate::pg_catalog::objects::{PgObjects, PgRelation, RelationOf};
use crate::pg_catalog::oid::{OWNER, Oid, OidSpace};
use crate::pg_catalog::rows::Rows;
use crate::role::rights::is_temporary_entry;
use atoll_store::table::IdentityKind;

/// The tables `pg_proc`, `pg_attrdef`, `pg_rewrite` and `pg_extension`.
const FUNCTIONS: Oid = 1255;
const DEFAULTS: Oid = 2604;
const RULES: Oid = 2618;
const EXTENSIONS: Oid = 3079;

/// The extension, and the schema of its tables.
const EXTENSION: Oid = 13_900;
const EXTENSION_NAME: &str = "atoll";

/// The OID of the rule that makes a relation a view.
fn rule_oid(view: &PgRelation) -> Oid {
    OidSpace::Constraint.named(view.oid, "_RETURN")
}

fn views(objects: &PgObjects) -> impl Iterator<Item = &PgRelation> {
    objects.relations.iter().filter(|relation| matches!(relation.of, RelationOf::View(_)))
}

/// A rule for each view, as in PostgreSQL.
pub(super) fn rules(objects: &PgObjects, rows: &mut Rows) {
    for view in views(objects) {
        rows.add([
            ("oid", rule_oid(view).into()),
            ("rulename", "_RETURN".into()),
            ("ev_class", view.oid.into()),
            ("ev_type", "1".into()),
            ("ev_enabled", "O".into()),
            ("is_instead", true.into()),
        ]);
    }
}

pub(super) fn extensions(objects: &PgObjects, rows: &mut Rows) {
    let schema = objects.schemas.get(EXTENSION_NAME).copied().unwrap_or(0);
    rows.add([
        ("oid", EXTENSION.into()),
        ("extname", EXTENSION_NAME.into()),
        ("extowner", OWNER.into()),
        ("extnamespace", schema.into()),
        ("extversion", env!("CARGO_PKG_VERSION").into()),
    ]);
}

pub(super) fn dependencies(objects: &PgObjects, rows: &mut Rows) {
    let mut add = |class: Oid, of: Oid, on: (Oid, Oid, usize), kind: &str| {
        let (on_class, on, column) = on;
        rows.add([
            ("classid", class.into()),
            ("objid", of.into()),
            ("refclassid", on_class.into()),
            ("refobjid", on.into()),
            ("refobjsubid", column.into()),
            ("deptype", kind.into()),
        ]);
    };
    for relation in &objects.relations {
        let Some(table) = relation.table() else { continue };
        let definition = table.definition();
        for (at, owned) in definition.identities.iter().enumerate() {
            if let Some(owned) = owned {
                let sequence = OidSpace::Sequence.numbered(owned.sequence.get());
                let kind = if owned.kind == IdentityKind::Serial { "a" } else { "i" };
                add(CLASSES, sequence, (CLASSES, relation.oid, at + 1), kind);
            }
            let Some((text, _)) = default_of(definition, at) else { continue };
            let default = default_oid(relation, at);
            add(DEFAULTS, default, (CLASSES, relation.oid, at + 1), "a");
            for sequence in sequences_in(objects, &text) {
                add(DEFAULTS, default, (CLASSES, sequence.oid, 0), "n");
            }
        }
    }
    for view in views(objects) {
        let rule = rule_oid(view);
        add(RULES, rule, (CLASSES, view.oid, 0), "i");
        for read in relations_of_view(objects, view) {
            add(RULES, rule, (CLASSES, read.oid, 0), "n");
        }
    }
    add_members(objects, &mut |class, of| add(class, of, (EXTENSIONS, EXTENSION, 0), "e"));
}

/// The members of the extension: the schema of the system tables with these and their server, and macros, which only
/// Atoll can create.
fn add_members(objects: &PgObjects, add: &mut dyn FnMut(Oid, Oid)) {
    add(foreign::WRAPPERS, foreign::WRAPPER);
    add(foreign::SERVERS, foreign::SERVER);
    if let Some(schema) = objects.schemas.get(EXTENSION_NAME) {
        add(NAMESPACES, *schema);
    }
    let own = objects.relations.iter().filter(|it| matches!(it.of, RelationOf::Own(_)));
    own.for_each(|table| add(CLASSES, table.oid));
    for (at, relation) in objects.version.relations() {
        let is_macro = matches!(relation, Relation::External(_)) && !is_temporary_entry(at);
        if let Some(schema) = objects.schemas.get(&at.schema).filter(|_| is_macro) {
            add(FUNCTIONS, OidSpace::Function.named(*schema, &at.name));
        }
    }
}
