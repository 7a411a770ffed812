//! Tokens or numbers in, the model's outputs out.

use minrnn_stream::{Model, Reads, State, Workspace};

use crate::failure::{Failure, Result, guarded};
use crate::pointers::{self, expect_apart, expect_len};
use crate::session::{SESSIONS, SessionHandle};
use crate::status::Status;

/// A caller's buffers: inputs of type `T`, and the place for outputs.
struct Call<T> {
    rows: *const usize,
    n_rows: usize,
    read: *const T,
    n_read: usize,
    outputs: *mut f32,
    n_outputs: usize,
}

/// The same, checked.
struct Buffers<'a, T> {
    rows: Option<&'a [usize]>,
    read: &'a [T],
    outputs: &'a mut [f32],
}

impl<T> Call<T> {
    /// A call without a list of rows.
    fn without_rows(read: *const T, n_read: usize, outputs: *mut f32, n_outputs: usize) -> Self {
        Self { rows: std::ptr::null(), n_rows: 0, read, n_read, outputs, n_outputs }
    }

    /// # Safety
    /// The pointers are null or have the stated number of elements.
    unsafe fn checked<'a>(self, name: &str) -> Result<Buffers<'a, T>> {
        let Self { rows, n_rows, read, n_read, outputs, n_outputs } = self;
        expect_apart([name, "outputs"], (read, n_read), (outputs, n_outputs))?;
        expect_apart(["rows", "outputs"], (rows, n_rows), (outputs, n_outputs))?;
        let rows = match rows.is_null() && n_rows == 0 {
            true => None,
            // SAFETY: the caller's promise.
            false => Some(unsafe { pointers::read("rows", rows, n_rows) }?),
        };
        // SAFETY: the caller's promise, and they lie apart.
        Ok(Buffers {
            rows,
            read: unsafe { pointers::read(name, read, n_read) }?,
            outputs: unsafe { pointers::write("outputs", outputs, n_outputs) }?,
        })
    }
}

/// Runs `step` on the session's rows. `width` gives how many elements of the buffer `name` a row reads, or none if the model reads something else,
/// which `step` refuses.
fn stepped<T>(
    session: *mut SessionHandle,
    name: &str,
    Buffers { rows, read, outputs }: Buffers<'_, T>,
    width: impl FnOnce(Reads) -> Option<usize>,
    step: impl FnOnce(&Model, &[usize], &[T], &mut State, &mut [f32], &mut Workspace) -> minrnn_stream::Result<()>,
) -> Result<()> {
    let mut session = SESSIONS.exclusive(session.addr())?;
    let (loaded, rows, memory) = session.parts(rows);
    let model = &loaded.model;
    let needed = rows.len().saturating_mul(model.outputs());
    expect_len("outputs", outputs.len(), needed, "the outputs of the model for each row")?;
    if let Some(width) = width(model.reads()) {
        expect_len(name, read.len(), rows.len().saturating_mul(width), "what a step reads, for each row")?;
    }
    Ok(memory.read_inputs(rows, |state, workspace| step(model, rows, read, state, outputs, workspace))?)
}

/// Reads one token for each of `rows`, which must be ascending, and writes the outputs after it; for all rows if none are given.
///
/// # Safety
/// The pointers are null or have the stated number of elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_step_tokens(
    session: *mut SessionHandle,
    rows: *const usize,
    n_rows: usize,
    tokens: *const u32,
    n_tokens: usize,
    outputs: *mut f32,
    n_outputs: usize,
) -> Status {
    guarded(|| {
        // SAFETY: the caller's promise.
        let buffers = unsafe { Call { rows, n_rows, read: tokens, n_read: n_tokens, outputs, n_outputs }.checked("tokens") }?;
        let width = |reads| matches!(reads, Reads::Tokens { .. }).then_some(1);
        stepped(session, "tokens", buffers, width, Model::step_rows)
    })
}

/// Reads one step of numbers, as the model sees them, for each of `rows`, which must be ascending, and writes the outputs after it; for all
/// rows if none are given.
///
/// # Safety
/// The pointers are null or have the stated number of elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_step_values(
    session: *mut SessionHandle,
    rows: *const usize,
    n_rows: usize,
    values: *const f32,
    n_values: usize,
    outputs: *mut f32,
    n_outputs: usize,
) -> Status {
    guarded(|| {
        // SAFETY: the caller's promise.
        let buffers = unsafe { Call { rows, n_rows, read: values, n_read: n_values, outputs, n_outputs }.checked("values") }?;
        let width = |reads| match reads {
            Reads::Values { width } => Some(width),
            Reads::Tokens { .. } => None,
        };
        stepped(session, "values", buffers, width, Model::step_rows_values)
    })
}

