//! Inferring the roles of columns that were not named: by their usual names, and for wide tables whose column names leave no doubt.

use minrnn_model::first_few;

use super::clock::Clock;
use super::columns::{TimeColumn, Wanted, expect_column, is_time_name};
use super::label::Label;
use super::layout::{CLASS, LayoutChoice, SERIES, TARGET, TIME, VALUE, are_steps, is_nameless, times_of};
use crate::{Error, Needed, Result};

/// Names of columns that go together.
struct Convention {
    group: &'static str,
    target: &'static str,
    time: &'static str,
}

/// For sequences to forecast: the names of statsforecast and its kin, and those of an archive. The first that a table has wins.
const TO_FORECAST: [Convention; 2] =
    [Convention { group: "unique_id", target: "y", time: "ds" }, Convention { group: SERIES, target: VALUE, time: TIME }];

/// Columns of a long table that are taken for the labels of its sequences, as named by an archive. The first that a table has wins.
fn labels_of(label: Label) -> &'static [&'static str] {
    match label {
        Label::Class => &[CLASS],
        Label::Number => &[CLASS, TARGET],
    }
}

/// Columns of a wide table that are taken for the classes of its series.
const CLASSES: [&str; 3] = [CLASS, "label", TARGET];
/// Columns of a wide table that are taken for the names of its series.
const NAMES: [&str; 4] = [SERIES, "unique_id", "id", "name"];

/// The key of columns that are known ahead.
const KNOWN_AHEAD: &str = "known_ahead";

/// What was inferred, as a sentence; `None` if everything was given.
pub(super) type Understood = Option<String>;

/// All of `sentences`, one per line.
pub(super) fn together(sentences: impl IntoIterator<Item = Understood>) -> Understood {
    sentences.into_iter().flatten().reduce(|all, sentence| all + "\n" + &sentence)
}

/// The roles of columns, as far as they are given.
#[derive(Debug, Clone)]
pub(super) struct Roles {
    /// Columns named for reading.
    pub columns: Vec<String>,
    /// Columns named as known ahead, which are read too.
    pub known_ahead: Vec<String>,
    /// The column that names the sequences.
    pub group: Option<String>,
    /// Columns of labels, or of what is forecast.
    pub target: Vec<String>,
    pub time: TimeColumn,
    pub layout: LayoutChoice,
}

impl Roles {
    /// The same with the columns of sequences and labels found in `header`.
    ///
    /// # Errors
    /// When one is not named and cannot be found.
    pub fn to_label(&self, header: &[String], label: Label) -> Result<(Self, Understood)> {
        let mut understood = self.clone();
        match self.layout {
            LayoutChoice::WideColumns => {
                let sentence =
                    format!("layout = wide-columns has no place for {} of each series; use wide-series or long", label.with_article());
                return Err(Error::Config(sentence));
            }
            LayoutChoice::WideSeries => return self.labels_in_rows(header, label),
            LayoutChoice::Auto if self.group.is_none() && !has(header, SERIES) => {
                if let Ok((wide, sentence)) = self.labels_in_rows(header, label)
                    && (is_nameless(header) || are_steps(wide.steps(header)))
                {
                    return Ok((wide, sentence));
                }
            }
            LayoutChoice::Auto | LayoutChoice::Long => {}
        }
        let mut taken = Vec::new();
        if understood.group.is_none() && has(header, SERIES) {
            taken.push(format!("group = {SERIES}"));
            understood.group = Some(SERIES.to_owned());
        }
        let known = labels_of(label).iter().find(|name| has(header, name));
        if let Some(&known) = known.filter(|_| understood.target.is_empty()) {
            taken.push(format!("target = {known}"));
            understood.target = vec![known.to_owned()];
        }
        if understood.target.is_empty() {
            let (verb, noun) = (label.verb(), label.noun());
            return Err(Error::needed(Needed::Target, format!("to {verb}, name the column with the {noun}, found 0 columns")));
        }
        if understood.group.is_none() {
            let verb = label.verb();
            return Err(Error::needed(
                Needed::Group,
                format!("to {verb} sequences, name the column that tells which of them a row belongs to"),
            ));
        }
        Ok((understood, sentence(&taken)))
    }

