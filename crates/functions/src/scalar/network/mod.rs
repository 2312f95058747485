//! Addresses of networks: INET, CIDR and MACADDR, which are texts in the form that PostgreSQL prints.
//!
//! | file | contents |
//! |---|---|
//! | `address` | addresses of hosts and networks |
//! | `hardware` | MAC addresses |
//! | `functions` | casts, functions and operators |

mod address;
mod functions;
mod hardware;
#[cfg(test)]
mod tests;

use address::{Address, Invalid};
use hardware::HardwareAddress;

use crate::failure::FunctionFailure;

pub(super) use functions::ENTRIES;

/// A type of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkType {
    /// A host, which may have the bits of its network.
    Inet,
    /// A network.
    Cidr,
    /// A hardware address.
    Macaddr,
}

impl NetworkType {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inet => "inet",
            Self::Cidr => "cidr",
            Self::Macaddr => "macaddr",
        }
    }

    /// Returns the text of a value as PostgreSQL prints it.
    ///
    /// # Errors
    /// If a text is not a value of the type.
    pub fn canonical(self, text: &str) -> Result<String, FunctionFailure> {
        let invalid = || FunctionFailure {
            state: "22P02",
            message: format!("invalid input syntax for type {}: \"{text}\"", self.name()),
        };
        match self {
            Self::Inet => Address::host(text).map(|host| host.to_string()).ok_or_else(invalid),
            Self::Cidr => match Address::network(text) {
                Ok(network) => Ok(network.with_all_bits().to_string()),
                Err(Invalid::Syntax) => Err(invalid()),
                Err(Invalid::HostBits) => Err(FunctionFailure {
                    state: "22P02",
                    message: format!(
                        "invalid cidr value: \"{text}\": value has bits set to right of mask"
                    ),
                }),
            },
            Self::Macaddr => {
                HardwareAddress::parse(text).map(|address| address.to_string()).ok_or_else(invalid)
            }
        }
    }

    /// Returns PostgreSQL's binary form of a value; None if the text is not one.
    pub fn to_binary(self, text: &str) -> Option<Vec<u8>> {
        if self == Self::Macaddr {
            return HardwareAddress::parse(text).map(|address| address.0.to_vec());
        }
        let address = Address::host(text).or_else(|| Address::network(text).ok())?;
        let family = if address.family() == 6 { 3 } else { 2 };
        let octets = address.octets();
        let is_cidr = u8::from(self == Self::Cidr);
        let mut bytes = vec![family, address.bits(), is_cidr, octets.len() as u8];
        bytes.extend_from_slice(octets);
        Some(bytes)
    }

    /// Returns the text of a value in PostgreSQL's binary form; None if it is not one.
    pub fn from_binary(self, bytes: &[u8]) -> Option<String> {
        if self == Self::Macaddr {
            return Some(HardwareAddress(bytes.try_into().ok()?).to_string());
        }
        let [family, bits, _, length, octets @ ..] = bytes else { return None };
        let is_v6 = *family == 3;
        if !matches!(family, 2 | 3)
            || usize::from(*length) != octets.len()
            || is_v6 != (*length == 16)
        {
            return None;
        }
        let address = Address::from_octets(octets, *bits)?;
        match self {
            Self::Cidr if address.masked(*bits) != address => None,
            Self::Cidr => Some(address.with_all_bits().to_string()),
            _ => Some(address.to_string()),
        }
    }
}
