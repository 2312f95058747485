//! Addresses of hosts and networks, as PostgreSQL's INET and CIDR read and print them.

use std::fmt;
use std::net::Ipv6Addr;

/// The bytes of an address, and the number of bits of its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    bytes: [u8; 16],
    is_v6: bool,
    bits: u8,
}

/// Why a text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Invalid {
    Syntax,
    /// Bits of the host are set.
    HostBits,
}

impl Address {
    /// Reads an INET: an address, and optionally a number of bits.
    pub(super) fn host(text: &str) -> Option<Self> {
        let (address, bits) = parts(text)?;
        if address.contains(':') {
            return Self::v6(address, bits);
        }
        let octets = decimals(address)?;
        let bits = match (bits, octets.len()) {
            (None, 4) => 32,
            (None, _) => return None,
            (Some(bits), count) => {
                let bits = bits.parse::<u8>().ok().filter(|bits| *bits <= 32)?;
                (usize::from(bits / 8) <= count).then_some(bits)?
            }
        };
        Some(Self::v4(&octets, bits))
    }

    /// Reads a CIDR, whose bits default to those of its class and of its octets.
    pub(super) fn network(text: &str) -> Result<Self, Invalid> {
        let found = Self::any_network(text).ok_or(Invalid::Syntax)?;
        if found.masked(found.bits) == found { Ok(found) } else { Err(Invalid::HostBits) }
    }

    fn any_network(text: &str) -> Option<Self> {
        let (address, bits) = parts(text)?;
        if address.contains(':') {
            return Self::v6(address, bits);
        }
        let octets = match address.strip_prefix("0x").or_else(|| address.strip_prefix("0X")) {
            Some(digits) => hexadecimals(digits)?,
            None => decimals(address)?,
        };
        let first = octets.first()?;
        let bits = match bits {
            Some(bits) => bits.parse::<u8>().ok().filter(|bits| *bits <= 32)?,
            None => {
                let of_class = match first {
                    240.. => 32,
                    224.. => 8,
                    192.. => 24,
                    128.. => 16,
                    _ => 8,
                };
                match of_class.max(octets.len() as u8 * 8) {
                    8 if *first == 224 => 4,
                    bits => bits,
                }
            }
        };
        Some(Self::v4(&octets, bits))
    }

    fn v4(octets: &[u8], bits: u8) -> Self {
        let mut bytes = [0; 16];
        bytes[..octets.len()].copy_from_slice(octets);
        Self { bytes, is_v6: false, bits }
    }

    fn v6(address: &str, bits: Option<&str>) -> Option<Self> {
        let bytes = address.parse::<Ipv6Addr>().ok()?.octets();
        let bits = match bits {
            None => 128,
            Some(digits) if digits.len() > 1 && digits.starts_with('0') => return None,
            Some(digits) => digits.parse().ok().filter(|bits| *bits <= 128)?,
        };
        Some(Self { bytes, is_v6: true, bits })
    }

    pub(super) fn bits(&self) -> u8 {
        self.bits
    }

    /// The number of bits of its kind of address.
    pub(super) fn bits_max(&self) -> u8 {
        if self.is_v6 { 128 } else { 32 }
    }

    pub(super) fn family(&self) -> i64 {
        if self.is_v6 { 6 } else { 4 }
    }

    /// Returns its bytes: 4 or 16.
    pub(super) fn octets(&self) -> &[u8] {
        &self.bytes[..usize::from(self.bits_max() / 8)]
    }

    /// Returns an address with these bytes and bits; None if the numbers do not fit.
    pub(super) fn from_octets(octets: &[u8], bits: u8) -> Option<Self> {
        let (mut bytes, is_v6) = ([0; 16], octets.len() == 16);
        if !is_v6 && octets.len() != 4 || usize::from(bits) > octets.len() * 8 {
            return None;
        }
        bytes[..octets.len()].copy_from_slice(octets);
        Some(Self { bytes, is_v6, bits })
    }

    /// Returns the same address with another number of bits; None if it has not as many.
    pub(super) fn with_bits(mut self, bits: i64) -> Option<Self> {
        self.bits = match bits {
            -1 => self.bits_max(),
            bits => u8::try_from(bits).ok().filter(|bits| *bits <= self.bits_max())?,
        };
        Some(self)
    }

    fn word(&self) -> u128 {
        u128::from_be_bytes(self.bytes)
    }

    fn with_word(self, word: u128) -> Self {
        Self { bytes: word.to_be_bytes(), ..self }
    }

    /// The bits after so many, up to the length of the address.
    fn tail(&self, bits: u8) -> u128 {
        let after = |bits: u8| u128::MAX.checked_shr(bits.into()).unwrap_or(0);
        after(bits) & !after(self.bits_max())
    }

    /// Returns the address with the bits after so many cleared, as a network of that many.
    pub(super) fn masked(self, bits: u8) -> Self {
        Self { bits, ..self.with_word(self.word() & !self.tail(bits)) }
    }

    /// Returns the last address of its network.
    pub(super) fn broadcast(self) -> Self {
        self.with_word(self.word() | self.tail(self.bits))
    }

    /// Returns the mask of its network.
    pub(super) fn netmask(self) -> Self {
        let word = !self.tail(self.bits) & self.tail(0);
        Self { bits: self.bits_max(), ..self.with_word(word) }
    }

    /// Returns the mask of its hosts.
    pub(super) fn hostmask(self) -> Self {
        Self { bits: self.bits_max(), ..self.with_word(self.tail(self.bits)) }
    }

