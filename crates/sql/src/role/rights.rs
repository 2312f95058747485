//! Owners of relations and schemas, and the rights of others on them.
//!
//! The store keeps them as a text for each object on which roles other than superusers have rights, in a hidden schema.
//! As in PostgreSQL, an owner has all rights, and a role has those of the roles it is a member of.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::sync::Arc;

use atoll_store::database::{DatabaseVersion, Relation, RelationName, is_temporary_schema};
use datafusion::common::{DataFusionError, Result};

use super::{READ_ALL, WRITE_ALL, role};
use atoll_sql_common::error::SqlState;
use atoll_sql_common::names::{COMMENTS, SCHEMA};

/// The schema that stores the rights.
pub(crate) const RIGHTS: &str = "pg_acl";

/// All roles, as a grantee.
pub(crate) const PUBLIC: &str = "public";

/// A right on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    Select,
    Insert,
    Update,
    Delete,
    Truncate,
    References,
    Usage,
    Create,
}

/// The rights with PostgreSQL's letters and words.
const ALL: [(Right, char, &str); 8] = [
    (Right::Insert, 'a', "INSERT"),
    (Right::Select, 'r', "SELECT"),
    (Right::Update, 'w', "UPDATE"),
    (Right::Delete, 'd', "DELETE"),
    (Right::Truncate, 'D', "TRUNCATE"),
    (Right::References, 'x', "REFERENCES"),
    (Right::Usage, 'U', "USAGE"),
    (Right::Create, 'C', "CREATE"),
];

/// The rights that apply to schemas, to sequences, and to tables and views.
pub(crate) const OF_SCHEMAS: [Right; 2] = [Right::Usage, Right::Create];
pub(crate) const OF_SEQUENCES: [Right; 3] = [Right::Select, Right::Update, Right::Usage];
pub(crate) const OF_TABLES: [Right; 6] = [
    Right::Select,
    Right::Insert,
    Right::Update,
    Right::Delete,
    Right::Truncate,
    Right::References,
];

/// An owner's rights as PostgreSQL writes them: `ann=arwd/ann`.
pub(crate) fn owner_item(owner: &str, rights: &[Right]) -> String {
    let letters: String = rights.iter().map(|right| right.letter()).collect();
    format!("{0}={letters}/{0}", acl_name(owner))
}

impl Right {
    fn letter(self) -> char {
        ALL.iter().find(|known| known.0 == self).map_or('?', |known| known.1)
    }

    /// Its word in SQL.
    pub(crate) fn word(self) -> &'static str {
        ALL.iter().find(|known| known.0 == self).map_or("", |known| known.2)
    }
}

/// An object that carries rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owned {
    Relation(RelationName),
    Schema(String),
}

impl Owned {
    /// The rights that apply to the object.
    pub(crate) fn rights(&self, version: &DatabaseVersion) -> &'static [Right] {
        match self {
            Self::Schema(_) => &OF_SCHEMAS,
            Self::Relation(name) => match version.relation(name) {
                Some(Relation::Sequence(_)) => &OF_SEQUENCES,
                _ => &OF_TABLES,
            },
        }
    }

    /// The error that the object does not exist.
    pub(crate) fn missing(&self, version: &DatabaseVersion) -> DataFusionError {
        let state = match self {
            Self::Schema(_) => SqlState::UNDEFINED_SCHEMA,
            Self::Relation(_) => SqlState::UNDEFINED_TABLE,
        };
        state.error(format!("{} does not exist", self.named(version)))
    }

    /// Its name in messages: `table item`.
    pub(crate) fn named(&self, version: &DatabaseVersion) -> String {
        match self {
            Self::Schema(name) => format!("schema {name}"),
            Self::Relation(name) => {
                let kind = version.relation(name).map_or("relation", Relation::kind);
                match &*name.schema == SCHEMA {
                    true => format!("{kind} {}", name.name),
                    false => format!("{kind} {}.{}", name.schema, name.name),
                }
            }
        }
    }

    /// Whether it exists.
    pub(crate) fn exists(&self, version: &DatabaseVersion) -> bool {
        match self {
            Self::Relation(name) => version.relation(name).is_some(),
            Self::Schema(name) => version.has_schema(name),
        }
    }

    /// The name under which its rights are stored.
    pub(crate) fn entry(&self) -> RelationName {
        self.entry_in(RIGHTS)
    }

    /// The name under which a text about it is stored in such a schema; for a temporary object it is in the schema of
    /// that, with which it ends.
    pub(crate) fn entry_in(&self, schema: &str) -> RelationName {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let name = match self {
            Self::Relation(name) if is_temporary_schema(&name.schema) => {
                let entry = format!("{schema} {}", quoted(&name.name));
                return RelationName::new(Arc::clone(&name.schema), entry);
            }
            Self::Relation(name) => format!("{}.{}", quoted(&name.schema), quoted(&name.name)),
            Self::Schema(name) => quoted(name),
        };
        RelationName::new(schema, name)
    }

    /// The object whose rights are stored under a name.
    pub(crate) fn of_entry(name: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = name;
        loop {
            let text = rest.strip_prefix('"')?;
            let end = end_of_quoted(text)?;
            parts.push(text[..end].replace("\"\"", "\""));
            rest = &text[end + 1..];
            match rest.strip_prefix('.') {
                Some(next) => rest = next,
                None => break,
            }
        }
        match &parts[..] {
            [schema] => Some(Self::Schema(schema.clone())),
            [schema, name] => Some(Self::Relation(RelationName::new(&**schema, &**name))),
            _ => None,
        }
    }
}

