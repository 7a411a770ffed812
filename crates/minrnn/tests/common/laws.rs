//! The laws of the state contract, for anything that is a [`Subject`].
//!
//! Each law runs a batch in two ways and compares outputs, final state, and the gradients of parameters, input and first state.
//! The loss weighs every real output and the final state.

use std::collections::BTreeMap;

use burn::tensor::{Tensor, TensorData};
use minrnn::Segments;
use minrnn::nn::{State, StateZip};
use minrnn::ops::StepCodes;

use super::subject::Subject;
use super::{GRADIENT, Named, OUTPUT, assert_all_close, assert_close, device, parameter_gradients, random, random_below, values};

/// Lengths for every setting of a mixer.
pub const SHORT: &[usize] = &[1, 2, 7, 63, 64, 65];
/// Lengths for one setting of each mixer.
pub const ALL: &[usize] = &[1, 2, 7, 63, 64, 65, 257, 1000];
const BATCH_SIZES: [usize; 2] = [1, 3];
/// The tensor of a state that is the scale of its neighbours and carries no gradient.
const STABILIZER: &str = "m";

/// Cutting anywhere and carrying the state changes nothing.
pub fn a_cut_changes_nothing<S: Subject>(name: &str, subject: &S, seq_lens: &[usize]) {
    for_each_batch(seq_lens, |batch_size, seq_len| {
        for segments in [Segments::dense(), ragged(batch_size, seq_len)] {
            let batch = Batch::new(subject, batch_size, seq_len, segments.clone());
            let whole = batch.run(|x, state| subject.forward(x, state, &batch.steps()));
            let anywhere = random_below(seq_len + 1, 1, (batch_size * seq_len) as u64)[0];
            let mut cuts = if seq_len > 65 { vec![64, anywhere] } else { vec![0, 1, 63, 64, seq_len - 1, anywhere] };
            cuts.sort_unstable();
            cuts.dedup();
            for at in cuts.into_iter().filter(|&at| at <= seq_len) {
                let cut = batch.run(|x, state| {
                    let (first, second) = segments.split(at);
                    let (before, after) = (steps_of(&x, 0, at), steps_of(&x, at, seq_len));
                    let (y_before, state) = subject.forward(before, state, &first.steps(batch_size, at).expect("they fit"));
                    let (y_after, state) = subject.forward(after, state, &second.steps(batch_size, seq_len - at).expect("they fit"));
                    (joined(vec![y_before, y_after]), state)
                });
                cut.assert_equals(&whole, &format!("{name}, B = {batch_size}, T = {seq_len}, {segments:?}, cut at {at}"));
            }
        }
    });
}

/// One step at a time gives the same numbers as the whole sequence.
pub fn forward_equals_steps<S: Subject>(name: &str, subject: &S, seq_lens: &[usize]) {
    for_each_batch(seq_lens, |batch_size, seq_len| {
        let batch = Batch::new(subject, batch_size, seq_len, Segments::dense());
        let whole = batch.run(|x, state| subject.forward(x, state, &StepCodes::dense()));
        let stepped = batch.run(|x, mut state| {
            let mut outputs = Vec::new();
            for t in 0..seq_len {
                let (y, next) = subject.step(steps_of(&x, t, t + 1).squeeze_dim(1), state);
                outputs.push(y.unsqueeze_dim(1));
                state = next;
            }
            (joined(outputs), state)
        });
        stepped.assert_equals(&whole, &format!("{name}, B = {batch_size}, T = {seq_len}, step by step"));
    });
}

/// A padded batch with resets gives the same numbers as its sequences run one by one.
pub fn segments_equal_sequences_alone<S: Subject>(name: &str, subject: &S, seq_lens: &[usize]) {
    for_each_batch(seq_lens, |batch_size, seq_len| {
        let segments = ragged(batch_size, seq_len);
        let batch = Batch::new(subject, batch_size, seq_len, segments.clone());
        let together = batch.run(|x, state| subject.forward(x, state, &batch.steps()));
        let alone = batch.run(|x, state| {
            let mut last: Option<S::State> = None;
            let rows = (0..batch_size).map(|b| {
                let mut row_state = state.clone().select_rows(&[b]);
                let mut outputs = Vec::new();
                for (start, end) in batch.pieces(b) {
                    let piece = steps_of(&x, start, end).narrow(0, b, 1);
                    if segments.resets().is_some_and(|rows| rows[b].contains(&start)) {
                        row_state = subject.init_state(1);
                    }
                    let (y, next) = subject.forward(piece, row_state, &StepCodes::dense());
                    row_state = next;
                    outputs.push(y);
                }
                last = Some(match last.take() {
                    Some(rows) => rows.zip(row_state, &mut Stack),
                    None => row_state,
                });
                outputs
            });
            let rows: Vec<Vec<Tensor<3>>> = rows.collect();
            // The law concerns real outputs only: padding is set to zero.
            let width = rows.iter().flatten().next().map_or(1, |y| y.dims()[2]);
            let rows = rows.into_iter().enumerate().map(|(b, mut outputs)| {
                outputs.push(Tensor::zeros([1, seq_len - batch.length(b), width], &device()));
                joined(outputs)
            });
            (Tensor::cat(rows.collect(), 0), last.expect("a row"))
        });
        together.assert_equals(&alone, &format!("{name}, B = {batch_size}, T = {seq_len}, {segments:?}, against rows alone"));
    });
}

