//! Where memory is short, sessions stay as they were.

mod common;

use std::cell::Cell;

use common::allocator::Asking;
use common::tables::{forecaster, of_values};
use minrnn_stream::{Error, TableSessions};

/// Fewest bytes of an allocation that may be refused: what is made of a few things always has room.
const LARGE: usize = 1 << 14;

thread_local! {
    /// How many large allocations are granted before one is refused.
    static GRANTED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Refuses one large allocation, the first after those that are granted.
fn is_granted(bytes: usize) -> bool {
    if bytes >= LARGE
        && let Some(granted) = GRANTED.get()
    {
        GRANTED.set(granted.checked_sub(1));
        return granted > 0;
    }
    true
}

#[global_allocator]
static ALLOCATOR: Asking = Asking(is_granted);

#[test]
fn sessions_that_cannot_grow_are_as_many_as_before_and_may_grow_later() {
    let (model, task) = (of_values(3), forecaster());
    for granted in 0.. {
        let mut sessions = TableSessions::new(&model, &task, 1).unwrap();
        sessions.step(&model, &task, &[0], &[4.0]).unwrap();
        let mut expected = sessions.clone();
        GRANTED.set(Some(granted));
        let grown = sessions.grow(&model, &task, 1000);
        let is_refused = GRANTED.take().is_none();
        match grown {
            Ok(()) => {
                assert!(granted > 2 && !is_refused, "the new ones, theirs beside the old ones, and the histories");
                return;
            }
            Err(refused) => assert!(is_refused && matches!(refused, Error::Memory(_)), "{refused}"),
        }
        assert_eq!((sessions.rows(), sessions.histories().len()), (1, 1));
        sessions.grow(&model, &task, 1000).unwrap();
        assert_eq!((sessions.rows(), sessions.histories().len()), (1001, 1001));
        expected.grow(&model, &task, 1000).unwrap();
        for row in [0, 1000] {
            let [found, expected] = [&mut sessions, &mut expected].map(|sessions| sessions.step(&model, &task, &[row], &[5.0]).unwrap());
            assert_eq!(found, expected);
        }
    }
}
