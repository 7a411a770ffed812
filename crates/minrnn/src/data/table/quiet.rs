//! Panics of a decoder that are no news: a damaged file is told of in a sentence.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is caught and told of by [`quietly`].
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// What `work` gives; nothing where it panics, of which stderr is not told. Panics of other threads are told as ever.
pub(super) fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
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
