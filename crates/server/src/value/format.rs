//! The two formats of values.

/// The format of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text for people.
    #[default]
    Text,
    /// PostgreSQL's binary form.
    Binary,
}

impl Format {
    /// The format of column `at`. A client sends no format (all text), one for all columns, or one per column.
    pub(crate) fn for_column(formats: &[i16], at: usize) -> Self {
        let code = match formats {
            [all] => Some(all),
            each => each.get(at),
        };
        if code.is_some_and(|code| *code == 1) { Self::Binary } else { Self::Text }
    }

    pub(super) fn code(self) -> u16 {
        u16::from(self == Self::Binary)
    }
}
