//! Columns as they are filled, cell by cell.

use std::collections::HashMap;
use std::fmt;

use minrnn_model::{Category, MAX_CATEGORIES, UNSEEN};

use super::times::{Clock, has_offset};
use super::unseen_names::UnseenNames;
use super::values::{Values, ValuesWriter};
use crate::{Error, Result};

/// Where a cell stands in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A line, from 1.
    Line(u64),
    /// A row, from 0, of a file without lines.
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

/// What stands in a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cell<'a> {
    /// Nothing.
    Missing,
    /// What a file without types has: a number, a time or a name, as who reads it takes it.
    Any(&'a str),
    /// A whole number, which may be a name as well.
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

/// What stands where a number or a name is missing, whatever its case.
const MISSING: [&str; 7] = ["", "nan", "na", "n/a", "null", "none", "?"];

/// Characters of a cell that are shown.
const SHOWN: usize = 40;

/// What should stand in place of `number`, where a model cannot read it: its inputs are 32-bit floats.
fn flaw(number: f64) -> Option<&'static str> {
    match number.abs() {
        size if !size.is_finite() => Some("a finite number"),
        size if size > f64::from(f32::MAX) => Some("a number of at most 3.4e38 in size"),
        _ => None,
    }
}

/// As much of a cell as is shown.
pub(super) fn shown(cell: &str) -> String {
    cell.chars().take(SHOWN).collect()
}

fn is_missing(cell: &str) -> bool {
    MISSING.iter().any(|missing| missing.eq_ignore_ascii_case(cell))
}

/// Whether a cell of that text, without blanks around it, holds nothing; what looks missing does so where something `may_miss`.
fn is_nothing(cell: &str, may_miss: bool) -> bool {
    cell.is_empty() || may_miss && is_missing(cell)
}

/// What stands in a row for `name` in a column of the names of `category`, as in a table: its number, [`UNSEEN`] of one that is none of them, or NaN where
/// it is missing, for which more stands where some `may_miss`.
pub fn name_code(category: &Category, name: &str, may_miss: bool) -> f64 {
    let name = name.trim();
    let code = category.code(name);
    if code != UNSEEN {
        return code;
    }
    if is_nothing(name, may_miss) {
        return f64::NAN;
    }
    same_number(name, &category.values).map_or(UNSEEN, |at| at as f64)
}

/// Which of `names` is the same number as `name`, as 1 and 1.0 are, where one alone is.
pub(super) fn same_number(name: &str, names: &[String]) -> Option<usize> {
    let number = NumberName::of(name)?;
    let is_same = |known: &String| NumberName::of(known) == Some(number);
    let mut same = names.iter().enumerate().filter(|(_, known)| is_same(known)).map(|(at, _)| at);
    same.next().filter(|_| same.next().is_none())
}

/// A name that is a number, as far as it can be told from all others, however it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NumberName {
    Whole(i128),
    /// The bits of one with a fraction.
    Real(u64),
}

/// 2^53, from which on different whole numbers are one 64-bit float.
pub(super) const INEXACT: f64 = 9_007_199_254_740_992.0;

impl NumberName {
    pub fn of(name: &str) -> Option<Self> {
        // 01 is a code.
        if let [b'0', b'0'..=b'9', ..] = name.trim_start_matches(['+', '-']).as_bytes() {
            return None;
        }
        let of_real = |real: f64| if real.fract() == 0.0 { Self::Whole(real as i128) } else { Self::Real(real.to_bits()) };
        let real = || name.parse::<f64>().ok().filter(|real| real.abs() < INEXACT).map(of_real);
        name.parse::<i128>().ok().map(Self::Whole).or_else(real)
    }
}

/// That nothing is known where a number is needed.
fn missing(place: Place, column: &str, found: &str) -> Error {
    Error::Data(format!(
        "{place}, column '{column}': expected a finite number, found '{}', a missing one; fill it, leave the row or the column out, or train with \
         missing = mask or forward-fill",
        shown(found)
    ))
}

