//! Templates checked against PostgreSQL 15.

use super::items;
use super::read::read;
use super::write::{Moment, write};

fn written(micros: i64, template: &str) -> String {
    let mut out = String::new();
    write(&items(template), Moment { micros, zone: None, offset: 0 }, &mut out);
    out
}

/// A timestamp as PostgreSQL writes it.
fn shown(micros: i64) -> String {
    written(micros, "YYYY-MM-DD HH24:MI:SS.US BC")
}

#[test]
fn moments_are_written_as_postgresql_writes_them() {
    let answers = [
        (1709643849123456, "YYYY-MM-DD HH24:MI:SS", "2024-03-05 13:04:09"),
        (1709643849123456, "Day, DD Month YYYY", "Tuesday  , 05 March     2024"),
        (1709643849123456, "FMDay, FMDD FMMonth YYYY", "Tuesday, 5 March 2024"),
        (1709643849123456, "Dy dd Mon yy", "Tue 05 Mar 24"),
        (1709643849123456, "HH12:MI:SS AM", "01:04:09 PM"),
        (1709643849123456, "HH:MI p.m.", "01:04 p.m."),
        (1709643849123456, "YYYY\"Y\"MM\"M\"", "2024Y03M"),
        (1709643849123456, "DDth Mon", "05th Mar"),
        (1709643849123456, "FMDDTH FMDDDth", "5TH 65th"),
        (1709643849123456, "Q", "1"),
        (1709643849123456, "WW IW IYYY ID", "10 10 2024 2"),
        (1709643849123456, "DDD IDDD", "065 065"),
        (1709643849123456, "J", "2460375"),
        (1709643849123456, "MS US FF1 FF4", "123 123456 1 1234"),
        (1709643849123456, "SSSS SSSSS", "47049 47049"),
        (1709643849123456, "CC", "21"),
        (1709643849123456, "Y,YYY", "2,024"),
        (1709643849123456, "RM rm FMRM|", "III  iii  III|"),
        (1709643849123456, "W D", "1 3"),
        (1709643849123456, "TZ OF TZH TZM", " +00 +00 00"),
        (1709643849123456, "AD B.C.", "AD A.D."),
        (1709643849123456, "YYY YY Y IYY IY I", "024 24 4 024 24 4"),
        (1709643849123456, "hello", "hello"),
        (1709643849123456, "Yyyy", "4024"),
        (1709643849123456, "FXYYYY", "2024"),
        (1709643849123456, "day DAY Day|", "tuesday   TUESDAY   Tuesday  |"),
        (1709643849123456, "TMMonth", "March"),
        (1709643849123456, "month|mon MON", "march    |mar MAR"),
        (1709643849123456, "\\\"x", "\"x"),
        (1709643849123456, "FMHH24 FMMI FMSS FMMM FMDD FMIW FMYY", "13 4 9 3 5 10 24"),
        (-63517824000000000, "YYYY-MM-DD BC", "0044-03-15 BC"),
        (-63517824000000000, "CC Y,YYY YY", "-01 0,044 44"),
        (-63517824000000000, "IYYY-IW-ID IDDD", "0044-11-5 075"),
        (-63517824000000000, "HH12 AM HH24 D", "12 AM 00 6"),
        (-63517824000000000, "WW W Q J", "11 3 1 1705428"),
        (-63517824000000000, "FMDDth FMMonth", "15th March"),
        (1609675200000000, "YYYY-MM-DD BC", "2021-01-03 AD"),
        (1609675200000000, "CC Y,YYY YY", "21 2,021 21"),
        (1609675200000000, "IYYY-IW-ID IDDD", "2020-53-7 371"),
        (1609675200000000, "HH12 AM HH24 D", "12 PM 12 1"),
        (1609675200000000, "WW W Q J", "01 1 1 2459218"),
        (1609675200000000, "FMDDth FMMonth", "3rd January"),
        (1735518600000000, "YYYY-MM-DD BC", "2024-12-30 AD"),
        (1735518600000000, "CC Y,YYY YY", "21 2,024 24"),
        (1735518600000000, "IYYY-IW-ID IDDD", "2025-01-1 001"),
        (1735518600000000, "HH12 AM HH24 D", "12 AM 00 2"),
        (1735518600000000, "WW W Q J", "53 5 4 2460675"),
        (1735518600000000, "FMDDth FMMonth", "30th December"),
        (946684799999999, "YYYY-MM-DD BC", "1999-12-31 AD"),
        (946684799999999, "CC Y,YYY YY", "20 1,999 99"),
        (946684799999999, "IYYY-IW-ID IDDD", "1999-52-5 362"),
        (946684799999999, "HH12 AM HH24 D", "11 PM 23 6"),
        (946684799999999, "WW W Q J", "53 5 4 2451544"),
        (946684799999999, "FMDDth FMMonth", "31st December"),
    ];
    for (micros, template, answer) in answers {
        assert_eq!(written(micros, template), answer, "{template} of {}", shown(micros));
    }
}

