//! The associative memory against its reference in f64, the reference's gradients against finite differences, and what it is for.

mod common;

use common::{
    GRADIENT, OUTPUT, Random, assert_close_above, assert_gradient, assert_nan_in, assert_threads_change_nothing, differences, dot,
    on_every_level, outputs, wide,
};
use minrnn_kernels::Out;
use minrnn_kernels::delta::{self, Inputs, Sizes};
use minrnn_kernels::reference;
use minrnn_kernels::segments::{CONTINUE, PADDING, RESET, Segments};
use minrnn_kernels::simd::Level;

struct Batch {
    sizes: Sizes,
    x: Vec<f32>,
    memory: Option<Vec<f32>>,
    codes: Option<Vec<i32>>,
    d_y: Option<Vec<f32>>,
    d_after: Option<Vec<f32>>,
}

impl Batch {
    /// The bits of `choice` say what is absent.
    fn new(sizes: Sizes, choice: usize, random: &mut Random) -> Self {
        let steps = sizes.batch * sizes.seq_len;
        let present = |bit: usize| choice >> bit & 1 == 0;
        let mut codes = vec![CONTINUE; steps];
        for (b, row) in codes.chunks_mut(sizes.seq_len.max(1)).enumerate() {
            let real = if b % 2 == 0 { random.below(sizes.seq_len + 1) } else { sizes.seq_len };
            row.iter_mut().for_each(|code| *code = if random.below(9) == 0 { RESET } else { CONTINUE });
            row[real..].fill(PADDING);
        }
        let mut values = |n, bit| {
            let values = random.normal(n);
            present(bit).then_some(values)
        };
        Self {
            memory: values(sizes.batch * sizes.memory(), 0),
            d_y: values(steps * sizes.width(), 1),
            d_after: values(sizes.batch * sizes.memory(), 2),
            codes: present(3).then_some(codes),
            x: random.normal(steps * sizes.inputs()),
            sizes,
        }
    }

    fn segments(&self) -> Segments<'_> {
        self.codes.as_deref().map_or(Segments::DENSE, |codes| Segments::new(codes, self.sizes.seq_len))
    }

    /// y, the memory after, and the gradients of input and memory.
    fn run(&self) -> [Vec<f32>; 4] {
        let inputs = Inputs { x: &self.x, memory: self.memory.as_deref(), segments: self.segments() };
        let memory = self.sizes.batch * self.sizes.memory();
        let y = self.sizes.batch * self.sizes.seq_len * self.sizes.width();
        outputs([y, memory, self.x.len(), memory], |[y, after, d_x, d_memory]| {
            delta::forward(self.sizes, inputs, y, after);
            delta::backward(self.sizes, inputs, self.d_y.as_deref(), self.d_after.as_deref(), d_x, d_memory);
        })
    }

    fn check(&self, how: &str) {
        let wide = |x: &Option<Vec<f32>>| x.as_deref().map(common::wide);
        let (x, memory, d_y, d_after) = (common::wide(&self.x), wide(&self.memory), wide(&self.d_y), wide(&self.d_after));
        let (memory, d_y, d_after) = (memory.as_deref(), d_y.as_deref(), d_after.as_deref());
        let out = reference::delta::forward(self.sizes, &x, memory, self.segments());
        let d = reference::delta::backward(self.sizes, &x, memory, self.segments(), d_y, d_after);
        let expected = [("y", out.y, OUTPUT), ("memory", out.memory, OUTPUT), ("d_x", d.d_x, GRADIENT), ("d_memory", d.d_memory, GRADIENT)];
        for (found, (name, expected, tolerance)) in self.run().iter().zip(expected) {
            assert_close_above(&format!("{:?} {how}: {name}", self.sizes), found, &expected, 2.0 * tolerance, 1.0);
        }
    }
}

#[test]
fn kernels_match_the_reference_on_every_level() {
    let mut random = Random(1);
    for seq_len in [0, 1, 2, 7, 15, 16, 17, 65, 130] {
        for (batch, heads, head_width) in [(1, 1, 1), (3, 2, 5), (2, 1, 16), (1, 3, 33)] {
            let sizes = Sizes { batch, seq_len, heads, head_width };
            let [dense, cut] = [0b1000, 0].map(|choice| Batch::new(sizes, choice, &mut random));
            on_every_level(|level| {
                dense.check(level);
                cut.check(level);
            });
        }
    }
}

#[test]
fn kernels_match_the_reference_with_and_without_each_optional_input() {
    let mut random = Random(2);
    for choice in 0..16 {
        Batch::new(Sizes { batch: 3, seq_len: 37, heads: 2, head_width: 6 }, choice, &mut random).check(&format!("{choice:b}"));
    }
}