/// Whether a relation stores something about a temporary object.
pub(crate) fn is_temporary_entry(name: &RelationName) -> bool {
    let is_in =
        |schema: &str| name.name.strip_prefix(schema).is_some_and(|of| of.starts_with(" \""));
    is_temporary_schema(&name.schema) && (is_in(RIGHTS) || is_in(COMMENTS))
}

/// The position of the quote that ends a text in which quotes are doubled.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        at += text[at..].find('"')?;
        match text[at + 1..].starts_with('"') {
            true => at += 2,
            false => return Some(at),
        }
    }
}

/// The rights on an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectRights {
    /// The role that may do everything with it; `None` if only superusers may.
    pub(crate) owner: Option<String>,
    /// By role, each with its grant option.
    pub(crate) grants: BTreeMap<String, BTreeMap<Right, bool>>,
}

impl ObjectRights {
    /// The rights on an object.
    pub(crate) fn for_object(version: &DatabaseVersion, object: &Owned) -> Self {
        match version.relation(&object.entry()) {
            Some(Relation::External(kept)) => Self::parse(&kept.sql),
            _ => match object {
                // As in PostgreSQL, everyone has USAGE of the first schema.
                Owned::Schema(name) if name == SCHEMA => Self {
                    owner: None,
                    grants: [(PUBLIC.to_owned(), [(Right::Usage, false)].into())].into(),
                },
                _ => Self::default(),
            },
        }
    }

    /// Whether it has to be stored: it differs from that of an object without an entry.
    pub(crate) fn is_some(&self) -> bool {
        self.owner.is_some() || !self.grants.is_empty()
    }

    /// The rights as PostgreSQL writes them, the owner's first: `ann=arwdD/ann`. Empty if nothing was granted.
    pub(crate) fn items(&self, owner: &str, all: &[Right]) -> Vec<String> {
        let granted = self.grants.iter().filter(|(_, rights)| !rights.is_empty());
        let mut items: Vec<String> = granted
            .map(|(role, rights)| {
                let role = if role == PUBLIC { "" } else { role };
                let letters = rights.iter().map(|(right, with_option)| {
                    format!("{}{}", right.letter(), if *with_option { "*" } else { "" })
                });
                let letters: String = letters.collect();
                format!("{}={letters}/{}", acl_name(role), acl_name(owner))
            })
            .collect();
        if !items.is_empty() {
            items.insert(0, owner_item(owner, all));
        }
        items
    }

    /// The roles with rights.
    pub(crate) fn roles(&self) -> impl Iterator<Item = &str> {
        self.owner.iter().chain(self.grants.keys()).map(String::as_str)
    }

    fn parse(text: &str) -> Self {
        let mut rights = Self::default();
        for line in text.lines() {
            let Some((what, role)) = line.split_once(' ') else { continue };
            let role = role.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%");
            if what == "owner" {
                rights.owner = Some(role);
                continue;
            }
            let granted = rights.grants.entry(role).or_default();
            let mut letters = what.chars().peekable();
            while let Some(letter) = letters.next() {
                let with_option = letters.next_if_eq(&'*').is_some();
                if let Some(known) = ALL.iter().find(|known| known.1 == letter) {
                    granted.insert(known.0, with_option);
                }
            }
        }
        rights
    }
}

/// The name of a role in an ACL: quoted if it is more than letters, digits and `_`.
fn acl_name(role: &str) -> String {
    match role.chars().all(|letter| letter.is_alphanumeric() || letter == '_') {
        true => role.to_owned(),
        false => format!("\"{}\"", role.replace('"', "\"\"")),
    }
}