/// Reads a sequence into one row of a session: with `prefill` if outputs are wanted, with `advance` if not.
///
/// # Safety
/// As [`Call::checked`].
unsafe fn prefilled<'a, T: 'a>(
    session: *mut SessionHandle,
    row: usize,
    name: &str,
    call: Call<T>,
    prefill: impl FnOnce(&Model, &[usize], &[&'a [T]], &mut State, &mut [f32], &mut Workspace) -> minrnn_stream::Result<()>,
    advance: impl FnOnce(&Model, &[usize], &[&'a [T]], &mut State, &mut Workspace) -> minrnn_stream::Result<()>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let Buffers { read, outputs, .. } = unsafe { call.checked(name) }?;
    let mut session = SESSIONS.exclusive(session.addr())?;
    let (loaded, _, memory) = session.parts(None);
    let model = &loaded.model;
    if outputs.is_empty() {
        return Ok(memory.read_inputs(&[row], |state, workspace| advance(model, &[row], &[read], state, workspace))?);
    }
    expect_len("outputs", outputs.len(), model.outputs(), "the outputs of the model after the last step, or none")?;
    Ok(memory.read_inputs(&[row], |state, workspace| prefill(model, &[row], &[read], state, outputs, workspace))?)
}

/// Reads a prompt into one row, all tokens at once, and writes the outputs after the last; none if `n_outputs` is 0.
///
/// # Safety
/// The pointers are null or have the stated number of elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_prefill_tokens(
    session: *mut SessionHandle,
    row: usize,
    tokens: *const u32,
    n_tokens: usize,
    outputs: *mut f32,
    n_outputs: usize,
) -> Status {
    guarded(|| {
        let call = Call::without_rows(tokens, n_tokens, outputs, n_outputs);
        // SAFETY: the caller's promise.
        unsafe { prefilled(session, row, "tokens", call, Model::prefill_rows, Model::advance_rows) }
    })
}

/// Reads steps of numbers, as the model sees them, into one row, all at once, and writes the outputs after the last; none if `n_outputs` is
/// 0.
///
/// # Safety
/// The pointers are null or have the stated number of elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_prefill_values(
    session: *mut SessionHandle,
    row: usize,
    values: *const f32,
    n_values: usize,
    outputs: *mut f32,
    n_outputs: usize,
) -> Status {
    guarded(|| {
        let call = Call::without_rows(values, n_values, outputs, n_outputs);
        // SAFETY: the caller's promise.
        unsafe { prefilled(session, row, "values", call, Model::prefill_rows_values, Model::advance_rows_values) }
    })
}

/// Runs `forward` on the only row of a session.
fn forwarded<T>(
    session: *mut SessionHandle,
    Buffers { read, outputs, .. }: Buffers<'_, T>,
    forward: impl FnOnce(&Model, &[T], &mut State, &mut [f32], &mut Workspace) -> minrnn_stream::Result<()>,
) -> Result<()> {
    let mut session = SESSIONS.exclusive(session.addr())?;
    let (loaded, rows, memory) = session.parts(None);
    if rows.len() != 1 {
        return Err(Failure::new(
            Status::Input,
            format!("the session has {} rows, expected 1 to give outputs after every step", rows.len()),
        ));
    }
    let forwarded = memory.read_inputs(rows, |state, workspace| forward(&loaded.model, read, state, outputs, workspace));
    forwarded.map_err(|error| match error {
        error @ minrnn_stream::Error::Input(_) => Failure::of(Status::Length, error),
        error => error.into(),
    })
}

/// Reads tokens into the only row of a session and writes the outputs after every one.
///
/// # Safety
/// The pointers are null or have the stated number of elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_forward_tokens(
    session: *mut SessionHandle,
    tokens: *const u32,
    n_tokens: usize,
    outputs: *mut f32,
    n_outputs: usize,
) -> Status {
    guarded(|| {
        let call = Call::without_rows(tokens, n_tokens, outputs, n_outputs);
        // SAFETY: the caller's promise.
        forwarded(session, unsafe { call.checked("tokens") }?, Model::forward)
    })
}

/// Reads steps of numbers, as the model sees them, into the only row of a session and writes the outputs after every one.
///
/// # Safety
/// The pointers are null or have the stated number of elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_forward_values(
    session: *mut SessionHandle,
    values: *const f32,
    n_values: usize,
    outputs: *mut f32,
    n_outputs: usize,
) -> Status {
    guarded(|| {
        let call = Call::without_rows(values, n_values, outputs, n_outputs);
        // SAFETY: the caller's promise.
        forwarded(session, unsafe { call.checked("values") }?, Model::forward_values)
    })
}
