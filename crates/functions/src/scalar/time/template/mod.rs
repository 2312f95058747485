//! Templates of PostgreSQL's `to_char`, `to_date` and `to_timestamp`: `YYYY-MM-DD HH24:MI:SS`.
//!
//! | file | contents |
//! |---|---|
//! | `function` | the three functions: templates here, formats with a `%` by DataFusion's functions of the same name |
//! | `read` | texts to timestamps, as leniently as in PostgreSQL 15 (`formatting.c`, `DCH_from_char`) |
//! | `write` | timestamps to texts (`DCH_to_char`) |

mod function;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(in crate::scalar) use function::register;

/// The meaning of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scalar) enum Field {
    /// AD or BC, or with points.
    Era(&'static [&'static str; 2]),
    /// AM or PM, or with points.
    HalfDay(&'static [&'static str; 2]),
    Century,
    DayName,
    DayAbbreviation,
    DayOfYear,
    IsoDayOfYear,
    DayOfMonth,
    /// 1 is Sunday.
    Weekday,
    /// 1 is Monday.
    IsoWeekday,
    /// This many digits of the fraction of a second.
    Fraction(usize),
    /// The rest of the text must match exactly.
    Exact,
    Hour,
    HalfDayHour,
    IsoWeek,
    /// The last digits of the ISO 8601 year.
    IsoYear(usize),
    JulianDay,
    Minute,
    Month,
    MonthName,
    MonthAbbreviation,
    RomanMonth,
    /// The UTC offset.
    Offset,
    Quarter,
    SecondOfDay,
    Second,
    ZoneHour,
    ZoneMinute,
    Zone,
    WeekOfMonth,
    WeekOfYear,
    /// The year with a comma after its thousands.
    CommaYear,
    /// The last digits of the year.
    Year(usize),
}

impl Field {
    /// Whether its text begins with a digit.
    fn is_number(self) -> bool {
        !matches!(
            self,
            Self::Era(_)
                | Self::HalfDay(_)
                | Self::DayName
                | Self::DayAbbreviation
                | Self::Exact
                | Self::MonthName
                | Self::MonthAbbreviation
                | Self::RomanMonth
                | Self::Offset
                | Self::ZoneHour
                | Self::Zone
        )
    }
}

/// The case of a pattern, and so of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scalar) enum Letters {
    Large,
    /// Only the first letter in upper case.
    Title,
    Small,
}

impl Letters {
    /// Applies the case to a text, whose first letter is in upper case.
    fn apply(self, text: &str) -> String {
        match self {
            Self::Large => text.to_uppercase(),
            Self::Title => text.to_owned(),
            Self::Small => text.to_lowercase(),
        }
    }
}

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scalar) enum Item {
    Field {
        field: Field,
        letters: Letters,
        /// The case of the pattern.
        len: usize,
        /// Whether to omit leading and trailing blanks and zeros: `FM`.
        is_bare: bool,
        /// Whether `th` follows, and in which case.
        ordinal: Option<Letters>,
    },
    Space(char),
    /// A character other than a letter or a digit.
    Separator(char),
    Literal(char),
}

const ERA: [&str; 2] = ["AD", "BC"];
const ERA_POINTS: [&str; 2] = ["A.D.", "B.C."];
const HALF_DAY: [&str; 2] = ["AM", "PM"];
const HALF_DAY_POINTS: [&str; 2] = ["A.M.", "P.M."];

/// The patterns; of those with a common prefix, the longer first.
const PATTERNS: &[(&str, Field)] = &[
    ("A.D.", Field::Era(&ERA_POINTS)),
    ("A.M.", Field::HalfDay(&HALF_DAY_POINTS)),
    ("AD", Field::Era(&ERA)),
    ("AM", Field::HalfDay(&HALF_DAY)),
    ("B.C.", Field::Era(&ERA_POINTS)),
    ("BC", Field::Era(&ERA)),
    ("CC", Field::Century),
    ("DAY", Field::DayName),
    ("DDD", Field::DayOfYear),
    ("DD", Field::DayOfMonth),
    ("DY", Field::DayAbbreviation),
    ("D", Field::Weekday),
    ("FF1", Field::Fraction(1)),
    ("FF2", Field::Fraction(2)),
    ("FF3", Field::Fraction(3)),
    ("FF4", Field::Fraction(4)),
    ("FF5", Field::Fraction(5)),
    ("FF6", Field::Fraction(6)),
    ("FX", Field::Exact),
    ("HH24", Field::Hour),
    ("HH12", Field::HalfDayHour),
    ("HH", Field::HalfDayHour),
    ("IDDD", Field::IsoDayOfYear),
    ("ID", Field::IsoWeekday),
    ("IW", Field::IsoWeek),
    ("IYYY", Field::IsoYear(4)),
    ("IYY", Field::IsoYear(3)),
    ("IY", Field::IsoYear(2)),
    ("I", Field::IsoYear(1)),
    ("J", Field::JulianDay),
    ("MI", Field::Minute),
    ("MM", Field::Month),
    ("MONTH", Field::MonthName),
    ("MON", Field::MonthAbbreviation),
    ("MS", Field::Fraction(3)),
    ("OF", Field::Offset),
    ("P.M.", Field::HalfDay(&HALF_DAY_POINTS)),
    ("PM", Field::HalfDay(&HALF_DAY)),
    ("Q", Field::Quarter),
    ("RM", Field::RomanMonth),
    ("SSSSS", Field::SecondOfDay),
    ("SSSS", Field::SecondOfDay),
    ("SS", Field::Second),
    ("TZH", Field::ZoneHour),
    ("TZM", Field::ZoneMinute),
    ("TZ", Field::Zone),
    ("US", Field::Fraction(6)),
    ("WW", Field::WeekOfYear),
    ("W", Field::WeekOfMonth),
    ("Y,YYY", Field::CommaYear),
    ("YYYY", Field::Year(4)),
    ("YYY", Field::Year(3)),
    ("YY", Field::Year(2)),
    ("Y", Field::Year(1)),
];

