//! Suppresses the panic messages of a decoder: a damaged file is reported as an error.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::{Error, Result};

thread_local! {
    /// Whether a panic of this thread is caught and told of by [`quietly`].
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// What `work` gives; nothing where it panics, of which stderr is not told. Panics of other threads are told as ever.
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

/// What `work`, which decodes a file, gives. A decoder checks what it reads, but makes no promise never to panic on a damaged file.
///
/// # Errors
/// Those of `work`, and a sentence where it panics.
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
