//! Strategies as text.

use std::fmt;
use std::str::FromStr;

use atoll_topology::{NodeId, SET_NUMBER_MAX, nearest_name};

use super::Strategy;

/// Every form a strategy is written in.
const FORMS: [&str; 11] = [
    "default",
    "aligned",
    "ahead(k)",
    "farthest",
    "interleave",
    "spread",
    "subset(k)",
    "local",
    "preferred(n)",
    "weighted-interleave",
    "replicate",
];

/// Why a text is not a strategy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyParseError {
    /// No strategy has this name.
    #[error("unknown placement strategy '{text}'{}; expected one of {}",
        near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default(), FORMS.join(", "))]
    UnknownName {
        /// The text as given.
        text: String,
        /// The nearest form, when one is near.
        near: Option<&'static str>,
    },
    /// The name is known, its number is missing, superfluous or out of range.
    #[error("invalid placement strategy '{text}': {reason}; expected {form}")]
    BadNumber {
        /// The text as given.
        text: String,
        /// What is wrong with the number.
        reason: String,
        /// The right form.
        form: &'static str,
    },
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.pad("default"),
            Self::Aligned => f.pad("aligned"),
            Self::Ahead(k) => f.pad(&format!("ahead({k})")),
            Self::Farthest => f.pad("farthest"),
            Self::Interleave => f.pad("interleave"),
            Self::Spread => f.pad("spread"),
            Self::Subset(k) => f.pad(&format!("subset({k})")),
            Self::Local => f.pad("local"),
            Self::Preferred(node) => f.pad(&format!("preferred({node})")),
            Self::WeightedInterleave => f.pad("weighted-interleave"),
            Self::Replicate => f.pad("replicate"),
        }
    }
}

impl FromStr for Strategy {
    type Err = StrategyParseError;

    /// Reads a strategy in any case; `1-ahead` is the paper's word for `ahead(1)`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.trim().to_lowercase();
        let (name, number) = split(&lower);
        let form = FORMS.into_iter().find(|form| split(form).0 == name).ok_or_else(|| {
            StrategyParseError::UnknownName { text: text.trim().to_owned(), near: near(name) }
        })?;
        let bad = |reason: String| StrategyParseError::BadNumber {
            text: text.trim().to_owned(),
            reason,
            form,
        };
        with_number(form, number).map_err(bad)
    }
}

/// Name and number of `name(number)`, `number-name` or `name`.
fn split(text: &str) -> (&str, Option<&str>) {
    if let Some((name, number)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        return (name.trim(), Some(number.trim()));
    }
    match text.split_once('-') {
        Some((number, name)) if number.parse::<u32>().is_ok() => (name, Some(number)),
        _ => (text, None),
    }
}

fn with_number(form: &str, number: Option<&str>) -> Result<Strategy, String> {
    match form {
        "ahead(k)" => count(number, 0).map(Strategy::Ahead),
        "subset(k)" => count(number, 1).map(Strategy::Subset),
        "preferred(n)" => count(number, 0).map(|node| Strategy::Preferred(NodeId(node))),
        _ => match number {
            Some(_) => Err("it takes no number".to_owned()),
            None => Ok(without_number(form)),
        },
    }
}

fn without_number(form: &str) -> Strategy {
    match form {
        "aligned" => Strategy::Aligned,
        "farthest" => Strategy::Farthest,
        "interleave" => Strategy::Interleave,
        "spread" => Strategy::Spread,
        "local" => Strategy::Local,
        "weighted-interleave" => Strategy::WeightedInterleave,
        "replicate" => Strategy::Replicate,
        _ => Strategy::Default,
    }
}

fn count(number: Option<&str>, min: u32) -> Result<u32, String> {
    let text = number.ok_or("its number is missing")?;
    let outside = || format!("{text} is not between {min} and {SET_NUMBER_MAX}");
    match text.parse::<u32>() {
        Ok(number) if (min..=SET_NUMBER_MAX).contains(&number) => Ok(number),
        Ok(_) => Err(outside()),
        Err(_) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => Err(outside()),
        Err(_) => Err(format!("'{text}' is not a whole number")),
    }
}

/// The form that a mistyped name probably means.
fn near(name: &str) -> Option<&'static str> {
    let near = nearest_name(name, FORMS.map(|form| split(form).0))?;
    FORMS.into_iter().find(|form| split(form).0 == near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_reads_back_as_it_prints() {
        for strategy in [
            Strategy::Default,
            Strategy::Aligned,
            Strategy::Ahead(2),
            Strategy::Farthest,
            Strategy::Interleave,
            Strategy::Spread,
            Strategy::Subset(3),
            Strategy::Local,
            Strategy::Preferred(NodeId(65_535)),
            Strategy::WeightedInterleave,
            Strategy::Replicate,
        ] {
            assert_eq!(strategy.to_string().parse(), Ok(strategy));
            assert_eq!(strategy.to_string().to_uppercase().parse(), Ok(strategy));
        }
    }

    #[test]
    fn the_papers_spelling_and_blanks_are_accepted() {
        assert_eq!("1-ahead".parse(), Ok(Strategy::Ahead(1)));
        assert_eq!(" Ahead ( 2 ) ".parse(), Ok(Strategy::Ahead(2)));
    }

    #[test]
    fn a_misspelt_name_gets_the_near_one() {
        for (text, near) in [
            ("aligend", Some("aligned")),
            ("weighted_interleave", Some("weighted-interleave")),
            ("prefered(1)", Some("preferred(n)")),
            ("subsets(2)", Some("subset(k)")),
            ("everywhere", None),
            ("", None),
            ("(((((", None),
        ] {
            let error = text.parse::<Strategy>().unwrap_err();
            assert_eq!(
                error,
                StrategyParseError::UnknownName { text: text.to_owned(), near },
                "{error}"
            );
        }
        let message = "aligend".parse::<Strategy>().unwrap_err().to_string();
        assert!(message.contains("did you mean 'aligned'?"), "{message}");
        assert!(message.contains("expected one of default, aligned"), "{message}");
    }

    #[test]
    fn a_bad_number_is_told_with_the_right_form() {
        for (text, reason) in [
            ("ahead", "its number is missing"),
            ("ahead()", "'' is not a whole number"),
            ("ahead(-1)", "'-1' is not a whole number"),
            ("subset(0)", "0 is not between 1 and 65535"),
            ("ahead(99999999999)", "99999999999 is not between 0 and 65535"),
            ("preferred(two)", "'two' is not a whole number"),
            ("aligned(1)", "it takes no number"),
            ("2-spread", "it takes no number"),
        ] {
            let error = text.parse::<Strategy>().unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("expected "), "{text}: {error}");
        }
    }

    #[test]
    fn a_very_long_name_is_refused_quickly() {
        assert!("x".repeat(1 << 20).parse::<Strategy>().is_err());
    }
}
