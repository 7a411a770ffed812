//! Tables as JSON Lines (NDJSON): an object on each line, whose keys are the columns.
//!
//! The first object names the columns. A key that a later object lacks, or null, is an empty cell.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;

use serde::Deserializer as _;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::super::cells::{Cell, Place};
use super::super::clock::Clock;
use super::super::columns::Positions;
use super::super::frame::Filling;
use super::super::limit::TableLimit;
use super::lines::Lines;
use super::{Format, Reader};
use crate::suggestion::suggestion;
use crate::{Error, Result};

pub(super) const FORMAT: Format = Format {
    extensions: &["ndjson", "jsonl", "json"],
    magic: &[],
    begins: |text| {
        let mut rest = text.chars().filter(|c| !c.is_whitespace());
        matches!((rest.next(), rest.next()), (Some('{'), Some('"' | '}')) | (Some('['), Some('{')))
    },
    open: |input| Ok(Box::new(Objects { limit: input.limit, ..Objects::open(input.whole())? })),
};

/// Maximum number of keys of an object.
const MAX_COLUMNS: usize = 1 << 16;

/// A value of an object.
#[derive(Debug, Clone, PartialEq, Default)]
enum Value {
    #[default]
    Null,
    Number(f64),
    Whole(i128),
    Bool(bool),
    Text(String),
    /// A list or an object.
    Nested(&'static str),
}

/// The content of a column.
#[derive(Debug)]
struct Held {
    value: Value,
    /// The line it came from: on a later line the column counts as empty, so cells that an object lacks need not be cleared.
    line: u64,
}

/// A table whose first object has been read.
struct Objects<R> {
    lines: Lines<R>,
    header: Vec<String>,
    places: HashMap<String, usize>,
    row: Vec<Held>,
    /// An object may lack keys of the first one, so a cell may take no bytes.
    limit: Option<TableLimit>,
}

impl<R: Read> Objects<R> {
    fn open(source: R) -> Result<Self> {
        let mut lines = Lines::new(source);
        if !lines.advance()? {
            return Err(Error::Data("it is empty; expected an object on each line".to_owned()));
        }
        let mut table = Self { lines, header: Vec::new(), places: HashMap::new(), row: Vec::new(), limit: None };
        table.parse(true)?;
        Ok(table)
    }

    /// Reads the current line into the row; the first one names the columns.
    fn parse(&mut self, is_first: bool) -> Result<()> {
        let (line, text) = (self.lines.number(), self.lines.text()?);
        if text.starts_with('[') {
            return Err(Error::Data(format!(
                "line {line} begins a list, expected an object; write one object on each line (JSON Lines; of pandas, orient = 'records' and \
                 lines = True)"
            )));
        }
        let mut json = serde_json::Deserializer::from_str(text);
        let keys = Keys { header: &mut self.header, places: &mut self.places, row: &mut self.row, line, is_first };
        let read = json.deserialize_map(keys).and_then(|()| json.end());
        read.map_err(|error| {
            let cut = if error.is_eof() { "; is the file cut short?" } else { "" };
            // The column alone gives the place within the line.
            let problem = error.to_string().replace(" at line 1 column ", " at character ");
            Error::Data(format!("line {line} is not an object of JSON: {problem}{cut}"))
        })
    }
}

impl<R: Read> Reader for Objects<R> {
    fn header(&self) -> &[String] {
        &self.header
    }

    fn limit(&self) -> Option<TableLimit> {
        self.limit
    }

    fn dates(&mut self) -> Result<Vec<bool>> {
        Ok(self.row.iter().map(|held| matches!(&held.value, Value::Text(text) if Clock::is_date(text))).collect())
    }

