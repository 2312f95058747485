//! Templates checked against PostgreSQL 15.

use super::NumberTemplate;
use super::digits::{DOUBLE_DIGITS, Number, SINGLE_DIGITS, rounded};
use super::read::read;
use super::write::write;

const ANSWERS: &str = include_str!("answers.tsv");

fn to_char(kind: &str, value: &str, template: &str) -> Result<String, String> {
    let template = NumberTemplate::parse(template)?;
    let float =
        |value: Result<f64, _>| value.map_err(|error: std::num::ParseFloatError| error.to_string());
    let number = match kind {
        "f8" => Number::Float(float(value.parse())?, DOUBLE_DIGITS),
        "f4" => Number::Float(float(value.parse::<f32>().map(f64::from))?, SINGLE_DIGITS),
        _ => Number::Exact(value),
    };
    let mut out = String::new();
    write(&template, number, &mut out);
    Ok(format!("[{out}]"))
}

fn to_number(text: &str, template: &str) -> Result<String, String> {
    let template = NumberTemplate::parse(template)?;
    let digits = rounded(&read(&template, text)?, template.behind, 0);
    let unscaled: f64 = digits.parse().map_err(|error| format!("{error}"))?;
    Ok((unscaled / 10f64.powi((template.behind + template.shift) as i32)).to_string())
}

fn is_same_number(one: &str, other: &str) -> bool {
    let numbers = (one.parse::<f64>(), other.parse::<f64>());
    matches!(numbers, (Ok(one), Ok(other)) if (one - other).abs() <= 1e-9 * other.abs())
}

#[test]
fn numbers_are_written_and_read_as_postgresql_does() {
    let mut compared = 0;
    for line in ANSWERS.lines().filter(|line| !line.starts_with('#')) {
        let parts: Vec<&str> = line.split('\t').collect();
        let [what, kind, value, template, answer] = parts[..] else { panic!("{line}") };
        let given = match what {
            "w" => to_char(kind, value, template),
            _ => to_number(value, template),
        };
        let fits = match (&given, answer) {
            (Err(_), "ERROR") => true,
            (Ok(given), _) if what == "r" => is_same_number(given, answer),
            (Ok(given), _) => given == answer,
            _ => false,
        };
        assert!(fits, "{line}: {given:?}");
        compared += 1;
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn patterns_that_do_not_go_together_are_refused() {
    for (template, word) in [
        ("9.9.9", "multiple decimal points"),
        ("9EEEE9", "must be the last"),
        ("S99S", "twice"),
        ("99MIS", "together"),
        ("PR9", "ahead of"),
        ("9.9V", "together"),
        ("FM9EEEE", "incompatible"),
    ] {
        let why = NumberTemplate::parse(template).expect_err(template);
        assert!(why.contains(word), "{template}: {why}");
    }
}