#[test]
fn gradients_of_the_reference_match_differences() {
    let batch = Batch::new(Sizes { batch: 3, seq_len: 6, heads: 2, head_width: 3 }, 0, &mut Random(3));
    let [x, memory, d_y, d_after] = [Some(&batch.x), batch.memory.as_ref(), batch.d_y.as_ref(), batch.d_after.as_ref()]
        .map(|values| wide(values.expect("nothing is absent")));
    let d = reference::delta::backward(batch.sizes, &x, Some(&memory), batch.segments(), Some(&d_y), Some(&d_after));
    let loss = |x: &[f64], memory: &[f64]| {
        let out = reference::delta::forward(batch.sizes, x, Some(memory), batch.segments());
        dot(&out.y, &d_y) + dot(&out.memory, &d_after)
    };
    assert_gradient("x", &d.d_x, &differences(&x, |x| loss(x, &memory)));
    assert_gradient("memory", &d.d_memory, &differences(&memory, |memory| loss(&x, memory)));
}

#[test]
fn threads_change_nothing() {
    let batch = Batch::new(Sizes { batch: 3, seq_len: 50, heads: 2, head_width: 16 }, 0, &mut Random(4));
    assert_threads_change_nothing(|| batch.run());
}

#[test]
fn steps_give_the_numbers_of_the_sequence() {
    let sizes = Sizes { batch: 1, seq_len: 20, heads: 2, head_width: 5 };
    let batch = Batch::new(sizes, 0b1000, &mut Random(5));
    let [y, after, ..] = batch.run();
    let (e, n) = (sizes.width(), sizes.head_width);
    let mut memory = batch.memory.clone().expect("it is there");
    for (t, x) in batch.x.chunks_exact(sizes.inputs()).enumerate() {
        for (head, memory) in memory.chunks_exact_mut(n * n).enumerate() {
            let part = |i: usize| &x[i * e + head * n..][..n];
            let mut found = vec![f32::NAN; n];
            delta::step(Level::current(), [part(0), part(1), part(2)], x[3 * e + head], memory, &mut found);
            assert_eq!(found, y[t * e + head * n..][..n], "step {t} of head {head}");
        }
    }
    assert_eq!(memory, after);
}

/// With β = 1 a value stored under a key is found again, and a second one replaces it.
#[test]
fn a_value_is_found_under_its_key_until_another_replaces_it() {
    let sizes = Sizes { batch: 1, seq_len: 3, heads: 1, head_width: 2 };
    let (open, closed) = (100.0, -100.0);
    let x = [
        [[1.0, 0.0], [2.0, 0.0], [5.0, 6.0]].concat(),
        vec![open],
        [[0.0, 1.0], [0.0, 3.0], [7.0, 8.0]].concat(),
        vec![open],
        [[1.0, 1.0], [2.0, 0.0], [9.0, 9.0]].concat(),
        vec![closed],
    ]
    .concat();
    let run = |x: &[f32]| {
        let inputs = Inputs { x, memory: None, segments: Segments::DENSE };
        let [y, _] = outputs([6, 4], |[y, memory]| delta::forward(sizes, inputs, y, memory));
        y
    };
    let near = |found: &[f32], expected: [f32; 6]| assert!(found.iter().zip(expected).all(|(a, e)| (a - e).abs() < 1e-4), "{found:?}");
    near(&run(&x), [5.0, 6.0, 7.0, 8.0, 12.0, 14.0]);
    let mut replaced = x.clone();
    replaced[20] = open;
    near(&run(&replaced), [5.0, 6.0, 7.0, 8.0, 16.0, 17.0]);
}

#[test]
fn a_key_whose_squares_overflow_gives_nan_and_is_not_passed_over() {
    let sizes = Sizes { batch: 1, seq_len: 2, heads: 1, head_width: 2 };
    // Two rows of q, k, v and b.
    let x = [1.0, 0.0, 1e20, 0.0, 5.0, 6.0, 0.0, 1.0, 0.0, 1.0, 0.0, 5.0, 6.0, 0.0];
    let inputs = Inputs { x: &x, memory: None, segments: Segments::DENSE };
    on_every_level(|level| {
        let mut memory = vec![0.0; 4];
        assert_nan_in(level, 0..4, 4, |y| delta::forward(sizes, inputs, y, Out::new(&mut memory)));
        assert!(memory.iter().all(|x| x.is_nan()), "{level}: {memory:?}");
    });
    let expected = reference::delta::forward(sizes, &x, None, Segments::DENSE);
    assert!(expected.y.iter().chain(&expected.memory).all(|x| x.is_nan()), "{expected:?}");
}
