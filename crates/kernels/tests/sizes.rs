//! No safe function reads or writes past a slice: each function of a table is called with sizes of 0, of 1, huge and wrapping ones, and with
//! slices that are too short, too long or empty. It returns, having written the whole of every output, or it panics with a sentence of its own.
//!
//! On Linux, the memory after a slice is inaccessible: a function that goes past the end stops the process with a segmentation fault, and
//! `cargo test --test sizes -- --nocapture` tells which.
//!
//! A new kernel is one more entry of [`functions`]. The sizes are those of 64-bit targets.
#![cfg(target_pointer_width = "64")]

mod common;
#[path = "sizes/functions.rs"]
mod functions;
#[path = "sizes/room.rs"]
mod room;

use functions::{Function, functions};
use minrnn_kernels::Out;
use room::Room;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::IntoIter;

/// Longest slice that is made: longer ones are left empty, and the function must notice that.
const LONGEST: u128 = 1 << 12;

/// Sizes that are tried in place of one or two of the ordinary ones. Products of the last few wrap.
const SIZES: [usize; 8] = [0, 1, 1 << 31, (1 << 32) + 1, 1 << 59, 1 << 62, (1 << 63) + 1, usize::MAX];

/// The bits of a NaN that no kernel makes: what an output holds before it is written.
const UNWRITTEN: u32 = 0x7fc0_dead;

/// Beginnings of Rust's own panic messages: they say nothing about the caller's mistake.
const NO_SENTENCE: [&str; 9] = [
    "attempt to",
    "index out of bounds",
    "range ",
    "slice index",
    "mid > len",
    "capacity overflow",
    "called `",
    "copy_from_slice",
    "chunk size",
];

/// The slices of one call, handed out in the order of the function's lengths.
pub struct Slices<'a> {
    rest: IntoIter<&'a mut [f32]>,
    /// Which of all slices are outputs.
    outputs: Vec<usize>,
    n_slices: usize,
    zeros: &'a [u64; LONGEST as usize + 1],
    /// By how many steps the rows that segments are made for exceed those they are used with.
    steps_more: usize,
    has_segments: bool,
}

impl<'a> Slices<'a> {
    /// The next slice, to read or to change.
    pub fn f32(&mut self) -> &'a mut [f32] {
        self.rest.next().expect("a length for every slice")
    }

    /// The next slice, to read.
    pub fn input(&mut self) -> &'a [f32] {
        self.f32()
    }

    /// The next slice, to write.
    pub fn out(&mut self) -> Out<'a> {
        self.outputs.push(self.n_slices - self.rest.len());
        let slice = self.f32();
        slice.fill(f32::from_bits(UNWRITTEN));
        slice.into()
    }

    /// The steps of the rows that segments are made for.
    pub fn steps_of_segments(&mut self, seq_len: usize) -> usize {
        self.has_segments = true;
        seq_len.wrapping_add(self.steps_more)
    }

    /// As many zeros of another kind as the next slice has elements.
    pub fn zeros<T: Copy>(&mut self) -> &'a [T] {
        assert!(size_of::<T>() <= 8, "only integers and floats are asked for");
        let len = self.f32().len();
        // SAFETY: `zeros` has room for the longest slice of 8 bytes each, and 0 is a number of every kind asked for.
        unsafe { std::slice::from_raw_parts(self.zeros.as_ptr().cast(), len) }
    }
}

/// Calls `function`; `Err` is the message it panicked with.
///
/// # Panics
/// When it returns and an element of an output was not written.
fn call(function: &Function, sizes: &[usize], lengths: &[usize]) -> Result<(), String> {
    call_with_segments(function, sizes, lengths, 0).0
}

/// The same with segments of rows that are longer by `steps_more`, and whether the function takes any.
fn call_with_segments(function: &Function, sizes: &[usize], lengths: &[usize], steps_more: usize) -> (Result<(), String>, bool) {
    thread_local! {
        static ZEROS: Box<[u64; LONGEST as usize + 1]> = Box::new([0; LONGEST as usize + 1]);
        static ROOMS: RefCell<Vec<Room>> = const { RefCell::new(Vec::new()) };
    }
    ROOMS.with_borrow_mut(|rooms| {
        rooms.resize_with(rooms.len().max(lengths.len()), || Room::new(LONGEST as usize + 1));
        let slices: Vec<&mut [f32]> = rooms.iter_mut().zip(lengths).map(|(room, &len)| room.last(len)).collect();
        slices.iter().for_each(|slice| assert!(slice.iter().all(|x| x.to_bits() == 0), "a room is given back with other numbers"));
        let (how, has_segments, outputs) = ZEROS.with(|zeros| {
            let n_slices = slices.len();
            let mut slices = Slices { rest: slices.into_iter(), outputs: Vec::new(), n_slices, zeros, steps_more, has_segments: false };
            let ended = catch_unwind(AssertUnwindSafe(|| (function.call)(sizes, &mut slices)));
            let how = ended.map_err(|panic| match panic.downcast::<String>() {
                Ok(message) => *message,
                Err(panic) => panic.downcast_ref::<&str>().map_or_else(String::new, |message| (*message).to_owned()),
            });
            (how, slices.has_segments, slices.outputs)
        });
        for output in outputs.into_iter().filter(|_| how.is_ok()) {
            let unwritten = rooms[output].last(lengths[output]).iter().position(|x| x.to_bits() == UNWRITTEN);
            let sizes = named(function, sizes);
            assert_eq!(unwritten, None, "{} with {sizes:?} left this element of its slice {output} unwritten", function.name);
        }
        rooms.iter_mut().zip(lengths).for_each(|(room, &len)| room.last(len).fill(0.0));
        (how, has_segments)
    })
}

