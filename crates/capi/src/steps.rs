//! Tokens or numbers in, the model's outputs out.

use minrnn_stream::{Model, Reads, State, Workspace};

use crate::failure::{Failure, Result, guarded};
use crate::lent::Lent;
use crate::pointers::expect_len;
use crate::session::{SESSIONS, SessionHandle};
use crate::status::Status;

/// Runs `step` on the session's rows. `width` gives how many elements of the buffer `name` a row reads, or none if the model reads something else,
/// which `step` refuses.
fn stepped<T>(
    session: *mut SessionHandle,
    name: &str,
    Lent { rows, inputs, results: outputs }: Lent<'_, T, f32>,
    width: impl FnOnce(Reads) -> Option<usize>,
    step: impl FnOnce(&Model, &[usize], &[T], &mut State, &mut [f32], &mut Workspace) -> minrnn_stream::Result<()>,
) -> Result<()> {
    let mut session = SESSIONS.exclusive(session.addr())?;
    let (loaded, rows, memory) = session.parts(rows);
    let model = &loaded.model;
    let needed = rows.len().saturating_mul(model.outputs());
    expect_len("outputs", outputs.len(), needed, "the outputs of the model for each row")?;
    if let Some(width) = width(model.reads()) {
        expect_len(name, inputs.len(), rows.len().saturating_mul(width), "what a step reads, for each row")?;
    }
    Ok(memory.read_inputs(rows, |state, workspace| step(model, rows, inputs, state, outputs, workspace))?)
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
        let lent = unsafe { Lent::new(["tokens", "outputs"], (rows, n_rows), (tokens, n_tokens), (outputs, n_outputs)) }?;
        let width = |reads| matches!(reads, Reads::Tokens { .. }).then_some(1);
        stepped(session, "tokens", lent, width, Model::step_rows)
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
        let lent = unsafe { Lent::new(["values", "outputs"], (rows, n_rows), (values, n_values), (outputs, n_outputs)) }?;
        let width = |reads| match reads {
            Reads::Values { width } => Some(width),
            Reads::Tokens { .. } => None,
        };
        stepped(session, "values", lent, width, Model::step_rows_values)
    })
}

/// Reads a sequence into one row of a session: with `prefill` if outputs are wanted, with `advance` if not.
fn prefilled<'a, T: 'a>(
    session: *mut SessionHandle,
    row: usize,
    Lent { inputs, results: outputs, .. }: Lent<'a, T, f32>,
    prefill: impl FnOnce(&Model, &[usize], &[&'a [T]], &mut State, &mut [f32], &mut Workspace) -> minrnn_stream::Result<()>,
    advance: impl FnOnce(&Model, &[usize], &[&'a [T]], &mut State, &mut Workspace) -> minrnn_stream::Result<()>,
) -> Result<()> {
    let mut session = SESSIONS.exclusive(session.addr())?;
    let (loaded, _, memory) = session.parts(None);
    let model = &loaded.model;
    if outputs.is_empty() {
        return Ok(memory.read_inputs(&[row], |state, workspace| advance(model, &[row], &[inputs], state, workspace))?);
    }
    expect_len("outputs", outputs.len(), model.outputs(), "the outputs of the model after the last step, or none")?;
    Ok(memory.read_inputs(&[row], |state, workspace| prefill(model, &[row], &[inputs], state, outputs, workspace))?)
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
        // SAFETY: the caller's promise.
        let lent = unsafe { Lent::without_rows(["tokens", "outputs"], (tokens, n_tokens), (outputs, n_outputs)) }?;
        prefilled(session, row, lent, Model::prefill_rows, Model::advance_rows)
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
        // SAFETY: the caller's promise.
        let lent = unsafe { Lent::without_rows(["values", "outputs"], (values, n_values), (outputs, n_outputs)) }?;
        prefilled(session, row, lent, Model::prefill_rows_values, Model::advance_rows_values)
    })
}

/// Runs `forward` on the only row of a session.
fn forwarded<T>(
    session: *mut SessionHandle,
    Lent { inputs, results: outputs, .. }: Lent<'_, T, f32>,
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
    let forwarded = memory.read_inputs(rows, |state, workspace| forward(&loaded.model, inputs, state, outputs, workspace));
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
        // SAFETY: the caller's promise.
        let lent = unsafe { Lent::without_rows(["tokens", "outputs"], (tokens, n_tokens), (outputs, n_outputs)) }?;
        forwarded(session, lent, Model::forward)
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
        // SAFETY: the caller's promise.
        let lent = unsafe { Lent::without_rows(["values", "outputs"], (values, n_values), (outputs, n_outputs)) }?;
        forwarded(session, lent, Model::forward_values)
    })
}
