//! Casts to the types of addresses, and their functions and operators.

use std::fmt::Display;

use datafusion::arrow::array::ArrayRef;
use datafusion::common::Result;

use super::NetworkType;
use super::address::Address;
use super::hardware::HardwareAddress;
use crate::scalar::call::{Call, put};
use crate::scalar::entry::{Arguments, Entry, Takes, bytes, flag, text, whole};
use crate::scalar::marks::mark_of;
use crate::scalar::text::texts::entry;

/// The address in an argument, an INET or a CIDR.
fn address(call: &Call, at: usize, row: usize) -> Result<Address> {
    let text = call.text(at).value(row);
    match Address::host(text).or_else(|| Address::network(text).ok()) {
        Some(address) => Ok(address),
        None => call.fails_as("22P02", format_args!("'{text}' is not an address")),
    }
}

/// A text as a value of the type; an INET as CIDR is its network.
fn checked(call: &Call, of: NetworkType, is_tried: bool) -> Result<ArrayRef> {
    let texts = call.text(0);
    let is_masked = of == NetworkType::Cidr && mark_of(&call.fields[0]) == Some("inet");
    call.texts(|row, out| {
        if is_masked {
            let address = address(call, 0, row)?;
            put(out, format_args!("{}", address.masked(address.bits()).with_all_bits()))?;
            return Ok(true);
        }
        match of.canonical(texts.value(row)) {
            Ok(text) => out.push_str(&text),
            Err(_) if is_tried => return Ok(false),
            Err(failure) => return Err(failure.into_datafusion()),
        }
        Ok(true)
    })
}

fn is_canonical(of: NetworkType, text: &str) -> bool {
    of.canonical(text).is_ok_and(|canonical| canonical == text)
}

/// The text of a result, which depends on the address alone.
fn shown<T: Display>(call: &Call, of: impl Fn(Address) -> T) -> Result<ArrayRef> {
    call.texts(|row, out| {
        put(out, format_args!("{}", of(address(call, 0, row)?)))?;
        Ok(true)
    })
}

fn related(call: &Call, holds: impl Fn(&Address, &Address) -> bool) -> Result<ArrayRef> {
    call.flags(|row| Ok(Some(holds(&address(call, 0, row)?, &address(call, 1, row)?))))
}

fn set_masklen(call: &Call) -> Result<ArrayRef> {
    let is_network = mark_of(&call.fields[0]) == Some("cidr");
    call.texts(|row, out| {
        let bits = call.whole(1).value(row);
        let Some(found) = address(call, 0, row)?.with_bits(bits) else {
            return call.fails_as("22023", format_args!("invalid mask length: {bits}"));
        };
        match is_network {
            true => put(out, format_args!("{}", found.masked(found.bits()).with_all_bits()))?,
            false => put(out, format_args!("{found}"))?,
        }
        Ok(true)
    })
}

fn merge(call: &Call) -> Result<ArrayRef> {
    call.texts(|row, out| {
        let (left, right) = (address(call, 0, row)?, address(call, 1, row)?);
        if !left.is_same_family(&right) {
            return call.fails_as("22023", "cannot merge addresses from different families");
        }
        put(out, format_args!("{}", left.merged(&right).with_all_bits()))?;
        Ok(true)
    })
}

fn plus(call: &Call) -> Result<ArrayRef> {
    call.texts(|row, out| match address(call, 0, row)?.plus(call.whole(1).value(row)) {
        Some(sum) => put(out, format_args!("{sum}")).map(|()| true),
        None => call.fails_as("22003", "result is out of range"),
    })
}

fn minus(call: &Call) -> Result<ArrayRef> {
    call.wholes(|row| {
        let (left, right) = (address(call, 0, row)?, address(call, 1, row)?);
        if !left.is_same_family(&right) {
            return call.fails_as("22023", "cannot subtract inet values of different sizes");
        }
        match left.minus(&right) {
            Some(count) => Ok(Some(count)),
            None => call.fails_as("22003", "result is out of range"),
        }
    })
}