    /// The same for a table with a row, and a label, for each series.
    fn labels_in_rows(&self, header: &[String], label: Label) -> Result<(Self, Understood)> {
        expect_no_columns(&self.columns)?;
        let known = || CLASSES.into_iter().find(|name| has(header, name)).or(header.first().map(String::as_str));
        let class = match &self.target[..] {
            _ if is_nameless(header) => CLASS,
            [class] => class,
            _ => known().unwrap_or(CLASS),
        };
        let names = self.group.as_deref().or_else(|| NAMES.into_iter().find(|name| has(header, name) && *name != class));
        if !is_nameless(header) {
            expect_column(header, class)?;
            names.map_or(Ok(()), |names| expect_column(header, names))?;
        }
        let group = Some(names.unwrap_or(SERIES).to_owned());
        let mut understood = Self { group, target: vec![class.to_owned()], layout: LayoutChoice::WideSeries, ..self.clone() };
        // Step numbers are not times.
        if times_of(understood.steps(header)).is_none_or(|(clock, _)| clock == Clock::Number) {
            understood.time = TimeColumn::None;
        }
        let names = names.map_or("counted from 1 on".to_owned(), |name| format!("named by '{name}'"));
        let sentence = match is_nameless(header) {
            true => format!(
                "read as a row for each series, without names of columns: first its {}, then {} steps",
                label.noun(),
                header.len() - 1
            ),
            false => {
                format!(
                    "read as a row for each series, {names}, with its {} in '{class}' and {}",
                    label.noun(),
                    describe(understood.steps(header), "steps")
                )
            }
        };
        Ok((understood, Some(sentence)))
    }

