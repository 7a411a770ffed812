//! Columns being filled cell by cell.

use std::fmt;
use std::sync::Arc;

use minrnn_model::{MAX_CATEGORIES, UNSEEN};

use super::category_names::CategoryNames;
use super::clock::Clock;
use super::missing::{is_missing, is_nothing};
use super::texts::Texts;
use super::unseen_names::UnseenNames;
use super::values::{Values, ValuesWriter};
use crate::{Error, Result};

/// The place of a cell in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A line, counted from 1.
    Line(u64),
    /// A row, counted from 0, of a file without lines.
    Row(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Row(row) => write!(f, "row {}", row + 1),
        }
    }
}

/// The content of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cell<'a> {
    /// Nothing.
    Missing,
    /// A cell of a file without types: a number, a time or a name, depending on the reader.
    Any(&'a str),
    /// An integer, which may also be a name.
    Whole(i128),
    /// A number.
    Real(f64),
    /// True or false, 1 or 0.
    Bool(bool),
    /// A text.
    Text(&'a str),
    /// Milliseconds since 1970.
    Time(f64),
    /// Nanoseconds since 1970.
    Nanoseconds(i64),
}

/// Maximum number of characters of a cell that are shown.
const SHOWN: usize = 40;
/// Nanoseconds in a millisecond.
pub(super) const OF_MILLISECOND: f64 = 1e6;

/// What is expected instead of `number`, if a model cannot read it: its inputs are 32-bit floats.
fn flaw(number: f64) -> Option<&'static str> {
    match number.abs() {
        size if !size.is_finite() => Some("a finite number"),
        size if size > f64::from(f32::MAX) => Some("a number of at most 3.4e38 in size"),
        _ => None,
    }
}

/// The part of a cell that is shown.
pub(super) fn shown(cell: &str) -> String {
    cell.chars().take(SHOWN).collect()
}

/// The error for a missing value where a number is needed.
fn missing(place: Place, column: &str, found: &str) -> Error {
    Error::Data(format!(
        "{place}, column '{column}': expected a finite number, found '{}', a missing one; fill it, leave the row or the column out, or train with \
         missing = mask or forward-fill",
        shown(found)
    ))
}

impl Cell<'_> {
    /// `digits` with the decimal point before the last `scale` of them; a negative `scale` appends zeros.
    pub fn decimal(digits: i128, scale: i32) -> Self {
        if scale == 0 { Self::Whole(digits) } else { Self::real_decimal(digits as f64, scale) }
    }

    /// As [`decimal`](Self::decimal), for digits that may be too many for an integer.
    pub fn real_decimal(digits: f64, scale: i32) -> Self {
        let unit = 10f64.powi(scale.saturating_abs());
        Self::Real(if scale < 0 { digits * unit } else { digits / unit })
    }

    /// Whether it is a date rather than a number, by its type or as a text.
    pub fn is_date(&self) -> bool {
        match self {
            Self::Any(text) | Self::Text(text) => Clock::is_date(text),
            Self::Time(_) | Self::Nanoseconds(_) => true,
            Self::Missing | Self::Whole(_) | Self::Real(_) | Self::Bool(_) => false,
        }
    }

    /// Length in bytes of the text in the cell; 0 for other cells.
    pub fn text_len(&self) -> usize {
        match self {
            Self::Any(text) | Self::Text(text) => text.len(),
            Self::Missing | Self::Whole(_) | Self::Real(_) | Self::Bool(_) | Self::Time(_) | Self::Nanoseconds(_) => 0,
        }
    }

    /// The cell as a name, without surrounding blanks; empty for an empty cell.
    pub fn name(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Missing => "".into(),
            // Tables with typed columns represent a missing number like this.
            Self::Real(number) if number.is_nan() => "".into(),
            Self::Any(text) | Self::Text(text) => text.trim().into(),
            Self::Whole(number) => number.to_string().into(),
            Self::Real(number) => number.to_string().into(),
            Self::Bool(flag) => (if *flag { "true" } else { "false" }).into(),
            Self::Time(time) => Clock::TYPED.write(*time).into(),
            Self::Nanoseconds(time) => Clock::TYPED.write(*time as f64 / OF_MILLISECOND).into(),
        }
    }
}

/// What the cells of a column of numbers may be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// Numbers.
    Numbers,
    /// Numbers or names, depending on the first cell that is not empty.
    Open,
    /// Names, each read as its index among those found so far.
    Names(Texts),
    /// Names known from training; any other is [`UNSEEN`].
    Known(CategoryNames),
}