/// Without any step, and without any real step, the state is returned unchanged.
pub fn no_step_returns_the_carried_state<S: Subject>(name: &str, subject: &S, _: &[usize]) {
    let nothing_real = || Segments::from_lengths(vec![0; 3]);
    for (batch_size, seq_len, segments) in
        [(3, 0, Segments::dense()), (3, 0, nothing_real()), (3, 5, nothing_real()), (0, 5, Segments::dense()), (0, 0, Segments::dense())]
    {
        let batch = Batch::new(subject, batch_size, seq_len, segments);
        let (y, state) = subject.forward(batch.input(), batch.state.clone(), &batch.steps());
        assert_eq!(y.dims()[..2], [batch_size, seq_len], "{name}");
        assert_eq!(state.tensors(), batch.state.tensors(), "{name}, B = {batch_size}, T = {seq_len}");
        let kept = state.select_rows(&[]).tensors();
        assert!(kept.iter().all(|(_, data)| data.shape()[0] == 0), "{name}: no row chosen");
    }
}

/// `select_rows` chooses sequences; `reset_rows` is a reset before the first step, gradients included.
pub fn rows_are_chosen_and_reset<S: Subject>(name: &str, subject: &S, _: &[usize]) {
    let seq_len = 5;
    let batch = Batch::new(subject, 3, seq_len, Segments::dense());
    let chosen = [2, 0, 0, 1];
    let rows = chosen.map(|row| batch.input().narrow(0, row, 1));
    let (y, last) = subject.forward(batch.input(), batch.state.clone(), &StepCodes::dense());
    let (y_chosen, last_chosen) =
        subject.forward(Tensor::cat(rows.to_vec(), 0), batch.state.clone().select_rows(&chosen), &StepCodes::dense());
    let expected = Tensor::cat(chosen.map(|row| y.clone().narrow(0, row, 1)).to_vec(), 0);
    assert_close(&format!("{name}: outputs of chosen rows"), &values(y_chosen), &values(expected), OUTPUT);
    let what = format!("{name}: state of chosen rows");
    assert_all_close(&what, &state_values(&last_chosen), &state_values(&last.select_rows(&chosen)), OUTPUT);

    let by_segments = Segments::dense().with_resets(vec![vec![0], vec![], vec![0]]).steps(3, seq_len).expect("they fit");
    let by_segments = batch.run(|x, state| subject.forward(x, state, &by_segments));
    let by_hand = batch.run(|x, state| {
        let state = state.reset_rows(&[true, false, true], subject.init_state(3));
        subject.forward(x, state, &StepCodes::dense())
    });
    by_hand.assert_equals(&by_segments, &format!("{name}, rows 0 and 2 reset"));
}

/// A state is a value: its tensors save and load it, a clone is a fork, and detaching cuts gradients but changes no number.
pub fn a_state_is_a_value<S: Subject>(name: &str, subject: &S, _: &[usize]) {
    let batch = Batch::new(subject, 3, 4, Segments::dense());
    let tensors = batch.state.tensors();
    let count: usize = tensors.iter().map(|(_, data)| data.shape().num_elements()).sum();
    assert_eq!(batch.state.bytes(), 4 * count, "{name}: bytes");
    assert!(tensors.iter().all(|(_, data)| data.shape()[0] == 3), "{name}: the first dimension is the batch");

    let saved: BTreeMap<String, TensorData> = tensors.iter().cloned().collect();
    assert_eq!(saved.len(), tensors.len(), "{name}: every tensor has a name of its own");
    let loaded = subject.init_state(3).load(&saved).expect("the state's own tensors");
    assert_eq!(loaded.tensors(), tensors, "{name}: loaded");
    for missing in saved.keys() {
        let mut fewer = saved.clone();
        fewer.remove(missing);
        let refused = subject.init_state(3).load(&fewer).expect_err("a tensor is missing").to_string();
        assert!(refused.contains(&format!("has no '{missing}'")), "{name}: {refused}");
    }
    let refused = subject.init_state(2).load(&saved).expect_err("another batch size").to_string();
    assert!(saved.keys().any(|tensor| refused.contains(&format!("'{tensor}'"))) && refused.contains("found"), "{name}: {refused}");
    refuses_what_is_no_state(name, subject, &saved);

    let fork = batch.run(|x, state| {
        subject.forward(x.clone() + 1.0, state.clone(), &StepCodes::dense());
        subject.forward(x, state, &StepCodes::dense())
    });
    let detached = batch.run(|x, state| subject.forward(x, state.detach(), &StepCodes::dense()));
    assert_eq!(fork.outputs, detached.outputs, "{name}");
    let reaches = |results: &Results, zero: bool| {
        let stabilizer = |what: &str| what.rsplit(' ').next() == Some(STABILIZER);
        let states = results.gradients.iter().filter(|(what, _)| what.starts_with("state ") && !stabilizer(what));
        states.fold(true, |all, (_, gradient)| all && gradient.iter().all(|&g| g == 0.0) == zero)
    };
    assert!(reaches(&fork, false), "{name}: gradients reach the first state");
    assert!(reaches(&detached, true), "{name}: gradients stop at a detached state");
}

