//! Suppresses the panic messages of a decoder: a damaged file is reported as an error.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::{Error, Result};

thread_local! {
    /// Whether a panic of this thread is caught and reported by [`quietly`].
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The result of `work`; `None` if it panics, without a message on stderr. Panics of other threads are reported as usual.
fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                told(info);
            }
        }));
    });
    let before = IS_QUIET.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    IS_QUIET.set(before);
    done.ok()
}

/// The result of `work`, which decodes a file. A decoder checks what it reads, but does not promise never to panic on a damaged file.
///
/// # Errors
/// Those of `work`, and a sentence if it panics.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    quietly(work).unwrap_or_else(|| Err(Error::Data("it is damaged; write it anew".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_nothing_and_the_next_one_is_told_again() {
        assert_eq!(quietly(|| 7), Some(7));
        assert_eq!(quietly(|| -> u8 { panic!("not to be seen") }), None);
        assert!(!IS_QUIET.get());
        assert_eq!(quietly(|| quietly(|| -> u8 { panic!("not to be seen") })), Some(None));
    }
}