    fn read(mut self: Box<Self>, positions: &Positions, filling: &mut Filling) -> Result<()> {
        loop {
            let line = self.lines.number();
            filling.begin_row(line)?;
            let place = Place::Line(line);
            let cell = |at: usize| match &self.row[at].value {
                _ if self.row[at].line != line => Ok(Cell::Missing),
                Value::Null => Ok(Cell::Missing),
                Value::Number(number) => Ok(Cell::Real(*number)),
                Value::Whole(number) => Ok(Cell::Whole(*number)),
                Value::Bool(flag) => Ok(Cell::Bool(*flag)),
                Value::Text(text) => Ok(Cell::Text(text)),
                Value::Nested(kind) => Err(Error::Data(format!(
                    "{place}: the column '{}' holds {kind}, expected one value in each row; write a row for each step",
                    self.header[at]
                ))),
            };
            for (&at, texts) in positions.texts.iter().zip(&mut filling.texts) {
                texts.push(cell(at)?, place)?;
            }
            if let (Some(at), Some(times)) = (positions.time, &mut filling.times) {
                times.push(cell(at)?, place)?;
            }
            for (&at, numbers) in positions.numbers.iter().zip(&mut filling.numbers) {
                numbers.push(cell(at)?, place)?;
            }
            if !self.lines.advance()? {
                return Ok(());
            }
            self.parse(false)?;
        }
    }
}

/// The keys and values of an object.
struct Keys<'a> {
    header: &'a mut Vec<String>,
    places: &'a mut HashMap<String, usize>,
    row: &'a mut Vec<Held>,
    /// The number of its line, from 1.
    line: u64,
    is_first: bool,
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a value for each column")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(Name)? {
            let key = key.trim();
            let at = match self.places.get(key) {
                Some(&at) => at,
                None if self.is_first && self.header.len() < MAX_COLUMNS => {
                    self.places.insert(key.to_owned(), self.header.len());
                    self.header.push(key.to_owned());
                    self.row.push(Held { value: Value::Null, line: 0 });
                    self.header.len() - 1
                }
                None if self.is_first => return Err(A::Error::custom(format!("it has more than {MAX_COLUMNS} keys"))),
                None => {
                    let names = suggestion(key, self.header.iter().map(String::as_str));
                    return Err(A::Error::custom(format!("it has the key '{key}', which the first object lacks{names}")));
                }
            };
            if self.row[at].line == self.line {
                return Err(A::Error::custom(format!("it has the key '{key}' twice")));
            }
            self.row[at] = Held { value: map.next_value_seed(One)?, line: self.line };
        }
        Ok(())
    }
}

/// A key, borrowed where it holds no escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = std::borrow::Cow<'de, str>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = std::borrow::Cow<'de, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(text.into())
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(text.to_owned().into())
            }
        }
        from.deserialize_str(Text)
    }
}

/// A value of any kind; the contents of lists and objects are skipped.
struct One;