/// A new state is loaded as it was saved; numbers that no pass produces, and those of other types, are refused.
fn refuses_what_is_no_state<S: Subject>(name: &str, subject: &S, saved: &BTreeMap<String, TensorData>) {
    let new = subject.init_state(3);
    let loaded = new.clone().load(&new.tensors().into_iter().collect()).expect("a new state's own tensors");
    assert_eq!(loaded.tensors(), new.tensors(), "{name}: a new state");
    for (tensor, data) in saved {
        let values = data.clone().try_to_vec::<f32>().expect("states are f32");
        let refused = |flawed: TensorData| {
            let with_it = saved.iter().map(|(other, data)| (other.clone(), if other == tensor { flawed.clone() } else { data.clone() }));
            subject.init_state(3).load(&with_it.collect()).expect_err("it is no state").to_string()
        };
        for (number, shown) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
            let mut flawed = values.clone();
            *flawed.last_mut().expect("three rows") = number;
            let refused = refused(TensorData::new(flawed, data.shape().clone()));
            assert!(refused.contains(&format!("state '{tensor}' holds {shown}")), "{name}: {refused}");
        }
        let wide: Vec<f64> = values.iter().copied().map(f64::from).collect();
        let whole: Vec<i64> = values.iter().map(|&value| value as i64).collect();
        for of_another_type in [TensorData::new(wide, data.shape().clone()), TensorData::new(whole, data.shape().clone())] {
            let refused = refused(of_another_type);
            assert!(refused.contains(&format!("state '{tensor}': expected numbers of type F32, found ")), "{name}: {refused}");
        }
    }
}

fn for_each_batch(seq_lens: &[usize], check: impl Fn(usize, usize)) {
    for &seq_len in seq_lens {
        for batch_size in BATCH_SIZES {
            check(batch_size, seq_len);
        }
    }
}

/// Rows of different lengths, 0 and T among them, with resets at random places, one of them before the first step.
fn ragged(batch_size: usize, seq_len: usize) -> Segments {
    let index = (100 * batch_size + seq_len) as u64;
    let mut lengths = random_below(seq_len + 1, batch_size, index);
    lengths[batch_size - 1] = seq_len;
    if batch_size > 2 {
        lengths[1] = 0;
    }
    let resets = (0..batch_size).map(|b| {
        let mut row = random_below(seq_len, 3, 10 * index + b as u64);
        row.extend((b == 0).then_some(0));
        row.sort_unstable();
        row.dedup();
        row
    });
    Segments::from_lengths(lengths).with_resets(resets.collect())
}

/// A random batch and its initial state, left by a previous sequence.
struct Batch<'a, S: Subject> {
    subject: &'a S,
    x: Vec<f32>,
    state: S::State,
    batch_size: usize,
    seq_len: usize,
    segments: Segments,
}

impl<'a, S: Subject> Batch<'a, S> {
    fn new(subject: &'a S, batch_size: usize, seq_len: usize, segments: Segments) -> Self {
        let width = subject.width();
        let before = TensorData::new(subject.input(batch_size * 6 * width, 1), [batch_size, 6, width]);
        let before = Tensor::from_data(before, &device());
        let (_, state) = subject.forward(before, subject.init_state(batch_size), &StepCodes::dense());
        let state = state.detach();
        Self { subject, x: subject.input(batch_size * seq_len * width, 2), state, batch_size, seq_len, segments }
    }

    fn input(&self) -> Tensor<3> {
        Tensor::from_data(TensorData::new(self.x.clone(), [self.batch_size, self.seq_len, self.subject.width()]), &device())
    }

    fn steps(&self) -> StepCodes {
        self.segments.steps(self.batch_size, self.seq_len).expect("the segments fit")
    }