#[test]
fn texts_are_read_as_postgresql_reads_them() {
    let answers = [
        ("05 Mar 2024", "DD Mon YYYY", Some("2024-03-05 00:00:00.000000 AD")),
        ("2024-03-05", "YYYY-MM-DD", Some("2024-03-05 00:00:00.000000 AD")),
        ("20240305", "YYYYMMDD", Some("2024-03-05 00:00:00.000000 AD")),
        ("2024-3-5", "YYYY-MM-DD", Some("2024-03-05 00:00:00.000000 AD")),
        (
            "2024-03-05 13:04:09.5",
            "YYYY-MM-DD HH24:MI:SS.MS",
            Some("2024-03-05 13:04:09.500000 AD"),
        ),
        ("05/03/24 01:04 PM", "DD/MM/YY HH12:MI AM", Some("2024-03-05 13:04:00.000000 AD")),
        ("2000JUN", "YYYY///MON", Some("2000-06-01 00:00:00.000000 AD")),
        ("2000/JUN", "YYYY MON", Some("2000-06-01 00:00:00.000000 AD")),
        ("2000//JUN", "YYYY/MON", None),
        ("  2000  JUN  ", "YYYY MON", Some("2000-06-01 00:00:00.000000 AD")),
        ("March 5, 2024", "FMMonth DD, YYYY", Some("2024-03-05 00:00:00.000000 AD")),
        ("5th March 2024", "DDth Month YYYY", Some("2024-03-05 00:00:00.000000 AD")),
        ("2024-065", "YYYY-DDD", Some("2024-03-05 00:00:00.000000 AD")),
        ("2024-10", "IYYY-IW", Some("2024-03-04 00:00:00.000000 AD")),
        ("2024-10-3", "IYYY-IW-ID", Some("2024-03-06 00:00:00.000000 AD")),
        ("2024-10-7", "IYYY-IW-ID", Some("2024-03-10 00:00:00.000000 AD")),
        ("95", "YY", Some("1995-01-01 00:00:00.000000 AD")),
        ("24", "YY", Some("2024-01-01 00:00:00.000000 AD")),
        ("024", "YYY", Some("2024-01-01 00:00:00.000000 AD")),
        ("2024-02-30", "YYYY-MM-DD", None),
        ("2024-13-01", "YYYY-MM-DD", None),
        ("44-03-15 BC", "YYYY-MM-DD BC", Some("0044-03-15 00:00:00.000000 BC")),
        ("05", "DD", Some("0001-01-05 00:00:00.000000 BC")),
        ("", "YYYY", Some("0001-01-01 00:00:00.000000 BC")),
        ("2460375", "J", Some("2024-03-05 00:00:00.000000 AD")),
        ("xx", "YYYY", None),
        ("2024", "YYYYMM", Some("2024-01-01 00:00:00.000000 AD")),
        ("20-24", "YYYY-MM", None),
        ("15 PM", "HH12 AM", None),
        ("45000", "SSSSS", Some("0001-01-01 12:30:00.000000 BC")),
        ("2024-03-05 12:30", "YYYY-MM-DD HH24:MI", Some("2024-03-05 12:30:00.000000 AD")),
        ("2024-03-05T12:30", "YYYY-MM-DD\"T\"HH24:MI", Some("2024-03-05 12:30:00.000000 AD")),
        ("2024-03-05 25:00", "YYYY-MM-DD HH24:MI", None),
        ("2024-03-05 12:00 +02", "YYYY-MM-DD HH24:MI TZH", Some("2024-03-05 10:00:00.000000 AD")),
        (
            "2024-03-05 12:00 -02:30",
            "YYYY-MM-DD HH24:MI TZH:TZM",
            Some("2024-03-05 14:30:00.000000 AD"),
        ),
        ("2024 Q1", "YYYY \"Q\"Q", Some("2024-01-01 00:00:00.000000 AD")),
        ("2,024", "Y,YYY", Some("2024-01-01 00:00:00.000000 AD")),
        ("21 24", "CC YY", Some("2024-01-01 00:00:00.000000 AD")),
        ("21", "CC", Some("2001-01-01 00:00:00.000000 AD")),
        ("2024-03-05 junk", "YYYY-MM-DD", Some("2024-03-05 00:00:00.000000 AD")),
        ("2024-MARCH-05", "YYYY-MON-DD", None),
        ("xii 2024", "rm YYYY", Some("2024-12-01 00:00:00.000000 AD")),
        ("2024-05", "YYYY-WW", Some("2024-01-29 00:00:00.000000 AD")),
        ("03 2 2024", "MM W YYYY", Some("2024-03-08 00:00:00.000000 AD")),
        ("2024-03", "YYYY-IW", None),
        ("2024 2025", "YYYY YYYY", None),
        ("1.5", "SS.MS", Some("0001-01-01 00:00:01.500000 BC")),
        ("12:34:56.78", "HH24:MI:SS.US", Some("0001-01-01 12:34:56.780000 BC")),
        ("Tue 2024-03-05", "Dy YYYY-MM-DD", Some("2024-03-05 00:00:00.000000 AD")),
        ("2024-03-05", "FXYYYY-MM-DD", Some("2024-03-05 00:00:00.000000 AD")),
        ("2024-3-5", "FXYYYY-MM-DD", Some("2024-03-05 00:00:00.000000 AD")),
        ("12345-01-01", "YYYY-MM-DD", Some("12345-01-01 00:00:00.000000 AD")),
        ("  2024-03-05", "YYYY-MM-DD", Some("2024-03-05 00:00:00.000000 AD")),
        ("2024- 3- 5", "YYYY-MM-DD", Some("2024-03-05 00:00:00.000000 AD")),
        ("20240305", "YYYY-MM-DD", None),
        ("05.03.2024", "DD.MM.YYYY", Some("2024-03-05 00:00:00.000000 AD")),
    ];
    for (text, template, answer) in answers {
        let moment = read(&items(template), text);
        let found = moment.as_ref().ok().map(|micros| shown(*micros));
        assert_eq!(found.as_deref(), answer, "'{text}' by '{template}': {moment:?}");
    }
}