/// Maximum number of columns listed to choose from.
const LISTED: usize = 32;

/// What to do about a column that holds no numbers, where the columns `all` are read because none was asked for: they are listed to choose from, if they
/// are few and no name contains a comma.
pub(super) fn how_to_choose(all: &[String]) -> Arc<str> {
    let is_listed = all.len() <= LISTED && !all.iter().any(|name| name.contains(','));
    let list = if is_listed { format!(": columns = {}", all.join(",")) } else { String::new() };
    format!("; name the columns to read in columns, where some may hold names, at most {MAX_CATEGORIES} different ones{list}").into()
}

/// Reads cells of one column as numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CellReader {
    name: String,
    may_miss: bool,
    kind: Kind,
    /// If it is read because no column was asked for: what to do if it holds no numbers.
    unasked: Option<Arc<str>>,
    /// Cells that held names.
    n_names: u64,
    /// The place of the first name, if it may be a missing number.
    missing_at: Option<Place>,
    /// The first unknown name, and how many cells held unknown names.
    unseen: Option<(String, u64)>,
}

impl CellReader {
    /// A reader for the column `name`; `may_miss` allows missing numbers.
    pub fn new(name: String, may_miss: bool, kind: Kind) -> Self {
        Self { name, may_miss, kind, unasked: None, n_names: 0, missing_at: None, unseen: None }
    }

    /// The same for a column that is read because no column was asked for, with [advice](how_to_choose) for the error message.
    pub fn unasked(self, unasked: Option<Arc<str>>) -> Self {
        Self { unasked, ..self }
    }

    /// The names that training did not see, if the column holds any.
    fn unseen_names(&self) -> Option<UnseenNames> {
        let Self { name, kind: Kind::Known(known), n_names, unseen: Some((first, n)), .. } = self else { return None };
        Some(UnseenNames { column: name.clone(), first: first.clone(), n: *n, of: *n_names, known: known.names().to_vec() })
    }

    /// The number that `cell` holds or stands for; NaN if it is missing.
    ///
    /// # Errors
    /// When it holds no number, or one that is infinite or too large.
    pub fn number(&mut self, cell: Cell, place: Place) -> Result<f64> {
        if let Some(code) = self.names_of(&cell, place)? {
            return Ok(code);
        }
        match cell {
            Cell::Any(text) => {
                let text = text.trim();
                match text.parse::<f64>() {
                    Ok(number) if flaw(number).is_none() => Ok(number),
                    _ if self.may_miss && is_missing(text) => Ok(f64::NAN),
                    _ if text.is_empty() => Err(self.empty(place)),
                    _ if is_missing(text) => Err(missing(place, &self.name, text)),
                    // As in a file with types.
                    Err(_) if text.eq_ignore_ascii_case("true") => Ok(1.0),
                    Err(_) if text.eq_ignore_ascii_case("false") => Ok(0.0),
                    Ok(number) => Err(self.strange(place, flaw(number).unwrap_or_default(), text)),
                    Err(_) => {
                        let has_comma = text.replacen(',', ".", 1).parse::<f64>().is_ok();
                        let how = if has_comma {
                            "; write a point before decimals, and nothing between thousands".to_owned()
                        } else {
                            self.how_to_leave_out().to_owned()
                        };
                        Err(Error::Data(self.strange(place, "a finite number", text).to_string() + &how))
                    }
                }
            }
            Cell::Missing if self.may_miss => Ok(f64::NAN),
            Cell::Missing => Err(self.empty(place)),
            Cell::Whole(number) => Ok(number as f64),
            Cell::Real(number) => match flaw(number) {
                None => Ok(number),
                Some(_) if self.may_miss && number.is_nan() => Ok(f64::NAN),
                Some(_) if number.is_nan() => Err(missing(place, &self.name, "NaN")),
                Some(expected) => Err(self.strange(place, expected, &format!("{number:?}"))),
            },
            Cell::Bool(flag) => Ok(f64::from(u8::from(flag))),
            // A text that stands for no name of the column.
            Cell::Text(_) if matches!(self.kind, Kind::Known(_)) => self.number(Cell::Missing, place),
            Cell::Text(text) => Err(self.refused(place, "texts such as", text)),
            Cell::Time(_) | Cell::Nanoseconds(_) => Err(self.refused(place, "times such as", &cell.name())),
        }
    }

