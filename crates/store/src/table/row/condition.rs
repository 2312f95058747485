//! Conditions on the values of a row: the WHERE of a unique index.
//!
//! Conditions are SQL's: unknown where a compared value is NULL. They compare values as they are encoded in rows.

use std::cmp::Ordering;

use arrow_schema::DataType;

use super::RowCodec;
use super::shape::{Cursor, plain_type};

/// The deepest nesting of a condition.
pub const CONDITION_DEPTH_MAX: usize = 50;

/// A condition on the values of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowCondition {
    /// `column IS NULL`
    IsNull(usize),
    /// `column = value` and the like.
    Compare {
        /// The number of the column.
        column: usize,
        /// How it compares with the value.
        operator: ComparisonOperator,
        /// The value, encoded as in a key of this column.
        value: Box<[u8]>,
    },
    /// `column = other` and the like, of columns of one type.
    CompareColumns {
        /// The number of the column.
        column: usize,
        /// How it compares with the other one.
        operator: ComparisonOperator,
        /// The number of the other column.
        other: usize,
    },
    /// `column LIKE pattern`; a backslash escapes.
    Like {
        /// The number of the column, which is of texts.
        column: usize,
        /// The pattern.
        pattern: Box<str>,
    },
    /// `NOT condition`
    Not(Box<Self>),
    /// All of them are true.
    And(Vec<Self>),
    /// One of them is true.
    Or(Vec<Self>),
}

/// An operator that compares a column with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonOperator {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl ComparisonOperator {
    fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

impl RowCondition {
    /// Whether it holds for a row with these values; `None` if that is unknown.
    pub(super) fn holds<'v>(
        &self,
        codec: &RowCodec,
        value_of: &impl Fn(usize) -> Option<&'v [u8]>,
    ) -> Option<bool> {
        match self {
            Self::IsNull(column) => Some(value_of(*column).is_none()),
            Self::Compare { column, operator, value } => {
                let ordering = codec.compare(*column, value_of(*column)?, value)?;
                Some(operator.accepts(ordering))
            }
            Self::CompareColumns { column, operator, other } => {
                let ordering = codec.compare(*column, value_of(*column)?, value_of(*other)?)?;
                Some(operator.accepts(ordering))
            }
            Self::Like { column, pattern } => {
                let text = Cursor(value_of(*column)?).bytes()?;
                Some(is_like(std::str::from_utf8(text).ok()?, pattern))
            }
            Self::Not(condition) => condition.holds(codec, value_of).map(|holds| !holds),
            Self::And(conditions) => Self::first(conditions, false, codec, value_of),
            Self::Or(conditions) => Self::first(conditions, true, codec, value_of),
        }
    }

    /// `decisive` if it is the answer of one of the conditions, its opposite if it is the answer of none.
    fn first<'v>(
        conditions: &[Self],
        decisive: bool,
        codec: &RowCodec,
        value_of: &impl Fn(usize) -> Option<&'v [u8]>,
    ) -> Option<bool> {
        let mut answer = Some(!decisive);
        for condition in conditions {
            match condition.holds(codec, value_of) {
                Some(holds) if holds == decisive => return Some(decisive),
                Some(_) => {}
                None => answer = None,
            }
        }
        answer
    }

    /// Adds the numbers of the columns that it reads.
    pub fn add_columns(&self, columns: &mut Vec<usize>) {
        match self {
            Self::IsNull(column) | Self::Compare { column, .. } | Self::Like { column, .. } => {
                columns.push(*column);
            }
            Self::CompareColumns { column, other, .. } => columns.extend([*column, *other]),
            Self::Not(condition) => condition.add_columns(columns),
            Self::And(conditions) | Self::Or(conditions) => {
                conditions.iter().for_each(|condition| condition.add_columns(columns));
            }
        }
    }

    /// The same over columns with other numbers. Returns None if one of them has none.
    pub fn renumbered(&self, number: &impl Fn(usize) -> Option<usize>) -> Option<Self> {
        let all = |conditions: &[Self]| -> Option<Vec<Self>> {
            conditions.iter().map(|condition| condition.renumbered(number)).collect()
        };
        Some(match self {
            Self::IsNull(column) => Self::IsNull(number(*column)?),
            Self::Compare { column, operator, value } => Self::Compare {
                column: number(*column)?,
                operator: *operator,
                value: value.clone(),
            },
            Self::CompareColumns { column, operator, other } => Self::CompareColumns {
                column: number(*column)?,
                operator: *operator,
                other: number(*other)?,
            },
            Self::Like { column, pattern } => {
                Self::Like { column: number(*column)?, pattern: pattern.clone() }
            }
            Self::Not(condition) => Self::Not(Box::new(condition.renumbered(number)?)),
            Self::And(conditions) => Self::And(all(conditions)?),
            Self::Or(conditions) => Self::Or(all(conditions)?),
        })
    }

    /// Its depth, at least 1.
    pub fn depth(&self) -> usize {
        match self {
            Self::IsNull(_)
            | Self::Compare { .. }
            | Self::CompareColumns { .. }
            | Self::Like { .. } => 1,
            Self::Not(condition) => 1 + condition.depth(),
            Self::And(conditions) | Self::Or(conditions) => {
                1 + conditions.iter().map(Self::depth).max().unwrap_or_default()
            }
        }
    }

    /// Whether it is true of all rows for which all of these are true, as far as their forms show.
    pub fn follows_from(&self, known: &[Self]) -> bool {
        let is_known = known.iter().any(|known| {
            known == self || matches!(known, Self::And(parts) if self.follows_from(parts))
        });
        is_known
            || match self {
                Self::And(conditions) => conditions.iter().all(|it| it.follows_from(known)),
                Self::Or(conditions) => conditions.iter().any(|it| it.follows_from(known)),
                // A column that compares with a value has one.
                Self::Not(negated) => match &**negated {
                    Self::IsNull(column) => known.iter().any(|known| match known {
                        Self::Compare { column: own, .. } | Self::Like { column: own, .. } => {
                            own == column
                        }
                        Self::CompareColumns { column: own, other, .. } => {
                            own == column || other == column
                        }
                        _ => false,
                    }),
                    _ => false,
                },
                _ => false,
            }
    }

    /// Whether values of this type can be compared in a condition.
    pub fn compares(data_type: &DataType) -> bool {
        ValueOrder::of_type(&plain_type(data_type)).is_some()
    }
}

