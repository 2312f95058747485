//! The strings of the relation, each made of a number.

use std::fmt::Write;

/// How a number becomes a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextForm {
    /// So many capital letters, as the codes of airports and airlines are.
    Letters(u32),
    /// A class of service.
    Cabin,
    /// A code of a fare: four letters, and one way or return.
    FareBasis,
    /// A family name.
    Name,
    /// A currency.
    Currency,
}

const CABINS: [&str; 4] = ["economy", "premium economy", "business", "first"];

const CURRENCIES: [&str; 32] = [
    "EUR", "USD", "GBP", "CHF", "JPY", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "TRY", "AED",
    "SAR", "INR", "CNY", "KRW", "SGD", "THB", "AUD", "NZD", "CAD", "MXN", "BRL", "ARS", "CLP",
    "ZAR", "EGP", "MAD", "ILS", "HKD", "TWD",
];

const SYLLABLES: [&str; 25] = [
    "ba", "ber", "ca", "der", "el", "fi", "gar", "han", "is", "jo", "kel", "la", "mar", "ni", "ol",
    "pe", "qui", "ro", "sen", "ta", "ul", "ver", "wi", "xa", "ze",
];

/// Odd and no multiple of 13: multiplying by it permutes the numbers below every power of 26.
const SPREAD: u64 = 48_271;

impl TextForm {
    /// The string of a number, which is not below zero.
    pub(super) fn text(self, number: i64) -> String {
        let number = number.unsigned_abs();
        match self {
            Self::Letters(count) => letters(number, count),
            Self::Cabin => CABINS[number as usize % CABINS.len()].to_owned(),
            Self::Currency => CURRENCIES[number as usize % CURRENCIES.len()].to_owned(),
            Self::FareBasis => {
                let mut text = letters(number, 4);
                text.push_str(if number.is_multiple_of(3) { "OW" } else { "RT" });
                text
            }
            Self::Name => name(number),
        }
    }
}

fn letters(number: u64, count: u32) -> String {
    let all = 26_u64.pow(count);
    let mut rest = (number % all) * SPREAD % all;
    let mut text = String::with_capacity(count as usize);
    for _ in 0..count {
        text.push(char::from(b'A' + (rest % 26) as u8));
        rest /= 26;
    }
    text
}

fn name(number: u64) -> String {
    let count = SYLLABLES.len() as u64;
    let mut text = String::with_capacity(14);
    let mut rest = number;
    loop {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}", SYLLABLES[(rest % count) as usize]);
        rest /= count;
        if rest == 0 {
            break;
        }
    }
    text[..1].make_ascii_uppercase();
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn different_numbers_have_different_strings() {
        for (form, count) in [
            (TextForm::Letters(2), 676),
            (TextForm::Letters(3), 17_576),
            (TextForm::Cabin, 4),
            (TextForm::FareBasis, 3_000),
            (TextForm::Currency, 32),
        ] {
            let texts: HashSet<String> = (0..count).map(|number| form.text(number)).collect();
            assert_eq!(texts.len(), count as usize, "{form:?}");
        }
        assert_eq!(TextForm::Name.text(26), "Berber");
    }
}
