//! Reading tables for a trained model.

use std::path::Path;

use minrnn_model::TableTask;

use super::frame::Lead;
use super::leads;
use super::series::Series;
use super::unseen_names::UnseenNames;
use super::{Division, Frame, Names, TableSource, Wanted, normalization};
use crate::{Error, Result};

/// The sequences of the file `path`, as the model of `task` reads them; classes and targets may be absent. After the end of a sequence,
/// columns that are known ahead keep the value of its last row.
///
/// # Errors
/// When the file cannot be read, lacks a column, or has a number far from everything trained on.
pub fn read_series(task: &TableTask, path: &Path) -> Result<Vec<Series>> {
    read(task, TableSource::File(path)).map(|read| read.series)
}

/// The same of a table from any source, for predicting the next values: columns that are known ahead are read from the table `future`,
/// whose rows follow those of each sequence. Also returns the columns that have names training did not see.
///
/// # Errors
/// As [`read_series`], and when future rows are needed and missing, or given and not needed.
pub fn read_series_from(
    task: &TableTask,
    table: TableSource<'_>,
    future: Option<TableSource<'_>>,
) -> Result<(Vec<Series>, Vec<UnseenNames>)> {
    let Read { mut series, leads, mut unseen } = read(task, table)?;
    let known_ahead = leads::known_ahead(&leads);
    match future {
        None => leads::fill_from(&mut series, &leads, None)?,
        Some(future) if known_ahead.is_empty() => {
            let sentence = "the model reads no column that is known ahead, and no rows to come; leave them out";
            return Err(Error::Config(sentence.to_owned()).in_file(future.path()));
        }
        Some(future) => {
            let path = future.path();
            let Read { series: to_come, unseen: of_future, .. } = rows_to_come(task, future, &known_ahead)?;
            unseen.extend(of_future);
            leads::fill_from(&mut series, &leads, Some((&to_come, &known_ahead))).map_err(|error| error.in_file(path))?;
        }
    }
    Ok((series, unseen))
}

/// What is read from a table.
struct Read {
    series: Vec<Series>,
    leads: Vec<Lead>,
    unseen: Vec<UnseenNames>,
}

fn read(task: &TableTask, table: TableSource<'_>) -> Result<Read> {
    let path = table.path();
    // A wide table may have labels, which are not steps.
    let aside = match task {
        TableTask::Classify(_) | TableTask::Regress(_) => task.targets().to_vec(),
        TableTask::Forecast(_) => Vec::new(),
    };
    let frame = read_columns(task, table, task.columns().iter(), aside)?;
    let transforms = (0..task.columns().len()).map(|column| task.scaling().transform(column));
    let readable = normalization::expect_near(task.of_table(), &frame).and_then(|()| normalization::expect_logarithms(transforms, &frame));
    let series = readable.and_then(|()| Series::of(&frame, task.group().map(|_| &frame.texts[0])));
    Ok(Read { series: series.map_err(|error| error.in_file(path))?, leads: frame.leads, unseen: frame.unseen })
}

/// The sequences of `table`, with only the columns of `task` at `places`.
fn rows_to_come(task: &TableTask, table: TableSource<'_>, places: &[usize]) -> Result<Read> {
    let path = table.path();
    let frame = read_columns(task, table, places.iter().map(|&at| &task.columns()[at]), Vec::new())?;
    let transforms = places.iter().map(|&column| task.scaling().transform(column));
    let near = normalization::expect_near(&normalization::of_columns(task.of_table(), places), &frame);
    let series = near
        .and_then(|()| normalization::expect_logarithms(transforms, &frame))
        .and_then(|()| Series::of(&frame, task.group().map(|_| &frame.texts[0])));
    Ok(Read { series: series.map_err(|error| error.in_file(path))?, leads: frame.leads, unseen: frame.unseen })
}

fn read_columns<'a>(
    task: &TableTask,
    table: TableSource<'_>,
    columns: impl Iterator<Item = &'a String>,
    aside: Vec<String>,
) -> Result<Frame> {
    let wanted = Wanted::named(columns, task.group().into_iter().map(str::to_owned).collect());
    let categories = Names::known(task.columns(), task.categories());
    let division = Division::unseen(table.path(), task.time(), task.layout(), task.missing());
    // In a table without column names, the first column holds the classes.
    let classes = task.classes().to_vec();
    // Values known ahead in training have no columns in the table.
    let leads = match task {
        TableTask::Forecast(_) => task.columns().to_vec(),
        TableTask::Classify(_) | TableTask::Regress(_) => Vec::new(),
    };
    table.open()?.read(&division.wanted(Wanted { aside, categories, leads, classes, ..wanted }))
}
