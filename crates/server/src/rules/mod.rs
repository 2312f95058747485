//! Login rules, as in PostgreSQL's `pg_hba.conf`: who may log in from where, by which method.
//!
//! ```toml
//! [[login]]                            # users of this machine, over the Unix socket, as roles of their names
//! from = ["local"]
//! method = "peer"
//!
//! [[login]]                            # roles that are in the group, from the office, with TLS
//! from = ["10.1.0.0/16", "2001:db8::/32"]
//! roles = ["+staff"]
//! tls = true
//! method = "scram"
//! ```
//!
//! The first rule that matches decides; a client without a matching rule is refused. All protocols ask
//! [`login_method`]: PostgreSQL's, the console and Flight SQL.

mod range;
mod read;

use std::collections::BTreeSet;
use std::net::IpAddr;

use atoll_formats::FormatError;
use atoll_sql::Database;

use crate::wire::ErrorFields;
use range::AddressRange;

/// Login rules, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginRules {
    /// The rules' file, for messages.
    file: String,
    rules: Vec<LoginRule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LoginRule {
    /// The rule's position in the file.
    line: usize,
    from: Vec<FromPattern>,
    roles: Vec<RolePattern>,
    /// Only with TLS, only without, or both (None).
    tls: Option<bool>,
    /// The login method; None refuses the log-in.
    method: Option<LoginMethod>,
}

/// The origin of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FromPattern {
    Anywhere,
    Local,
    Range(AddressRange),
}

/// The roles that clients log in as.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RolePattern {
    All,
    Named(String),
    /// A role and its direct and indirect members.
    MembersOf(String),
}

/// How a client proves its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginMethod {
    /// By its password.
    Password,
    /// By the operating system's user at the other end of a Unix socket, which must have the role's name.
    Peer,
    /// By peer if the names match, otherwise as without rules.
    PeerFirst,
    /// Without proof: the client has all rights.
    Trust,
}

/// A client that attempts to log in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoginAttempt<'a> {
    pub(crate) role: &'a str,
    pub(crate) from: ClientOrigin,
    pub(crate) is_encrypted: bool,
}

/// A client's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientOrigin {
    /// On this machine, over the Unix socket.
    Local,
    Address(IpAddr),
}

/// The login method for a client, or the error if a rule refuses it. Only clients over the Unix socket get
/// [`LoginMethod::Peer`] or [`LoginMethod::PeerFirst`].
pub(crate) fn login_method(
    rules: Option<&LoginRules>,
    trusts_all: bool,
    database: &Database,
    attempt: &LoginAttempt<'_>,
) -> Result<LoginMethod, ErrorFields> {
    let Some(rules) = rules else {
        return Ok(match attempt.from {
            ClientOrigin::Local => LoginMethod::PeerFirst,
            ClientOrigin::Address(_) if trusts_all => LoginMethod::Trust,
            ClientOrigin::Address(_) => LoginMethod::Password,
        });
    };
    let is_member = |group: &str| is_member(database, attempt.role, group);
    match rules.first_match(attempt, is_member).map(|rule| rule.method) {
        Some(Some(method)) => Ok(method),
        Some(None) => Err(refusal("login rule rejects connection for", attempt)),
        None => Err(refusal("no login rule for", attempt)),
    }
}

/// A refusal in PostgreSQL's words.
fn refusal(what: &str, attempt: &LoginAttempt<'_>) -> ErrorFields {
    let host = match attempt.from {
        ClientOrigin::Local => "[local]".to_owned(),
        ClientOrigin::Address(address) => address.to_canonical().to_string(),
    };
    let encryption = if attempt.is_encrypted { "TLS encryption" } else { "no encryption" };
    let role = attempt.role;
    ErrorFields::fatal("28000", format!("{what} host \"{host}\", user \"{role}\", {encryption}"))
}

/// Whether a role is the group or a direct or indirect member.
fn is_member(database: &Database, role: &str, group: &str) -> bool {
    let mut seen = BTreeSet::from([role.to_owned()]);
    let mut waiting = vec![role.to_owned()];
    while let Some(name) = waiting.pop() {
        if name == group {
            return true;
        }
        let of = database.role(&name).map(|role| role.member_of).unwrap_or_default();
        waiting.extend(of.into_iter().filter(|of| seen.insert(of.clone())));
    }
    false
}

