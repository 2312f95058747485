//! The types of ranges and multiranges, and the names of their functions.

use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, TimeUnit};

use crate::scalar::UNTOLD_SCALE;

/// A type of ranges, by its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeType {
    /// INT4RANGE.
    Int4,
    /// INT8RANGE.
    Int8,
    /// NUMRANGE.
    Num,
    /// DATERANGE.
    Date,
    /// TSRANGE.
    Ts,
    /// TSTZRANGE.
    Tstz,
}

impl RangeType {
    const ALL: [Self; 6] = [Self::Int4, Self::Int8, Self::Num, Self::Date, Self::Ts, Self::Tstz];

    /// Returns the SQL name of the type of its bounds.
    pub(super) fn subtype_name(self) -> &'static str {
        match self {
            Self::Int4 => "integer",
            Self::Int8 => "bigint",
            Self::Num => "numeric",
            Self::Date => "date",
            Self::Ts => "timestamp",
            Self::Tstz => "timestamp with time zone",
        }
    }

    /// Returns the type of its bounds; `time_zone` is the session's.
    pub(super) fn subtype(self, time_zone: Option<&str>) -> DataType {
        match self {
            Self::Int4 => DataType::Int32,
            Self::Int8 => DataType::Int64,
            // As casts of texts to NUMERIC: the values of a column have one scale.
            Self::Num => DataType::Decimal128(DECIMAL128_MAX_PRECISION, UNTOLD_SCALE),
            Self::Date => DataType::Date32,
            Self::Ts => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Tstz => {
                let zone = time_zone.unwrap_or("UTC");
                DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into()))
            }
        }
    }
}

/// A type of ranges, or of multiranges of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeForm {
    /// The type of the ranges.
    pub of: RangeType,
    /// Whether a value has any number of ranges.
    pub is_multi: bool,
}

/// The names of a type and of its functions.
struct Names {
    name: &'static str,
    cast: &'static str,
    try_cast: &'static str,
    test: &'static str,
    order: &'static str,
}

macro_rules! names {
    ($name:literal) => {
        Names {
            name: $name,
            cast: concat!($name, "_checked"),
            try_cast: concat!("try_", $name, "_checked"),
            test: concat!($name, "_valid"),
            order: concat!($name, "_order"),
        }
    };
}

impl RangeForm {
    /// Returns the type of ranges.
    pub const fn range(of: RangeType) -> Self {
        Self { of, is_multi: false }
    }

    /// Returns the type of multiranges.
    pub const fn multi(of: RangeType) -> Self {
        Self { of, is_multi: true }
    }

    /// Returns all types.
    pub fn all() -> impl Iterator<Item = Self> {
        let multiranges = RangeType::ALL.into_iter().map(Self::multi);
        RangeType::ALL.into_iter().map(Self::range).chain(multiranges)
    }

    /// Finds a type by its name in small letters.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|form| form.name() == name)
    }

    /// Returns the type of the bounds; of TIMESTAMPTZ in UTC.
    pub fn bound_type(self) -> DataType {
        self.of.subtype(None)
    }

    fn names(self) -> Names {
        match (self.of, self.is_multi) {
            (RangeType::Int4, false) => names!("int4range"),
            (RangeType::Int8, false) => names!("int8range"),
            (RangeType::Num, false) => names!("numrange"),
            (RangeType::Date, false) => names!("daterange"),
            (RangeType::Ts, false) => names!("tsrange"),
            (RangeType::Tstz, false) => names!("tstzrange"),
            (RangeType::Int4, true) => names!("int4multirange"),
            (RangeType::Int8, true) => names!("int8multirange"),
            (RangeType::Num, true) => names!("nummultirange"),
            (RangeType::Date, true) => names!("datemultirange"),
            (RangeType::Ts, true) => names!("tsmultirange"),
            (RangeType::Tstz, true) => names!("tstzmultirange"),
        }
    }

    /// Returns its name in `pg_type`.
    pub fn name(self) -> &'static str {
        self.names().name
    }

    /// Returns the name of the function of a cast to the type.
    pub fn cast(self, is_tried: bool) -> &'static str {
        if is_tried { self.names().try_cast } else { self.names().cast }
    }

    /// Returns the name of the function that checks its texts.
    pub fn test(self) -> &'static str {
        self.names().test
    }

    /// Returns the name of the function whose bytes are in the order of the type.
    pub fn order(self) -> &'static str {
        self.names().order
    }

    /// Finds the type whose constructor or cast is the function with this name.
    pub(in crate::scalar) fn given_by(function: &str) -> Option<Self> {
        Self::all().find(|form| {
            let Names { name, cast, try_cast, .. } = form.names();
            [name, cast, try_cast].contains(&function)
        })
    }
}
