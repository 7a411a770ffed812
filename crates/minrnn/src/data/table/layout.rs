//! Wide tables, with a series per row or per column, read as long ones.
//!
//! ```text
//! wide-series:  id,2024-01,2024-02,…          wide-columns:  date,meter a,meter b
//!               a,1,2,…                                      2024-01,1,5
//! ```
//!
//! As a long table it has a column of names, one of numbers, and those of the class and of times, if any. Missing cells before the first or
//! after the last number of a series are not steps.

use std::collections::HashSet;

use minrnn_kernels::choices;
use minrnn_model::{Layout, UNSEEN, first_few};

use super::calendar;
use super::clock::Clock;
use super::columns::{Names, Numbers, TimeColumn, Wanted, no_numbers};
use super::formats::{self, Reader};
use super::frame::{Frame, Locations};
use super::leads;
use super::texts::TextsWriter;
use super::time_cells::Times;
use super::values::ValuesWriter;
use crate::{Error, Result};

choices! {
    /// How the series of a table are arranged in its rows and columns ([`Layout`]).
    LayoutChoice, "layout" {
        /// A row for each step, unless nothing names the series and all columns except the class are numbered or dated: then a row for each
        /// series.
        #[default]
        Auto = "auto",
        /// A row for each step.
        Long = "long",
        /// A row for each series, with a column for each step.
        WideSeries = "wide-series",
        /// A row for each time, with a column for each series.
        WideColumns = "wide-columns",
    }
}

impl From<Layout> for LayoutChoice {
    fn from(layout: Layout) -> Self {
        match layout {
            Layout::Long => Self::Long,
            Layout::WideSeries => Self::WideSeries,
            Layout::WideColumns => Self::WideColumns,
        }
    }
}

/// The column of names of a wide table that has none.
pub(super) const SERIES: &str = "series";
/// The column of numbers of a wide table.
pub(super) const VALUE: &str = "value";
/// The column of times of a table whose steps have them as names.
pub(super) const TIME: &str = "time";
/// The first column of a table without names, as those of the UCR archive are.
pub(super) const CLASS: &str = "class";
/// The column of each sequence's number, in an archive that has one.
pub(super) const TARGET: &str = "target";

/// An unknown class in such a table.
const UNKNOWN: &str = "?";

/// Minimum number of columns for them to be taken as the steps of a series by default.
const FEWEST_STEPS: usize = 3;

/// Whether the names of columns show that they are consecutive steps: rising numbers or dates, or numbered names such as t1, t2, t3.
pub(super) fn are_steps<'a>(names: impl Iterator<Item = &'a str> + Clone) -> bool {
    let n = names.clone().count();
    n >= FEWEST_STEPS && (times_of(names.clone()).is_some_and(|(_, times)| rise(&times)) || numbers_of(names).is_some_and(|all| rise(&all)))
}

fn rise(times: &[f64]) -> bool {
    times.windows(2).all(|pair| pair[0] < pair[1])
}

/// The names as times, if all of them are.
pub(super) fn times_of<'a>(mut names: impl Iterator<Item = &'a str> + Clone) -> Option<(Clock, Vec<f64>)> {
    let clock = Clock::of(names.clone().next()?)?;
    let times: Option<Vec<f64>> = names.by_ref().map(|name| clock.read(name)).collect();
    let times = times?;
    match Clock::in_digits(&times).filter(|_| clock == Clock::Number) {
        Some(clock) => Some((clock, times.iter().map(|&number| clock.of_number(number)).collect::<Option<_>>()?)),
        None => Some((clock, times)),
    }
}

/// The numbers at the ends of names with the same beginning.
fn numbers_of<'a>(names: impl Iterator<Item = &'a str>) -> Option<Vec<f64>> {
    let mut start = None;
    let number = |name: &'a str| {
        let digits = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (before, number) = name.split_at(digits);
        (*start.get_or_insert(before) == before).then(|| number.parse().ok()).flatten()
    };
    names.map(number).collect()
}

/// If most names of steps are times or numbered alike: one that is not, and one that is.
fn no_step(names: &[String]) -> Option<(&str, &str)> {
    let before = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    let is_numbered = |name: &str| name.ends_with(|c: char| c.is_ascii_digit());
    let kind = |name: &str| match Clock::of(name) {
        Some(clock) => Some((Some(clock), String::new())),
        None => is_numbered(name).then(|| (None, before(name))),
    };
    let kinds: Vec<_> = names.iter().map(|name| kind(name)).collect();
    let count = |kind: &_| kinds.iter().filter(|other| *other == kind).count();
    // If equal kinds are adjacent, as steps are, the middle one has the kind of the majority.
    let usual = kinds.get(kinds.len() / 2).filter(|usual| usual.is_some() && 2 * count(usual) > kinds.len())?;
    let [other, step] = [false, true].map(|is_usual| kinds.iter().position(|kind| (kind == usual) == is_usual));
    Some((&names[other?], &names[step?]))
}

