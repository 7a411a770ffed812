//! Numbers from and to Python: NumPy arrays of any layout, lists, and whatever else converts to an array.

use minrnn_stream::Error;
use numpy::{Element, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyBool, PyFloat, PyInt, PyList, PyTuple};

use crate::failure::{Failure, Mistake, Result};
use crate::plain::shown;

/// Numbers copied out of Python, row-major, so that nobody else changes them while they are read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Array<T> {
    pub shape: Vec<usize>,
    pub values: Vec<T>,
}

/// Numbers that a model reads.
pub(crate) trait Number: Copy + Sized {
    /// A single Python number, called `what` in errors.
    fn scalar(any: &Bound<'_, PyAny>, what: &str) -> Result<Option<Self>>;

    /// An array that needs no conversion to another type first.
    fn array(any: &Bound<'_, PyAny>) -> Result<Option<Array<Self>>>;

    /// The name of the type that other arrays are converted to, and the kinds accepted (`numpy.dtype.kind`).
    const BY: (&'static str, &'static [u8]);
    /// What is expected, for errors.
    const EXPECTED: &'static str;
    /// What stands for a missing number, if numbers may be missing.
    const MISSING: Option<f64> = None;
}

/// The array `any`, if it is C-contiguous with elements of this type.
fn whole<T: Element + Copy>(any: &Bound<'_, PyAny>) -> Option<Array<T>> {
    // `as_slice` accepts Fortran order, too.
    let array = any.cast::<PyArrayDyn<T>>().ok().filter(|array| array.is_c_contiguous())?;
    // SAFETY: the elements are copied before any Python code can run.
    let values = unsafe { array.as_slice() }.ok()?.to_vec();
    Some(Array { shape: array.shape().to_vec(), values })
}

fn mapped<T, U>(Array { shape, values }: Array<T>, map: impl FnMut(T) -> U) -> Array<U> {
    Array { shape, values: values.into_iter().map(map).collect() }
}

impl Number for u32 {
    const BY: (&'static str, &'static [u8]) = ("int64", b"iu");
    const EXPECTED: &'static str = "token ids as whole numbers";

    fn scalar(any: &Bound<'_, PyAny>, _: &str) -> Result<Option<Self>> {
        if !any.is_exact_instance_of::<PyInt>() {
            return Ok(None);
        }
        any.extract().map(Some).map_err(|_| no_token(any))
    }

    fn array(any: &Bound<'_, PyAny>) -> Result<Option<Array<Self>>> {
        let token = |id: i64| u32::try_from(id).map_err(|_| no_token(id));
        let known =
            |Array { shape, values }: Array<i64>| Ok(Array { shape, values: values.into_iter().map(token).collect::<Result<_>>()? });
        match whole::<i64>(any) {
            Some(array) => known(array).map(Some),
            None => Ok(whole(any)),
        }
    }
}

fn no_token(id: impl std::fmt::Display) -> Failure {
    Failure::input(format!("token id {id} is none, expected one from 0 to {}", u32::MAX))
}

impl Number for f32 {
    const BY: (&'static str, &'static [u8]) = ("float32", b"fiub");
    const EXPECTED: &'static str = "numbers";

    fn scalar(any: &Bound<'_, PyAny>, what: &str) -> Result<Option<Self>> {
        Ok(f64::scalar(any, what)?.map(|value| value as f32))
    }

    fn array(any: &Bound<'_, PyAny>) -> Result<Option<Array<Self>>> {
        Ok(whole(any).or_else(|| whole::<f64>(any).map(|array| mapped(array, |value| value as f32))))
    }
}

impl Number for f64 {
    const BY: (&'static str, &'static [u8]) = ("float64", b"fiub");
    const EXPECTED: &'static str = "numbers";
    const MISSING: Option<f64> = Some(Self::NAN);

    fn scalar(any: &Bound<'_, PyAny>, what: &str) -> Result<Option<Self>> {
        let is_number = any.is_instance_of::<PyFloat>() || any.is_exact_instance_of::<PyInt>() || any.is_instance_of::<PyBool>();
        let too_large = |_| Failure::input(format!("{what}: expected numbers, found a whole one beyond ±1.8e308"));
        if is_number { any.extract().map(Some).map_err(too_large) } else { Ok(None) }
    }

    fn array(any: &Bound<'_, PyAny>) -> Result<Option<Array<Self>>> {
        Ok(whole(any).or_else(|| whole::<f32>(any).map(|array| mapped(array, f64::from))))
    }
}

/// A function of NumPy's module.
fn numpy<'py>(py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
    static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = NUMPY.get_or_try_init(py, || py.import("numpy").map(Bound::unbind))?;
    Ok(module.bind(py).getattr(name)?)
}

/// Whether `any` is a masked array; plain `ndarray`s have no mask.
fn has_mask(any: &Bound<'_, PyAny>) -> Result<bool> {
    if any.is_exact_instance_of::<PyUntypedArray>() || any.cast::<PyUntypedArray>().is_err() {
        return Ok(false);
    }
    Ok(any.is_instance(&numpy(any.py(), "ma")?.getattr("MaskedArray")?)?)
}

/// The array `any` without its mask, which NumPy would silently ignore.
fn unmasked<'py, T: Number>(any: &Bound<'py, PyAny>, what: &str) -> Result<Bound<'py, PyAny>> {
    let is_masked = numpy(any.py(), "ma")?.call_method1("is_masked", (any,))?.is_truthy()?;
    // An array of another kind is refused for its kind.
    let is_read = any.cast::<PyUntypedArray>().is_ok_and(|array| T::BY.1.contains(&array.dtype().kind()));
    match T::MISSING {
        _ if !is_masked || !is_read => Ok(any.getattr("data")?),
        Some(missing) => Ok(any.call_method1("astype", (T::BY.0,))?.call_method1("filled", (missing,))?),
        None => Err(Failure::input(format!("{what}: expected {}, found some that are masked; fill them, or leave them out", T::EXPECTED))),
    }
}

