//! The two forms of values.

/// The form of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// As people read them.
    #[default]
    Text,
    /// As PostgreSQL's types define it.
    Binary,
}

impl Format {
    /// The form of column `at`, as clients ask for it: none for all as text, one for all alike, or one for each.
    pub(crate) fn of(formats: &[i16], at: usize) -> Self {
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
