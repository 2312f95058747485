//! The 48 attributes of the relation: 40 numbers and dates, 8 strings. Types, cardinalities and skew are those of
//! airline bookings as a reservation system keeps them: one row for each passenger group on each flight leg.

use super::text::TextForm;

/// The distribution of an attribute's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttributeKind {
    /// SMALLINT
    Small,
    /// INTEGER
    Whole,
    /// BIGINT
    Large,
    /// DATE
    Day,
    /// VARCHAR
    Text(TextForm),
}

/// How the numbers of an attribute are drawn; strings are made of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ValueLaw {
    /// Number of the row, from 1.
    RowNumber,
    /// Rises with the rows, from the first number over so many.
    Rising(i64, u64),
    /// So many numbers from the first one on, in steps, all as likely.
    Even(i64, i64, u64),
    /// The same; the i-th is 1/i as frequent as the first.
    Falling(i64, i64, u64),
    /// Numbers below this; the i-th most frequent is 1/i as frequent as the first, and may be any of them.
    Popular(u64),
    /// Zero in so many rows of a hundred, else as `Falling`.
    OftenZero(u64, i64, i64, u64),
    /// The number of another attribute, and up to so many more, fewer more often.
    After(usize, u64),
    /// One number for so many rows that follow each other.
    Shared(u64),
    /// The sum of three attributes.
    Sum([usize; 3]),
}

/// An attribute.
#[derive(Clone, Copy, Debug)]
pub(super) struct BookingAttribute {
    pub(super) name: &'static str,
    pub(super) kind: AttributeKind,
    pub(super) law: ValueLaw,
    /// Rows of a hundred in which it is NULL.
    pub(super) nulls: u64,
}

impl AttributeKind {
    /// Its type in SQL.
    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::Small => "SMALLINT",
            Self::Whole => "INTEGER",
            Self::Large => "BIGINT",
            Self::Day => "DATE",
            Self::Text(_) => "VARCHAR",
        }
    }

    /// Whether it holds strings.
    pub(super) fn is_text(self) -> bool {
        matches!(self, Self::Text(_))
    }
}

const fn known(name: &'static str, kind: AttributeKind, law: ValueLaw) -> BookingAttribute {
    BookingAttribute { name, kind, law, nulls: 0 }
}

const fn nullable(
    name: &'static str,
    nulls: u64,
    kind: AttributeKind,
    law: ValueLaw,
) -> BookingAttribute {
    BookingAttribute { name, kind, law, nulls }
}

/// The first of January 2023 in days since 1970.
const FIRST_DAY: i64 = 19_358;

/// Attributes that others are computed from.
pub(super) const CREATED_ON: usize = 1;
const DEPARTS_ON: usize = 4;
const FARE: [usize; 3] = [26, 27, 28];

/// Number of attributes.
pub(super) const ATTRIBUTES: usize = 48;

use AttributeKind::{Day, Large, Small, Text, Whole};
use ValueLaw::{After, Even, Falling, OftenZero, Popular, Rising, RowNumber, Shared, Sum};