impl LoginRules {
    /// The number of rules.
    pub fn count(&self) -> usize {
        self.rules.len()
    }

    /// Refuses rules that trust clients if the server does not.
    pub(crate) fn check(&self, trusts_all: bool) -> Result<(), FormatError> {
        let trusting = self.rules.iter().find(|rule| rule.method == Some(LoginMethod::Trust));
        match trusting.filter(|_| !trusts_all) {
            None => Ok(()),
            Some(rule) => Err(FormatError {
                file: self.file.clone(),
                line: Some(rule.line),
                found: "a rule with method = \"trust\", which admits clients without a password"
                    .into(),
                expected: "\"scram\", or a server on loopback with insecure_no_password = true"
                    .into(),
            }),
        }
    }

    fn first_match(
        &self,
        attempt: &LoginAttempt<'_>,
        is_member: impl Fn(&str) -> bool,
    ) -> Option<&LoginRule> {
        self.rules.iter().find(|rule| rule.matches(attempt, &is_member))
    }
}

impl LoginRule {
    fn matches(&self, attempt: &LoginAttempt<'_>, is_member: impl Fn(&str) -> bool) -> bool {
        self.tls.is_none_or(|tls| tls == attempt.is_encrypted)
            && self.from.iter().any(|from| from.matches(attempt.from))
            && self.roles.iter().any(|roles| match roles {
                RolePattern::All => true,
                RolePattern::Named(name) => name == attempt.role,
                RolePattern::MembersOf(group) => is_member(group),
            })
    }
}

impl FromPattern {
    fn matches(&self, from: ClientOrigin) -> bool {
        match (self, from) {
            (Self::Anywhere, _) | (Self::Local, ClientOrigin::Local) => true,
            (Self::Range(range), ClientOrigin::Address(address)) => range.contains(address),
            (Self::Local, ClientOrigin::Address(_)) | (Self::Range(_), ClientOrigin::Local) => {
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_formats::toml::reader::read_document;

    fn rules(text: &str) -> LoginRules {
        let rules = read_document(text, "atoll.toml", |top| LoginRules::read(&top));
        rules.expect("rules").expect("some rules")
    }

    fn method(
        rules: &LoginRules,
        role: &str,
        from: &str,
        is_encrypted: bool,
    ) -> Option<Option<LoginMethod>> {
        let from = match from {
            "local" => ClientOrigin::Local,
            address => ClientOrigin::Address(address.parse().expect("an address")),
        };
        let attempt = LoginAttempt { role, from, is_encrypted };
        let is_member = |group: &str| group == "staff" && role == "ann";
        rules.first_match(&attempt, is_member).map(|rule| rule.method)
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules = rules(
            "[[login]]\nfrom = ['local']\nmethod = 'peer'\n\
             [[login]]\nfrom = ['10.1.0.9']\nmethod = 'reject'\n\
             [[login]]\nfrom = ['10.1.0.0/16', '2001:db8::/32']\nroles = ['+staff', 'bob']\ntls = true\n\
             method = 'scram'\n\
             [[login]]\nfrom = ['127.0.0.1', '::1']\ntls = 'any'\nmethod = 'scram'\n",
        );
        let (scram, reject) = (Some(Some(LoginMethod::Password)), Some(None));
        for (role, from, is_encrypted, decided) in [
            ("ann", "local", false, Some(Some(LoginMethod::Peer))),
            ("ann", "10.1.2.3", true, scram),
            ("bob", "::ffff:10.1.2.3", true, scram),
            ("bob", "2001:db8::7", true, scram),
            ("ann", "10.1.2.3", false, None),
            ("eve", "10.1.2.3", true, None),
            ("ann", "10.1.0.9", true, reject),
            ("ann", "10.2.0.0", true, None),
            ("eve", "127.0.0.1", false, scram),
            ("eve", "::1", true, scram),
        ] {
            assert_eq!(method(&rules, role, from, is_encrypted), decided, "{role} {from}");
        }
    }

    #[test]
    fn trust_needs_a_server_that_trusts() {
        let rules = rules("\n[[login]]\nfrom = ['127.0.0.1']\nmethod = 'trust'\n");
        assert_eq!(rules.check(true), Ok(()));
        let error = rules.check(false).unwrap_err();
        assert_eq!(error.line, Some(2));
        assert!(error.to_string().contains("insecure_no_password"), "{error}");
    }
}
