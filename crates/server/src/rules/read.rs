//! Reads rules from a file's `[[login]]` tables; errors name the line.

use atoll_formats::FormatError;
use atoll_formats::toml::reader::{TomlItem, TomlTable};
use atoll_topology::nearest_name;

use super::range::AddressRange;
use super::{FromPattern, LoginMethod, LoginRule, LoginRules, RolePattern};

/// The key of the rules' tables.
const LOGIN: &str = "login";

/// The keys of a rule.
const KEYS: [&str; 4] = ["from", "roles", "tls", "method"];

/// Method names.
const METHODS: [(&str, Option<LoginMethod>); 4] = [
    ("scram", Some(LoginMethod::Password)),
    ("peer", Some(LoginMethod::Peer)),
    ("trust", Some(LoginMethod::Trust)),
    ("reject", None),
];

impl LoginRules {
    /// The rules of a document; None if it has none.
    ///
    /// # Errors
    /// Names the line of an invalid rule.
    pub fn read(top: &TomlTable<'_>) -> Result<Option<Self>, FormatError> {
        let rules = top.tables(LOGIN)?.iter().map(rule).collect::<Result<Vec<_>, _>>()?;
        let file = top.document.file.to_owned();
        Ok((!rules.is_empty()).then_some(Self { file, rules }))
    }
}

fn rule(table: &TomlTable<'_>) -> Result<LoginRule, FormatError> {
    table.keys(&KEYS)?;
    let names = || METHODS.map(|(name, _)| name).join(", ");
    let method = method(table.need("method", &format!("one of {}", names()))?, &names())?;
    let from = match table.get("from") {
        Some(item) => listed(item, "'local', 'all' and addresses", from)?,
        None => vec![FromPattern::Anywhere],
    };
    if method == Some(LoginMethod::Peer) && from != [FromPattern::Local] {
        let found = "a rule with method = \"peer\" and clients that are not over the Unix socket";
        return Err(table.fail(found, "from = [\"local\"]"));
    }
    let roles = match table.get("roles") {
        Some(item) => listed(item, "names of roles, 'all' and '+group'", role)?,
        None => vec![RolePattern::All],
    };
    let tls = table.get("tls").map_or(Ok(None), tls)?;
    Ok(LoginRule { line: table.line(), from, roles, tls, method })
}

/// A list of at least one item.
fn listed<T>(
    item: TomlItem<'_>,
    what: &str,
    read: fn(TomlItem<'_>) -> Result<T, FormatError>,
) -> Result<Vec<T>, FormatError> {
    let all = item.items(what)?.map(read).collect::<Result<Vec<_>, _>>()?;
    match all.is_empty() {
        true => Err(item.wrong(format!("at least one of {what}; omit the key for all"))),
        false => Ok(all),
    }
}

fn from(item: TomlItem<'_>) -> Result<FromPattern, FormatError> {
    match item.text()? {
        "local" => Ok(FromPattern::Local),
        "all" => Ok(FromPattern::Anywhere),
        text => {
            let range = AddressRange::parse(text).map(FromPattern::Range);
            range.map_err(|expected| item.wrong(format!("\"local\", \"all\", {expected}")))
        }
    }
}

fn role(item: TomlItem<'_>) -> Result<RolePattern, FormatError> {
    match item.text()? {
        "" | "+" => Err(item.wrong("the name of a role")),
        "all" => Ok(RolePattern::All),
        name => Ok(match name.strip_prefix('+') {
            Some(group) => RolePattern::MembersOf(group.to_owned()),
            None => RolePattern::Named(name.to_owned()),
        }),
    }
}

fn tls(item: TomlItem<'_>) -> Result<Option<bool>, FormatError> {
    match item.is_text() && item.text()? == "any" {
        true => Ok(None),
        false => item.flag().map(Some).map_err(|_| item.wrong("true, false or \"any\"")),
    }
}

fn method(item: TomlItem<'_>, names: &str) -> Result<Option<LoginMethod>, FormatError> {
    let text = item.text()?;
    let found = METHODS.into_iter().find(|(name, _)| *name == text).map(|(_, method)| method);
    found.ok_or_else(|| match nearest_name(text, METHODS.map(|(name, _)| name)) {
        Some(near) => item.wrong(format!("\"{near}\", or another of {names}")),
        None => item.wrong(format!("one of {names}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_formats::toml::reader::read_document;

    #[test]
    fn a_file_without_rules_returns_none() {
        for text in ["", "login = []\n"] {
            let rules = read_document(text, "x", |top| LoginRules::read(&top));
            assert_eq!(rules, Ok(None), "{text}");
        }
    }

    #[test]
    fn mistakes_are_named_by_file_and_line() {
        for (text, line, expected) in [
            ("[[login]]\nmethod = 'scram'\nform = ['local']", 3, "expected 'from'"),
            ("[[login]]\nfrom = ['local']", 1, "one of scram, peer"),
            ("[[login]]\nmethod = 'scam'", 2, "expected \"scram\""),
            ("[[login]]\nmethod = 1", 2, "a text"),
            ("[[login]]\nmethod = 'scram'\nfrom = 'local'", 3, "a list"),
            ("[[login]]\nmethod = 'scram'\nfrom = []", 3, "at least one"),
            ("[[login]]\nmethod = 'scram'\nfrom = [\n'10.0.0.1/8']", 4, "10.0.0.0/8"),
            ("[[login]]\nmethod = 'scram'\nroles = ['+']", 3, "name of a role"),
            ("[[login]]\nmethod = 'scram'\ntls = 'yes'", 3, "true, false or \"any\""),
            ("[[login]]\nmethod = 'scram'\ntls = 1", 3, "true, false or \"any\""),
            ("\n[[login]]\nmethod = 'peer'", 2, "from = [\"local\"]"),
            ("\n[[login]]\nmethod = 'peer'\nfrom = ['all']", 2, "from = [\"local\"]"),
            ("login = 7", 1, "a list"),
        ] {
            let error = read_document(text, "atoll.toml", |top| LoginRules::read(&top));
            let error = error.expect_err(text).to_string();
            assert!(error.starts_with(&format!("atoll.toml:{line}: ")), "{text}: {error}");
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
