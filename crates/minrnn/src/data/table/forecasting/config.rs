//! What is forecast from what, as requested by a user and as inferred from the table.

use minrnn_model::{Forecaster, first_few};

use super::super::calendar::CalendarPart;
use super::super::columns::TimeColumn;
use super::super::roles::{Roles, Understood, together};
use super::super::{Division, Opened, Wanted, categories, leads};
use super::ScalingChoice;
use crate::{Error, Result};

/// The role of a column of times.
const TELLS_TIME: &str = "tells the time";

/// What is forecast from what.
#[derive(Debug, Clone, PartialEq)]
pub struct ForecastingConfig {
    /// Columns that are read; empty: the columns that are forecast.
    pub columns: Vec<String>,
    /// Parts of the calendar derived from the time column and read too.
    pub calendar: Vec<CalendarPart>,
    /// Columns that are known ahead: they are read, and so are their values at the forecast steps.
    pub known_ahead: Vec<String>,
    /// Columns that are forecast; empty: the one called y or value.
    pub target: Vec<String>,
    /// The column that names the sequence of a row; `None`: the table is one sequence, or, if no target is named either, a column unique_id
    /// or series.
    pub group: Option<String>,
    /// Number of steps ahead, H.
    pub horizon: usize,
    /// Steps in a season of the naive forecast; 0: the usual one at the pace of most rows of the time column; without a time column, or if
    /// no training sequence is longer, the last value.
    pub season: usize,
    /// The level relative to which numbers are read.
    pub scaling: ScalingChoice,
    /// The levels of the predicted quantiles, ascending, including the median; empty: the mean.
    pub quantiles: Vec<f64>,
    /// A model whose normalisation, and `scaling`, is kept; `None`: fitted on the training part.
    pub like: Option<Forecaster>,
    /// How the files are read, and which part each of them is.
    pub division: Division,
    /// Steps T of a training window.
    pub seq_len: usize,
}

impl ForecastingConfig {
    /// The same, with columns that were not named inferred from the table, notes about them, and a sentence that says why no training should
    /// begin with it, if so.
    pub(super) fn understood(&self, opened: &mut Opened) -> Result<(Self, Understood, Option<String>)> {
        let Self { columns, known_ahead, group, target, division: Division { time, layout, .. }, .. } = self.clone();
        let asked = Roles { columns, known_ahead, group, target, time, layout };
        let (mut roles, mut understood) = asked.to_forecast(opened.header())?;
        let lacks_time = roles.lacks_time(opened.header());
        let dates = if lacks_time || roles.names_columns() { opened.dates()? } else { Vec::new() };
        let mut unfit = None;
        match &dates[..] {
            _ if !lacks_time => {}
            [only] if !roles.named().contains(only) => {
                (roles, understood) = asked.with_dates(roles, understood, only.clone(), opened.header())?;
            }
            dates => {
                unfit = roles.time_read_as_names(dates);
                understood = together([understood, roles.without_times(dates).filter(|_| unfit.is_none())]);
            }
        }
        let as_names = roles.dates_as_names(&dates).filter(|_| unfit.is_none());
        let header = opened.header();
        let Roles { group, target, time, layout, .. } = roles;
        let division = Division { time, layout, ..self.division.clone() };
        let config = Self { group, target, division, ..self.clone() }.with_calendar(header)?.with_known_ahead()?;
        let understood = together([understood, as_names, config.own_leads(header)]);
        Ok((config, understood, unfit))
    }

    /// The same, with the parts of the calendar among the columns that are read.
    fn with_calendar(self, header: &[String]) -> Result<Self> {
        let Some(first) = self.calendar.first() else { return Ok(self) };
        let Some(time) = self.wanted().time_in(header)?.map(|at| header[at].clone()) else {
            let sentence = format!("calendar = {first} is read from a column of times, and there is none; name it with time");
            return Err(Error::Config(sentence));
        };
        let mut columns = self.read().to_vec();
        for name in self.calendar.iter().map(|part| part.column(&time)) {
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
        Ok(Self { columns, division: Division { time: TimeColumn::Named(time), ..self.division }, ..self })
    }

    /// The same, with the columns that are known ahead and their values at the next steps among those read.
    fn with_known_ahead(self) -> Result<Self> {
        if self.known_ahead.is_empty() {
            return Ok(self);
        }
        let role = |name: &String| match name {
            name if self.target.contains(name) => Some("is forecast: nothing of it is known ahead"),
            name if self.group.as_ref() == Some(name) => Some("names sequences"),
            name if matches!(&self.division.time, TimeColumn::Named(time) if time == name) => Some(TELLS_TIME),
            _ => None,
        };
        if let Some((name, role)) = self.known_ahead.iter().find_map(|name| Some((name, role(name)?))) {
            let instead = match role {
                TELLS_TIME => format!(", or name parts of the calendar if it holds dates, such as {name}.weekday"),
                _ => String::new(),
            };
            return Err(Error::Config(format!("known_ahead names the column '{name}', which {role}; leave it out{instead}")));
        }
        let mut columns = self.read().to_vec();
        for name in self.known_ahead.iter().cloned().chain(self.leads()) {
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
        Ok(Self { columns, ..self })
    }

    /// The values at the next steps of the columns that are known ahead.
    fn leads(&self) -> Vec<String> {
        self.known_ahead.iter().flat_map(|column| leads::names(column, self.horizon)).collect()
    }

    /// A sentence for a table with columns named like values at the next steps: they are taken for these, as in a stream.
    fn own_leads(&self, header: &[String]) -> Understood {
        let own: Vec<String> = self.leads().into_iter().filter(|name| header.contains(name)).map(|name| format!("'{name}'")).collect();
        (!own.is_empty()).then(|| {
            format!(
                "the table has columns that are called as what is known ahead, {}: they are read in its place; rename them if they are something else",
                first_few(8, own.into_iter())
            )
        })
    }

    /// A sentence for a layout in which future rows have no place for what is known ahead.
    pub(super) fn placelessness(&self) -> Understood {
        let first = self.known_ahead.first().filter(|_| !self.division.layout().is_long())?;
        Some(format!(
            "known_ahead names the column '{first}', and the rows to come of a wide table have no place for it; give the table a row for each step"
        ))
    }

    /// A sentence if none of the forecast columns is read.
    pub(super) fn blindness(&self) -> Understood {
        let unread: Vec<&str> = self.target.iter().filter(|target| !self.read().contains(target)).map(String::as_str).collect();
        let targets = unread.join("', '");
        (!unread.is_empty()).then(|| {
            format!(
                "'{targets}' is not among the columns that are read: it is forecast without its own values of before; add it to columns if these \
                 should count"
            )
        })
    }

    pub(super) fn read(&self) -> &[String] {
        if self.columns.is_empty() { &self.target } else { &self.columns }
    }

    pub(super) fn wanted(&self) -> Wanted {
        let named = Wanted::named(self.read().iter().chain(&self.target), self.group.iter().cloned().collect());
        let categories = categories::open(&self.columns, &self.target);
        self.division.wanted(Wanted { categories, leads: self.leads(), ..named })
    }
}