/// Whether a table has no column names: its first row is numbers, other than the count of columns that some programs write, or an unknown class followed
/// by numbers that do not rise.
pub(super) fn is_nameless(header: &[String]) -> bool {
    let Some((first, others)) = header.split_first() else { return false };
    let numbers = |names: &[String]| names.iter().map(|name| name.parse().ok()).collect::<Option<Vec<f64>>>();
    let counts = |numbers: &[f64]| [0.0, 1.0].contains(&numbers[0]) && numbers.windows(2).all(|pair| pair[1] == pair[0] + 1.0);
    let is_row = match first.as_str() {
        // Rising numbers are names of steps, and ? is then the name of the class column.
        UNKNOWN => numbers(others).is_some_and(|others| !rise(&others)),
        _ => numbers(header).is_some_and(|numbers| !counts(&numbers)),
    };
    is_row && header.len() > FEWEST_STEPS
}

/// The names of the `n` columns of a table without names.
pub(super) fn names_of_nameless(n: usize) -> Vec<String> {
    std::iter::once(CLASS.to_owned()).chain((1..n).map(|step| step.to_string())).collect()
}

/// The wanted columns, as a long table, of the wide table that `reader` reads; a table that already has them is read as it is.
///
/// # Errors
/// As [`formats::frame`], and when names of series or steps make no sense.
pub(super) fn frame(reader: Box<dyn Reader>, wanted: &Wanted) -> Result<Frame> {
    match (leads::split(wanted, reader.header()), &wanted.numbers) {
        (Some((own, leads)), Numbers::Named(names)) => Ok(leads::insert(dated_columns(reader, &own)?, leads, names)),
        _ => dated_columns(reader, wanted),
    }
}

/// The same for the columns that the table has and those derived from its times.
fn dated_columns(reader: Box<dyn Reader>, wanted: &Wanted) -> Result<Frame> {
    match calendar::split(wanted, reader.header())? {
        None => own_columns(reader, wanted),
        Some((wanted, told)) => calendar::insert(own_columns(reader, &wanted)?, told),
    }
}

/// The same for the columns that the table has.
fn own_columns(mut reader: Box<dyn Reader>, wanted: &Wanted) -> Result<Frame> {
    let Numbers::Named(numbers) = &wanted.numbers else { return formats::frame(reader, wanted) };
    let names: HashSet<&String> = reader.header().iter().collect();
    if wanted.layout.is_long() || numbers.iter().chain(&wanted.texts).all(|name| names.contains(name)) {
        return formats::frame(reader, wanted);
    }
    let [value] = &numbers[..] else {
        return Err(Error::Data(format!("a wide table has one column of numbers, '{VALUE}', found {} that are wanted", numbers.len())));
    };
    match wanted.layout {
        Layout::WideSeries => {
            let has_no_names = is_nameless(reader.header());
            if has_no_names {
                reader.take_header_as_row(names_of_nameless(reader.header().len()));
            }
            in_rows(reader, wanted, value, has_no_names)
        }
        _ => in_columns(reader, wanted, value),
    }
}

/// A long table, filled one series after the other.
struct Long {
    value: String,
    numbers: ValuesWriter<f64>,
    /// The name of the series of each row, and further texts.
    texts: Vec<TextsWriter>,
    /// The name of the time column, the format of the times, and the times.
    times: Option<(String, Clock, ValuesWriter<f64>)>,
    places: Locations,
}

impl Long {
    /// A table without rows, with `n_texts` columns of texts and, if given, a time column of this name and format.
    fn new(value: &str, n_texts: usize, times: Option<(String, Clock)>) -> Self {
        let n_columns = 1 + n_texts + usize::from(times.is_some());
        Self {
            value: value.to_owned(),
            numbers: ValuesWriter::new(n_columns),
            texts: (0..n_texts).map(|_| TextsWriter::new(n_columns)).collect(),
            times: times.map(|(name, clock)| (name, clock, ValuesWriter::new(n_columns))),
            places: Locations::default(),
        }
    }

