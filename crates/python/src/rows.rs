//! Rows of tables whose columns have names: dictionaries, and data frames of any library.

use minrnn::data::table::CategoryNames;
use minrnn_model::TableTask;
use numpy::PyUntypedArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyTuple};

use crate::arrays;
use crate::failure::{Failure, Mistake, Result};

/// The Python module that reads tables.
const HANDED: &str = "minrnn.handed";

/// The columns that are read, each with its names if it holds names.
pub(crate) struct Columns<'a> {
    task: &'a TableTask,
    names: &'a [Option<CategoryNames>],
}

impl<'a> Columns<'a> {
    /// The columns of `task`, with the result of [`names_of`].
    pub fn new(task: &'a TableTask, names: &'a [Option<CategoryNames>]) -> Self {
        Self { task, names }
    }
}

/// The names of each column of `task` that holds names.
pub(crate) fn names_of(task: &TableTask) -> Vec<Option<CategoryNames>> {
    let mut names: Vec<Option<CategoryNames>> = task.columns().iter().map(|_| None).collect();
    task.categories().iter().for_each(|category| names[category.column] = Some(CategoryNames::new(&category.values)));
    names
}

/// The numbers of one row that names its columns.
pub(crate) fn of_row(columns: &Columns<'_>, row: &Bound<'_, PyDict>) -> Result<Vec<f64>> {
    let &Columns { task, names } = columns;
    let known = |name: &str| task.columns().iter().any(|column| column == name);
    for name in row.keys() {
        let name: String = name.extract().map_err(|_| Failure::new(Mistake::Kind, "inputs: expected names of columns as keys"))?;
        if !known(&name) {
            return Err(Failure::input(format!("inputs: the model reads no column '{name}', expected {}", task.columns().join(", "))));
        }
    }
    let number = |(column, names): (&String, &Option<CategoryNames>)| {
        let missing = || Failure::input(format!("inputs: the column '{column}' is missing"));
        let value = row.get_item(column)?.ok_or_else(missing)?;
        if let Some(names) = names {
            // A number here is a name, as it is in a file, and not the code of one.
            let name = row.py().import(HANDED)?.call_method1("name_of", (&value, column))?;
            return Ok(code(task, names, name.extract::<Option<String>>()?.as_deref()));
        }
        if value.is_none() {
            return Ok(f64::NAN);
        }
        let array = arrays::read::<f64>(&value, column)?;
        array.values.first().copied().filter(|_| array.values.len() == 1).ok_or_else(|| {
            Failure::input(format!("inputs: expected one number of the column '{column}', found an array of shape {:?}", array.shape))
        })
    };
    task.columns().iter().zip(names).map(number).collect()
}

/// Whether `any` has columns with names.
pub(crate) fn is_table(any: &Bound<'_, PyAny>) -> Result<bool> {
    // The commonest types are recognised without asking for an attribute.
    let is_plain = any.is_instance_of::<PyFloat>()
        || any.is_instance_of::<PyInt>()
        || any.is_instance_of::<PyList>()
        || any.is_instance_of::<PyTuple>()
        || any.cast::<PyUntypedArray>().is_ok();
    Ok(!is_plain && (any.is_instance_of::<PyDict>() || any.hasattr("columns")?))
}

/// The numbers of all rows of `table`, row by row.
pub(crate) fn of_table(columns: &Columns<'_>, table: &Bound<'_, PyAny>) -> Result<Vec<f64>> {
    let &Columns { task, names } = columns;
    let are_names: Vec<bool> = names.iter().map(Option::is_some).collect();
    let columns = table.py().import(HANDED)?.call_method1("columns_read", (table, task.columns().to_vec(), are_names))?;
    let read = |(column, names): (PyResult<_>, &Option<CategoryNames>)| numbers(task, &column?, names.as_ref());
    let columns: Vec<Vec<f64>> = columns.try_iter()?.zip(names).map(read).collect::<Result<_>>()?;
    let n = columns.iter().map(Vec::len).min().unwrap_or(0);
    Ok((0..n).flat_map(|row| columns.iter().map(move |column| column[row])).collect())
}

/// The numbers of a column, or the codes of its names.
fn numbers(task: &TableTask, column: &Bound<'_, PyAny>, known: Option<&CategoryNames>) -> Result<Vec<f64>> {
    let Some(known) = known else { return Ok(arrays::read::<f64>(column, "inputs")?.values) };
    let names: Vec<Option<String>> = column.extract()?;
    Ok(names.iter().map(|name| code(task, known, name.as_deref())).collect())
}

/// The code of a name in a column, as for a file.
fn code(task: &TableTask, known: &CategoryNames, name: Option<&str>) -> f64 {
    name.map_or(f64::NAN, |name| known.code(name, !task.missing().is_error()))
}