fn order(call: &Call) -> Result<ArrayRef> {
    call.binaries(|row, out| {
        address(call, 0, row)?.write_order(out);
        Ok(true)
    })
}

fn trunc(call: &Call) -> Result<ArrayRef> {
    call.texts(|row, out| {
        let text = call.text(0).value(row);
        match HardwareAddress::parse(text) {
            Some(address) => put(out, format_args!("{}", address.truncated())).map(|()| true),
            None => call.fails_as("22P02", format_args!("'{text}' is not a MAC address")),
        }
    })
}

const ONE: &[Arguments] = &[Arguments::Are(&[Takes::Text])];
const ONE_OR_LIST: &[Arguments] =
    &[Arguments::Are(&[Takes::Text]), Arguments::Are(&[Takes::Texts])];
const TWO: &[Arguments] = &[Arguments::Are(&[Takes::Text, Takes::Text])];
const AND_NUMBER: &[Arguments] = &[Arguments::Are(&[Takes::Text, Takes::Whole])];
/// The function sees the type of the address.
const MARKED: &[Arguments] = &[Arguments::Are(&[Takes::Json])];
const MARKED_AND_NUMBER: &[Arguments] = &[Arguments::Are(&[Takes::Json, Takes::Whole])];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[&[
    entry!("inet_checked" [], "text", ONE, text, "A text as INET, the address of a host; the cast to INET.",
        "'2001:DB8::1/64'::INET = '2001:db8::1/64'", |call| checked(call, NetworkType::Inet, false)),
    entry!("try_inet_checked" [], "text", ONE, text, "The same, but NULL for an invalid address; TRY_CAST to INET.",
        "TRY_CAST('x' AS INET) IS NULL", |call| checked(call, NetworkType::Inet, true)),
    entry!("inet_valid" [], "text", ONE_OR_LIST, flag, "Whether a text is an INET as it is printed, or all texts of a list are.",
        "inet_valid('10.0.0.1')", |call| call.all_pass(|text| is_canonical(NetworkType::Inet, text))),
    entry!("cidr_checked" [], "text", MARKED, text, "A text as CIDR, the address of a network; the cast to CIDR.",
        "'10.1'::CIDR = '10.1.0.0/16'", |call| checked(call, NetworkType::Cidr, false)),
    entry!("try_cidr_checked" [], "text", MARKED, text, "The same, but NULL for an invalid address; TRY_CAST to CIDR.",
        "TRY_CAST('10.0.0.1/8' AS CIDR) IS NULL", |call| checked(call, NetworkType::Cidr, true)),
    entry!("cidr_valid" [], "text", ONE_OR_LIST, flag, "Whether a text is a CIDR as it is printed, or all texts of a list are.",
        "cidr_valid('10.0.0.0/8')", |call| call.all_pass(|text| is_canonical(NetworkType::Cidr, text))),
    entry!("macaddr_checked" [], "text", ONE, text, "A text as MACADDR, a hardware address; the cast to MACADDR.",
        "'0800.2B01.0203'::MACADDR = '08:00:2b:01:02:03'", |call| checked(call, NetworkType::Macaddr, false)),
    entry!("try_macaddr_checked" [], "text", ONE, text, "The same, but NULL for an invalid address; TRY_CAST to MACADDR.",
        "TRY_CAST('x' AS MACADDR) IS NULL", |call| checked(call, NetworkType::Macaddr, true)),
    entry!("macaddr_valid" [], "text", ONE_OR_LIST, flag, "Whether a text is a MACADDR as it is printed, or all texts of a list are.",
        "macaddr_valid('08:00:2b:01:02:03')", |call| call.all_pass(|text| is_canonical(NetworkType::Macaddr, text))),
    entry!("macaddr_trunc" [], "address", ONE, text, "A MACADDR whose last three bytes are zero; trunc(macaddr).",
        "macaddr_trunc('08:00:2b:01:02:03') = '08:00:2b:00:00:00'", trunc),
    entry!("inet_text" [], "address", ONE, text, "An address with its bits; the cast of INET to TEXT.",
        "inet_text('10.0.0.1') = '10.0.0.1/32'", |call| shown(call, |of| of.with_all_bits().to_string())),
    entry!("inet_order" [], "address", ONE, bytes, "Bytes that compare as INET and CIDR do: by family, network, bits and host.",
        "inet_order('9.0.0.0/8') < inet_order('10.0.0.1')", order),
    entry!("host" [], "address", ONE, text, "The address of an INET as text, without bits.",
        "host('10.1.2.3/8') = '10.1.2.3'", |call| shown(call, |of| of.without_bits().to_string())),
    entry!("network" [], "address", ONE, text, "The network of an INET, a CIDR.",
        "network('10.1.2.3/8') = '10.0.0.0/8'", |call| shown(call, |of| of.masked(of.bits()).with_all_bits().to_string())),
    entry!("broadcast" [], "address", ONE, text, "The last address of the network of an INET.",
        "broadcast('10.1.2.3/8') = '10.255.255.255/8'", |call| shown(call, Address::broadcast)),
    entry!("netmask" [], "address", ONE, text, "The mask of the network of an INET.",
        "netmask('10.1.2.3/8') = '255.0.0.0'", |call| shown(call, Address::netmask)),
    entry!("hostmask" [], "address", ONE, text, "The mask of the hosts of the network of an INET.",
        "hostmask('10.1.2.3/8') = '0.255.255.255'", |call| shown(call, Address::hostmask)),
    entry!("masklen" [], "address", ONE, whole, "The number of bits of the network of an INET.",
        "masklen('10.1.2.3/8') = 8", |call| call.wholes(|row| Ok(Some(address(call, 0, row)?.bits().into())))),
    entry!("family" [], "address", ONE, whole, "4 for IPv4, 6 for IPv6.",
        "family('::1') = 6", |call| call.wholes(|row| Ok(Some(address(call, 0, row)?.family())))),
    entry!("set_masklen" [], "address, bits", MARKED_AND_NUMBER, text, "An INET or CIDR with another number of bits; -1 for all.",
        "set_masklen('10.1.2.3/8', 16) = '10.1.2.3/16'", set_masklen),
    entry!("inet_merge" [], "address, address", TWO, text, "The smallest network that contains both addresses.",
        "inet_merge('10.1.2.3', '10.1.3.3') = '10.1.2.0/23'", merge),
    entry!("inet_same_family" [], "address, address", TWO, flag, "Whether both are IPv4, or both are IPv6.",
        "inet_same_family('10.0.0.1', '::1') = false", |call| related(call, Address::is_same_family)),
    entry!("inet_within" [], "address, address", TWO, flag, "Whether a network lies within another one; the operator <<.",
        "inet_within('10.1.0.0/16', '10.0.0.0/8')", |call| related(call, |left, right| left.bits() > right.bits() && left.is_within(right))),
    entry!("inet_within_or_equal" [], "address, address", TWO, flag, "The same, or whether they are one network; the operator <<=.",
        "inet_within_or_equal('10.0.0.0/8', '10.0.0.0/8')", |call| related(call, Address::is_within)),
    entry!("inet_overlap" [], "address, address", TWO, flag, "Whether one network contains the other; the operator &&.",
        "inet_overlap('10.0.0.0/8', '10.1.0.0/16')", |call| related(call, Address::overlaps)),
    entry!("inet_plus" [], "address, number", AND_NUMBER, text, "The address so many later; the operators + and -.",
        "inet_plus('10.0.0.255', 1) = '10.0.1.0'", plus),
    entry!("inet_minus" [], "address, address", TWO, whole, "The number of addresses between two; the operator -.",
        "inet_minus('10.0.1.0', '10.0.0.255') = 1", minus),
]];
