//! Rows of a table in, predictions out, both in its units.

use minrnn_stream::{Sessions, expect_numbers};

use crate::failure::guarded;
use crate::pointers::{self, expect_apart, expect_len};
use crate::session::{SESSIONS, SessionHandle};
use crate::status::Status;

/// Reads the next row of the table for each of `rows`, which must be ascending, or for all rows if none are given, and writes the
/// predictions after it: the class probabilities, the number of the sequence, or the values of the next steps. If a prediction is not
/// finite, the call fails although all rows have been read: the predictions of such a row are written as NaN, those of the others are
/// valid.
///
/// # Safety
/// The pointers are null or have the stated number of elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_table_step(
    session: *mut SessionHandle,
    rows: *const usize,
    n_rows: usize,
    values: *const f64,
    n_values: usize,
    predictions: *mut f64,
    n_predictions: usize,
) -> Status {
    guarded(|| {
        expect_apart(["values", "predictions"], (values, n_values), (predictions, n_predictions))?;
        expect_apart(["rows", "predictions"], (rows, n_rows), (predictions, n_predictions))?;
        let rows = match rows.is_null() && n_rows == 0 {
            true => None,
            // SAFETY: the caller's promise.
            false => Some(unsafe { pointers::read("rows", rows, n_rows) }?),
        };
        // SAFETY: the caller's promise.
        let values = unsafe { pointers::read("values", values, n_values) }?;
        // SAFETY: the caller's promise, and they lie apart.
        let predictions = unsafe { pointers::write("predictions", predictions, n_predictions) }?;
        let mut session = SESSIONS.exclusive(session.addr())?;
        let (loaded, rows, memory) = session.parts(rows);
        let (model, task) = (&loaded.model, loaded.table()?);
        let Sessions::Table(sessions) = memory else { unreachable!("sessions of a model with a table are those of a table") };
        let width = task.columns().len();
        expect_len("values", values.len(), rows.len().saturating_mul(width), "a number for each column that is read, for each row")?;
        let needed = rows.len().saturating_mul(model.outputs());
        expect_len("predictions", predictions.len(), needed, "the predictions of the model for each row")?;
        predictions.copy_from_slice(sessions.step(model, task, rows, values)?);
        expect_numbers(rows, predictions).map_err(|error| {
            let flawed = |predicted: &&mut [f64]| predicted.iter().any(|number| !number.is_finite());
            predictions.chunks_exact_mut(model.outputs()).filter(flawed).for_each(|predicted| predicted.fill(f64::NAN));
            error.into()
        })
    })
}
