//! Phrases that no database engineer would write: a noun denied with "no" instead of "not a", persons
//! where a thing is meant, and a clause that ends in "has" and "not". Words are compared across line
//! ends and comment markers, so a phrase is found wherever its lines are broken. The lists are written
//! so that this file obeys its own rule.

use super::{Check, File, SourceTree, TidyFinding};
use crate::tidy::source::rust_code::line_of;

/// Persons in place of the thread, reader or value that is meant.
pub(crate) const PERSONS: [&str; 6] = [
    concat!("no", "body"),
    concat!("who", "ever"),
    concat!("every", "body"),
    concat!("any", "body"),
    concat!("some", "one"),
    concat!("some", "body"),
];

/// What may follow "is no".
const AFTER_IS_NO: [&str; 6] = ["more", "longer", "other", "less", "such", "one"];

pub(crate) struct PlainEnglish;

impl Check for PlainEnglish {
    fn name(&self) -> &'static str {
        "plain_english"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        let files = tree.files().filter(|file| is_ours(file));
        files.flat_map(|file| file.text.iter().flat_map(|text| of_text(file, text))).collect()
    }
}

/// Sources, documents and descriptions of machines; SQL and recorded output may hold any word.
fn is_ours(file: &File) -> bool {
    let extension = file.name().rsplit_once('.').map(|(_, extension)| extension);
    matches!(extension, Some("rs" | "md" | "toml" | "h" | "c" | "sh" | "py"))
}

fn of_text(file: &File, text: &str) -> Vec<TidyFinding> {
    let words = words(text);
    let mut found = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| words.get(i)).map_or("", Word::before_next);
        let (next, after) = (word.next(&words, i, 1), word.next(&words, i, 2));
        if PERSONS.contains(&word.lower.as_str()) {
            let instead = "name the thread, reader, writer or value, or say 'unknown'";
            found.push(finding(file, text, word, format!("'{}'", word.lower), instead));
        } else if is_no(&word.lower, next, after) && !matches!(before, "there" | "where" | "here") {
            let what = format!("'{} no {}'", word.lower, after.unwrap_or_default());
            let instead =
                "'is not a …'; in a message 'unknown …', 'invalid …' or '… does not exist'";
            found.push(finding(file, text, word, what, instead));
        } else if lacks(&word.lower, next) && ends_clause(text, &words[i + 1]) {
            let what = format!("'{} not' at the end of a clause", word.lower);
            found.push(finding(file, text, word, what, "'does not have', 'lacks' or 'without'"));
        }
    }
    found
}

/// A noun denied.
fn is_no(word: &str, next: Option<&str>, after: Option<&str>) -> bool {
    matches!(word, "is" | "are" | "was" | "were")
        && next == Some("no")
        && after.is_some_and(|after| !AFTER_IS_NO.contains(&after))
}

fn lacks(word: &str, next: Option<&str>) -> bool {
    matches!(word, "has" | "have" | "had") && next == Some("not")
}

fn ends_clause(text: &str, not: &Word) -> bool {
    text[not.end..].starts_with(['.', ',', ';', ')', '"'])
}

/// A word, and whether only blanks and comment markers lie between it and the next one.
struct Word {
    lower: String,
    start: usize,
    end: usize,
    joined: bool,
}

impl Word {
    /// The word `steps` after this one, if only blanks and comment markers lie between.
    fn next<'a>(&self, words: &'a [Self], at: usize, steps: usize) -> Option<&'a str> {
        let joined = words[at..].iter().take(steps).all(|word| word.joined);
        joined.then(|| words.get(at + steps)).flatten().map(|word| word.lower.as_str())
    }

    /// The word if it directly precedes the next one, else empty.
    fn before_next(&self) -> &str {
        if self.joined { &self.lower } else { "" }
    }
}

fn words(text: &str) -> Vec<Word> {
    // An identifier is several words: names of tests are sentences.
    let is_letter = char::is_alphabetic;
    let mut words: Vec<Word> = Vec::new();
    let mut rest = 0;
    while let Some(start) = text[rest..].find(is_letter).map(|at| rest + at) {
        let end = text[start..].find(|c| !is_letter(c)).map_or(text.len(), |at| start + at);
        let between = &text[rest..start];
        if let Some(last) = words.last_mut() {
            last.joined = between.chars().all(|c| c.is_whitespace() || "/!*#\\".contains(c));
        }
        words.push(Word { lower: text[start..end].to_lowercase(), start, end, joined: false });
        rest = end;
    }
    words
}

fn finding(file: &File, text: &str, word: &Word, what: String, instead: &str) -> TidyFinding {
    TidyFinding {
        path: file.path.clone(),
        line: Some(line_of(text, word.start)),
        what,
        instead: instead.to_owned(),
        because: "a message is read once and in a hurry: it names the thing, what is wrong, \
                  and what is expected",
    }
}