/// That `cell` is of another time zone, if it tells of one: a day of it begins at another time.
pub(super) fn of_zone(place: Place, column: &str, cell: &str) -> Option<Error> {
    has_offset(cell).then(|| {
        Error::Data(format!(
            "{place}: the column '{column}' holds '{}', a time with an offset from UTC, expected UTC; convert all to UTC and leave the offset out (of \
             local times an hour is there twice each autumn), or keep the dates alone",
            shown(cell)
        ))
    })
}

impl Cell<'_> {
    /// `digits` with the point before the last `scale` of them; with a negative one as many zeros follow.
    pub fn decimal(digits: i128, scale: i32) -> Self {
        if scale == 0 { Self::Whole(digits) } else { Self::real_decimal(digits as f64, scale) }
    }

    /// As [`decimal`](Self::decimal) of digits that may be too many for a whole number.
    pub fn real_decimal(digits: f64, scale: i32) -> Self {
        let unit = 10f64.powi(scale.saturating_abs());
        Self::Real(if scale < 0 { digits * unit } else { digits / unit })
    }

    /// As a name, without blanks around it; empty where nothing stands.
    fn name(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Missing => "".into(),
            // How tables of typed columns have a number that is missing.
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
    /// Numbers or names, whichever the first cell is in which something stands.
    Open,
    /// Names, each read as its number: one that is not among them is another one, or [`UNSEEN`].
    Names { known: Texts, are_all: bool },
}

/// Reads cells of one column as numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CellReader {
    name: String,
    may_miss: bool,
    kind: Kind,
    /// Whether it is read because no column was asked for.
    is_unasked: bool,
    /// Cells that held names.
    n_names: u64,
    /// Where the first name stood, as far as it may be a missing number.
    missing_at: Option<Place>,
    /// The first name that was not among those that are known, and how many cells held such a one.
    unseen: Option<(String, u64)>,
}

impl CellReader {
    /// Of the column `name`, where numbers may be missing.
    pub fn new(name: String, may_miss: bool, kind: Kind) -> Self {
        Self { name, may_miss, kind, is_unasked: false, n_names: 0, missing_at: None, unseen: None }
    }

    /// The same of one that is read because no column was asked for, if it `is_unasked`.
    pub fn unasked(self, is_unasked: bool) -> Self {
        Self { is_unasked, ..self }
    }

    /// The names that are not among those of the training, where the column holds such.
    fn unseen_names(&self) -> Option<UnseenNames> {
        let Self { name, kind: Kind::Names { known, .. }, n_names, unseen: Some((first, n)), .. } = self else { return None };
        Some(UnseenNames { column: name.clone(), first: first.clone(), n: *n, of: *n_names, known: known.distinct.clone() })
    }

