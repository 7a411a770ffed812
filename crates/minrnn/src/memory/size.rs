//! Numbers of bytes in readable form.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The units a size may be written in.
const UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// A number of bytes: `4GiB`, `800MB`, `1.5GiB`, `1048576`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refused = || {
            let units = UNITS.map(|(unit, _)| unit).join(", ");
            Error::Config(format!("expected a size such as 4GiB, 800MB or 1048576, in bytes or one of {units}, found '{text}'"))
        };
        let trimmed = text.trim();
        let end = trimmed.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(trimmed.len());
        let (number, unit) = (trimmed[..end].trim_end(), &trimmed[end..]);
        let factor = match unit {
            "" => 1,
            unit => UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(refused)?.1,
        };
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(factor).filter(|&bytes| bytes > 0).map(Self).ok_or_else(refused);
        }
        let bytes = number.parse::<f64>().map_err(|_| refused())? * factor as f64;
        // Below 2⁶⁴, and not a word such as NaN or infinity.
        if (1.0..1.8e19).contains(&bytes) { Ok(Self(bytes as u64)) } else { Err(refused()) }
    }
}

impl TryFrom<String> for Size {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Size> for String {
    /// The exact size, in the largest unit of which it is a multiple.
    fn from(size: Size) -> Self {
        let fits = |&&(_, factor): &&(&str, u64)| size.0 > 0 && size.0.is_multiple_of(factor);
        let (unit, factor) = UNITS.iter().filter(fits).max_by_key(|(_, factor)| factor).unwrap_or(&UNITS[0]);
        format!("{}{unit}", size.0 / factor)
    }
}

/// Rounded to about three digits: `14.2 MiB`.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&rounded(self.0.into()))
    }
}

/// A number of bytes of any size, rounded to about three digits: `14.2 MiB`.
pub fn rounded(bytes: u128) -> String {
    if bytes > u64::MAX.into() {
        return "more than 16 EiB".to_owned();
    }
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 999.5 && unit + 1 < units.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    let digits = match unit {
        0 => 0,
        _ if value < 9.995 => 2,
        _ if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", units[unit])
}

/// The size of a file, in decimal units: `812 bytes`, `14.2 kB`, `26.90 MB`.
pub fn of_file(bytes: u64) -> String {
    match bytes {
        ..1000 => format!("{bytes} bytes"),
        // A size that would round to 1000.0 kB is a megabyte.
        1000..999_950 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.2} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_file_of_any_size_has_a_size_that_is_not_nothing() {
        let told = [0, 999, 1000, 14_160, 999_949, 999_950, 26_900_000].map(of_file);
        assert_eq!(told, ["0 bytes", "999 bytes", "1.0 kB", "14.2 kB", "999.9 kB", "1.00 MB", "26.90 MB"]);
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in
            [("4GiB", 4 << 30), ("800MB", 800_000_000), (" 1.5 gib ", 3 << 29), ("512 MiB", 512 << 20), ("1048576", 1 << 20), ("7b", 7)]
        {
            assert_eq!(text.parse::<Size>().unwrap(), Size(bytes), "{text}");
        }
        for text in ["", "GiB", "4 gigabytes", "-1GiB", "0", "0MB", "nan", "inf", "1e9", "1e30", "99999999999TiB", "4,5GB"] {
            let refused = text.parse::<Size>().unwrap_err().to_string();
            assert!(refused.contains("such as 4GiB") && refused.contains(&format!("found '{text}'")), "{refused}");
        }
    }

    #[test]
    fn sizes_are_told_with_three_digits() {
        let told = [(0, "0 bytes"), (999, "999 bytes"), (1023, "1.00 KiB"), (14_900_000, "14.2 MiB"), (4 << 30, "4.00 GiB")];
        for (bytes, text) in told {
            assert_eq!(rounded(bytes), text);
        }
        assert_eq!(rounded(u128::MAX), "more than 16 EiB");
        assert_eq!(rounded(u64::MAX.into()), "16.0 EiB");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_exactly(bytes in 1..u64::MAX) {
            prop_assert_eq!(String::from(Size(bytes)).parse::<Size>().unwrap(), Size(bytes));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,12}") {
            let _ = text.parse::<Size>();
        }
    }
}