/// The attributes. The first is the primary key.
pub(super) const BOOKINGS: [BookingAttribute; ATTRIBUTES] = [
    known("booking_id", Large, RowNumber),
    known("created_on", Day, Rising(FIRST_DAY, 1096)),
    known("created_minute", Small, Even(0, 1, 1440)),
    known("modified_on", Day, After(CREATED_ON, 120)),
    known("departs_on", Day, After(CREATED_ON, 330)),
    known("departs_minute", Small, Even(0, 5, 288)),
    known("arrives_on", Day, After(DEPARTS_ON, 2)),
    known("arrives_minute", Small, Even(0, 5, 288)),
    known("flight_number", Small, Popular(9_999)),
    known("leg", Small, Falling(1, 1, 4)),
    known("distance_km", Whole, Popular(15_000)),
    known("passengers", Small, Falling(1, 1, 9)),
    known("infants", Small, OftenZero(94, 1, 1, 2)),
    known("bags", Small, OftenZero(35, 1, 1, 5)),
    known("bag_weight_kg", Small, OftenZero(35, 8, 1, 107)),
    nullable("seat_row", 40, Small, Even(1, 1, 60)),
    known("customer_id", Whole, Popular(500_000)),
    known("flyer_miles", Whole, OftenZero(60, 500, 250, 2_000)),
    known("tier", Small, Falling(0, 1, 6)),
    known("birth_year", Small, Even(1935, 1, 90)),
    known("agency_id", Whole, Popular(20_000)),
    known("office_id", Whole, Popular(60_000)),
    known("agent_id", Whole, Popular(200_000)),
    known("market_id", Small, Popular(400)),
    known("aircraft_id", Whole, Even(1, 1, 5_000)),
    known("inventory_id", Large, Even(0, 1, 10_000_000)),
    known("fare_cents", Whole, Falling(1_900, 100, 9_000)),
    known("tax_cents", Whole, Even(500, 1, 25_000)),
    known("fee_cents", Whole, OftenZero(70, 250, 250, 60)),
    known("discount_percent", Small, OftenZero(80, 5, 5, 10)),
    known("total_cents", Whole, Sum(FARE)),
    nullable("paid_on", 8, Day, After(CREATED_ON, 14)),
    known("payment_id", Large, Even(0, 1, 1_000_000_000_000)),
    known("ticket_number", Large, Even(2_200_000_000_000, 1, 100_000_000_000)),
    known("coupon_status", Small, Falling(0, 1, 8)),
    known("status", Small, Falling(0, 1, 6)),
    known("changes", Small, OftenZero(75, 1, 1, 12)),
    known("connection_minutes", Small, OftenZero(50, 30, 5, 114)),
    nullable("delay_minutes", 30, Small, OftenZero(65, 1, 1, 600)),
    known("points", Whole, OftenZero(45, 100, 1, 9_900)),
    known("record_locator", Text(TextForm::Letters(6)), Shared(2)),
    known("airline", Text(TextForm::Letters(2)), Popular(250)),
    known("origin", Text(TextForm::Letters(3)), Popular(900)),
    known("destination", Text(TextForm::Letters(3)), Popular(900)),
    known("cabin", Text(TextForm::Cabin), Falling(0, 1, 4)),
    known("fare_basis", Text(TextForm::FareBasis), Popular(3_000)),
    known("last_name", Text(TextForm::Name), Popular(100_000)),
    known("currency", Text(TextForm::Currency), Falling(0, 1, 32)),
];

/// The statement that makes the table.
pub(super) fn create_table() -> String {
    let columns = BOOKINGS.iter().map(|BookingAttribute { name, kind, nulls, .. }| {
        let null = if *nulls == 0 { " NOT NULL" } else { "" };
        format!("{name} {}{null}", kind.sql())
    });
    let columns = columns.collect::<Vec<_>>().join(", ");
    format!("CREATE TABLE bookings ({columns}, PRIMARY KEY (booking_id))")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_relation_has_forty_numbers_and_eight_strings_of_different_names() {
        let texts = BOOKINGS.iter().filter(|attribute| attribute.kind.is_text()).count();
        assert_eq!((BOOKINGS.len() - texts, texts), (40, 8));
        let names: HashSet<&str> = BOOKINGS.iter().map(|attribute| attribute.name).collect();
        assert_eq!(names.len(), ATTRIBUTES);
    }

    #[test]
    fn attributes_that_are_computed_name_those_that_they_mean() {
        let names = |numbers: &[usize]| -> Vec<&str> {
            numbers.iter().map(|number| BOOKINGS[*number].name).collect()
        };
        assert_eq!(names(&[CREATED_ON, DEPARTS_ON]), ["created_on", "departs_on"]);
        assert_eq!(names(&FARE), ["fare_cents", "tax_cents", "fee_cents"]);
    }
}