    fn length(&self, row: usize) -> usize {
        self.segments.lengths().map_or(self.seq_len, |lengths| lengths[row])
    }

    /// Start and end of the parts of a row between resets.
    fn pieces(&self, row: usize) -> Vec<(usize, usize)> {
        let length = self.length(row);
        let mut bounds = vec![0, length];
        bounds.extend(self.segments.resets().iter().flat_map(|rows| rows[row].iter().copied().filter(|&t| t < length)));
        bounds.sort_unstable();
        bounds.dedup();
        bounds.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }

    fn run(&self, forward: impl FnOnce(Tensor<3>, S::State) -> (Tensor<3>, S::State)) -> Results {
        let x = self.input().require_grad();
        let state = self.state.clone().zip(self.state.clone(), &mut Leaf);
        let (y, last) = forward(x.clone(), state.clone());
        let real = y.dims()[2];
        let real = (0..self.batch_size).flat_map(|b| (0..self.seq_len * real).map(move |i| i / real < self.length(b)));
        let mask = |values: Vec<f32>| values.into_iter().zip(real.clone()).map(|(x, real)| if real { x } else { 0.0 }).collect::<Vec<_>>();
        let weights = TensorData::new(mask(random(y.shape().num_elements(), 3)), y.dims());
        let mut weigh = Weigh { index: 4, total: (y.clone() * Tensor::from_data(weights, &device())).sum() };
        let last = last.zip(state.clone(), &mut weigh);
        let gradients = weigh.total.backward();

        let mut outputs = vec![("y".to_owned(), mask(values(y)))];
        outputs.extend(state_values(&last));
        let mut named = parameter_gradients(self.subject.module(), &gradients);
        named.push(("input".to_owned(), x.grad(&gradients).map_or_else(Vec::new, values)));
        let mut collect = CollectGradients { gradients: &gradients, found: Vec::new() };
        state.clone().zip(state, &mut collect);
        named.extend(collect.found);
        Results { outputs, gradients: named }
    }
}

/// The results of a run.
struct Results {
    outputs: Named,
    gradients: Named,
}

impl Results {
    #[track_caller]
    fn assert_equals(&self, expected: &Self, what: &str) {
        assert_all_close(what, &self.outputs, &expected.outputs, OUTPUT);
        assert_all_close(&format!("{what}: gradient"), &self.gradients, &expected.gradients, GRADIENT);
    }
}

fn state_values(state: &impl State) -> Named {
    let read = |(name, data): (String, TensorData)| (format!("state {name}"), data.try_to_vec().expect("states are f32"));
    state.tensors().into_iter().map(read).collect()
}

/// The steps `start..end` of `x`.
fn steps_of(x: &Tensor<3>, start: usize, end: usize) -> Tensor<3> {
    let [batch_size, _, width] = x.dims();
    match end - start {
        0 => Tensor::zeros([batch_size, 0, width], &x.device()),
        len => x.clone().narrow(1, start, len),
    }
}

/// The parts one after the other in time.
fn joined(mut parts: Vec<Tensor<3>>) -> Tensor<3> {
    parts.retain(|part| part.dims()[1] > 0);
    Tensor::cat(parts, 1)
}

struct Leaf;

impl StateZip for Leaf {
    fn tensor<const D: usize>(&mut self, _: &str, a: Tensor<D>, _: Tensor<D>) -> Tensor<D> {
        a.detach().require_grad()
    }
}

/// Concatenates the rows of both states.
struct Stack;

impl StateZip for Stack {
    fn tensor<const D: usize>(&mut self, _: &str, a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
        Tensor::cat(vec![a, b], 0)
    }
}

/// Adds Σ weight ⊙ state to the loss.
struct Weigh {
    index: u64,
    total: Tensor<1>,
}

impl StateZip for Weigh {
    fn tensor<const D: usize>(&mut self, name: &str, a: Tensor<D>, _: Tensor<D>) -> Tensor<D> {
        self.index += 1;
        // A stabiliser is a constant for differentiation: its value is compared, but the loss must not depend on it.
        if name == STABILIZER {
            return a;
        }
        let weights = TensorData::new(random(a.shape().num_elements(), self.index), a.dims());
        self.total = self.total.clone() + (a.clone() * Tensor::from_data(weights, &device())).sum();
        a
    }
}

struct CollectGradients<'a> {
    gradients: &'a burn::tensor::Gradients,
    found: Named,
}

impl StateZip for CollectGradients<'_> {
    fn tensor<const D: usize>(&mut self, name: &str, a: Tensor<D>, _: Tensor<D>) -> Tensor<D> {
        let gradient = a.grad(self.gradients).unwrap_or_else(|| a.clone().inner().zeros_like());
        self.found.push((format!("state {} {name}", self.found.len()), values(gradient)));
        a
    }
}
