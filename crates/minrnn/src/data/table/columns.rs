//! Which columns of a table are wanted, and where they are.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use minrnn_model::{Category, Layout, first_few};

use super::category_names::CategoryNames;
use super::cells::Kind;
use crate::suggestion::suggestion;
use crate::{Error, Result};

/// Columns that are taken for times if none is named, regardless of case.
const KNOWN_NAMES: [&str; 5] = ["ds", "date", "time", "timestamp", "datetime"];

/// The columns to read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Columns of numbers.
    pub numbers: Numbers,
    /// Columns of names, such as groups and labels; any cell counts as a name.
    pub texts: Vec<String>,
    /// The column of `texts` that holds numbers to predict, if there is one: messages call what it lacks a number.
    pub number: Option<String>,
    /// The column with the time of a row.
    pub time: TimeColumn,
    /// Whether a number may be missing, that is, NaN.
    pub may_miss: bool,
    /// The columns of `numbers` that may hold names.
    pub categories: Vec<Names>,
    /// The layout of the series in a table that does not have these columns.
    pub layout: Layout,
    /// Columns of a wide table that are neither steps nor series.
    pub aside: Vec<String>,
    /// For a wide table without column names, the classes to which the first cell of a row must belong; empty: any class in it.
    pub classes: Vec<String>,
    /// Columns of numbers that, if the table lacks them, are other columns at later steps, such as `price+1`.
    pub leads: Vec<String>,
}

/// A column of numbers that may hold names, each of which is read as its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// The column.
    pub column: String,
    /// The names it distinguishes; `None`: those found in the table, if its first cell is not a number.
    pub values: Option<Vec<String>>,
}

impl Names {
    /// The `columns` of a trained model, with the names it knows.
    pub fn known(columns: &[String], categories: &[Category]) -> Vec<Self> {
        let names = |category: &Category| Self { column: columns[category.column].clone(), values: Some(category.values.clone()) };
        categories.iter().map(names).collect()
    }

    pub(super) fn kind(&self) -> Kind {
        match &self.values {
            None => Kind::Open,
            Some(names) => Kind::Known(CategoryNames::new(names)),
        }
    }
}

/// The column with the time of a row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TimeColumn {
    /// There is none: rows are in order of time.
    #[default]
    None,
    /// The column of this name.
    Named(String),
    /// A column called ds, date, time, timestamp or datetime that was not asked for by name, if any. Forecasts also take a column with
    /// another name if it is the only one that holds dates.
    Found,
}

impl TimeColumn {
    /// The meaning of a setting: empty for none, `auto`, or a name.
    pub fn of_setting(setting: &str) -> Self {
        match setting {
            "" => Self::None,
            "auto" => Self::Found,
            name => Self::Named(name.to_owned()),
        }
    }
}

/// Columns of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Numbers {
    /// These, in this order.
    Named(Vec<String>),
    /// All except those wanted as texts, in the order of the table.
    #[default]
    AllOthers,
}

/// Positions of the wanted columns in the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Positions {
    pub numbers: Vec<usize>,
    pub texts: Vec<usize>,
    pub time: Option<usize>,
}

impl Wanted {
    /// These columns of numbers, each once, and these of texts, without times; no number may be missing.
    pub(super) fn named<'a>(numbers: impl IntoIterator<Item = &'a String>, texts: Vec<String>) -> Self {
        let mut seen = HashSet::new();
        let names = numbers.into_iter().filter(|&name| seen.insert(name)).cloned().collect();
        Self { numbers: Numbers::Named(names), texts, ..Self::default() }
    }

    /// The index of the time column in `header`, if there is one.
    ///
    /// # Errors
    /// When the named column is missing or occurs twice.
    pub(super) fn time_in(&self, header: &[String]) -> Result<Option<usize>> {
        Ok(match &self.time {
            TimeColumn::None => None,
            TimeColumn::Named(name) => Some(Index::new(header).position(name)?),
            TimeColumn::Found => {
                let is_named =
                    |name: &String| self.texts.contains(name) || matches!(&self.numbers, Numbers::Named(names) if names.contains(name));
                // A column that occurs twice could not be found again by its name.
                header
                    .iter()
                    .find(|name| is_time_name(name) && !is_named(name))
                    .map(|name| Index::new(header).position(name))
                    .transpose()?
            }
        })
    }

    /// The indices of the columns in `header`.
    ///
    /// # Errors
    /// When a column is missing or occurs twice, or none is left for numbers.
    pub(super) fn positions(&self, header: &[String]) -> Result<Positions> {
        let index = Index::new(header);
        let all = |names: &[String]| names.iter().map(|name| index.position(name)).collect::<Result<Vec<_>>>();
        let texts = all(&self.texts)?;
        let time = self.time_in(header)?;
        let numbers = match &self.numbers {
            Numbers::Named(names) => all(names)?,
            // An index added by pandas is not a column of the table.
            Numbers::AllOthers => {
                let texts: HashSet<usize> = texts.iter().copied().chain(time).collect();
                (0..header.len()).filter(|at| !texts.contains(at) && !header[*at].starts_with("__index_level_")).collect()
            }
        };
        // Columns that were not asked for by name may share one.
        if let Some(name) = twice(numbers.iter().map(|&at| &header[at])) {
            return Err(there_twice(name));
        }
        // Calendar columns need only the times.
        if numbers.is_empty() && (time.is_none() || self.numbers == Numbers::AllOthers) {
            return Err(no_numbers(header));
        }
        Ok(Positions { numbers, texts, time })
    }
}

