//! The kernels' recurrences, forward and backward, on the caller's memory, for `minrnn.torch`.

use minrnn_kernels::recurrence::{self, Cell, Gradients, Inputs, Upstream};
use minrnn_kernels::{Candidate, Gates, Out, Segments, Shape, Start};
use numpy::{Element, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::counts;
use crate::failure::{Failure, Result, computed};
use crate::threads;

type Array<'py, T = f32> = Bound<'py, PyArrayDyn<T>>;

/// The cell with this name: `linear`, `min-gru CANDIDATE`, `min-lstm CANDIDATE`, `min-lstm-unnormalized CANDIDATE`.
fn cell(name: &str) -> Result<Cell> {
    let (cell, candidate) = name.split_once(' ').unwrap_or((name, ""));
    let known = || candidate.parse::<Candidate>().map_err(|error| Failure::input(error.to_string()));
    match cell {
        "linear" => Ok(Cell::Linear),
        "min-gru" => Ok(Cell::MinGru(known()?)),
        "min-lstm" => Ok(Cell::MinLstm(known()?, Gates::Normalized)),
        "min-lstm-unnormalized" => Ok(Cell::MinLstm(known()?, Gates::Unnormalized)),
        _ => Err(Failure::input(format!("there is no cell '{cell}', expected linear, min-gru or min-lstm"))),
    }
}

/// The sizes of pre-activations `[B, T, parts·E]`.
fn shape(cell: Cell, preact: &Array<'_>) -> Result<Shape> {
    match *preact.shape() {
        [batch, seq_len, width] if width % cell.parts() == 0 => Ok(Shape { batch, seq_len, width: width / cell.parts() }),
        ref found => Err(Failure::input(format!("expected inputs [B, T, {} E], found {found:?}", cell.parts()))),
    }
}

/// The numbers of an array, which must be contiguous and have `len` of them.
fn numbers<'a, T: Element>(name: &str, array: &'a Array<'_, T>, len: usize) -> Result<&'a [T]> {
    // SAFETY: as with PyTorch, callers see to it that nobody writes to an array while it is computed with.
    match unsafe { array.as_slice() } {
        Ok(numbers) if numbers.len() != len => Err(Failure::input(format!("{name} has {} numbers, expected {len}", numbers.len()))),
        Ok(numbers) if array.is_c_contiguous() => Ok(numbers),
        _ => Err(Failure::input(format!("{name} has gaps between its numbers, or does not lie row by row, expected a contiguous array"))),
    }
}

/// The same for an array that may be missing.
fn optional<'a, T: Element>(name: &str, array: Option<&'a Array<'_, T>>, len: usize) -> Result<Option<&'a [T]>> {
    array.map(|array| numbers(name, array, len)).transpose()
}

/// Room for `len` numbers.
fn room<'a>(name: &str, array: &'a Array<'_>, len: usize) -> Result<Out<'a>> {
    // SAFETY: the caller has just made the array for this call.
    match unsafe { array.as_slice_mut() } {
        Ok(numbers) if numbers.len() == len && array.is_c_contiguous() => Ok(Out::new(numbers)),
        _ => Err(Failure::input(format!("{name} has no room for {len} numbers without gaps"))),
    }
}

/// The segments of `codes`; without any, dense.
fn segments(codes: Option<&[i32]>, seq_len: usize) -> Result<Segments<'_>> {
    let Some(codes) = codes else { return Ok(Segments::DENSE) };
    Segments::try_new(codes, seq_len).map_err(|error| Failure::input(error.to_string()))
}

/// What a recurrence reads.
struct Operands<'a> {
    cell: Cell,
    shape: Shape,
    inputs: Inputs<'a>,
    start: Start<'a>,
}