    /// The number that `cell` holds or stands for; NaN of one that is missing.
    ///
    /// # Errors
    /// When there is none, or it is infinite or too large.
    pub fn number(&mut self, cell: Cell, place: Place) -> Result<f64> {
        if let Some(names) = self.names_of(&cell, place)? {
            return names;
        }
        match cell {
            Cell::Any(text) => {
                let text = text.trim();
                match text.parse::<f64>() {
                    Ok(number) if flaw(number).is_none() => Ok(number),
                    _ if self.may_miss && is_missing(text) => Ok(f64::NAN),
                    _ if text.is_empty() => Err(self.empty(place)),
                    _ if is_missing(text) => Err(missing(place, &self.name, text)),
                    // As a file with types has them.
                    Err(_) if text.eq_ignore_ascii_case("true") => Ok(1.0),
                    Err(_) if text.eq_ignore_ascii_case("false") => Ok(0.0),
                    Ok(number) => Err(self.strange(place, flaw(number).unwrap_or_default(), text)),
                    Err(_) => {
                        let has_comma = text.replacen(',', ".", 1).parse::<f64>().is_ok();
                        let how = if has_comma {
                            "; write a point before decimals, and nothing between thousands".to_owned()
                        } else {
                            self.how_to_leave_out()
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
            // One that stands for no name of the column.
            Cell::Text(_) if matches!(self.kind, Kind::Names { .. }) => self.number(Cell::Missing, place),
            Cell::Text(text) => Err(self.refused(place, "texts such as", text)),
            Cell::Time(_) | Cell::Nanoseconds(_) => Err(self.refused(place, "times such as", &cell.name())),
        }
    }

    /// What `cell` is among names; none where it is a number.
    fn names_of(&mut self, cell: &Cell, place: Place) -> Result<Option<Result<f64>>> {
        let is_missing_number = matches!(cell, Cell::Real(number) if number.is_nan());
        if matches!(self.kind, Kind::Numbers)
            || is_missing_number
            || matches!(cell, Cell::Missing | Cell::Time(_) | Cell::Nanoseconds(_))
            || self.holds_nothing(cell)
        {
            return Ok(None);
        }
        let is_number = match cell {
            Cell::Any(text) => text.trim().parse::<f64>().is_ok(),
            cell => !matches!(cell, Cell::Text(_)),
        };
        let is_open = matches!(self.kind, Kind::Open);
        if is_open && is_number {
            self.kind = Kind::Numbers;
            return Ok(None);
        }
        let name = cell.name();
        if is_open {
            self.kind = Kind::Names { known: Texts::default(), are_all: false };
            self.missing_at = is_missing(&name).then_some(place);
        }
        let column = &self.name;
        let Kind::Names { known, are_all } = &mut self.kind else { unreachable!("it is one of names") };
        self.n_names += 1;
        if let Some(&id) = known.known.get(&*name) {
            return Ok(Some(Ok(f64::from(id))));
        }
        if *are_all {
            // As another format writes the same.
            if let Some(at) = same_number(&name, &known.distinct) {
                return Ok(Some(Ok(at as f64)));
            }
            self.unseen.get_or_insert_with(|| (shown(&name), 0)).1 += 1;
            return Ok(Some(Ok(UNSEEN)));
        }
        if is_number && let Some(first) = known.distinct.first() {
            // It holds numbers, and what stood before was none.
            if let Some(missing_at) = self.missing_at
                && known.distinct.iter().all(|name| is_missing(name))
            {
                return Err(missing(missing_at, column, first));
            }
            return Err(Error::Data(format!(
                "{place}, column '{column}': expected a name such as '{}', found the number '{}'; write one kind in all rows",
                shown(first),
                shown(&name)
            )));
        }
        if known.distinct.len() == MAX_CATEGORIES {
            return Err(Error::Data(format!(
                "{place}: the column '{column}' has more than {MAX_CATEGORIES} different names, the most that are told apart; leave it out, or \
                 put names together"
            )));
        }
        Ok(Some(known.id(&name).map(f64::from)))
    }

    /// Whether a cell of a column that may hold names has a text that stands for none.
    fn holds_nothing(&self, cell: &Cell) -> bool {
        let (Cell::Any(text) | Cell::Text(text)) = cell else { return false };
        match &self.kind {
            // The same text is the same name in whatever a model reads.
            Kind::Names { known, are_all: true } => is_nothing(text.trim(), self.may_miss) && !known.known.contains_key(text.trim()),
            // A file with types has other cells for what is missing.
            _ => matches!(cell, Cell::Any(_)) && is_nothing(text.trim(), self.may_miss),
        }
    }

    fn empty(&self, place: Place) -> Error {
        let expected = if matches!(self.kind, Kind::Names { .. }) { "a name" } else { "a number" };
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

    /// What to do about a column that nobody asked for and that holds no numbers.
    fn how_to_leave_out(&self) -> String {
        if !self.is_unasked {
            return String::new();
        }
        format!("; name the columns to read in columns, where some may hold names, at most {MAX_CATEGORIES} different ones")
    }
}

/// A column of numbers as it is filled.
#[derive(Debug)]
pub(super) struct NumberColumn {
    reader: CellReader,
    values: ValuesWriter<f64>,
}

impl NumberColumn {
    /// One of `n_columns`.
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

    /// The names that are not among those of the training, where the column holds such.
    pub fn unseen_names(&self) -> Option<UnseenNames> {
        self.reader.unseen_names()
    }

    /// The numbers, and the names that they stand for where the column holds names.
    ///
    /// # Errors
    /// As [`ValuesWriter::finish`].
    pub fn finish(self) -> Result<(Values<f64>, Option<Vec<String>>)> {
        let names = match self.reader.kind {
            Kind::Names { known, .. } => Some(known.distinct),
            Kind::Numbers | Kind::Open => None,
        };
        Ok((self.values.finish()?, names))
    }
}

/// A column of names: every distinct one once, and one of them for each row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    distinct: Vec<String>,
    rows: Values<u32>,
    known: HashMap<String, u32>,
}

impl Texts {
    /// Without rows, of these names.
    pub(super) fn of_names(names: &[String]) -> Self {
        let known = names.iter().cloned().zip(0..).collect();
        Self { distinct: names.to_vec(), rows: Values::default(), known }
    }

    /// The number of a name, which is known from now on.
    fn id(&mut self, text: &str) -> Result<u32> {
        if let Some(&id) = self.known.get(text) {
            return Ok(id);
        }
        let id = u32::try_from(self.distinct.len()).map_err(|_| Error::Data("it has too many different names".to_owned()))?;
        self.distinct.push(text.to_owned());
        self.known.insert(text.to_owned(), id);
        Ok(id)
    }

    /// The distinct names in order of their first row.
    pub fn distinct(&self) -> &[String] {
        &self.distinct
    }

    /// Which of the distinct names each row has.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }
}

/// Names as they are added, row by row.
#[derive(Debug)]
pub(super) struct TextsWriter {
    texts: Texts,
    rows: ValuesWriter<u32>,
    last: Option<u32>,
}

impl TextsWriter {
    /// One of `n_columns`.
    pub fn new(n_columns: usize) -> Self {
        Self { texts: Texts::default(), rows: ValuesWriter::new(n_columns), last: None }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When there are too many names, or as [`ValuesWriter::push`].
    pub fn push(&mut self, text: &str) -> Result<()> {
        let id = match self.last {
            // Rows of a sequence often follow each other.
            Some(last) if self.texts.distinct[last as usize] == text => last,
            _ => self.texts.id(text)?,
        };
        self.last = Some(id);
        self.rows.push(id)
    }

    /// Whether a row has this name.
    pub fn knows(&self, text: &str) -> bool {
        self.texts.known.contains_key(text)
    }

    /// What was added.
    ///
    /// # Errors
    /// As [`ValuesWriter::finish`].
    pub fn finish(self) -> Result<Texts> {
        Ok(Texts { rows: self.rows.finish()?, ..self.texts })
    }
}

/// A column of names as it is filled.
#[derive(Debug)]
pub(super) struct TextColumn {
    name: String,
    texts: TextsWriter,
}

impl TextColumn {
    /// One of `n_columns`.
    pub fn new(name: String, n_columns: usize) -> Self {
        Self { name, texts: TextsWriter::new(n_columns) }
    }

    /// Adds a name.
    ///
    /// # Errors
    /// When it is empty, or as [`TextsWriter::push`].
    pub fn push(&mut self, cell: Cell, place: Place) -> Result<()> {
        self.texts.push(expect_name(&cell.name(), place, &self.name)?)
    }

    /// What the cells were.
    ///
    /// # Errors
    /// As [`ValuesWriter::finish`].
    pub fn finish(self) -> Result<Texts> {
        self.texts.finish()
    }
}

/// `text` without blanks around it.
///
/// # Errors
/// When nothing is left.
pub(super) fn expect_name<'a>(text: &'a str, place: Place, column: &str) -> Result<&'a str> {
    match text.trim() {
        "" => Err(Error::Data(format!("{place}, column '{column}': the cell is empty, expected a name"))),
        name => Ok(name),
    }
}

/// Cells whose times are kept.
const KNOWN: usize = 1 << 14;
/// Milliseconds of a day.
const DAY: f64 = 86_400_000.0;
/// Nanoseconds of a millisecond.
const OF_MILLISECOND: f64 = 1e6;
/// Digits behind the point of a second, to the microsecond.
const MOST_DIGITS: usize = 6;

/// The times of a table's rows: numbers as they are, and of dates the milliseconds since 1970.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Times {
    /// The name of their column.
    pub name: String,
    pub clock: Clock,
    /// That of each row.
    pub values: Values<f64>,
    /// Whether some were written to less than a microsecond, which is not kept.
    pub is_cut: bool,
}

/// A column of times as it is filled.
#[derive(Debug)]
pub(super) struct TimeColumnCells {
    name: String,
    /// How times are written, and the first of them.
    first: Option<(Clock, String)>,
    values: ValuesWriter<f64>,
    /// What cells say that are there often.
    known: HashMap<String, f64>,
    is_cut: bool,
    n_columns: usize,
}

impl TimeColumnCells {
    /// One of `n_columns`.
    pub fn new(name: String, n_columns: usize) -> Self {
        Self { name, first: None, values: ValuesWriter::new(n_columns), known: HashMap::new(), is_cut: false, n_columns }
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Adds a cell.
    ///
    /// # Errors
    /// When it is no time, or another kind of time than the first, or as [`ValuesWriter::push`].
    pub fn push(&mut self, cell: Cell, place: Place) -> Result<()> {
        let typed = match cell {
            Cell::Time(time) => Some(time),
            Cell::Nanoseconds(time) => {
                self.is_cut |= time % 1000 != 0;
                Some(time as f64 / OF_MILLISECOND)
            }
            _ => None,
        };
        if let Some(time) = typed {
            self.first.get_or_insert_with(|| (Clock::TYPED, Clock::TYPED.write(time)));
            return self.values.push(time);
        }
        let cell = cell.name();
        if let Some(&time) = self.known.get(&*cell) {
            return self.values.push(time);
        }
        let name = &self.name;
        if cell.is_empty() {
            return Err(Error::Data(format!("{place}, column '{name}': the cell is empty, expected a time")));
        }
        if self.first.is_none() {
            let Some(clock) = Clock::of(&cell) else {
                if let Some(error) = of_zone(place, name, &cell) {
                    return Err(error);
                }
                return Err(Error::Data(format!(
                    "the column '{name}' holds no times: found '{}', expected a number or a date such as 2024-01-31 or 2024-01-31 12:00; name the \
                     column of times with time, or set time to nothing where the rows are in order",
                    shown(&cell)
                )));
            };
            self.first = Some((clock, cell.to_string()));
        }
        let Some((clock, first)) = &self.first else { unreachable!("it was put there") };
        let Some(time) = clock.read(&cell) else {
            if let Some(error) = of_zone(place, name, &cell) {
                return Err(error);
            }
            let cell = shown(&cell);
            return Err(Error::Data(format!(
                "{place}: the column '{name}' holds '{cell}', expected a time that is written like its first, '{first}'"
            )));
        };
        let is_cut = |digits: &str| digits.bytes().take_while(u8::is_ascii_digit).skip(MOST_DIGITS).any(|digit| digit != b'0');
        self.is_cut |= *clock != Clock::Number && cell.rsplit_once('.').is_some_and(|(_, digits)| is_cut(digits));
        if self.known.len() < KNOWN {
            self.known.insert(cell.to_string(), time);
        }
        self.values.push(time)
    }

    /// What the cells were.
    ///
    /// # Errors
    /// As [`ValuesWriter::finish`].
    pub fn finish(self) -> Result<Times> {
        let mut values = self.values.finish()?;
        let clock = match self.first {
            // Whole days are written as such.
            Some((Clock::TYPED, _)) if values.iter().all(|time| time % DAY == 0.0) => Clock::DATE,
            Some((Clock::Number, _)) if let Some(clock) = Clock::in_digits(&values) => {
                let mut dates = ValuesWriter::new(self.n_columns);
                values.iter().try_for_each(|&number| dates.push(clock.of_number(number).unwrap_or(number)))?;
                values = dates.finish()?;
                clock
            }
            Some((clock, _)) => clock,
            None => Clock::Number,
        };
        Ok(Times { name: self.name, clock, values, is_cut: self.is_cut })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that the cells of a column x stand for, or why one stands for none; the first is on line 2.
    fn read(cells: &[&str], may_miss: bool, kind: &Kind) -> Result<Vec<f64>> {
        let mut reader = CellReader::new("x".to_owned(), may_miss, kind.clone());
        cells.iter().zip(2..).map(|(cell, line)| reader.number(Cell::Any(cell), Place::Line(line))).collect()
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
                // Among the first, a column that may hold names tells when the first number comes.
                assert_eq!(refused(&[cell, cell, "0.758"]), sentence(2), "{kind:?}");
                assert!(read(&[cell, "0.758"], true, &kind).unwrap()[0].is_nan(), "{kind:?}");
            }
        }
    }

    #[test]
    fn nanoseconds_that_are_cut_are_known_to_be() {
        let of = |times: [i64; 2]| {
            let mut column = TimeColumnCells::new("ds".to_owned(), 1);
            times.iter().try_for_each(|&time| column.push(Cell::Nanoseconds(time), Place::Row(0))).unwrap();
            let Times { values, is_cut, .. } = column.finish().unwrap();
            (values[0] < values[1], is_cut)
        };
        let first = 1_704_067_200_000_000_000;
        assert_eq!((of([first, first + 1000]), of([first, first + 1])), ((true, false), (false, true)));
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
            let known: Vec<String> = names.iter().map(ToString::to_string).collect();
            let kind = Kind::Names { known: Texts::of_names(&known), are_all: true };
            let mut reader = CellReader::new("x".to_owned(), may_miss, kind);
            ["EU", "NA", " ?", "", "US"]
                .map(|cell| reader.number(make(cell), Place::Row(0)).map(|code| if code.is_nan() { 9.0 } else { code }).ok())
        };
        let by_name = |names: &[&str], may_miss: bool| {
            let category = Category { column: 0, values: names.iter().map(ToString::to_string).collect() };
            ["EU", "NA", "?", "", "US"].map(|name| name_code(&category, name, may_miss))
        };
        for make in [Cell::Any as fn(&'static str) -> Cell<'static>, Cell::Text] {
            assert_eq!(codes(&["EU"], make, true), [Some(0.0), Some(9.0), Some(9.0), Some(9.0), Some(UNSEEN)]);
            assert_eq!(codes(&["EU", "NA"], make, true), [Some(0.0), Some(1.0), Some(9.0), Some(9.0), Some(UNSEEN)]);
            assert_eq!(codes(&["EU"], make, false), [Some(0.0), Some(UNSEEN), Some(UNSEEN), None, Some(UNSEEN)]);
        }
        assert!(by_name(&["EU"], true)[1..4].iter().all(|code| code.is_nan()));
        assert_eq!(by_name(&["EU", "NA"], true)[..2], [0.0, 1.0]);
        let without = by_name(&["EU"], false);
        assert_eq!((&without[..3], without[3].is_nan(), without[4]), (&[0.0, UNSEEN, UNSEEN][..], true, UNSEEN));
        assert_eq!(name_code(&Category { column: 0, values: vec!["1.50".to_owned()] }, "1.5", false), 0.0);
    }

    #[test]
    fn a_name_that_is_a_number_is_known_however_it_is_written() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let known = names(&["0", "1", "1.50", "up"]);
        assert_eq!(
            ["0.0", "1e0", "1.5", "2", "up", "nan", ""].map(|name| same_number(name, &known)),
            [Some(0), Some(1), Some(2), None, None, None, None]
        );
        assert_eq!(same_number("1.00", &names(&["1", "1.0"])), None);
        assert_eq!(["-0", "+1", "01", "-01", "00"].map(|name| same_number(name, &known)), [Some(0), Some(1), None, None, None]);
        // One with zeros in front is a code.
        let codes = names(&["01", "002.5", "10"]);
        assert_eq!(["1", "1.0", "2.5", "10.0"].map(|name| same_number(name, &codes)), [None, None, None, Some(2)]);
        // What one 64-bit float stands for are different numbers.
        let large = names(&["9007199254740993", "9007199254740991", "18446744073709551615"]);
        assert_eq!(
            ["+9007199254740993", "9007199254740992", "9007199254740993.0", "9007199254740991.0", "18446744073709551614", "1e400"]
                .map(|name| same_number(name, &large)),
            [Some(0), None, None, Some(1), None, None]
        );
        let kind = Kind::Names { known: Texts::of_names(&known), are_all: true };
        assert_eq!(read(&["1.0", "up", "1.5", "7"], false, &kind).unwrap(), [1.0, 3.0, 2.0, UNSEEN]);
    }
}