/// Parses a template.
pub(in crate::scalar) fn items(template: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let mut rest = template;
    while !rest.is_empty() {
        let mut is_bare = false;
        if let Some(after) = prefix(rest, &["FM", "fm", "TM", "tm"]) {
            (is_bare, rest) = (true, after);
        }
        if let Some((field, letters, len)) = pattern(rest) {
            rest = &rest[len..];
            let mut ordinal = None;
            if let Some(after) = rest.strip_prefix("TH") {
                (ordinal, rest) = (Some(Letters::Large), after);
            } else if let Some(after) = rest.strip_prefix("th") {
                (ordinal, rest) = (Some(Letters::Small), after);
            }
            items.push(Item::Field { field, letters, len, is_bare, ordinal });
        } else {
            rest = literal(rest, &mut items);
        }
    }
    items
}

fn prefix<'a>(text: &'a str, prefixes: &[&str]) -> Option<&'a str> {
    prefixes.iter().find_map(|prefix| text.strip_prefix(prefix))
}

/// Returns the pattern at the beginning of a template, and its length.
fn pattern(template: &str) -> Option<(Field, Letters, usize)> {
    let start = |text: &str| template.get(..text.len()).map(str::to_owned);
    PATTERNS.iter().find_map(|(text, field)| {
        let typed = start(text)?;
        let is_name = matches!(
            field,
            Field::DayName | Field::DayAbbreviation | Field::MonthName | Field::MonthAbbreviation
        );
        let letters = if typed == *text {
            Letters::Large
        } else if typed == text.to_lowercase() {
            Letters::Small
        } else if is_name && typed == format!("{}{}", &text[..1], text[1..].to_lowercase()) {
            Letters::Title
        } else {
            return None;
        };
        Some((*field, letters, text.len()))
    })
}

/// Reads a character, or a text between double quotes; returns what follows.
fn literal<'a>(template: &'a str, items: &mut Vec<Item>) -> &'a str {
    if let Some(quoted) = template.strip_prefix('"') {
        let mut chars = quoted.char_indices();
        while let Some((at, letter)) = chars.next() {
            match letter {
                '"' => return &quoted[at + 1..],
                '\\' => items.extend(chars.next().map(|(_, letter)| Item::Literal(letter))),
                letter => items.push(Item::Literal(letter)),
            }
        }
        return "";
    }
    let template = match template.strip_prefix('\\') {
        Some(after) if after.starts_with('"') => after,
        _ => template,
    };
    let Some(letter) = template.chars().next() else { return "" };
    items.push(match letter {
        letter if is_separator(letter) => Item::Separator(letter),
        letter if is_blank(letter) => Item::Space(letter),
        letter => Item::Literal(letter),
    });
    &template[letter.len_utf8()..]
}

fn is_separator(letter: char) -> bool {
    letter.is_ascii_punctuation()
}

fn is_blank(letter: char) -> bool {
    letter.is_ascii_whitespace() || letter == '\u{b}'
}

/// From January on.
const ROMAN: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

#[cfg(test)]
mod item_tests {
    use super::*;

    fn shown(template: &str) -> Vec<String> {
        let show = |item: &Item| match item {
            Item::Field { field, letters, is_bare, ordinal, .. } => {
                let bare = if *is_bare { "FM " } else { "" };
                let th = ordinal.map_or(String::new(), |it| format!(" {it:?}"));
                format!("{bare}{field:?} {letters:?}{th}")
            }
            Item::Space(it) | Item::Separator(it) | Item::Literal(it) => format!("'{it}'"),
        };
        items(template).iter().map(show).collect()
    }

    #[test]
    fn patterns_literals_and_marks_are_distinguished() {
        assert_eq!(shown("YYYY-mm"), ["Year(4) Large", "'-'", "Month Small"]);
        assert_eq!(shown("FMMonth DDth"), ["FM MonthName Title", "' '", "DayOfMonth Large Small"]);
        assert_eq!(shown("\"D\\\"D\"D"), ["'D'", "'\"'", "'D'", "Weekday Large"]);
        assert_eq!(shown("Yyyyé"), ["Year(1) Large", "Year(3) Small", "'é'"]);
        assert_eq!(shown("\\\"x"), ["'\"'", "'x'"]);
        assert_eq!(shown("\"open"), ["'o'", "'p'", "'e'", "'n'"]);
        assert!(shown("").is_empty());
    }
}