/// How encoded values of a type are ordered.
#[derive(Clone, Copy)]
enum ValueOrder {
    Signed,
    Unsigned,
    Float32,
    Float64,
    Text,
}

impl ValueOrder {
    fn of_type(plain: &DataType) -> Option<Self> {
        use DataType as T;
        Some(match plain {
            T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::Date32 | T::Date64 => Self::Signed,
            T::Time32(_) | T::Time64(_) | T::Timestamp(..) => Self::Signed,
            T::Decimal32(..) | T::Decimal64(..) | T::Decimal128(..) => Self::Signed,
            T::Boolean | T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => Self::Unsigned,
            T::Float32 => Self::Float32,
            T::Float64 => Self::Float64,
            T::Utf8 | T::LargeUtf8 | T::Utf8View => Self::Text,
            _ => return None,
        })
    }
}

impl RowCodec {
    /// The order of two encoded values of a column. Returns None if they are damaged, or not ordered.
    fn compare(&self, column: usize, one: &[u8], other: &[u8]) -> Option<Ordering> {
        Some(match ValueOrder::of_type(&self.columns.get(column)?.plain)? {
            ValueOrder::Signed => number(one, true).cmp(&number(other, true)),
            ValueOrder::Unsigned => number(one, false).cmp(&number(other, false)),
            ValueOrder::Float32 => {
                let float = |bytes: &[u8]| Some(f32::from_le_bytes(bytes.try_into().ok()?));
                float(one)?.total_cmp(&float(other)?)
            }
            ValueOrder::Float64 => {
                let float = |bytes: &[u8]| Some(f64::from_le_bytes(bytes.try_into().ok()?));
                float(one)?.total_cmp(&float(other)?)
            }
            ValueOrder::Text => Cursor(one).bytes()?.cmp(Cursor(other).bytes()?),
        })
    }

    /// Whether bytes are a value of a column.
    pub(crate) fn is_value(&self, column: usize, value: &[u8]) -> bool {
        let mut cursor = Cursor(value);
        let Some(column) = self.columns.get(column) else { return false };
        cursor.skip(&column.shape).is_some() && cursor.0.is_empty()
    }
}