    /// Adds a series with its `texts`, `cells` and `times`, from the first to the last known cell.
    fn add(&mut self, texts: &[&str], cells: &[f64], times: Option<&[f64]>, missing: impl Fn(usize) -> Option<Error>) -> Result<()> {
        let name = texts[0];
        let is_known = |x: &f64| !x.is_nan();
        let (Some(first), Some(last)) = (cells.iter().position(is_known), cells.iter().rposition(is_known)) else {
            return Err(Error::Data(format!("the series '{name}' has no number; leave it out")));
        };
        if self.texts[0].knows(name) {
            return Err(Error::Data(format!("the series '{name}' is there twice; give each series a name of its own")));
        }
        self.places.begin_series(self.numbers.len(), name);
        for (step, x) in cells.iter().enumerate().take(last + 1).skip(first) {
            if x.is_nan()
                && let Some(error) = missing(step)
            {
                return Err(error);
            }
            self.texts.iter_mut().zip(texts).try_for_each(|(column, text)| column.push(text))?;
        }
        self.numbers.extend(&cells[first..=last])?;
        match (&mut self.times, times) {
            (Some((_, _, known)), Some(times)) => known.extend(&times[first..=last]),
            _ => Ok(()),
        }
    }

    fn finish(self) -> Result<Frame> {
        if self.numbers.len() == 0 {
            return Err(Error::Data("it has no rows below its header".to_owned()));
        }
        Ok(Frame {
            names: vec![self.value],
            numbers: vec![self.numbers.finish()?],
            categories: vec![None],
            unseen: Vec::new(),
            texts: self.texts.into_iter().map(TextsWriter::finish).collect::<Result<_>>()?,
            times: self
                .times
                .map(|(name, clock, values)| Ok::<_, Error>(Times { name, clock, values: values.finish()?, is_cut: false }))
                .transpose()?,
            places: self.places,
            leads: Vec::new(),
        })
    }
}

fn missing(place: impl std::fmt::Display, column: &str) -> Error {
    Error::Data(format!(
        "{place}, column '{column}': the cell is empty, expected a number; fill it, or train with missing = mask or forward-fill"
    ))
}

/// Each row is a series; its first cell is its class if the table `has_no_names`.
fn in_rows(reader: Box<dyn Reader>, wanted: &Wanted, value: &str, has_no_names: bool) -> Result<Frame> {
    let header = reader.header().to_vec();
    let has = |name: &&String| header.contains(name);
    let named = wanted.texts.first().filter(has);
    let texts: Vec<String> = named.into_iter().chain(wanted.texts.iter().skip(1)).cloned().collect();
    let aside: HashSet<&String> = texts.iter().chain(&wanted.aside).collect();
    let steps: Vec<String> = header.iter().filter(|name| !aside.contains(name)).cloned().collect();
    let names = || steps.iter().map(String::as_str);
    let times = times_of(names());
    let (in_order, told) = (times.as_ref().map(|(_, times)| rise(times)), numbers_of(names()).map(|numbers| rise(&numbers)));
    if in_order.or(told) == Some(false) {
        return Err(Error::Data("its columns of steps are not in the order of their names; put them in order".to_owned()));
    }
    if let Some((other, step)) = no_step(&steps) {
        return Err(Error::Data(format!("the column '{other}' is not named like a step of the series, as '{step}' is; leave it out")));
    }
    let class = CLASS.to_owned();
    // Even if classes are not wanted, they are checked: a row without one would have its first value in its place.
    let class = Some(&class).filter(|class| has_no_names && !wanted.classes.is_empty() && has(class) && !texts.contains(class));
    let categories = class.map(|column| Names { column: column.clone(), values: Some(wanted.classes.clone()) }).into_iter().collect();
    let number = wanted.number.clone();
    let inner = Wanted { may_miss: true, categories, number, ..Wanted::named(steps.iter().chain(class), texts) };
    let mut wide = formats::frame(reader, &inner)?;
    if class.is_some() {
        take_classes(&mut wide, &wanted.classes)?;
    }
    let has_times = wanted.time != TimeColumn::None;
    let times = times.filter(|_| has_times);
    let time_name = match &wanted.time {
        TimeColumn::Named(name) => name,
        _ => TIME,
    };
    let clock = times.as_ref().map(|(clock, _)| (time_name.to_owned(), *clock));
    let mut long = Long::new(value, wanted.texts.len().max(1), clock);
    let mut cells = Vec::with_capacity(steps.len());
    for row in 0..wide.n_rows() {
        let number = (row + 1).to_string();
        let text = |column: usize| {
            let texts = &wide.texts[column];
            texts.distinct()[texts.rows()[row] as usize].as_str()
        };
        let own = usize::from(named.is_some());
        let name = if own > 0 { text(0) } else { &number };
        let texts: Vec<&str> = std::iter::once(name).chain((own..wide.texts.len()).map(text)).collect();
        cells.clear();
        cells.extend(wide.numbers.iter().map(|column| column[row]));
        let refused = |step: usize| (!wanted.may_miss).then(|| missing(wide.places.name(row), &steps[step]));
        long.add(&texts, &cells, times.as_ref().map(|(_, times)| &times[..]), refused)?;
    }
    long.without_extra_texts(&wanted.texts).finish()
}