    /// Whether both are of one family and share this many bits.
    fn shares(&self, other: &Self, bits: u8) -> bool {
        let first = !self.tail(bits);
        self.is_v6 == other.is_v6 && self.word() & first == other.word() & first
    }

    /// Whether the network lies within another one, or is the same.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.bits >= other.bits && self.shares(other, other.bits)
    }

    /// Whether one network contains the other.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.shares(other, self.bits.min(other.bits))
    }

    pub(super) fn is_same_family(&self, other: &Self) -> bool {
        self.is_v6 == other.is_v6
    }

    /// Returns the smallest network that contains both, which have one family.
    pub(super) fn merged(self, other: &Self) -> Self {
        let differing = (self.word() ^ other.word()).leading_zeros() as u8;
        self.masked(differing.min(self.bits).min(other.bits))
    }

    /// Returns the address so many later; None if there is none.
    pub(super) fn plus(self, count: i64) -> Option<Self> {
        let shift = 128 - u32::from(self.bits_max());
        let word = (self.word() >> shift).checked_add_signed(count.into())?;
        let shifted = word << shift;
        (shifted >> shift == word).then(|| self.with_word(shifted))
    }

    /// Returns the number of addresses from another one to this; None if BIGINT has no such number.
    pub(super) fn minus(&self, other: &Self) -> Option<i64> {
        let shift = 128 - u32::from(self.bits_max());
        let (left, right) = (self.word() >> shift, other.word() >> shift);
        match left >= right {
            true => i64::try_from(left - right).ok(),
            false => 0_i64.checked_sub_unsigned(u64::try_from(right - left).ok()?),
        }
    }

    /// Writes bytes in the order of PostgreSQL: by family, network, bits and host.
    pub(super) fn write_order(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_v6));
        // Two bits for each of the network, so that a shorter one comes first.
        let (mut byte, mut filled) = (0_u8, 0);
        for at in 0..self.bits {
            let bit = (self.word() >> (127 - at)) & 1;
            byte = byte << 2 | (bit as u8 + 1);
            filled += 1;
            if filled == 4 {
                out.push(byte);
                (byte, filled) = (0, 0);
            }
        }
        out.push(byte.checked_shl(2 * (4 - filled)).unwrap_or(0));
        out.extend_from_slice(self.octets());
    }

    /// Writes the address alone.
    fn write_address(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_v6 {
            let [a, b, c, d, ..] = self.bytes;
            return write!(f, "{a}.{b}.{c}.{d}");
        }
        let words = Ipv6Addr::from(self.bytes).segments();
        let zeros = longest_zeros(&words);
        let ends_as_v4 = zeros.0 == 0 && (zeros.1 == 6 || zeros.1 == 5 && words[5] == 0xffff);
        let mut at = 0;
        while at < 8 {
            if zeros.1 > 0 && at == zeros.0 {
                f.write_str("::")?;
                at += zeros.1;
                continue;
            }
            if at > 0 && at != zeros.0 + zeros.1 {
                f.write_str(":")?;
            }
            if ends_as_v4 && at == 6 {
                let [.., a, b, c, d] = self.bytes;
                return write!(f, "{a}.{b}.{c}.{d}");
            }
            write!(f, "{:x}", words[at])?;
            at += 1;
        }
        Ok(())
    }

    /// The address without bits.
    pub(super) fn without_bits(&self) -> impl fmt::Display + '_ {
        Shown { address: self, with_bits: false }
    }

    /// The address with its bits.
    pub(super) fn with_all_bits(&self) -> impl fmt::Display + '_ {
        Shown { address: self, with_bits: true }
    }
}

/// INET's text: without bits if they are all.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown { address: self, with_bits: self.bits < self.bits_max() }.fmt(f)
    }
}

struct Shown<'a> {
    address: &'a Address,
    with_bits: bool,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.write_address(f)?;
        if self.with_bits { write!(f, "/{}", self.address.bits) } else { Ok(()) }
    }
}

/// The start and length of the first longest run of zeros; 0 if none has two words.
fn longest_zeros(words: &[u16; 8]) -> (usize, usize) {
    let mut best = (0, 0);
    let mut at = 0;
    while at < 8 {
        let length = words[at..].iter().take_while(|word| **word == 0).count();
        if length > best.1 && length > 1 {
            best = (at, length);
        }
        at += length + 1;
    }
    best
}

/// An address and the digits after its slash.
fn parts(text: &str) -> Option<(&str, Option<&str>)> {
    match text.split_once('/') {
        None => Some((text, None)),
        Some((address, bits)) => {
            let is_number = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then_some((address, Some(bits)))
        }
    }
}

/// One to four octets.
fn decimals(text: &str) -> Option<Vec<u8>> {
    let octets = text.split('.').map(|octet| {
        let is_number = !octet.is_empty() && octet.bytes().all(|byte| byte.is_ascii_digit());
        octet.parse().ok().filter(|_| is_number)
    });
    octets.collect::<Option<Vec<u8>>>().filter(|octets| octets.len() <= 4)
}

fn hexadecimals(digits: &str) -> Option<Vec<u8>> {
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|it| it.is_ascii_hexdigit()) {
        return None;
    }
    let pair = |pair: &[u8]| {
        let digits = std::str::from_utf8(pair).ok()?;
        let value = u8::from_str_radix(digits, 16).ok()?;
        // A single digit at the end is the upper one.
        Some(if pair.len() == 1 { value << 4 } else { value })
    };
    digits.as_bytes().chunks(2).map(pair).collect()
}
