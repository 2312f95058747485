//! DateStyle and IntervalStyle: how a session writes dates, timestamps and intervals, and reads ambiguous ones.

use datafusion::common::config::ConfigOptions;

/// The styles of a session: an extension of its settings. Without it all are the defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TemporalStyle {
    /// How dates and timestamps are written.
    pub dates: DateFormat,
    /// Which numbers of a date such as `01/02/03` are its year, month and day.
    pub order: DateOrder,
    /// How intervals are written.
    pub intervals: IntervalFormat,
}

/// How dates and timestamps are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DateFormat {
    /// `2024-01-05 10:11:12+01`
    #[default]
    Iso,
    /// `01/05/2024 10:11:12 CET`
    Sql,
    /// `Fri Jan 05 10:11:12 2024 CET`; dates alone are `01-05-2024`.
    Postgres,
    /// `05.01.2024 10:11:12 CET`
    German,
}

/// The order of a date's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DateOrder {
    /// Month, day, year.
    #[default]
    Mdy,
    /// Day, month, year.
    Dmy,
    /// Year, month, day.
    Ymd,
}

/// How intervals are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IntervalFormat {
    /// `1 year 2 mons -3 days +04:05:06.5`
    #[default]
    Postgres,
    /// `@ 1 year 2 mons -3 days 4 hours 5 mins 6.5 secs`
    PostgresVerbose,
    /// `+1-2 -3 +4:05:06.5`; a sign before the first field alone applies to all.
    SqlStandard,
    /// `P1Y2M-3DT4H5M6.5S`
    Iso8601,
}

crate::statement_extension!(TemporalStyle, "temporal_style");

impl TemporalStyle {
    /// Returns the styles of a session with these settings.
    pub fn from_options(options: &ConfigOptions) -> Self {
        options.extensions.get::<Self>().copied().unwrap_or_default()
    }

    /// Returns the styles that these values of the two settings mean; an invalid value means the default.
    pub fn from_settings(date_style: &str, interval_style: &str) -> Self {
        let of_dates = Self::default().with_date_style(date_style).unwrap_or_default();
        Self { intervals: IntervalFormat::named(interval_style).unwrap_or_default(), ..of_dates }
    }

    /// Changes what a value of DateStyle names: a format, an order, or both. None if it names anything else, or two
    /// formats or orders. `German` alone implies the order DMY.
    #[must_use]
    pub fn with_date_style(self, value: &str) -> Option<Self> {
        let (mut dates, mut order, mut implied) = (None, None, None);
        for word in value.split(',').filter(|_| !value.trim().is_empty()) {
            let word = word.trim().trim_matches('"').to_ascii_lowercase();
            match (DateFormat::named(&word), DateOrder::named(&word)) {
                (Some(format), _) if dates.is_none_or(|found| found == format) => {
                    dates = Some(format);
                    implied = (format == DateFormat::German).then_some(DateOrder::Dmy);
                }
                (None, Some(named)) if order.is_none_or(|found| found == named) => {
                    order = Some(named);
                }
                _ => return None,
            }
        }
        let order = order.or(implied).unwrap_or(self.order);
        Some(Self { dates: dates.unwrap_or(self.dates), order, ..self })
    }

    /// Returns the value of DateStyle that clients are shown.
    pub fn date_style(self) -> &'static str {
        match (self.dates, self.order) {
            (DateFormat::Iso, DateOrder::Mdy) => "ISO, MDY",
            (DateFormat::Iso, DateOrder::Dmy) => "ISO, DMY",
            (DateFormat::Iso, DateOrder::Ymd) => "ISO, YMD",
            (DateFormat::Sql, DateOrder::Mdy) => "SQL, MDY",
            (DateFormat::Sql, DateOrder::Dmy) => "SQL, DMY",
            (DateFormat::Sql, DateOrder::Ymd) => "SQL, YMD",
            (DateFormat::Postgres, DateOrder::Mdy) => "Postgres, MDY",
            (DateFormat::Postgres, DateOrder::Dmy) => "Postgres, DMY",
            (DateFormat::Postgres, DateOrder::Ymd) => "Postgres, YMD",
            (DateFormat::German, DateOrder::Mdy) => "German, MDY",
            (DateFormat::German, DateOrder::Dmy) => "German, DMY",
            (DateFormat::German, DateOrder::Ymd) => "German, YMD",
        }
    }
}

impl DateFormat {
    fn named(word: &str) -> Option<Self> {
        Some(match word {
            "iso" => Self::Iso,
            "sql" => Self::Sql,
            "german" => Self::German,
            word if word.starts_with("postgres") => Self::Postgres,
            _ => return None,
        })
    }
}

impl DateOrder {
    fn named(word: &str) -> Option<Self> {
        Some(match word {
            "ymd" => Self::Ymd,
            "dmy" => Self::Dmy,
            "mdy" | "us" => Self::Mdy,
            word if word.starts_with("euro") => Self::Dmy,
            word if word.starts_with("noneuro") => Self::Mdy,
            _ => return None,
        })
    }
}

impl IntervalFormat {
    /// The names of the formats, as IntervalStyle has them.
    pub const NAMES: &'static [&'static str] =
        &["postgres", "postgres_verbose", "sql_standard", "iso_8601"];

    fn named(name: &str) -> Option<Self> {
        const FORMATS: [IntervalFormat; 4] = [
            IntervalFormat::Postgres,
            IntervalFormat::PostgresVerbose,
            IntervalFormat::SqlStandard,
            IntervalFormat::Iso8601,
        ];
        let at = Self::NAMES.iter().position(|known| known.eq_ignore_ascii_case(name.trim()))?;
        FORMATS.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PostgreSQL's answers.
    #[test]
    fn a_value_of_date_style_names_a_format_an_order_or_both() {
        for (first, value, wanted) in [
            ("ISO, MDY", "sql", Some("SQL, MDY")),
            ("SQL, MDY", "dmy", Some("SQL, DMY")),
            ("SQL, DMY", "postgres", Some("Postgres, DMY")),
            ("ISO, MDY", "German", Some("German, DMY")),
            ("ISO, MDY", "German, YMD", Some("German, YMD")),
            ("ISO, MDY", "MDY, German", Some("German, MDY")),
            ("ISO, MDY", "postgresql, european", Some("Postgres, DMY")),
            ("SQL, DMY", "iso, US", Some("ISO, MDY")),
            ("SQL, DMY", "NonEuropean", Some("SQL, MDY")),
            ("SQL, DMY", "ISO, ISO", Some("ISO, DMY")),
            ("ISO, MDY", "ISO, SQL", None),
            ("ISO, MDY", "MDY, DMY", None),
            ("ISO, MDY", "Julian", None),
            ("SQL, DMY", "", Some("SQL, DMY")),
            ("ISO, MDY", "ISO,", None),
        ] {
            let style = TemporalStyle::from_settings(first, "postgres").with_date_style(value);
            assert_eq!(style.map(TemporalStyle::date_style), wanted, "{first}: {value}");
        }
    }
}
