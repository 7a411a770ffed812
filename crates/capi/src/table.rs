//! Rows of a table in, predictions out, both in its units.

use minrnn_model::TableTask;
use minrnn_stream::{Sessions, TableSessions, expect_numbers};

use crate::failure::{Result, guarded};
use crate::lent::Lent;
use crate::pointers::expect_len;
use crate::session::{SESSIONS, SessionHandle};
use crate::status::Status;

fn of_table(sessions: &mut Sessions) -> &mut TableSessions {
    let Sessions::Table(sessions) = sessions else { unreachable!("sessions of a model with a table are those of a table") };
    sessions
}

fn expect_values(values: &[f64], rows: &[usize], task: &TableTask) -> Result<()> {
    let needed = rows.len().saturating_mul(task.columns().len());
    expect_len("values", values.len(), needed, "a number for each column that is read, for each row")
}

/// Says how surprising the next row of the table would be for each of `rows`, or for all rows if none are given, by the forecast after the
/// row before: NaN where it is not known. Nothing is read.
///
/// # Safety
/// The pointers are null or have the stated number of elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_table_surprise(
    session: *const SessionHandle,
    rows: *const usize,
    n_rows: usize,
    values: *const f64,
    n_values: usize,
    surprises: *mut f64,
    n_surprises: usize,
) -> Status {
    guarded(|| {
        // SAFETY: the caller's promise.
        let lent = unsafe { Lent::new(["values", "surprises"], (rows, n_rows), (values, n_values), (surprises, n_surprises)) }?;
        let Lent { rows, inputs: values, results: surprises } = lent;
        let mut session = SESSIONS.exclusive(session.addr())?;
        let (loaded, rows, memory) = session.parts(rows);
        let (task, sessions) = (loaded.table()?, of_table(memory));
        expect_values(values, rows, task)?;
        expect_len("surprises", surprises.len(), rows.len(), "one for each row")?;
        let width = task.columns().len();
        let each = rows.iter().zip(values.chunks_exact(width)).map(|(&row, values)| sessions.surprise(task, row, values));
        let found: Vec<f64> = each.map(|surprise| surprise.map(|known| known.unwrap_or(f64::NAN))).collect::<minrnn_stream::Result<_>>()?;
        surprises.copy_from_slice(&found);
        Ok(())
    })
}

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
        // SAFETY: the caller's promise.
        let lent = unsafe { Lent::new(["values", "predictions"], (rows, n_rows), (values, n_values), (predictions, n_predictions)) }?;
        let Lent { rows, inputs: values, results: predictions } = lent;
        let mut session = SESSIONS.exclusive(session.addr())?;
        let (loaded, rows, memory) = session.parts(rows);
        let (model, task) = (&loaded.model, loaded.table()?);
        let sessions = of_table(memory);
        expect_values(values, rows, task)?;
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