    /// The code of `cell` as a name; `None` if it is a number or empty.
    fn names_of(&mut self, cell: &Cell, place: Place) -> Result<Option<f64>> {
        let is_missing_number = matches!(cell, Cell::Real(number) if number.is_nan());
        if is_missing_number || matches!(cell, Cell::Missing | Cell::Time(_) | Cell::Nanoseconds(_)) {
            return Ok(None);
        }
        match &self.kind {
            Kind::Numbers => Ok(None),
            Kind::Known(known) => {
                let name = cell.name();
                // The same text means the same name in every input of a model.
                let code = known.code(&name, self.may_miss);
                if code.is_nan() {
                    return Ok(None);
                }
                self.n_names += 1;
                if code == UNSEEN {
                    self.unseen.get_or_insert_with(|| (shown(&name), 0)).1 += 1;
                }
                Ok(Some(code))
            }
            // A file with types has separate cells for missing values.
            Kind::Open | Kind::Names(_) if matches!(cell, Cell::Any(text) if is_nothing(text.trim(), self.may_miss)) => Ok(None),
            Kind::Open | Kind::Names(_) => self.next_name(cell, place),
        }
    }

    /// The index of the non-empty `cell` among the names found so far; `None` if it is the first, and a number.
    fn next_name(&mut self, cell: &Cell, place: Place) -> Result<Option<f64>> {
        let is_number = match cell {
            Cell::Any(text) => text.trim().parse::<f64>().is_ok(),
            cell => !matches!(cell, Cell::Text(_)),
        };
        let name = cell.name();
        if self.kind == Kind::Open {
            if is_number {
                self.kind = Kind::Numbers;
                return Ok(None);
            }
            self.kind = Kind::Names(Texts::default());
            self.missing_at = is_missing(&name).then_some(place);
        }
        let column = &self.name;
        let Kind::Names(known) = &mut self.kind else { unreachable!("it is one of names") };
        if is_number
            && !known.knows(&name)
            && let Some(first) = known.distinct().first()
        {
            // The column holds numbers, and what came before was not one.
            if let Some(missing_at) = self.missing_at
                && known.distinct().iter().all(|name| is_missing(name))
            {
                return Err(missing(missing_at, column, first));
            }
            return Err(Error::Data(format!(
                "{place}, column '{column}': expected a name such as '{}', found the number '{}'; write one kind in all rows",
                shown(first),
                shown(&name)
            )));
        }
        let id = known.id(&name)?;
        if known.distinct().len() > MAX_CATEGORIES {
            return Err(Error::Data(format!(
                "{place}: the column '{column}' has more than {MAX_CATEGORIES} different names, the most that are told apart; leave it out, or \
                 put names together"
            )));
        }
        Ok(Some(f64::from(id)))
    }

    fn empty(&self, place: Place) -> Error {
        let expected = if matches!(self.kind, Kind::Names(_) | Kind::Known(_)) { "a name" } else { "a number" };
        Error::Data(format!(
            "{place}, column '{}': the cell is empty, expected {expected}; fill it, leave the row or the column out, or train with missing = mask",
            self.name
        ))
    }

    fn strange(&self, place: Place, expected: &str, found: &str) -> Error {
        Error::Data(format!("{place}, column '{}': expected {expected}, found '{}'", self.name, shown(found)))
    }

    fn refused(&self, place: Place, kind: &str, found: &str) -> Error {
        let how = self.how_to_leave_out();
        Error::Data(format!("{place}: the column '{}' holds {kind} '{}', expected numbers{how}", self.name, shown(found)))
    }

    /// What to do about a column that was not asked for and holds no numbers.
    fn how_to_leave_out(&self) -> &str {
        self.unasked.as_deref().unwrap_or_default()
    }
}

/// A column of numbers being filled.
#[derive(Debug)]
pub(super) struct NumberColumn {
    reader: CellReader,
    values: ValuesWriter<f64>,
}