    /// The names of the columns of a wide table that are steps.
    fn steps<'a>(&self, header: &'a [String]) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
        others(header, self.group.iter().chain(&self.target).cloned().collect())
    }

    /// The same with the columns found in `header`, if neither sequences nor targets are named.
    ///
    /// # Errors
    /// When no target can be found.
    pub fn to_forecast(&self, header: &[String]) -> Result<(Self, Understood)> {
        match self.layout {
            LayoutChoice::WideSeries => return self.in_rows(header),
            LayoutChoice::WideColumns => return self.in_columns(header),
            LayoutChoice::Auto | LayoutChoice::Long => {}
        }
        if !self.target.is_empty() {
            return Ok((self.clone(), None));
        }
        let has = |name: &str| has(header, name);
        let found = TO_FORECAST.iter().find(|known| has(known.target) && (has(known.group) || has(known.time)));
        let Some(known) = found.filter(|_| self.group.is_none()) else {
            let steps = || others(header, vec![self.group.as_deref().unwrap_or(&header[0]).to_owned()]);
            let first_names = !is_time_name(&header[0]) && Clock::of(&header[0]).is_none();
            let is_wide = self.layout == LayoutChoice::Auto && first_names && times_of(steps()).is_some() && are_steps(steps());
            return match is_wide {
                true => self.in_rows(header),
                false => Err(Error::needed(
                    Needed::TargetOrLayout,
                    "to forecast, name the columns that are to be predicted, or say that each column is a series of its own",
                )),
            };
        };
        let mut taken = Vec::new();
        let mut understood = self.clone();
        if has(known.group) {
            taken.push(format!("group = {}", known.group));
            understood.group = Some(known.group.to_owned());
        }
        taken.push(format!("target = {}", known.target));
        understood.target = vec![known.target.to_owned()];
        if has(known.time) && understood.time == TimeColumn::Found {
            taken.push(format!("time = {}", known.time));
            understood.time = TimeColumn::Named(known.time.to_owned());
        }
        Ok((understood, sentence(&taken)))
    }

    /// Whether a time column is looked for by name, and `header` has none except those wanted for something else.
    pub fn lacks_time(&self, header: &[String]) -> bool {
        let is_long = self.layout != LayoutChoice::WideSeries;
        let named = self.named();
        is_long && self.time == TimeColumn::Found && !header.iter().any(|name| is_time_name(name) && !named.contains(name))
    }

    /// A note that rows are taken in their order if no time column was found and the columns `dates` hold dates; nothing if it was noted
    /// already.
    pub fn without_times(&self, dates: &[String]) -> Understood {
        if self.layout == LayoutChoice::WideColumns {
            return None;
        }
        let named = self.named();
        let free: Vec<String> = dates.iter().filter(|name| !named.contains(name)).cloned().collect();
        let which = match &free[..] {
            [] => String::new(),
            [only] => format!(" (1 column holds dates: {only}; choose it with time)"),
            several => format!(" ({} columns hold dates: {}; choose one with time)", several.len(), first_few(8, free.iter().cloned())),
        };
        Some(format!("no column of times was found{which}: rows are taken in the order of the file"))
    }

    /// A sentence that refuses one of the columns `dates`, which hold dates, if it is named for reading although no other column tells the times.
    pub fn time_read_as_names(&self, dates: &[String]) -> Option<String> {
        let tells_time = |name: &&String| is_time_name(name) || dates.len() == 1;
        let (name, key) = self.dates_read(dates).find(|(name, _)| tells_time(name))?;
        let part =
            if key == KNOWN_AHEAD { format!("calendar = weekday with known_ahead = {name}.weekday") } else { format!("{name}.weekday") };
        Some(format!(
            "{key} names the column '{name}', which holds dates: as names, none of them comes again; leave it out, so that it tells the times, and name \
             parts of the calendar in its place, such as {part}; or set time to nothing if its dates are meant as names"
        ))
    }

    /// A note on those of the columns `dates`, which hold dates, that are named for reading.
    pub fn dates_as_names(&self, dates: &[String]) -> Understood {
        let read: Vec<String> = self.dates_read(dates).map(|(name, _)| format!("'{name}'")).collect();
        let (columns, hold) = if read.len() == 1 { ("column", "holds") } else { ("columns", "hold") };
        let told = first_few(8, read.iter().cloned());
        (!read.is_empty()).then(|| {
            format!("the {columns} {told} {hold} dates, which are read as names: those that training does not see are unknown to the model")
        })
    }

    /// Those of the columns `dates` of a long table that are named for reading, with the key that names them.
    fn dates_read<'a>(&'a self, dates: &'a [String]) -> impl Iterator<Item = (&'a String, &'static str)> {
        let is_long = matches!(self.layout, LayoutChoice::Auto | LayoutChoice::Long);
        let named = [(&self.known_ahead, KNOWN_AHEAD), (&self.columns, "columns")];
        dates.iter().filter(move |_| is_long).filter_map(move |name| {
            let (_, key) = named.iter().find(|(names, _)| names.contains(name))?;
            Some((name, *key))
        })
    }

    /// Whether any column is named for reading.
    pub fn names_columns(&self) -> bool {
        !self.columns.is_empty() || !self.known_ahead.is_empty()
    }

    /// All named columns.
    pub fn named(&self) -> Vec<String> {
        self.columns.iter().chain(&self.known_ahead).chain(&self.group).chain(&self.target).cloned().collect()
    }

    /// `roles` and `understood`, with the column `name`, which holds dates, as the time column.
    ///
    /// # Errors
    /// As [`to_forecast`](Self::to_forecast).
    pub fn with_dates(&self, roles: Self, understood: Understood, name: String, header: &[String]) -> Result<(Self, Understood)> {
        let time = TimeColumn::Named(name.clone());
        if roles.layout == LayoutChoice::WideColumns {
            return Self { time, ..self.clone() }.to_forecast(header);
        }
        let sentence =
            understood.map_or("read".to_owned(), |sentence| sentence + ", and") + &format!(" with time = {name}, which holds dates");
        Ok((Self { time, ..roles }, Some(sentence)))
    }

    /// The same for a table with a row for each series.
    fn in_rows(&self, header: &[String]) -> Result<(Self, Understood)> {
        let group = self.group.as_deref().unwrap_or(&header[0]);
        expect_column(header, group)?;
        let understood = self.wide(LayoutChoice::WideSeries, group)?;
        let sentence = format!(
            "read as a row for each series, named by '{group}', with {}",
            describe(others(header, vec![group.to_owned()]), "steps")
        );
        Ok((understood, Some(sentence)))
    }

    /// The same for a table with a column for each series.
    fn in_columns(&self, header: &[String]) -> Result<(Self, Understood)> {
        let understood = self.wide(LayoutChoice::WideColumns, self.group.as_deref().unwrap_or(SERIES))?;
        let wanted = Wanted { time: understood.time.clone(), ..Wanted::default() };
        let time = wanted.time_in(header)?.map(|at| header[at].clone());
        let times = time.as_ref().map_or("rows in the order of time".to_owned(), |time| format!("times in '{time}'"));
        let series = describe(others(header, time.into_iter().collect()), "series");
        Ok((understood, Some(format!("read as a column for each series, with {times}: {series}"))))
    }

    fn wide(&self, layout: LayoutChoice, group: &str) -> Result<Self> {
        expect_no_columns(&self.columns)?;
        if !self.target.is_empty() {
            let target = self.target.join(",");
            return Err(Error::Config(format!(
                "target = {target} is for long tables: every number of a wide one is forecast; leave it out"
            )));
        }
        Ok(Self { group: Some(group.to_owned()), target: vec![VALUE.to_owned()], layout, ..self.clone() })
    }
}

fn expect_no_columns(columns: &[String]) -> Result<()> {
    if columns.is_empty() {
        return Ok(());
    }
    Err(Error::Config(format!("columns = {} is for long tables: all of a wide one is read; leave it out", columns.join(","))))
}

fn has(header: &[String], name: &str) -> bool {
    header.iter().any(|column| column == name)
}

/// The names of `header` except these.
fn others(header: &[String], aside: Vec<String>) -> impl Iterator<Item = &str> + Clone {
    header.iter().map(String::as_str).filter(move |name| aside.iter().all(|other| other != name))
}

/// A description of how many columns there are, and which.
fn describe<'a>(mut names: impl Iterator<Item = &'a str> + Clone, of: &str) -> String {
    let n = names.clone().count();
    let first = names.next().unwrap_or_default();
    let last = names.last().unwrap_or(first);
    format!("{n} {of} ('{first}' to '{last}')")
}

/// The sentence about inferred settings.
fn sentence(taken: &[String]) -> Understood {
    (!taken.is_empty()).then(|| format!("read with {}, as its columns are called", taken.join(", ")))
}
