//! The verifier of a SCRAM-SHA-256 password (RFC 5802, RFC 7677), in PostgreSQL's format.

use std::fmt;
use std::str::FromStr;

use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use sha2::{Digest, Sha256};

use atoll_sql_common::error::SqlState;

/// The name of the method, at the start of the text.
const METHOD: &str = "SCRAM-SHA-256";

/// Number of hash iterations: PostgreSQL's default.
const ITERATIONS: u32 = 4096;

/// Bytes of a new salt.
const SALT: usize = 16;

/// A hash.
type Hash = [u8; 32];

/// A password verifier. The password cannot be derived from it, and it is of no use to log in with.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramVerifier {
    /// Mixed into the password.
    pub salt: Vec<u8>,
    /// Number of hash iterations.
    pub iterations: u32,
    /// The hash of the key that a client proves to have.
    pub stored_key: Hash,
    /// The key by which the server proves to know it.
    pub server_key: Hash,
}

impl ScramVerifier {
    /// The verifier of a password; a text that is already a verifier is used unchanged, as in PostgreSQL.
    pub(crate) fn of_password(password: &str) -> Result<Self> {
        if password.starts_with(METHOD) {
            return password.parse();
        }
        if password.is_empty() {
            return Err(SqlState::INVALID_PASSWORD.error("the password must not be empty"));
        }
        if !password.is_ascii() {
            return Err(SqlState::INVALID_PASSWORD.error(
                "a password with non-ASCII characters has to be prepared by the client; set it with \\password in psql",
            ));
        }
        let mut salt = vec![0; SALT];
        getrandom::fill(&mut salt)
            .map_err(|error| exec_datafusion_err!("cannot generate a salt: {error}"))?;
        Ok(Self::new(password.as_bytes(), salt, ITERATIONS))
    }

    /// Whether the password is correct, in constant time.
    pub fn matches(&self, password: &str) -> bool {
        let of = Self::new(password.as_bytes(), self.salt.clone(), self.iterations);
        let pairs = of.stored_key.iter().zip(&self.stored_key);
        pairs.fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
    }

    fn new(password: &[u8], salt: Vec<u8>, iterations: u32) -> Self {
        let salted = salted(password, &salt, iterations);
        let stored_key = Sha256::digest(hmac(&salted, b"Client Key")).into();
        let server_key = hmac(&salted, b"Server Key");
        Self { salt, iterations, stored_key, server_key }
    }
}

impl fmt::Display for ScramVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { salt, iterations, stored_key, server_key } = self;
        let (salt, stored) = (base64(salt), base64(stored_key));
        write!(f, "{METHOD}${iterations}:{salt}${stored}:{}", base64(server_key))
    }
}

impl fmt::Debug for ScramVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramVerifier")
    }
}

impl FromStr for ScramVerifier {
    type Err = DataFusionError;

    fn from_str(text: &str) -> Result<Self> {
        let read = || {
            let mut parts = text.split('$');
            let (method, hashed, keys) = (parts.next()?, parts.next()?, parts.next()?);
            let (iterations, salt) = hashed.split_once(':')?;
            let (stored, server) = keys.split_once(':')?;
            let is_one = method == METHOD && parts.next().is_none();
            is_one.then_some(Self {
                salt: unbase64(salt)?,
                iterations: iterations.parse().ok().filter(|it| *it > 0)?,
                stored_key: unbase64(stored)?.try_into().ok()?,
                server_key: unbase64(server)?.try_into().ok()?,
            })
        };
        read().ok_or_else(|| {
            SqlState::INVALID_PASSWORD
                .error("the password begins like a SCRAM-SHA-256 verifier but is not a valid one")
        })
    }
}

/// The hash of a message with a key (RFC 2104).
fn hmac(key: &[u8], message: &[u8]) -> Hash {
    let mut block = [0; 64];
    match key.len() > block.len() {
        true => block[..32].copy_from_slice(&Sha256::digest(key)),
        false => block[..key.len()].copy_from_slice(key),
    }
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message);
    let outer = Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c));
    outer.chain_update(inner.finalize()).finalize().into()
}

/// The password, hashed many times (PBKDF2, RFC 8018, for one block).
fn salted(password: &[u8], salt: &[u8], iterations: u32) -> Hash {
    let mut next = hmac(password, &[salt, &1_u32.to_be_bytes()].concat());
    let mut all = next;
    for _ in 1..iterations {
        next = hmac(password, &next);
        all.iter_mut().zip(next).for_each(|(all, next)| *all ^= next);
    }
    all
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let value = group.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
        let value = value << (8 * (3 - group.len()));
        for digit in 0..4 {
            let at = (value >> (18 - 6 * digit)) & 63;
            text.push(if digit <= group.len() { char::from(DIGITS[at as usize]) } else { '=' });
        }
    }
    text
}

fn unbase64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in digits.as_bytes().chunks(4) {
        let mut value = 0_u32;
        for digit in group {
            let at = DIGITS.iter().position(|it| it == digit)?;
            value = value << 6 | at as u32;
        }
        value <<= 6 * (4 - group.len());
        bytes.extend_from_slice(&value.to_be_bytes()[1..group.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, as PostgreSQL keeps it.
    #[test]
    fn a_verifier_matches_postgresql() {
        let salt = unbase64("W22ZaJ0SNY7soEsUEjb6gQ==").expect("it is base64");
        let verifier = ScramVerifier::new(b"pencil", salt, 4096);
        let text = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$\
                    WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
        assert_eq!(verifier.to_string(), text);
        assert_eq!(text.parse::<ScramVerifier>().expect("it is one"), verifier);
        assert!(!format!("{verifier:?}").contains("WG5d"));
        assert!(verifier.matches("pencil"));
        assert!(!verifier.matches("pencils") && !verifier.matches(""));
    }

    #[test]
    fn texts_that_are_no_verifiers_are_refused() {
        for text in
            ["SCRAM-SHA-256$", "SCRAM-SHA-256$0:AAAA$AAAA:AAAA", "SCRAM-SHA-256$4096:AAAA$A:A$"]
        {
            assert!(ScramVerifier::of_password(text).is_err(), "{text}");
        }
    }
}