impl NumberColumn {
    /// The column filled through `reader`, one of `n_columns`.
    pub fn new(reader: CellReader, n_columns: usize) -> Self {
        Self { reader, values: ValuesWriter::new(n_columns) }
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Adds a cell.
    ///
    /// # Errors
    /// As [`CellReader::number`] and [`ValuesWriter::push`].
    pub fn push(&mut self, cell: Cell, place: Place) -> Result<()> {
        self.values.push(self.reader.number(cell, place)?)
    }

    /// The names that training did not see, if the column holds names.
    pub fn unseen_names(&self) -> Option<UnseenNames> {
        self.reader.unseen_names()
    }

    /// The numbers, and the names they stand for if the column holds names.
    ///
    /// # Errors
    /// As [`ValuesWriter::finish`].
    pub fn finish(self) -> Result<(Values<f64>, Option<Vec<String>>)> {
        let names = match self.reader.kind {
            Kind::Names(names) => Some(names.into_distinct()),
            Kind::Known(known) => Some(known.names().to_vec()),
            Kind::Numbers | Kind::Open => None,
        };
        Ok((self.values.finish()?, names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that the cells of a column x stand for, or why one stands for none; the first cell is on line 2.
    fn read(cells: &[&str], may_miss: bool, kind: &Kind) -> Result<Vec<f64>> {
        let mut reader = CellReader::new("x".to_owned(), may_miss, kind.clone());
        cells.iter().zip(2..).map(|(cell, line)| reader.number(Cell::Any(cell), Place::Line(line))).collect()
    }

    fn category(names: &[&str]) -> CategoryNames {
        CategoryNames::new(&names.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn a_number_that_is_missing_is_told_with_what_can_be_done_wherever_it_stands() {
        for cell in ["NA", "null", "?", "None", "n/a", "NaN", "nan"] {
            let sentence = |line: u64| {
                format!(
                    "line {line}, column 'x': expected a finite number, found '{cell}', a missing one; fill it, leave the row or the column out, or \
                     train with missing = mask or forward-fill"
                )
            };
            for kind in [Kind::Numbers, Kind::Open] {
                let refused = |cells: &[&str]| read(cells, false, &kind).unwrap_err().to_string();
                assert_eq!(refused(&["0.5", cell]), sentence(3), "{kind:?}");
                // In a column that may hold names, such a cell at the start is reported when the first number comes.
                assert_eq!(refused(&[cell, cell, "0.758"]), sentence(2), "{kind:?}");
                assert!(read(&[cell, "0.758"], true, &kind).unwrap()[0].is_nan(), "{kind:?}");
            }
        }
    }

    #[test]
    fn what_looks_missing_is_a_name_among_names() {
        assert_eq!(read(&["NA", "EU", "NA", "US"], false, &Kind::Open).unwrap(), [0.0, 1.0, 0.0, 2.0]);
        let refused = read(&["NA", "EU", "7"], false, &Kind::Open).unwrap_err().to_string();
        assert_eq!(refused, "line 4, column 'x': expected a name such as 'NA', found the number '7'; write one kind in all rows");
    }

    #[test]
    fn what_looks_missing_is_missing_in_files_with_and_without_types_unless_it_is_a_name_of_the_model() {
        let codes = |names: &[&str], make: fn(&'static str) -> Cell<'static>, may_miss: bool| {
            let mut reader = CellReader::new("x".to_owned(), may_miss, Kind::Known(category(names)));
            ["EU", "NA", " ?", "", "US"]
                .map(|cell| reader.number(make(cell), Place::Row(0)).map(|code| if code.is_nan() { 9.0 } else { code }).ok())
        };
        let by_name = |names: &[&str], may_miss: bool| ["EU", "NA", "?", "", "US"].map(|name| category(names).code(name, may_miss));
        for make in [Cell::Any as fn(&'static str) -> Cell<'static>, Cell::Text] {
            assert_eq!(codes(&["EU"], make, true), [Some(0.0), Some(9.0), Some(9.0), Some(9.0), Some(UNSEEN)]);
            assert_eq!(codes(&["EU", "NA"], make, true), [Some(0.0), Some(1.0), Some(9.0), Some(9.0), Some(UNSEEN)]);
            assert_eq!(codes(&["EU"], make, false), [Some(0.0), Some(UNSEEN), Some(UNSEEN), None, Some(UNSEEN)]);
        }
        assert!(by_name(&["EU"], true)[1..4].iter().all(|code| code.is_nan()));
        assert_eq!(by_name(&["EU", "NA"], true)[..2], [0.0, 1.0]);
        let without = by_name(&["EU"], false);
        assert_eq!((&without[..3], without[3].is_nan(), without[4]), (&[0.0, UNSEEN, UNSEEN][..], true, UNSEEN));
        assert_eq!(category(&["1.50"]).code("1.5", false), 0.0);
    }

    #[test]
    fn a_name_that_is_a_number_is_known_however_it_is_written() {
        let kind = Kind::Known(category(&["0", "1", "1.50", "up"]));
        assert_eq!(read(&["1.0", "up", "1.5", "7"], false, &kind).unwrap(), [1.0, 3.0, 2.0, UNSEEN]);
    }
}
