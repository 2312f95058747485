//! A domain: a type with constraints.

use std::fmt;
use std::sync::Arc;

use datafusion::common::utils::quote_identifier;

/// A constraint of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainCheck {
    /// The name.
    pub name: Arc<str>,
    /// The condition, over VALUE.
    pub sql: Arc<str>,
}

/// A domain. Values are those of its base type; columns have a CHECK constraint that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainType {
    /// The schema.
    pub schema: Arc<str>,
    /// The name.
    pub name: Arc<str>,
    /// The OID.
    pub oid: u32,
    /// The base type in SQL.
    pub base: Arc<str>,
    /// Whether NULL is not a value.
    pub not_null: bool,
    /// The default of its columns.
    pub default: Option<Arc<str>>,
    /// The constraints.
    pub checks: Vec<DomainCheck>,
}

impl DomainType {
    /// Returns the name with its schema.
    pub fn full_name(&self) -> String {
        format!("{}.{}", quote_identifier(&self.schema), quote_identifier(&self.name))
    }

    /// Parses a stored domain: the OID, then words, each followed by a text with the number of its bytes.
    pub fn parse(schema: Arc<str>, name: Arc<str>, stored: &str) -> Option<Self> {
        let (oid, mut rest) = stored.strip_prefix("domain ")?.split_once('\n')?;
        let oid = oid.parse().ok()?;
        let (base, not_null, default, checks) = ("".into(), false, None, Vec::new());
        let mut domain = Self { schema, name, oid, base, not_null, default, checks };
        let mut named: Option<Arc<str>> = None;
        while !rest.is_empty() {
            let (word, after) = rest.split_once(' ')?;
            let (bytes, after) = after.split_once(':')?;
            let (text, after) = after.split_at_checked(bytes.parse().ok()?)?;
            let text: Arc<str> = text.into();
            match word {
                "base" => domain.base = text,
                "not_null" => domain.not_null = true,
                "default" => domain.default = Some(text),
                "name" => named = Some(text),
                "check" => domain.checks.push(DomainCheck { name: named.take()?, sql: text }),
                _ => return None,
            }
            rest = after;
        }
        Some(domain)
    }

    /// Returns the statement that creates the domain.
    pub fn definition(&self) -> String {
        let mut sql = format!("CREATE DOMAIN {} AS {}", self.full_name(), self.base);
        if let Some(default) = &self.default {
            sql.push_str(&format!(" DEFAULT {default}"));
        }
        if self.not_null {
            sql.push_str(" NOT NULL");
        }
        for check in &self.checks {
            let name = quote_identifier(&check.name);
            sql.push_str(&format!(" CONSTRAINT {name} CHECK ({})", check.sql));
        }
        sql
    }

    /// Returns a name for an unnamed constraint: `positive_check`, with a number if it is taken.
    pub fn free_name(&self) -> String {
        let plain = format!("{}_check", self.name);
        let is_free = |name: &String| self.checks.iter().all(|check| *check.name != **name);
        let numbered = (1..).map(|number| format!("{plain}{number}"));
        let mut names = std::iter::once(plain.clone()).chain(numbered);
        names.find(is_free).unwrap_or(plain.clone())
    }
}

/// The text that is stored.
impl fmt::Display for DomainType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "domain {}", self.oid)?;
        write!(f, "base {}:{}", self.base.len(), self.base)?;
        if self.not_null {
            f.write_str("not_null 0:")?;
        }
        if let Some(default) = &self.default {
            write!(f, "default {}:{default}", default.len())?;
        }
        for DomainCheck { name, sql } in &self.checks {
            write!(f, "name {}:{name}check {}:{sql}", name.len(), sql.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_domain_is_read_as_it_was_written() {
        let check = DomainCheck { name: "d: 1".into(), sql: "VALUE > 0\n".into() };
        let domain = DomainType {
            schema: "public".into(),
            name: "d".into(),
            oid: 16_777_216,
            base: "DECIMAL(10, 2)".into(),
            not_null: true,
            default: Some("1 2:3".into()),
            checks: vec![check],
        };
        let read = DomainType::parse("public".into(), "d".into(), &domain.to_string());
        assert_eq!(read.as_ref(), Some(&domain));
        assert_eq!(domain.free_name(), "d_check");
        assert!(
            domain
                .definition()
                .ends_with("DEFAULT 1 2:3 NOT NULL CONSTRAINT \"d: 1\" CHECK (VALUE > 0\n)")
        );
        assert_eq!(DomainType::parse("a".into(), "b".into(), "domain 1\nbase 9:INT"), None);
    }
}
