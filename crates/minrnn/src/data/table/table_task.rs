//! Tables read for a trained model.

use std::path::Path;

use minrnn_model::TableTask;

use super::series::Series;
use super::{Division, Names, Wanted, normalization, read_table};
use crate::Result;

/// The sequences of the file `path`, as the model of `task` reads them; classes and values to come need not be there.
///
/// # Errors
/// When the file cannot be read, lacks a column, or has a number far from all that was trained on.
pub fn read_series(task: &TableTask, path: &Path) -> Result<Vec<Series>> {
    let group = task.group();
    let wanted = Wanted::named(task.columns(), group.into_iter().map(str::to_owned).collect());
    // A wide table may have labels, which are no steps.
    let aside = match task {
        TableTask::Classify(_) | TableTask::Regress(_) => task.targets().to_vec(),
        TableTask::Forecast(_) => Vec::new(),
    };
    let categories = Names::known(task.columns(), task.categories());
    let frame = read_table(
        path,
        &Division::unseen(path, task.time(), task.layout(), task.missing()).wanted(Wanted { aside, categories, ..wanted }),
    )?;
    let near = normalization::expect_near(task.of_table(), &frame);
    near.and_then(|()| Series::of(&frame, group.map(|_| &frame.texts[0]))).map_err(|error| error.in_file(path))
}