/// Whether a text matches a pattern of LIKE.
fn is_like(text: &str, pattern: &str) -> bool {
    let (mut text, mut pattern) = (text, pattern);
    // What follows the last `%`, and the text at which it was tried.
    let mut last: Option<(&str, &str)> = None;
    loop {
        let mut chars = pattern.chars();
        let (is_any, wanted) = match chars.next() {
            Some('%') => {
                pattern = chars.as_str();
                last = Some((pattern, text));
                continue;
            }
            None if text.is_empty() => return true,
            Some('\\') => (false, chars.next()),
            other => (other == Some('_'), other),
        };
        let mut rest = text.chars();
        let found = rest.next();
        if found.is_some() && (is_any || found == wanted) {
            (text, pattern) = (rest.as_str(), chars.as_str());
            continue;
        }
        let Some((after, from)) = last else { return false };
        let mut later = from.chars();
        if later.next().is_none() {
            return false;
        }
        (pattern, text) = (after, later.as_str());
        last = Some((after, text));
    }
}

/// A whole number, the lowest byte first.
fn number(bytes: &[u8], is_signed: bool) -> i128 {
    let is_negative = is_signed && bytes.last().is_some_and(|last| last & 0x80 != 0);
    let mut wide = [if is_negative { 0xff } else { 0 }; 16];
    let width = bytes.len().min(wide.len());
    wide[..width].copy_from_slice(&bytes[..width]);
    i128::from_le_bytes(wide)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{Field, Schema};

    use super::*;

    #[test]
    fn patterns_are_those_of_like() {
        for (text, pattern, wanted) in [
            ("", "", true),
            ("", "%", true),
            ("a", "", false),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "%b%", true),
            ("abc", "a_c", true),
            ("abc", "_", false),
            ("東京", "東_", true),
            ("aXbXc", "%X_", true),
            ("aXbX", "%X_", false),
            ("abab", "%ab", true),
            ("a%", "a\\%", true),
            ("ab", "a\\%", false),
            ("a_b", "%\\_b", true),
            ("acb", "%\\_b", false),
        ] {
            assert_eq!(is_like(text, pattern), wanted, "{text:?} LIKE {pattern:?}");
        }
    }

    #[test]
    fn conditions_are_unknown_where_a_value_is_null_and_text_is_compared_by_its_bytes() {
        let fields = [("a", DataType::Int32), ("b", DataType::Utf8View), ("c", DataType::Boolean)];
        let fields = fields.map(|(name, of)| Field::new(name, of, true));
        let codec = RowCodec::new(&Arc::new(Schema::new(fields.to_vec()))).unwrap();
        let compare = |column, operator, value: &[u8]| RowCondition::Compare {
            column,
            operator,
            value: value.into(),
        };
        let positive = compare(0, ComparisonOperator::Greater, &0_i32.to_le_bytes());
        let late = compare(1, ComparisonOperator::GreaterOrEqual, b"\x01m");
        let both = RowCondition::And(vec![positive.clone(), late.clone()]);
        let either = RowCondition::Or(vec![positive.clone(), late.clone()]);
        let (minus, plus) = ((-7_i32).to_le_bytes(), 7_i32.to_le_bytes());
        let holds = |condition: &RowCondition, a: Option<&[u8]>, b: Option<&[u8]>| {
            condition.holds(&codec, &|column| if column == 0 { a } else { b })
        };
        let (zoo, ant): (Option<&[u8]>, Option<&[u8]>) = (Some(b"\x03zoo"), Some(b"\x03ant"));
        assert_eq!(holds(&both, Some(&plus), zoo), Some(true));
        assert_eq!(holds(&both, Some(&minus), None), Some(false));
        assert_eq!(holds(&both, Some(&plus), None), None);
        assert_eq!(holds(&either, Some(&minus), ant), Some(false));
        assert_eq!(holds(&either, None, zoo), Some(true));
        assert_eq!(holds(&either, None, ant), None);
        assert_eq!(holds(&RowCondition::Not(Box::new(either.clone())), None, ant), None);
        assert_eq!(holds(&RowCondition::IsNull(0), None, ant), Some(true));
        let has_a = RowCondition::Not(Box::new(RowCondition::IsNull(0)));
        assert!(has_a.follows_from(std::slice::from_ref(&positive)));
        assert!(both.follows_from(&[late.clone(), positive.clone()]));
        assert!(late.follows_from(&[both]) && !positive.follows_from(&[either]));
        assert!(codec.is_value(1, b"\x03zoo") && !codec.is_value(1, b"\x04zoo"));
    }
}
