//! Sessions: a model's state for one or many sequences, each a row.

use std::sync::Arc;

use minrnn_stream::{Sessions, State};

use crate::constants::{ALL_ROWS, SESSION_BYTES, SESSION_ROWS};
use crate::failure::{Failure, Result, guarded, valued};
use crate::handles::{Named, Opaque, Table};
use crate::model::{Loaded, MODELS, ModelHandle};
use crate::pointers::{self, expect_apart};
use crate::status::Status;

/// Rows of a session, and the model that they belong to.
pub(crate) struct Session {
    pub model: Arc<Loaded>,
    pub memory: Sessions,
    /// 0, 1, …, as many as there are rows.
    all: Vec<usize>,
}

impl Named for Session {
    const NAME: &'static str = "session";
    const KIND: usize = 1;
}

pub(crate) static SESSIONS: Table<Session> = Table::new();

/// `minrnn_session` of the header.
pub type SessionHandle = Opaque<State>;

impl Session {
    fn new(model: Arc<Loaded>, rows: usize) -> Result<Self> {
        let memory = Sessions::new(&model.model, model.table.as_ref(), rows)?;
        Self::begun(model, memory)
    }

    /// A session as it is first handed out: on one thread.
    fn begun(model: Arc<Loaded>, mut memory: Sessions) -> Result<Self> {
        memory.set_threads(1);
        Self::of(model, memory)
    }

    fn of(model: Arc<Loaded>, memory: Sessions) -> Result<Self> {
        let mut session = Self { model, memory, all: Vec::new() };
        let rows = session.memory.rows();
        let refused = |_| Failure::new(Status::Memory, format!("memory cannot hold {rows} sessions; ask for fewer"));
        session.all.try_reserve_exact(rows).map_err(refused)?;
        session.all.extend(0..rows);
        Ok(session)
    }

    /// The model, its rows and the memory of a step; `rows` are those given by the caller, or all.
    pub fn parts<'a>(&'a mut self, rows: Option<&'a [usize]>) -> (&'a Loaded, &'a [usize], &'a mut Sessions) {
        (&self.model, rows.unwrap_or(&self.all), &mut self.memory)
    }

    fn select(&self, rows: &[usize]) -> Result<Self> {
        Self::of(self.model.clone(), self.memory.select(rows)?)
    }

    fn reset(&mut self, row: usize) -> Result<()> {
        Ok(self.memory.restart(&self.model.model, row)?)
    }

    fn copy_row(&mut self, row: usize, source: &Self, source_row: usize) -> Result<()> {
        if !Arc::ptr_eq(&self.model, &source.model) && self.model.identity() != source.model.identity() {
            return Err(Failure::new(Status::State, "the rows belong to sessions of different models"));
        }
        Ok(self.memory.copy_row(row, &source.memory, source_row)?)
    }

    fn restored(model: Arc<Loaded>, bytes: &[u8]) -> Result<Self> {
        let memory = Sessions::from_bytes(bytes, &model.model, model.table.as_ref(), model.identity())?;
        Self::begun(model, memory)
    }
}

fn give(out: *mut *mut SessionHandle, session: Session) -> Result<()> {
    let name = SESSIONS.insert(session)?;
    // SAFETY: the caller's promise about `out`.
    unsafe { pointers::give("out", out, std::ptr::without_provenance_mut(name)) }
}

/// Starts `rows` new sequences of `model`.
///
/// # Safety
/// `out` is null or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_session_new(model: *const ModelHandle, rows: usize, out: *mut *mut SessionHandle) -> Status {
    guarded(|| {
        pointers::expect_place("out", out)?;
        let model = MODELS.shared(model.addr())?.clone();
        give(out, Session::new(model, rows)?)
    })
}

/// Copies all rows of a session.
///
/// # Safety
/// `out` is null or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_session_fork(session: *const SessionHandle, out: *mut *mut SessionHandle) -> Status {
    guarded(|| {
        pointers::expect_place("out", out)?;
        let forked = {
            let session = SESSIONS.shared(session.addr())?;
            session.select(&session.all)?
        };
        give(out, forked)
    })
}