/// Removes the last column of `wide`, the first cells of its rows.
///
/// # Errors
/// When a non-empty one is not among `classes`.
fn take_classes(wide: &mut Frame, classes: &[String]) -> Result<()> {
    wide.names.pop();
    wide.categories.pop();
    let numbers = wide.numbers.pop().unwrap_or_default();
    let (Some(row), Some(unknown)) = (numbers.iter().position(|&number| number == UNSEEN), wide.unseen.pop()) else { return Ok(()) };
    Err(Error::Data(format!(
        "{}: without names of columns the first cell of a row is its class, or ? where that is not known; expected {}, found '{}'; put the class or ? in \
         front of the values of every row",
        wide.places.name(row),
        first_few(8, classes.iter().map(|class| format!("'{class}'"))),
        unknown.first
    )))
}

/// Each column is a series.
fn in_columns(reader: Box<dyn Reader>, wanted: &Wanted, value: &str) -> Result<Frame> {
    let aside: HashSet<&String> = wanted.aside.iter().collect();
    let time = wanted.time_in(reader.header())?;
    let series: Vec<String> = reader
        .header()
        .iter()
        .enumerate()
        .filter(|(at, name)| Some(*at) != time && !aside.contains(name))
        .map(|(_, name)| name.clone())
        .collect();
    if series.is_empty() {
        return Err(no_numbers(reader.header()));
    }
    let inner = Wanted { may_miss: true, time: wanted.time.clone(), ..Wanted::named(&series, Vec::new()) };
    let wide = formats::frame(reader, &inner)?;
    let mut long = Long::new(value, 1, wide.times.as_ref().map(|times| (times.name.clone(), times.clock)));
    let times = wide.times.as_ref().map(|times| &times.values[..]);
    for (name, cells) in series.iter().zip(&wide.numbers) {
        let refused = |row: usize| (!wanted.may_miss).then(|| missing(wide.places.name(row), name));
        long.add(&[name], cells, times, refused)?;
    }
    long.without_extra_texts(&wanted.texts).finish()
}

impl Long {
    /// Keeps the names of series only if they are wanted.
    fn without_extra_texts(mut self, wanted: &[String]) -> Self {
        self.texts.truncate(wanted.len());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_steps_are_told_from_others() {
        let are = |names: &[&str]| are_steps(names.iter().copied());
        assert!(
            are(&["1", "2", "3"]) && are(&["t0", "t1", "t2", "t10"]) && are(&["2024-01", "2024-02", "2024-03"]) && are(&["0.5", "1", "2"])
        );
        assert!(
            !are(&["1", "2"])
                && !are(&["t1", "t10", "t2"])
                && !are(&["t1", "x2", "t3"])
                && !are(&["a", "b", "c"])
                && !are(&["t1", "t", "t3"])
        );
        assert!(!are(&["2024-01", "2023-02", "2024-03"]) && !are(&["99999999999999999999999a", "b", "c"]));
        let nameless = |names: &[&str]| is_nameless(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert!(nameless(&["2", "-0.64", "-0.63", "0.1"]) && !nameless(&["0", "1", "2", "3"]) && !nameless(&["1", "2", "3", "4"]));
        assert!(!nameless(&["class", "1.5", "2.5", "3.5"]) && !nameless(&["1.5", "2"]));
        assert!(
            nameless(&["?", "-0.64", "-0.65", "0.1"]) && !nameless(&["", "2001", "2002", "2003"]) && !nameless(&["1", "?", "2", "0.1"])
        );
        // Names of steps after that of a class column.
        assert!(
            nameless(&["?", "0.3", "0.1", "0.2"]) && !nameless(&["?", "0", "1", "2", "3"]) && !nameless(&["?", "2001", "2002", "2004"])
        );
        assert!(!nameless(&["NA", "0", "1", "2", "3"]) && !nameless(&["none", "0.3", "0.1", "0.2"]) && !nameless(&["?", "0.2", "0.1"]));
        assert!(!nameless(&[]));
        assert_eq!(names_of_nameless(3), ["class", "1", "2"]);
    }

    #[test]
    fn one_among_steps_that_is_none_is_found() {
        let found = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            no_step(&names).map(|(other, step)| [other, step].map(str::to_owned))
        };
        let owned = |pair: [&str; 2]| Some(pair.map(str::to_owned));
        assert_eq!(found(&["t1", "t2", "t3", "note"]), owned(["note", "t1"]));
        assert_eq!(found(&["area", "2024-01", "2024-02", "2024-03"]), owned(["area", "2024-01"]));
        assert_eq!(found(&["1", "2", "3", "x4"]), owned(["x4", "1"]));
        assert_eq!(found(&["t1", "t2", "t3"]), None);
        // Names without a pattern.
        assert_eq!(found(&["jan", "feb", "mar", "q4"]), None);
        assert_eq!(found(&["a1", "b1", "c1"]), None);
    }
}