#[test]
fn zones_are_written_for_timestamps_that_have_one() {
    let micros = 1_709_643_849_000_000;
    let mut out = String::new();
    let moment = Moment { micros, zone: Some("Asia/Kolkata"), offset: 330 };
    write(&items("HH24:MI OF TZH:TZM TZ"), moment, &mut out);
    assert_eq!(out, "13:04 +05:30 +05:30 ASIA/KOLKATA");
}

#[test]
fn any_text_is_read_or_refused() {
    let mut state = 7_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let pieces = [
        "YYYY",
        "MM",
        "DD",
        "HH24",
        "HH12",
        "MI",
        "SS",
        "US",
        "AM",
        "J",
        "IYYY",
        "IW",
        "ID",
        "DDD",
        "CC",
        "Y,YYY",
        "FM",
        "FX",
        "TH",
        "TZH",
        "Month",
        "RM",
        "W",
        "-",
        " ",
        "é",
        "\"",
        "\\",
        "2024",
        "13",
        "+",
        "99999999999",
    ];
    for _ in 0..20_000 {
        let mut text =
            |count: usize| -> String { (0..count).map(|_| pieces[next(pieces.len())]).collect() };
        let (template, text) = (text(5), text(4));
        if let Ok(micros) = read(&items(&template), &text) {
            let _ = written(micros, &template);
        }
    }
}
