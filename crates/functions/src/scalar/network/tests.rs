//! Addresses: answers of PostgreSQL 15, and texts that are none.

use proptest::prelude::*;

use super::NetworkType;
use super::address::Address;

#[test]
fn addresses_are_printed_as_in_postgresql() {
    for (text, inet, cidr) in [
        ("10.1", None, Some("10.1.0.0/16")),
        ("10", None, Some("10.0.0.0/8")),
        ("10/8", Some("10.0.0.0/8"), Some("10.0.0.0/8")),
        ("10.1/16", Some("10.1.0.0/16"), Some("10.1.0.0/16")),
        ("172.16/12", Some("172.16.0.0/12"), Some("172.16.0.0/12")),
        ("10/16", None, Some("10.0.0.0/16")),
        ("192.168.1.5/24", Some("192.168.1.5/24"), None),
        ("192.168.1.5/32", Some("192.168.1.5"), Some("192.168.1.5/32")),
        ("01.2.3.4", Some("1.2.3.4"), Some("1.2.3.4/32")),
        ("1.2.3.4/08", Some("1.2.3.4/8"), None),
        ("224", None, Some("224.0.0.0/4")),
        ("240", None, Some("240.0.0.0/32")),
        ("192.168", None, Some("192.168.0.0/24")),
        ("128.1", None, Some("128.1.0.0/16")),
        ("0x0a", None, Some("10.0.0.0/8")),
        ("0.0.0.0/0", Some("0.0.0.0/0"), Some("0.0.0.0/0")),
        ("::1", Some("::1"), Some("::1/128")),
        ("::", Some("::"), Some("::/128")),
        ("::/0", Some("::/0"), Some("::/0")),
        ("::2", Some("::2"), Some("::2/128")),
        ("::1:2", Some("::0.1.0.2"), Some("::0.1.0.2/128")),
        ("::ffff:1.2.3.4", Some("::ffff:1.2.3.4"), Some("::ffff:1.2.3.4/128")),
        ("::ffff:0:0/96", Some("::ffff:0.0.0.0/96"), Some("::ffff:0.0.0.0/96")),
        ("2001:DB8::1/64", Some("2001:db8::1/64"), None),
        ("1:0:0:2:0:0:0:3", Some("1:0:0:2::3"), Some("1:0:0:2::3/128")),
        ("2001:db8:0:0:1:0:0:1", Some("2001:db8::1:0:0:1"), Some("2001:db8::1:0:0:1/128")),
        ("1:0:2::", Some("1:0:2::"), Some("1:0:2::/128")),
        ("fe80::1%eth0", None, None),
        ("1.2.3.4/33", None, None),
        ("1.2.3.4/", None, None),
        ("1.2.3.4/-1", None, None),
        ("1.2.3.4/24x", None, None),
        ("256.1.1.1", None, None),
        (" 1.2.3.4 ", None, None),
        ("1.2.3.4.5", None, None),
        ("", None, None),
        ("/8", None, None),
        ("0x", None, None),
    ] {
        let given = |of: NetworkType| of.canonical(text).ok();
        assert_eq!(given(NetworkType::Inet).as_deref(), inet, "{text}");
        assert_eq!(given(NetworkType::Cidr).as_deref(), cidr, "{text}");
    }
}

#[test]
fn hardware_addresses_have_seven_forms() {
    for text in [
        "08:00:2b:01:02:03",
        "08-00-2b-01-02-03",
        "08002b:010203",
        "08002b-010203",
        "0800.2b01.0203",
        "0800-2b01-0203",
        "08002B010203",
        "8:0:2b:1:2:3",
        " 08:00:2b:01:02:03 ",
    ] {
        let canonical = NetworkType::Macaddr.canonical(text);
        assert_eq!(canonical.as_deref(), Ok("08:00:2b:01:02:03"), "{text}");
    }
    for text in ["08:00:2b:01:02", "x", "", "0800:2b01:0203", "08:00:2b-01:02:03", "é8002b010203"]
    {
        assert!(NetworkType::Macaddr.canonical(text).is_err(), "{text}");
    }
}

fn order(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    Address::host(text).expect(text).write_order(&mut out);
    out
}

#[test]
fn addresses_have_the_order_of_postgresql() {
    let rising = [
        "0.0.0.0/0",
        "9.255.255.255/8",
        "10.0.0.0/8",
        "10.0.0.1/8",
        "10.0.0.0/9",
        "10.0.0.0",
        "10.0.0.1",
        "10.128.0.0/9",
        "11.0.0.0/8",
        "::/0",
        "::1",
        "2001:db8::/32",
        "2001:db8::1",
    ];
    for pair in rising.windows(2) {
        assert!(order(pair[0]) < order(pair[1]), "{} {}", pair[0], pair[1]);
    }
}

proptest! {
    #[test]
    fn texts_are_read_or_refused(text in "[0-9a-fx.:/-]{0,24}") {
        for of in [NetworkType::Inet, NetworkType::Cidr, NetworkType::Macaddr] {
            if let Ok(canonical) = of.canonical(&text) {
                prop_assert_eq!(of.canonical(&canonical), Ok(canonical.clone()));
                let binary = of.to_binary(&canonical).expect("it is an address");
                prop_assert_eq!(of.from_binary(&binary), Some(canonical));
            }
        }
    }

    #[test]
    fn damaged_binary_forms_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        for of in [NetworkType::Inet, NetworkType::Cidr, NetworkType::Macaddr] {
            let _read = of.from_binary(&bytes);
        }
    }

    #[test]
    fn networks_contain_their_addresses(bytes in any::<[u8; 4]>(), bits in 0_u8..=32, wide in any::<[u8; 16]>()) {
        for address in [Address::from_octets(&bytes, bits), Address::from_octets(&wide, bits * 4)] {
            let address = address.expect("the bits fit");
            let network = address.masked(address.bits());
            prop_assert!(address.is_within(&network) && network.overlaps(&address));
            prop_assert!(address.broadcast().is_within(&network));
            prop_assert_eq!(address.merged(&address), network);
            let last = address.broadcast();
            let count = last.minus(&network);
            prop_assert_eq!(count.and_then(|count| network.plus(count)), count.map(|_| last));
        }
    }
}
