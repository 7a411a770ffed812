//! Why a call failed: a status and a message, which the calling thread can ask for.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use minrnn_stream::{Error, ErrorKind, panic_words};

use crate::status::Status;

/// A refusal.
#[derive(Debug)]
pub(crate) struct Failure {
    pub status: Status,
    pub sentence: String,
}

impl Failure {
    pub fn new(status: Status, sentence: impl Into<String>) -> Self {
        Self { status, sentence: sentence.into() }
    }

    /// The same error with another status.
    pub fn of(status: Status, error: impl std::fmt::Display) -> Self {
        Self::new(status, error.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            ErrorKind::File => Status::File,
            ErrorKind::Model => Status::Model,
            ErrorKind::Input => Status::Input,
            ErrorKind::Kind => Status::Kind,
            ErrorKind::State => Status::State,
            ErrorKind::Memory => Status::Memory,
        };
        Self::of(status, error)
    }
}

impl From<minrnn_model::Error> for Failure {
    fn from(error: minrnn_model::Error) -> Self {
        Error::from(error).into()
    }
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs `call`, keeps the message of its failure, and returns its status. A panic does not unwind into C.
pub(crate) fn guarded(call: impl FnOnce() -> Result<()>) -> Status {
    match caught(call) {
        Ok(()) => Status::Ok,
        Err(status) => status,
    }
}

/// The same for a call that returns a value, or `refused` when it fails.
pub(crate) fn valued<T: Copy>(refused: T, call: impl FnOnce() -> Result<T>) -> T {
    caught(call).unwrap_or(refused)
}

fn caught<T>(call: impl FnOnce() -> Result<T>) -> std::result::Result<T, Status> {
    // What a panic may leave half done is behind the lock of its handle, which is then poisoned and refused.
    let called = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let words = panic_words(&*panic);
        Err(Failure::new(Status::Internal, format!("the library failed inside ({words}); free the handle and report this")))
    });
    called.map_err(|Failure { status, sentence }| {
        // A zero byte would end the text.
        let text = CString::new(sentence.replace('\0', "\u{FFFD}")).unwrap_or_default();
        // A thread that is about to end has no place for it.
        let _ = LAST.try_with(|last| last.replace(text));
        status
    })
}

/// The message of this thread's last failed call; empty before the first.
///
/// Its text is valid until this thread's next call.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}
