//! Where memory is short, sessions stay as they were.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{drawn_model, small};
use minrnn_model::{Forecaster, MixerKind, ModelConfig, Normalization, Scaling, TableTask, Transform, WeightFormat};
use minrnn_stream::{Error, TableSessions};

/// Fewest bytes of an allocation that may be refused: what is made of a few things always has room.
const LARGE: usize = 1 << 14;

thread_local! {
    /// How many large allocations are granted before one is refused.
    static GRANTED: Cell<Option<usize>> = const { Cell::new(None) };
}

struct Short;

// SAFETY: the system's allocator does the work, where it is done.
unsafe impl GlobalAlloc for Short {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LARGE
            && let Some(granted) = GRANTED.get()
        {
            GRANTED.set(granted.checked_sub(1));
            if granted == 0 {
                return std::ptr::null_mut();
            }
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Short = Short;

#[test]
fn sessions_that_cannot_grow_are_as_many_as_before_and_may_grow_later() {
    let of = |mean, deviation| Normalization { mean: vec![mean], deviation: vec![deviation] };
    let task = TableTask::Forecast(Forecaster {
        columns: vec!["x".into()],
        group: None,
        target: vec!["x".into()],
        time: None,
        horizon: 3,
        season: 0,
        normalization: of(0.0, 0.5),
        target_normalization: of(0.0, 0.5),
        scaling: Scaling::Level { transforms: vec![Transform::Identity], span: 2, lags: vec![1] },
        missing: Default::default(),
        layout: Default::default(),
        categories: Vec::new(),
        of_table: Some(of(10.0, 5.0)),
        quantiles: Vec::new(),
    });
    let config = ModelConfig { vocab_size: 0, input_width: 2, n_outputs: 3, ..small(MixerKind::MinGru) };
    let model = drawn_model(&config, WeightFormat::F32);
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
