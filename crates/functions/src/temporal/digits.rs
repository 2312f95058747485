//! Integers to decimal digits.

/// The digits of 0 to 99.
const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Writes an integer.
pub fn write_i64(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    write_u64(value.unsigned_abs(), out);
}

/// Writes an integer.
pub fn write_u64(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value >= 10 {
        let pair = value as usize * 2;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        digits[at] = b'0' + value as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

/// Writes two digits.
pub(super) fn write_pair(value: u32, out: &mut Vec<u8>) {
    let pair = (value % 100) as usize * 2;
    out.extend_from_slice(&PAIRS[pair..pair + 2]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_whole() {
        let text = |value| {
            let mut out = b"x".to_vec();
            write_i64(value, &mut out);
            String::from_utf8(out.split_off(1)).expect("it is text")
        };
        for value in [0, 7, -7, 10, 99, 100, -12_345, i64::MAX, i64::MIN] {
            assert_eq!(text(value), value.to_string());
        }
    }
}