/// The product of the factors of a length, exact and wrapped.
fn product(factors: &[usize]) -> (u128, usize) {
    let whole = factors.iter().fold(1u128, |product, &size| product.saturating_mul(size as u128));
    (if factors.contains(&0) { 0 } else { whole }, factors.iter().fold(1usize, |product, &size| product.wrapping_mul(size)))
}

/// Calls the function and checks how it ends: it may return only if the slices have the lengths they must have.
fn check(function: &Function, sizes: &[usize], lengths: &[usize]) {
    let expected: Vec<u128> = (function.lengths)(sizes).iter().map(|factors| product(factors).0).collect();
    let how = || format!("{} with {:?} and slices of {lengths:?}", function.name, named(function, sizes));
    match call(function, sizes, lengths) {
        Ok(()) => {
            let fits = lengths.iter().zip(&expected).all(|(&len, &expected)| len as u128 == expected);
            assert!(fits || function.lenient, "{} returned, its slices being {expected:?} long", how());
        }
        Err(message) => {
            let sentence = message.contains(' ') && !NO_SENTENCE.iter().any(|beginning| message.starts_with(beginning));
            assert!(sentence, "{} panicked with \"{message}\"", how());
        }
    }
}

fn named<'a>(function: &'a Function, sizes: &'a [usize]) -> Vec<(&'a str, usize)> {
    function.sizes.iter().map(|&(name, _)| name).zip(sizes.iter().copied()).collect()
}

fn ordinary(function: &Function) -> Vec<usize> {
    function.sizes.iter().map(|&(_, size)| size).collect()
}

/// Calls `test` with every function, with nothing printed for the panics that it catches.
fn for_each_function(test: impl Fn(&Function)) {
    thread_local!(static LAST: RefCell<String> = const { RefCell::new(String::new()) });
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(|info| LAST.with_borrow_mut(|last| *last = info.to_string())));
    let fails = |function: &Function| {
        println!("{}", function.name);
        catch_unwind(AssertUnwindSafe(|| test(function))).is_err().then(|| LAST.take())
    };
    let failures: Vec<String> = functions().iter().filter_map(fails).collect();
    std::panic::set_hook(before);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A single test, since the hook that silences caught panics belongs to the whole process.
#[test]
fn every_function_takes_its_slices_and_segments_and_refuses_all_others() {
    for_each_function(|function| {
        let sizes = ordinary(function);
        let lengths: Vec<usize> = (function.lengths)(&sizes).iter().map(|factors| product(factors).1).collect();
        if let Err(message) = call(function, &sizes, &lengths) {
            panic!("{} refuses its own table's slices: {message}", function.name);
        }
        // As many codes as there are steps, but of rows of another length.
        let (ended, has_segments) = call_with_segments(function, &sizes, &lengths, 1);
        if has_segments && function.name != "Segments::new" {
            let message = ended.err().unwrap_or_else(|| "no word".to_owned());
            let is_refused = message.starts_with("segments: expected those of rows of");
            assert!(is_refused, "{} takes segments of other rows, with {message}", function.name);
        }
        for i in 0..lengths.len() {
            for len in [0, lengths[i] - 1, lengths[i] + 1] {
                let mut lengths = lengths.clone();
                lengths[i] = len;
                check(function, &sizes, &lengths);
            }
        }
        let count = sizes.len();
        for (i, j) in (0..count).flat_map(|i| (i..count).map(move |j| (i, j))) {
            for (first, second) in SIZES.iter().flat_map(|&first| SIZES.map(|second| (first, second))) {
                let mut changed = sizes.clone();
                (changed[i], changed[j]) = (first, second);
                let wrapped = (function.lengths)(&changed).iter().map(|factors| product(factors).1).collect::<Vec<_>>();
                let makeable = |len: usize| if len as u128 <= LONGEST { len } else { 0 };
                check(function, &changed, &wrapped.into_iter().map(makeable).collect::<Vec<_>>());
                check(function, &changed, &lengths);
            }
        }
    });
}