impl fmt::Display for ObjectRights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escaped =
            |role: &str| role.replace('%', "%25").replace('\n', "%0A").replace('\r', "%0D");
        if let Some(owner) = &self.owner {
            writeln!(f, "owner {}", escaped(owner))?;
        }
        for (role, rights) in &self.grants {
            for (right, with_option) in rights {
                f.write_char(right.letter())?;
                f.write_str(if *with_option { "*" } else { "" })?;
            }
            writeln!(f, " {}", escaped(role))?;
        }
        Ok(())
    }
}

/// A user whose rights are limited, with all roles whose rights it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LimitedUser {
    pub(crate) name: String,
    roles: BTreeSet<String>,
}

impl LimitedUser {
    /// A user and its roles, direct and indirect.
    pub(crate) fn new(version: &DatabaseVersion, name: &str) -> Self {
        let mut roles = BTreeSet::from([name.to_owned(), PUBLIC.to_owned()]);
        let mut next = vec![name.to_owned()];
        while let Some(member) = next.pop() {
            let of = role(version, &member).map(|role| role.member_of).unwrap_or_default();
            next.extend(of.into_iter().filter(|of| roles.insert(of.clone())));
        }
        Self { name: name.to_owned(), roles }
    }

    /// Whether it is a role, or a member of it.
    pub(crate) fn is(&self, role: &str) -> bool {
        self.roles.contains(role)
    }

    /// Whether it owns an object.
    pub(crate) fn owns(&self, version: &DatabaseVersion, object: &Owned) -> bool {
        ObjectRights::for_object(version, object).owner.is_some_and(|owner| self.is(&owner))
    }

    /// Whether it has a right, as the owner or by a grant to one of its roles.
    pub(crate) fn has(&self, version: &DatabaseVersion, object: &Owned, right: Right) -> bool {
        let of_all = match right {
            Right::Select => self.is(READ_ALL),
            Right::Insert | Right::Update | Right::Delete => self.is(WRITE_ALL),
            Right::Usage => {
                matches!(object, Owned::Schema(_)) && (self.is(READ_ALL) || self.is(WRITE_ALL))
            }
            Right::Truncate | Right::References | Right::Create => false,
        };
        let rights = ObjectRights::for_object(version, object);
        let granted =
            |role: &String| rights.grants.get(role).is_some_and(|of| of.contains_key(&right));
        of_all
            || rights.owner.as_ref().is_some_and(|owner| self.is(owner))
            || self.roles.iter().any(granted)
    }

    /// Whether it may grant a right.
    pub(crate) fn may_grant(
        &self,
        version: &DatabaseVersion,
        object: &Owned,
        right: Right,
    ) -> bool {
        let rights = ObjectRights::for_object(version, object);
        let may = |role: &String| {
            rights.grants.get(role).and_then(|of| of.get(&right)).is_some_and(|may| *may)
        };
        self.owns(version, object) || self.roles.iter().any(may)
    }

    /// Refuses a statement if the user lacks a right on the object or, for a relation, on its schema.
    pub(crate) fn check(
        &self,
        version: &DatabaseVersion,
        object: &Owned,
        right: Right,
    ) -> Result<()> {
        if let Owned::Relation(name) = object {
            let schema = Owned::Schema(name.schema.to_string());
            if !self.has(version, &schema, Right::Usage) {
                return Err(denied(version, &schema));
            }
        }
        match self.has(version, object, right) {
            true => Ok(()),
            false => Err(denied(version, object)),
        }
    }
}

/// The error for a missing right.
pub(crate) fn denied(version: &DatabaseVersion, object: &Owned) -> DataFusionError {
    let message = format!("permission denied for {}", object.named(version));
    SqlState::INSUFFICIENT_PRIVILEGE.error(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_survive_a_round_trip() {
        let mut rights =
            ObjectRights { owner: Some("a%0A%n\n\r \"x\"".into()), ..Default::default() };
        rights.grants.insert(
            "b o\\b".into(),
            [(Right::Select, true), (Right::Insert, false), (Right::Create, true)].into(),
        );
        rights.grants.insert(PUBLIC.into(), [(Right::Usage, false)].into());
        assert_eq!(ObjectRights::parse(&rights.to_string()), rights);
        assert_eq!(ObjectRights::parse(""), ObjectRights::default());
    }

    #[test]
    fn objects_are_found_by_the_names_of_their_entries() {
        for object in [
            Owned::Schema("a".into()),
            Owned::Schema("a\".\"b".into()),
            Owned::Relation(RelationName::new("a", "b")),
            Owned::Relation(RelationName::new("a\"", "\".\"b")),
            Owned::Relation(RelationName::new("", "")),
        ] {
            assert_eq!(Owned::of_entry(&object.entry().name), Some(object));
        }
        for text in ["", "a", "\"a", "\"a\".", "\"a\".\"b\".\"c\""] {
            assert_eq!(Owned::of_entry(text), None, "{text}");
        }
    }
}
