//! Fresh parameters: the queries with values drawn as TPC-H prescribes (clause 2.4, each query's
//! *Substitution Parameters*), so that no engine profits from having seen a query before.
//!
//! The places are found by the values of the validation run, with which the queries are written.
//! Q11's fraction stays as it is: it depends on the scale factor, not on chance.

use anyhow::{Context, Result, ensure};
use rand::Rng;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, index};

/// The nations with their regions, in the order of their keys.
const NATIONS: [(&str, &str); 25] = [
    ("ALGERIA", "AFRICA"),
    ("ARGENTINA", "AMERICA"),
    ("BRAZIL", "AMERICA"),
    ("CANADA", "AMERICA"),
    ("EGYPT", "MIDDLE EAST"),
    ("ETHIOPIA", "AFRICA"),
    ("FRANCE", "EUROPE"),
    ("GERMANY", "EUROPE"),
    ("INDIA", "ASIA"),
    ("INDONESIA", "ASIA"),
    ("IRAN", "MIDDLE EAST"),
    ("IRAQ", "MIDDLE EAST"),
    ("JAPAN", "ASIA"),
    ("JORDAN", "MIDDLE EAST"),
    ("KENYA", "AFRICA"),
    ("MOROCCO", "AFRICA"),
    ("MOZAMBIQUE", "AFRICA"),
    ("PERU", "AMERICA"),
    ("CHINA", "ASIA"),
    ("ROMANIA", "EUROPE"),
    ("SAUDI ARABIA", "MIDDLE EAST"),
    ("VIETNAM", "ASIA"),
    ("RUSSIA", "EUROPE"),
    ("UNITED KINGDOM", "EUROPE"),
    ("UNITED STATES", "AMERICA"),
];
const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];
const SEGMENTS: [&str; 5] = ["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"];
const SHIP_MODES: [&str; 7] = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];
/// The three words of a part's type.
const TYPES: [&[&str]; 3] = [
    &["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"],
    &["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"],
    &["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"],
];
/// The two words of a part's container.
const CONTAINERS: [&[&str]; 2] = [
    &["SM", "LG", "MED", "JUMBO", "WRAP"],
    &["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"],
];
/// The two words that Q13 looks for in comments.
const COMMENTS: [&[&str]; 2] = [
    &["special", "pending", "unusual", "express"],
    &["packages", "requests", "accounts", "deposits"],
];
/// Words of which the names of parts are made.
const COLORS: &str = "almond antique aquamarine azure beige bisque black blanched blue blush brown \
    burlywood burnished chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep \
    dim dodger drab firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew \
    hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic \
    midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum \
    powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow \
    spring steel tan thistle tomato turquoise violet wheat white yellow";