/// The numbers of `any`, called `what` in errors.
pub(crate) fn read<T: Number>(any: &Bound<'_, PyAny>, what: &str) -> Result<Array<T>> {
    if let Some(value) = T::scalar(any, what)? {
        return Ok(Array { shape: Vec::new(), values: vec![value] });
    }
    if has_mask(any)? {
        return read(&unmasked::<T>(any, what)?, what);
    }
    if let Some(array) = T::array(any)? {
        return Ok(array);
    }
    let py = any.py();
    let refused = |found: &str| Failure::new(Mistake::Kind, format!("{what}: expected {}, found {found}", T::EXPECTED));
    // A list with masked arrays becomes a masked array.
    let parts = list(any).unwrap_or_default();
    let is_masked = parts.iter().map(has_mask).collect::<Result<Vec<_>>>()?.contains(&true);
    let array = if is_masked { numpy(py, "ma")?.call_method1("array", (any,)) } else { numpy(py, "asarray")?.call1((any,)) };
    // It fails for rows of different lengths, or for something that cannot become an array.
    let array = array.map_err(|error| Failure::input(format!("{what}: they are no array ({})", error.value(py))))?;
    if is_masked {
        return read(&array, what);
    }
    let untyped = array.cast::<PyUntypedArray>().map_err(|_| refused("something else"))?;
    if untyped.len() == 0 && any.cast::<PyList>().is_ok() {
        return Ok(Array { shape: untyped.shape().to_vec(), values: Vec::new() });
    }
    let dtype = untyped.dtype();
    let (by, kinds) = T::BY;
    if !kinds.contains(&dtype.kind()) {
        return Err(refused(&format!("an array of {dtype}")));
    }
    if dtype.kind() == b'u' && dtype.itemsize() == 8 && by == "int64" {
        let most = if untyped.len() == 0 { 0 } else { array.call_method0("max")?.extract::<u64>()? };
        if i64::try_from(most).is_err() {
            return Err(no_token(most));
        }
    }
    let array = numpy(py, "array")?.call((array, by), Some(&[("order", "C")].into_py_dict(py)?))?;
    T::array(&array)?.ok_or_else(|| refused(&format!("an array of {dtype}")))
}

/// The last `n` numbers of an array, or of the first one in a list.
pub(crate) fn last(any: &Bound<'_, PyAny>, n: usize) -> Option<Vec<f32>> {
    let listed = any.cast::<PyList>().ok().and_then(|list| list.get_item(0).ok());
    let array = listed.as_ref().unwrap_or(any).cast::<PyArrayDyn<f32>>().ok()?.try_readonly().ok()?;
    let numbers = array.as_slice().ok()?;
    Some(numbers[numbers.len().checked_sub(n)?..].to_vec())
}

/// The items of `any`, if it is a list or a tuple.
pub(crate) fn list<'py>(any: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    let of_list = any.cast::<PyList>().ok().map(|list| list.iter().collect());
    of_list.or_else(|| any.cast::<PyTuple>().ok().map(|tuple| tuple.iter().collect()))
}

/// The indices in `rows`, or of all `n` rows; and whether a single integer was given.
pub(crate) fn rows(rows: Option<&Bound<'_, PyAny>>, n: usize) -> Result<(Vec<usize>, bool)> {
    let Some(rows) = rows else { return Ok(((0..n).collect(), false)) };
    let Array { shape, values } = read::<u32>(rows, "rows").map_err(|failure| match failure {
        // Its sentence is about tokens.
        Failure::Said(mistake, _) => Failure::new(mistake, format!("rows: expected numbers of rows below {n}, found {}", shown(rows))),
        raised => raised,
    })?;
    if shape.len() > 1 {
        return Err(Failure::input(format!("rows: expected a list of numbers, found an array of shape {shape:?}")));
    }
    Ok((values.into_iter().map(|row| row as usize).collect(), shape.is_empty()))
}

/// An array of `shape` that `work` fills.
pub(crate) fn filled<'py, T: Element + Copy>(
    py: Python<'py>,
    shape: &[usize],
    work: impl FnOnce(&mut [T]) -> Result<()>,
) -> Result<Bound<'py, PyArrayDyn<T>>> {
    crate::failure::expect_room::<T>(shape.iter().try_fold(1usize, |len, &size| len.checked_mul(size)))?;
    let array = PyArrayDyn::<T>::zeros(py, shape, false);
    // SAFETY: the array has just been made, is contiguous, and nobody else has it.
    work(unsafe { array.as_slice_mut() }.map_err(|error| Error::Input(error.to_string()))?)?;
    Ok(array)
}