impl<'a> Operands<'a> {
    fn new(
        name: &str,
        preact: &'a Array<'_>,
        extra: Option<&'a Array<'_>>,
        h0: Option<&'a Array<'_>>,
        codes: Option<&'a Array<'_, i32>>,
    ) -> Result<Self> {
        let cell = cell(name)?;
        let shape = shape(cell, preact)?;
        let extra = optional("values", extra, cell.extra_len(shape))?.unwrap_or(&[]);
        if extra.len() != cell.extra_len(shape) {
            return Err(Failure::input(format!("values are missing, expected {} numbers", cell.extra_len(shape))));
        }
        let preact = numbers("inputs", preact, shape.elements() * cell.parts())?;
        let segments = segments(optional("segments", codes, shape.steps())?, shape.seq_len)?;
        let start = Start { h0: optional("h0", h0, shape.states())?, init: None, segments };
        Ok(Self { cell, shape, inputs: Inputs { preact, bias: None, extra }, start })
    }
}

/// Runs a recurrence, writing every state to ``h`` ``[B, T, E]`` and the last ones to ``h_last`` ``[B, E]``.
#[pyfunction]
#[pyo3(signature = (name, preact, extra, h0, codes, h, h_last, threads))]
#[expect(clippy::too_many_arguments, reason = "the operands of an operator")]
pub(crate) fn scan_forward(
    py: Python<'_>,
    name: &str,
    preact: &Array<'_>,
    extra: Option<&Array<'_>>,
    h0: Option<&Array<'_>>,
    codes: Option<&Array<'_, i32>>,
    h: &Array<'_>,
    h_last: &Array<'_>,
    #[pyo3(from_py_with = counts::threads)] threads: usize,
) -> Result<()> {
    let Operands { cell, shape, inputs, start } = Operands::new(name, preact, extra, h0, codes)?;
    let (h, h_last) = (room("h", h, shape.elements())?, room("h_last", h_last, shape.states())?);
    let pool = threads::pool(py, threads)?;
    computed(py, || {
        pool.install(|| recurrence::forward(shape, cell, inputs, start, h, h_last));
        Ok(())
    })
}

/// The gradients of all inputs of ``scan_forward``; ``h`` are its states.
#[pyfunction]
#[pyo3(signature = (name, preact, extra, h0, codes, h, d_h, d_h_last, d_preact, d_extra, d_h0, threads))]
#[expect(clippy::too_many_arguments, reason = "the operands of an operator")]
pub(crate) fn scan_backward(
    py: Python<'_>,
    name: &str,
    preact: &Array<'_>,
    extra: Option<&Array<'_>>,
    h0: Option<&Array<'_>>,
    codes: Option<&Array<'_, i32>>,
    h: &Array<'_>,
    d_h: Option<&Array<'_>>,
    d_h_last: Option<&Array<'_>>,
    d_preact: &Array<'_>,
    d_extra: Option<&Array<'_>>,
    d_h0: &Array<'_>,
    #[pyo3(from_py_with = counts::threads)] threads: usize,
) -> Result<()> {
    let Operands { cell, shape, inputs, start } = Operands::new(name, preact, extra, h0, codes)?;
    let upstream = Upstream {
        h: numbers("h", h, shape.elements())?,
        d_h: optional("d_h", d_h, shape.elements())?,
        d_h_last: optional("d_h_last", d_h_last, shape.states())?,
    };
    let mut d_init = vec![0.0; shape.width];
    let gradients = Gradients {
        d_preact: room("d_preact", d_preact, shape.elements() * cell.parts())?,
        d_bias: None,
        d_extra: match d_extra {
            Some(d_extra) => room("d_extra", d_extra, cell.extra_len(shape))?,
            None if cell.extra_len(shape) == 0 => Out::default(),
            None => return Err(Failure::input("there is no room for the gradient of the values")),
        },
        d_h0: room("d_h0", d_h0, shape.states())?,
        d_init: Out::new(&mut d_init),
    };
    let pool = threads::pool(py, threads)?;
    computed(py, || {
        pool.install(|| recurrence::backward(shape, cell, inputs, start, upstream, gradients));
        Ok(())
    })
}