/// Frees a session. Freeing null does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_session_free(session: *mut SessionHandle) -> Status {
    guarded(|| if session.is_null() { Ok(()) } else { SESSIONS.remove(session.addr()).map(drop) })
}

/// Resets row `row`, or all with `MINRNN_ALL_ROWS`.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_session_reset(session: *mut SessionHandle, row: usize) -> Status {
    guarded(|| {
        let mut session = SESSIONS.exclusive(session.addr())?;
        match row {
            ALL_ROWS => (0..session.all.len()).try_for_each(|row| session.reset(row)),
            row => session.reset(row),
        }
    })
}

/// Replaces row `row` of `session` by row `source_row` of `source`, which may be the same session.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_session_copy_row(
    session: *mut SessionHandle,
    row: usize,
    source: *const SessionHandle,
    source_row: usize,
) -> Status {
    guarded(|| {
        let mut session_of = SESSIONS.exclusive(session.addr())?;
        if session.addr() == source.addr() {
            let source = session_of.select(&[source_row])?;
            return session_of.copy_row(row, &source, 0);
        }
        let source = SESSIONS.shared(source.addr())?;
        session_of.copy_row(row, &source, source_row)
    })
}

/// Number of rows (`MINRNN_SESSION_ROWS`) or bytes that they use (`MINRNN_SESSION_BYTES`); 0 on error.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_session_size(session: *const SessionHandle, what: i32) -> usize {
    valued(0, || {
        let session = SESSIONS.shared(session.addr())?;
        match what {
            SESSION_ROWS => Ok(session.all.len()),
            SESSION_BYTES => Ok(session.memory.bytes()),
            _ => Err(Failure::new(Status::Input, format!("there is no size {what} of a session, expected a MINRNN_SESSION_"))),
        }
    })
}

/// Lets the steps of a session use up to `threads` threads; 0: all cores. The default is 1.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_session_threads(session: *mut SessionHandle, threads: usize) -> Status {
    guarded(|| {
        SESSIONS.exclusive(session.addr())?.memory.set_threads(threads);
        Ok(())
    })
}

/// Writes the whole state of a session to `buffer`; `len` receives the number of bytes, even if `capacity` is 0.
///
/// # Safety
/// `buffer` is null or has room for `capacity` bytes; `len` is null or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_session_save(session: *const SessionHandle, buffer: *mut u8, capacity: usize, len: *mut usize) -> Status {
    guarded(|| {
        expect_apart(["buffer", "len"], (buffer.cast_const(), capacity), (len, 1))?;
        // SAFETY: the caller's promise, and they lie apart.
        let buffer = unsafe { pointers::write("buffer", buffer, capacity) }?;
        let session = SESSIONS.shared(session.addr())?;
        let saving = session.memory.saving(session.model.identity())?;
        // SAFETY: the caller's promise, and they lie apart.
        if let Some(place) = unsafe { pointers::place(["buffer", "len"], buffer, saving.size(), len) }? {
            saving.write(place);
        }
        Ok(())
    })
}

/// A session restored from the `len` bytes at `bytes`, saved by [`minrnn_session_save`] or `minrnn stream --save-state` for this model.
///
/// # Safety
/// `bytes` is null or has `len` bytes; `out` is null or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_session_restore(
    model: *const ModelHandle,
    bytes: *const u8,
    len: usize,
    out: *mut *mut SessionHandle,
) -> Status {
    guarded(|| {
        expect_apart(["bytes", "out"], (bytes, len), (out, 1))?;
        // SAFETY: the caller's promise.
        let bytes = unsafe { pointers::read("bytes", bytes, len) }?;
        let model = MODELS.shared(model.addr())?.clone();
        give(out, Session::restored(model, bytes)?)
    })
}
