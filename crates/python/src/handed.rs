//! Tables from Python: streams of the Arrow C interface, without a copy, or columns.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, NullArray, RecordBatch, RecordBatchIterator, RecordBatchReader,
    StringArray, TimestampMicrosecondArray, UInt64Array,
};
use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyString};

use crate::failure::{Failure, Mistake, Result};

/// The name of a capsule that holds a stream.
const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// Most digits of a whole number (`WIDEST` in `handed.py`).
const DIGITS: u8 = 38;

/// A table in memory, read as a stream of batches.
pub(crate) type Handed = Box<dyn RecordBatchReader + Send>;

/// A table to read: in memory, or a file.
pub(crate) enum Read {
    Handed(Handed),
    File(PathBuf),
}

/// The table `any`: the path of a file, or what [`table`] takes.
pub(crate) fn read(any: &Bound<'_, PyAny>) -> Result<Read> {
    if any.is_instance_of::<PyString>() { Ok(Read::File(any.extract()?)) } else { table(any).map(Read::Handed) }
}

/// The table `any`: a capsule with a stream, or a list of columns, each its name, its kind and its values.
pub(crate) fn table(any: &Bound<'_, PyAny>) -> Result<Handed> {
    match any.cast::<PyCapsule>() {
        Ok(capsule) => of_capsule(capsule),
        Err(_) => of_columns(any.extract()?),
    }
}

fn of_capsule(capsule: &Bound<'_, PyCapsule>) -> Result<Handed> {
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of that name holds such a stream (the Arrow PyCapsule interface). It is moved out, and what is left behind is marked as released,
    // so that the capsule's destructor does not release it.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    let reader = reader.map_err(|error| Failure::input(format!("the table cannot be read: {error}")))?;
    Ok(Box::new(reader))
}

fn of_columns(columns: Vec<(String, String, Bound<'_, PyAny>)>) -> Result<Handed> {
    let made = columns.into_iter().map(|(name, kind, values)| {
        let column = column(&kind, &values)?;
        Ok((name, column, true))
    });
    let made = made.collect::<Result<Vec<(String, ArrayRef, bool)>>>()?;
    // `handed.py` has checked that there are columns and that they have the same length.
    let batch = RecordBatch::try_from_iter_with_nullable(made).map_err(|error| Failure::input(format!("the table: {error}")))?;
    let schema = batch.schema();
    Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}

/// The values of a column of kind `kind`: numbers, whole numbers, booleans, microseconds since 1970, texts, or a number of rows without values.
fn column(kind: &str, values: &Bound<'_, PyAny>) -> Result<ArrayRef> {
    Ok(match kind {
        "f" => Arc::new(Float64Array::from(numbers::<f64>(values)?)),
        "i" => Arc::new(Int64Array::from(numbers::<i64>(values)?)),
        "u" => Arc::new(UInt64Array::from(numbers::<u64>(values)?)),
        "n" => Arc::new(Int64Array::from(values.extract::<Vec<Option<i64>>>()?)),
        // Whole numbers that do not fit into 64 bits are names, all of whose digits count.
        "w" => {
            let digits = Decimal128Array::from(values.extract::<Vec<Option<i128>>>()?);
            Arc::new(digits.with_precision_and_scale(DIGITS, 0).map_err(|error| Failure::input(error.to_string()))?)
        }
        "b" if values.is_instance_of::<PyList>() => Arc::new(BooleanArray::from(values.extract::<Vec<Option<bool>>>()?)),
        "b" => Arc::new(BooleanArray::from(numbers::<bool>(values)?)),
        "t" => {
            let times = numbers::<i64>(values)?;
            // NumPy's NaT.
            Arc::new(times.into_iter().map(|time| Some(time).filter(|&time| time != i64::MIN)).collect::<TimestampMicrosecondArray>())
        }
        "s" => Arc::new(StringArray::from(values.extract::<Vec<Option<String>>>()?)),
        "-" => Arc::new(NullArray::new(values.extract()?)),
        other => return Err(Failure::new(Mistake::Internal, format!("there is no kind of columns '{other}'"))),
    })
}

fn numbers<T: Element + Copy>(values: &Bound<'_, PyAny>) -> Result<Vec<T>> {
    let array = values.cast::<PyArray1<T>>().map_err(PyErr::from)?;
    array.to_vec().map_err(|error| Failure::input(error.to_string()))
}