/// A value of the validation run as it stands in the query, and what takes its place.
type Replacement = (&'static str, String);

/// Query `number` (1 to 22), given in its validation form, with the parameters of one round.
pub(crate) fn fresh(number: u8, text: &str, seed: u64, round: usize) -> Result<String> {
    // Rounds and queries draw from their own streams: leaving a query out changes no other.
    let stream = seed ^ (u64::from(number) << 56) ^ ((round as u64) << 32);
    let mut draw = Draw(StdRng::seed_from_u64(stream));
    replace(text, &replacements(number, &mut draw))
        .with_context(|| format!("query {number} is not in its validation form"))
}

/// Puts all replacements in place in one pass, so that none is replaced again.
fn replace(text: &str, replacements: &[Replacement]) -> Result<String> {
    for (old, _) in replacements {
        ensure!(text.contains(old), "it has no '{old}'");
    }
    let (mut result, mut rest) = (String::with_capacity(text.len()), text);
    // The longer of two matches at a position wins: `1` also matches `10`.
    let next = |rest: &str| {
        let found = replacements.iter().filter_map(|(old, new)| Some((rest.find(old)?, *old, new)));
        found
            .min_by_key(|(at, old, _)| (*at, std::cmp::Reverse(old.len())))
            .map(|(at, old, new)| (at, old.len(), new.clone()))
    };
    while let Some((at, length, new)) = next(rest) {
        result.push_str(&rest[..at]);
        result.push_str(&new);
        rest = &rest[at + length..];
    }
    result.push_str(rest);
    Ok(result)
}

/// The parameters of clauses 2.4.1.3 to 2.4.22.3.
fn replacements(number: u8, draw: &mut Draw) -> Vec<Replacement> {
    match number {
        1 => vec![("interval '90' day", format!("interval '{}' day", draw.number(60, 120)))],
        2 => vec![
            ("p_size = 15", format!("p_size = {}", draw.number(1, 50))),
            ("'%BRASS'", format!("'%{}'", draw.word(TYPES[2]))),
            ("'EUROPE'", quoted(draw.word(&REGIONS))),
        ],
        3 => vec![
            ("'BUILDING'", quoted(draw.word(&SEGMENTS))),
            ("1995-03-15", format!("1995-03-{:02}", draw.number(1, 31))),
        ],
        4 => vec![("1993-07-01", draw.month((1993, 1), (1997, 10)))],
        5 => vec![("'ASIA'", quoted(draw.word(&REGIONS))), ("1994-01-01", draw.year())],
        6 => {
            let discount = draw.number(2, 9);
            vec![
                ("1994-01-01", draw.year()),
                ("0.06", format!("0.{discount:02}")),
                ("l_quantity < 24", format!("l_quantity < {}", draw.number(24, 25))),
            ]
        }
        7 => {
            let [one, other] = draw.different(NATIONS.len());
            let name = |nation: usize| quoted(NATIONS[nation].0);
            vec![("'FRANCE'", name(one)), ("'GERMANY'", name(other))]
        }
        8 => {
            let (nation, region) = draw.nation();
            let kind = format!("'{}'", draw.words(&TYPES));
            vec![
                ("'BRAZIL'", quoted(nation)),
                ("'AMERICA'", quoted(region)),
                ("'ECONOMY ANODIZED STEEL'", kind),
            ]
        }
        9 => vec![("'%green%'", format!("'%{}%'", draw.color()))],
        10 => vec![("1993-10-01", draw.month((1993, 2), (1995, 1)))],
        11 => vec![("'GERMANY'", quoted(draw.nation().0))],
        12 => {
            let [one, other] = draw.different(SHIP_MODES.len());
            vec![
                ("'MAIL'", quoted(SHIP_MODES[one])),
                ("'SHIP'", quoted(SHIP_MODES[other])),
                ("1994-01-01", draw.year()),
            ]
        }
        13 => {
            let words = [draw.word(COMMENTS[0]), draw.word(COMMENTS[1])];
            vec![("'%special%requests%'", format!("'%{}%{}%'", words[0], words[1]))]
        }
        14 => vec![("1995-09-01", draw.month((1993, 1), (1997, 12)))],
        15 => vec![("1996-01-01", draw.month((1993, 1), (1997, 10)))],
        16 => {
            let sizes: [usize; 8] = draw.different(50);
            let sizes = sizes.map(|size| (size + 1).to_string()).join(", ");
            vec![
                ("'Brand#45'", draw.brand()),
                ("'MEDIUM POLISHED%'", format!("'{}%'", draw.words(&TYPES[..2]))),
                ("49, 14, 23, 45, 19, 3, 36, 9", sizes),
            ]
        }
        17 => vec![
            ("'Brand#23'", draw.brand()),
            ("'MED BOX'", format!("'{}'", draw.words(&CONTAINERS))),
        ],
        18 => vec![("> 300", format!("> {}", draw.number(312, 315)))],
        19 => {
            let [one, ten, twenty] = [(1, 10), (10, 20), (20, 30)].map(|(a, b)| draw.number(a, b));
            vec![
                ("'Brand#12'", draw.brand()),
                ("'Brand#23'", draw.brand()),
                ("'Brand#34'", draw.brand()),
                ("l_quantity >= 1", format!("l_quantity >= {one}")),
                ("l_quantity <= 1 +", format!("l_quantity <= {one} +")),
                ("l_quantity >= 10", format!("l_quantity >= {ten}")),
                ("l_quantity <= 10 +", format!("l_quantity <= {ten} +")),
                ("l_quantity >= 20", format!("l_quantity >= {twenty}")),
                ("l_quantity <= 20 +", format!("l_quantity <= {twenty} +")),
            ]
        }
        20 => vec![
            ("'forest%'", format!("'{}%'", draw.color())),
            ("1994-01-01", draw.year()),
            ("'CANADA'", quoted(draw.nation().0)),
        ],
        21 => vec![("'SAUDI ARABIA'", quoted(draw.nation().0))],
        22 => {
            let codes: [usize; 7] = draw.different(NATIONS.len());
            let codes = codes.map(|nation| format!("'{}'", nation + 10)).join(", ");
            vec![("'13', '31', '23', '29', '30', '18', '17'", codes)]
        }
        _ => Vec::new(),
    }
}

fn quoted(text: &str) -> String {
    format!("'{text}'")
}

/// Chance, as TPC-H has it.
struct Draw(StdRng);

impl Draw {
    /// A number from `first` to `last`, both included.
    fn number(&mut self, first: u32, last: u32) -> u32 {
        self.0.random_range(first..=last)
    }

    fn word<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words.choose(&mut self.0).copied().unwrap_or_default()
    }

    /// One word of each list.
    fn words(&mut self, lists: &[&[&'static str]]) -> String {
        let words: Vec<&str> = lists.iter().map(|list| self.word(list)).collect();
        words.join(" ")
    }

    fn color(&mut self) -> &'static str {
        self.word(&COLORS.split_whitespace().collect::<Vec<_>>())
    }

    /// A nation and its region.
    fn nation(&mut self) -> (&'static str, &'static str) {
        NATIONS.choose(&mut self.0).copied().unwrap_or_default()
    }

    /// Numbers below `bound` that all differ.
    fn different<const N: usize>(&mut self, bound: usize) -> [usize; N] {
        let chosen = index::sample(&mut self.0, bound, N);
        std::array::from_fn(|at| chosen.index(at))
    }

    /// `'Brand#12'`: two digits from 1 to 5.
    fn brand(&mut self) -> String {
        format!("'Brand#{}{}'", self.number(1, 5), self.number(1, 5))
    }

    /// The first of January of a year from 1993 to 1997.
    fn year(&mut self) -> String {
        format!("{}-01-01", self.number(1993, 1997))
    }

    /// The first day of a month, both ends (year, month) included.
    fn month(&mut self, first: (u32, u32), last: (u32, u32)) -> String {
        let months = |(year, month): (u32, u32)| year * 12 + month - 1;
        let chosen = self.number(months(first), months(last));
        format!("{}-{:02}-01", chosen / 12, chosen % 12 + 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use atoll_sql::tpch::QUERIES;

    use super::*;

    #[test]
    fn every_query_takes_fresh_parameters_and_keeps_its_shape() {
        for (number, text) in (1..).zip(QUERIES) {
            let rounds: BTreeSet<String> =
                (0..40).map(|round| fresh(number, text, 7, round).expect("it does")).collect();
            assert!(rounds.len() > 1, "query {number} is always the same");
            let lines = |text: &str| text.lines().count();
            assert!(rounds.iter().all(|round| lines(round) == lines(text)), "query {number}");
        }
    }

    #[test]
    fn the_same_seed_and_round_give_the_same_query() {
        let of = |seed, round| fresh(9, QUERIES[8], seed, round).expect("a query");
        assert_eq!(of(1, 2), of(1, 2));
        let seeds: BTreeSet<String> = (0..20).map(|seed| of(seed, 0)).collect();
        assert!(seeds.len() > 5);
    }

    #[test]
    fn a_file_in_place_is_not_replaced_again() {
        let swapped = [("'a'", "'b'".to_owned()), ("'b'", "'a'".to_owned())];
        assert_eq!(replace("'a' and 'b'", &swapped).expect("it fits"), "'b' and 'a'");
        let nested = [("x 1", "x 5".to_owned()), ("x 10", "x 7".to_owned())];
        assert_eq!(replace("x 10, x 1", &nested).expect("it fits"), "x 7, x 5");
    }

    #[test]
    fn a_query_in_another_form_is_refused() {
        let error = fresh(1, "select 1", 0, 0).expect_err("no place for the parameter");
        assert!(format!("{error:#}").contains("interval '90' day"), "{error:#}");
    }

    #[test]
    fn months_stay_between_their_bounds_and_are_all_drawn() {
        let mut draw = Draw(StdRng::seed_from_u64(1));
        let months: BTreeSet<String> =
            (0..2000).map(|_| draw.month((1993, 2), (1995, 1))).collect();
        assert_eq!(months.len(), 24);
        assert_eq!(months.first().map(String::as_str), Some("1993-02-01"));
        assert_eq!(months.last().map(String::as_str), Some("1995-01-01"));
    }
}