/// The error for a table with this `header` of which nothing is left to read.
pub(super) fn no_numbers(header: &[String]) -> Error {
    Error::Data(format!(
        "it has no column left to read numbers from; its columns are {}",
        first_few(24, header.iter().map(|name| format!("'{name}'")))
    ))
}

/// Whether a column of this name is a time column.
pub(super) fn is_time_name(name: &str) -> bool {
    KNOWN_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Refuses a table without the column `name`.
///
/// # Errors
/// With a sentence that suggests the nearest name.
pub(super) fn expect_column(header: &[String], name: &str) -> Result<()> {
    Index::new(header).position(name).map(|_| ())
}

/// The first name in `names` that repeats an earlier one.
pub(crate) fn twice<'a>(names: impl IntoIterator<Item = &'a String>) -> Option<&'a String> {
    let mut seen = HashSet::new();
    names.into_iter().find(|&name| !seen.insert(name))
}

fn there_twice(name: &str) -> Error {
    Error::Data(format!("the column '{name}' is there twice; give its columns different names"))
}

/// The indices of the columns of a header, by name.
struct Index<'a> {
    header: &'a [String],
    /// The first index of a name, and whether the name occurs again.
    places: HashMap<&'a str, (usize, bool)>,
}

impl<'a> Index<'a> {
    fn new(header: &'a [String]) -> Self {
        let mut places = HashMap::with_capacity(header.len());
        for (at, name) in header.iter().enumerate() {
            match places.entry(name.as_str()) {
                Entry::Vacant(entry) => _ = entry.insert((at, false)),
                Entry::Occupied(mut entry) => entry.get_mut().1 = true,
            }
        }
        Self { header, places }
    }

    fn position(&self, name: &str) -> Result<usize> {
        match self.places.get(name) {
            Some(&(at, false)) => Ok(at),
            Some((_, true)) => Err(there_twice(name)),
            None => {
                let names = self.header.iter().map(String::as_str);
                Err(Error::Data(format!("there is no column '{name}'{}", suggestion(name, names))))
            }
        }
    }
}

/// The error when a model that reads `trained` is to learn from columns with other names.
pub(super) fn other_columns(trained: &[String], found: &[String]) -> Error {
    Error::Data(format!(
        "the model to start from was trained on {}, and these are {}; give the columns of the table the same names, in the same order",
        quoted(trained),
        quoted(found)
    ))
}

/// The error when a model that forecasts `trained` is to forecast something else.
pub(super) fn other_targets(trained: &[String], asked: &[String]) -> Error {
    Error::Data(format!(
        "the model to start from forecasts {}, and {} is to be forecast here; it goes on with the same targets, in the same order: name these, or train a \
         new model",
        quoted(trained),
        quoted(asked)
    ))
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_column_of_times_that_is_there_twice_is_refused_unless_it_is_not_looked_for() {
        let header: Vec<String> = ["x", "ds", "y", "ds"].map(str::to_owned).to_vec();
        let wanted = |time| Wanted { time, ..Wanted::named(&["x".to_owned()], Vec::new()) };
        let refused = wanted(TimeColumn::Found).positions(&header).unwrap_err();
        assert_eq!(refused.to_string(), there_twice("ds").to_string());
        assert_eq!(wanted(TimeColumn::None).positions(&header).unwrap().numbers, [0]);
        assert_eq!(wanted(TimeColumn::Found).positions(&header[..2]).unwrap().time, Some(1));
    }

    #[test]
    fn times_alone_are_read_where_nothing_else_is_asked_for_by_name() {
        let header = ["store", "ds"].map(str::to_owned);
        let wanted = |numbers, time| Wanted { numbers, texts: vec!["store".to_owned()], time, ..Wanted::default() };
        let none = || Numbers::Named(Vec::new());
        let found = wanted(none(), TimeColumn::Found).positions(&header).unwrap();
        assert_eq!(found, Positions { numbers: Vec::new(), texts: vec![0], time: Some(1) });
        for (numbers, time) in [(Numbers::AllOthers, TimeColumn::Found), (none(), TimeColumn::None)] {
            let refused = wanted(numbers, time).positions(&header).unwrap_err().to_string();
            assert_eq!(refused, "it has no column left to read numbers from; its columns are 'store', 'ds'");
        }
    }

    #[test]
    fn columns_of_a_wide_table_are_found_in_one_pass_over_its_header() {
        let header: Vec<String> = (0..1 << 16).map(|at| format!("column {at:05}")).collect();
        let backwards: Vec<String> = header.iter().rev().cloned().collect();
        let started = Instant::now();
        let named = Wanted { numbers: Numbers::Named(backwards.clone()), ..Wanted::default() }.positions(&header).unwrap();
        assert_eq!(named.numbers, (0..1 << 16).rev().collect::<Vec<_>>());
        let texts = Wanted { texts: header[1..].to_vec(), ..Wanted::default() }.positions(&header).unwrap();
        assert_eq!(texts.numbers, [0]);
        let frame = super::super::frame::Frame::of(&backwards.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(frame.columns(&header), named.numbers);
        assert_eq!(Wanted::named(header.iter().chain(&backwards), Vec::new()).numbers, Numbers::Named(header));
        // One pass per column would take a minute.
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    }
}