impl<'de> DeserializeSeed<'de> for One {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for One {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Whole(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Whole(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Nested("lists"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Nested("objects"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::table::{Frame, Numbers, TimeColumn, Wanted};

    fn read(text: &[u8]) -> Result<Frame> {
        let wanted = Wanted {
            numbers: Numbers::Named(vec!["x".to_owned()]),
            texts: vec!["id".to_owned()],
            time: TimeColumn::Found,
            may_miss: true,
            ..Wanted::default()
        };
        super::super::frame(Box::new(Objects::open(text)?), &wanted)
    }

    fn refusal(text: &str) -> String {
        read(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn keys_may_stand_in_any_order_and_values_may_be_missing() {
        let frame =
            read(b"{\"id\": \"a\", \"x\": 1.5, \"n\": [1]}\n\n {\"x\": null, \"id\": 7}\r\n{\"id\": true, \"x\": true}\n{\"id\": 7}")
                .unwrap();
        assert_eq!((frame.numbers[0][0], frame.numbers[0][1].is_nan(), frame.numbers[0][2]), (1.5, true, 1.0));
        assert!(frame.numbers[0][3].is_nan(), "a key that an object lacks is a missing value, not that of the object before");
        assert_eq!((frame.texts[0].distinct(), frame.texts[0].rows()), (&["a", "7", "true"].map(str::to_owned)[..], &[0, 1, 2, 1][..]));
        assert_eq!([0, 1, 2].map(|row| frame.places.name(row)), ["line 1", "line 3", "line 4"]);
        let dated = read(b"{\"id\":1,\"x\":2,\"ds\":\"2024-01-01\"}\n{\"id\":1,\"x\":3,\"ds\":\"2024-01-02\"}").unwrap();
        assert_eq!(dated.times.unwrap().values, [1_704_067_200_000.0, 1_704_153_600_000.0]);
    }

    #[test]
    fn every_flaw_is_a_sentence_with_its_place() {
        assert!(refusal("").starts_with("it is empty"));
        assert!(refusal("[{\"id\":1}]").starts_with("line 1 begins a list, expected an object; write one object on each line"));
        assert!(
            refusal("{\"id\":1,\"x\":1}\n{\"id\":1,\"x\":1,\"x\":null}")
                .contains("line 2 is not an object of JSON: it has the key 'x' twice")
        );
        assert_eq!(refusal("{\"id\":1,\"x\":1,\"x\":2}"), "line 1 is not an object of JSON: it has the key 'x' twice at character 17");
        assert!(
            refusal("{\"id\":1,\"x\":1}\n{\"id\":1,\"xs\":2}")
                .contains("line 2 is not an object of JSON: it has the key 'xs', which the first")
        );
        assert!(refusal("{\"id\":1,\"x\":1}\n{\"id\":1,\"x\":").contains("is the file cut short?"));
        assert!(
            refusal("{\"id\":1,\"x\":1}\n7").contains("line 2 is not an object of JSON: invalid type: integer `7`, expected an object")
        );
        assert!(refusal("{\"id\":1,\"x\":1} {\"id\":1,\"x\":1}").contains("trailing characters"));
        assert!(refusal("{\"id\":1,\"x\":1}\n{\"id\":1,\"x\":[1,2]}").starts_with("line 2: the column 'x' holds lists"));
        assert!(refusal("{\"id\":{},\"x\":1}").starts_with("line 1: the column 'id' holds objects"));
        assert_eq!(
            refusal("{\"id\":1,\"x\":1}\n{\"id\":1,\"x\":\"two\"}"),
            "line 2: the column 'x' holds texts such as 'two', expected numbers"
        );
        assert!(refusal("{\"id\":1,\"x\":1e308}").contains("expected a number of at most 3.4e38 in size, found '1e308'"));
        assert!(refusal("{\"id\":1,\"x\":1e999}").contains("number out of range"));
        assert_eq!(refusal("{\"id\":null,\"x\":1}"), "line 1, column 'id': the cell is empty, expected a name");
        assert_eq!(refusal("{\"id\":1,\"xs\":1}"), "there is no column 'x'; did you mean 'xs'?");
        assert!(refusal(&format!("{{\"id\":1,\"x\":{}", "[".repeat(1 << 16))).contains("is the file cut short?"));
        assert!(read(b"{\"id\":1,\"x\":\"\xff\"}").unwrap_err().to_string().contains("line 1: it is not UTF-8"));
    }

    #[test]
    fn objects_that_lack_what_the_first_one_has_count_as_if_they_had_it() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let wanted = Wanted { may_miss: true, ..Wanted::named(&names.map(str::to_owned), Vec::new()) };
        let rows = |rest: &str| serde_json::json!(of_ones(names)).to_string() + "\n" + &rest.repeat(20);
        let read = |text: &str| {
            let limit = Some(TableLimit::of_text(text.len()));
            super::super::frame(Box::new(Objects { limit, ..Objects::open(text.as_bytes())? }), &wanted)
        };
        let sentence = read(&rows("{}\n")).unwrap_err().to_string();
        assert!(sentence.contains("cells in the 6 columns that are read, expected at most"), "{sentence}");
        let whole = serde_json::json!(of_ones(names)).to_string() + "\n";
        assert_eq!(read(&rows(&whole)).unwrap().n_rows(), 21);
    }

    /// A row of ones.
    fn of_ones(names: [&str; 6]) -> std::collections::BTreeMap<&str, u8> {
        names.map(|name| (name, 1)).into()
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_back(rows in prop::collection::vec(("[a-z\"\\\\é]{0,9}[a-z]", -1e12..1e12f64), 1..40)) {
            let line = |(name, x): &(String, f64)| serde_json::json!({"x": x, "id": name}).to_string() + "\n";
            let frame = read(rows.iter().map(line).collect::<String>().as_bytes()).unwrap();
            prop_assert_eq!(&frame.numbers[0], &rows.iter().map(|row| row.1).collect::<Vec<_>>());
            let names: Vec<&str> = frame.texts[0].rows().iter().map(|&id| frame.texts[0].distinct()[id as usize].as_str()).collect();
            prop_assert_eq!(names, rows.iter().map(|row| row.0.as_str()).collect::<Vec<_>>());
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(prop_oneof![Just(b'{'), Just(b'"'), Just(b'x'), Just(b':'), Just(b'}'), any::<u8>()], 0..200)) {
            let _ = read(&bytes);
            let _ = read(&[b"{\"id\":1,\"x\":2}\n", &bytes[..]].concat());
        }
    }
}
