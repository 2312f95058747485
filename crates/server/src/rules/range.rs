//! Address ranges such as `10.1.0.0/16` (CIDR, RFC 4632).

use std::net::IpAddr;

/// Addresses that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddressRange {
    first: IpAddr,
    /// The length of the prefix.
    bits: u32,
}

impl AddressRange {
    /// Parses `address/bits` or a single address; an error says what was expected.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let expected =
            "an address such as 10.0.0.7, or a range such as 10.0.0.0/8 or 2001:db8::/32";
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(|_| expected.to_owned())?;
        let most = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).ok().filter(|bits| *bits <= most);
        let bits = bits.ok_or_else(|| format!("at most {most} bits after the slash"))?;
        let least = masked(first, bits);
        if least != first {
            return Err(format!("{least}/{bits}, the start of the range, or {first}/{most}"));
        }
        Ok(Self { first, bits })
    }

    /// Whether the range contains an address. An IPv4-mapped IPv6 address counts as IPv4.
    pub(super) fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && masked(address, self.bits) == self.first
    }
}

/// Clears all bits of the address after the first ones.
fn masked(address: IpAddr, bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_contains_addresses_with_its_prefix() {
        for (range, inside, outside) in [
            ("10.1.0.0/16", "10.1.255.255", "10.2.0.0"),
            ("0.0.0.0/0", "203.0.113.7", "::1"),
            ("127.0.0.1", "::ffff:127.0.0.1", "127.0.0.2"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::/0", "::1", "127.0.0.1"),
        ] {
            let parsed = AddressRange::parse(range).expect(range);
            assert!(parsed.contains(inside.parse().expect("an address")), "{range}");
            assert!(!parsed.contains(outside.parse().expect("an address")), "{range}");
        }
    }

    #[test]
    fn errors_say_what_range_is_expected() {
        for (text, expected) in [
            ("", "10.0.0.0/8"),
            ("office", "10.0.0.0/8"),
            ("10.0.0.0/33", "at most 32"),
            ("::/129", "at most 128"),
            ("10.0.0.0/-1", "at most 32"),
            ("10.0.0.0/", "at most 32"),
            ("10.0.0.1/8", "10.0.0.0/8, the start of the range, or 10.0.0.1/32"),
        ] {
            let error = AddressRange::parse(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
