//! SQL as each system takes it. Texts are standard SQL without interval arithmetic, which is computed here once for
//! all systems, so that none of them computes it for each row.

/// Which SQL a system takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// PostgreSQL's, which Atoll, DuckDB and MonetDB take too.
    Postgres,
    Sqlite,
    /// That of MySQL 5.5 and MariaDB.
    Mysql,
    Clickhouse,
}

impl Dialect {
    /// A text of this benchmark in the dialect.
    pub(super) fn text(self, sql: &str) -> String {
        match self {
            Self::Postgres => sql.to_owned(),
            Self::Mysql => sql.replace("date '", "'"),
            Self::Clickhouse => with_substr(sql),
            Self::Sqlite => with_strftime(&with_substr(&sql.replace("date '", "'"))),
        }
    }
}

/// Replaces the constants `date '…' ± interval '…' unit` and `between a - b and a + b` by their values.
pub(super) fn folded(sql: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(sql.len()), sql);
    while let Some((before, after)) = rest.split_once("date '") {
        text.push_str(before);
        let (date, after) = after.split_once('\'').unwrap_or((after, ""));
        let (date, after) = match moved(date, after) {
            Some((date, after)) => (date, after),
            None => (date.to_owned(), after),
        };
        text.push_str(&format!("date '{date}'"));
        rest = after;
    }
    text.push_str(rest);
    with_bounds(&text)
}

/// The date, if an interval is added to it or taken from it, and the text after the interval.
fn moved<'a>(date: &str, after: &'a str) -> Option<(String, &'a str)> {
    let plus = after.strip_prefix(" + interval '").map(|rest| (1, rest));
    let (sign, rest) = plus.or_else(|| Some((-1, after.strip_prefix(" - interval '")?)))?;
    let (number, rest) = rest.split_once("' ")?;
    let number = sign * number.parse::<i64>().ok()?;
    let end = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
    let mut parts = date.split('-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let months = |number: i64| {
        let months = year * 12 + month - 1 + number;
        (months.div_euclid(12), months.rem_euclid(12) + 1, day)
    };
    let (year, month, day) = match &rest[..end] {
        "day" => from_days(to_days(year, month, day) + number),
        "month" => months(number),
        "year" => months(number * 12),
        _ => return None,
    };
    Some((format!("{year:04}-{month:02}-{day:02}"), &rest[end..]))
}

/// Days since 1970-01-01 of the civil calendar (H. Hinnant, "chrono-compatible low-level date algorithms").
fn to_days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// `between 0.06 - 0.01 and 0.06 + 0.01` as `between 0.05 and 0.07`: binary floating point gives other bounds.
fn with_bounds(sql: &str) -> String {
    let parse = || {
        let (before, rest) = sql.split_once("between 0.")?;
        let (middle, rest) = rest.split_once(" - 0.01 and 0.")?;
        let (again, after) = rest.split_once(" + 0.01")?;
        let hundredths = middle.parse::<u32>().ok().filter(|_| middle == again)?;
        let (low, high) = (hundredths.checked_sub(1)?, hundredths + 1);
        Some(format!("{before}between 0.{low:02} and 0.{high:02}{after}"))
    };
    parse().unwrap_or_else(|| sql.to_owned())
}

/// `substring(x from a for b)` as `substr(x, a, b)`.
fn with_substr(sql: &str) -> String {
    called(sql, "substring(", |inner| {
        let (text, range) = inner.split_once(" from ")?;
        let (from, length) = range.split_once(" for ")?;
        Some(format!("substr({text}, {from}, {length})"))
    })
}

/// `extract(year from x)` as a function of SQLite.
fn with_strftime(sql: &str) -> String {
    called(sql, "extract(", |inner| {
        Some(format!("cast(strftime('%Y', {}) as integer)", inner.strip_prefix("year from ")?))
    })
}

/// Rewrites all calls of a function whose arguments have no parentheses.
fn called(sql: &str, function: &str, rewrite: impl Fn(&str) -> Option<String>) -> String {
    let (mut text, mut rest) = (String::with_capacity(sql.len()), sql);
    while let Some((before, after)) = rest.split_once(function) {
        let Some((inner, after)) = after.split_once(')') else { break };
        text.push_str(before);
        text.push_str(&rewrite(inner).unwrap_or_else(|| format!("{function}{inner})")));
        rest = after;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_computed_once() {
        for (text, expected) in [
            ("x <= date '1998-12-01' - interval '90' day and y", "x <= date '1998-09-02' and y"),
            ("x < date '1993-10-01' + interval '3' month", "x < date '1994-01-01'"),
            ("x < date '1994-01-01' + interval '1' year;", "x < date '1995-01-01';"),
            ("date '2000-01-31' + interval '30' day", "date '2000-03-01'"),
            ("l between 0.06 - 0.01 and 0.06 + 0.01 and z", "l between 0.05 and 0.07 and z"),
            (
                "between date '1995-01-01' and date '1996-12-31'",
                "between date '1995-01-01' and date '1996-12-31'",
            ),
        ] {
            assert_eq!(folded(text), expected);
        }
    }

    #[test]
    fn each_system_has_its_words() {
        let text =
            "select extract(year from a), substring(b from 1 for 2) where c < date '1995-01-01'";
        assert_eq!(
            Dialect::Sqlite.text(text),
            "select cast(strftime('%Y', a) as integer), substr(b, 1, 2) where c < '1995-01-01'"
        );
        assert!(Dialect::Mysql.text(text).ends_with("c < '1995-01-01'"));
        assert!(Dialect::Clickhouse.text(text).contains("substr(b, 1, 2)"));
        assert_eq!(Dialect::Postgres.text(text), text);
    }
}
