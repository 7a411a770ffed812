//! Rows of tables whose columns have names: dictionaries, and frames of whatever library.

use minrnn::data::table::CategoryNames;
use minrnn_model::TableTask;
use numpy::PyUntypedArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyTuple};

use crate::arrays;
use crate::failure::{Failure, Mistake, Result};

/// Where Python looks at tables.
const HANDED: &str = "minrnn.handed";

/// The names of the column `at` of those that are read, where it holds names.
fn category(task: &TableTask, at: usize) -> Option<CategoryNames> {
    let of_column = task.categories().iter().find(|category| category.column == at);
    of_column.map(|category| CategoryNames::new(&category.values))
}

/// The numbers of one row that names its columns.
pub(crate) fn of_row(task: &TableTask, row: &Bound<'_, PyDict>) -> Result<Vec<f64>> {
    let known = |name: &str| task.columns().iter().any(|column| column == name);
    for name in row.keys() {
        let name: String = name.extract().map_err(|_| Failure::new(Mistake::Kind, "inputs: expected names of columns as keys"))?;
        if !known(&name) {
            return Err(Failure::input(format!("inputs: the model reads no column '{name}', expected {}", task.columns().join(", "))));
        }
    }
    let number = |(at, column): (usize, &String)| {
        let missing = || Failure::input(format!("inputs: the column '{column}' is missing"));
        let value = row.get_item(column)?.ok_or_else(missing)?;
        if let Some(category) = category(task, at) {
            // A number is a name here, as it is in a file, and no number of a name.
            let name = row.py().import(HANDED)?.call_method1("name_of", (&value, column))?;
            return Ok(code(task, &category, name.extract::<Option<String>>()?.as_deref()));
        }
        if value.is_none() {
            return Ok(f64::NAN);
        }
        let array = arrays::read::<f64>(&value, column)?;
        array.values.first().copied().filter(|_| array.values.len() == 1).ok_or_else(|| {
            Failure::input(format!("inputs: expected one number of the column '{column}', found an array of shape {:?}", array.shape))
        })
    };
    task.columns().iter().enumerate().map(number).collect()
}

/// Whether `any` has columns with names.
pub(crate) fn is_table(any: &Bound<'_, PyAny>) -> Result<bool> {
    // What is read most often is asked for no attribute.
    let is_plain = any.is_instance_of::<PyFloat>()
        || any.is_instance_of::<PyInt>()
        || any.is_instance_of::<PyList>()
        || any.is_instance_of::<PyTuple>()
        || any.cast::<PyUntypedArray>().is_ok();
    Ok(!is_plain && (any.is_instance_of::<PyDict>() || any.hasattr("columns")?))
}

/// The numbers of all rows of `table`, row by row.
pub(crate) fn of_table(task: &TableTask, table: &Bound<'_, PyAny>) -> Result<Vec<f64>> {
    let categories: Vec<Option<CategoryNames>> = (0..task.columns().len()).map(|at| category(task, at)).collect();
    let are_names: Vec<bool> = categories.iter().map(Option::is_some).collect();
    let columns = table.py().import(HANDED)?.call_method1("columns_read", (table, task.columns().to_vec(), are_names))?;
    let read = |(column, category): (PyResult<_>, Option<CategoryNames>)| numbers(task, &column?, category.as_ref());
    let columns: Vec<Vec<f64>> = columns.try_iter()?.zip(categories).map(read).collect::<Result<_>>()?;
    let n = columns.iter().map(Vec::len).min().unwrap_or(0);
    Ok((0..n).flat_map(|row| columns.iter().map(move |column| column[row])).collect())
}

/// The numbers of a column, or those of its names.
fn numbers(task: &TableTask, column: &Bound<'_, PyAny>, category: Option<&CategoryNames>) -> Result<Vec<f64>> {
    let Some(category) = category else { return Ok(arrays::read::<f64>(column, "inputs")?.values) };
    let names: Vec<Option<String>> = column.extract()?;
    Ok(names.iter().map(|name| code(task, category, name.as_deref())).collect())
}

/// What stands for a name of a column, as it does in a file.
fn code(task: &TableTask, category: &CategoryNames, name: Option<&str>) -> f64 {
    name.map_or(f64::NAN, |name| category.code(name, !task.missing().is_error()))
}
