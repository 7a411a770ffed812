//! Mixers that break the law are caught: the checks are not empty.

use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor, TensorData};
use minrnn::nn::{Initializer, Mixer, State, StateZip};
use minrnn::ops::{Start, StepCodes, linear_scan};

use crate::common::subject::Cell;
use crate::common::{D_MODEL, device, laws};

/// What a mixer or its state does wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Crime {
    None,
    ForgetsItsState,
    CutsGradientsOfItsState,
    IgnoresSegments,
    LooksAhead,
    StepsDifferently,
    MixesRows,
    MovesOnWithoutSteps,
    ChoosesRowsInReverse,
    NamesTwoTensorsAlike,
    DetachesNothing,
}

/// The sum `[B, D]`.
#[derive(Debug, Clone)]
struct Sum {
    h: Tensor<2>,
    crime: Crime,
}

impl State for Sum {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        if self.crime == Crime::NamesTwoTensorsAlike {
            let _ = f.tensor("h", self.h.clone(), other.h.clone());
        }
        Self { h: f.tensor("h", self.h, other.h), crime: self.crime }
    }

    fn detach(self) -> Self {
        let h = if self.crime == Crime::DetachesNothing { self.h } else { self.h.detach() };
        Self { h, crime: self.crime }
    }

    fn select_rows(self, rows: &[usize]) -> Self {
        let mut rows: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        if self.crime == Crime::ChoosesRowsInReverse {
            rows.reverse();
        }
        let n = rows.len();
        let rows = Tensor::<1, Int>::from_data(TensorData::new(rows, [n]), &self.h.device());
        Self { h: self.h.select(0, rows), crime: self.crime }
    }
}

/// A running sum of weighted inputs.
#[derive(Module, Debug)]
struct Breaker {
    weight: Param<Tensor<1>>,
    #[module(skip)]
    crime: Crime,
}

impl Mixer for Breaker {
    type State = Sum;

    fn init_state(&self, batch_size: usize) -> Sum {
        Sum { h: Tensor::zeros([batch_size, D_MODEL], &device()), crime: self.crime }
    }

    fn forward(&self, x: Tensor<3>, state: Sum, steps: &StepCodes) -> (Tensor<3>, Sum) {
        let [batch_size, seq_len, _] = x.dims();
        let state = match self.crime {
            Crime::ForgetsItsState => self.init_state(batch_size),
            Crime::CutsGradientsOfItsState => state.detach(),
            Crime::MixesRows => Sum { h: state.h.clone() * 0.5 + state.h.mean_dim(0) * 0.5, ..state },
            Crime::MovesOnWithoutSteps if seq_len == 0 => Sum { h: state.h + 1.0, ..state },
            _ => state,
        };
        let steps = if self.crime == Crime::IgnoresSegments { &StepCodes::dense() } else { steps };
        let x = if self.crime == Crime::LooksAhead && seq_len > 0 { x.flip([1]) } else { x };
        let values = x * self.weight.val().unsqueeze();
        let (y, h) = linear_scan(values.zeros_like() + 0.9, values, Start::carried(state.h), steps);
        (y, Sum { h, crime: self.crime })
    }

    fn step(&self, x: Tensor<2>, state: Sum) -> (Tensor<2>, Sum) {
        let (y, state) = self.forward(x.unsqueeze_dim(1), state, &StepCodes::dense());
        let wrong = if self.crime == Crime::StepsDifferently { 1e-4 } else { 0.0 };
        (y.squeeze_dim(1) + wrong, state)
    }
}

fn of(crime: Crime) -> Cell<Breaker> {
    Cell(Breaker { weight: Initializer::new(1, &device()).normal([D_MODEL], 1.0), crime })
}

#[test]
fn where_there_is_no_crime_nothing_is_caught() {
    let law_abiding = of(Crime::None);
    laws::a_cut_changes_nothing("law-abiding", &law_abiding, laws::SHORT);
    laws::forward_equals_steps("law-abiding", &law_abiding, laws::SHORT);
    laws::segments_equal_sequences_alone("law-abiding", &law_abiding, laws::SHORT);
    laws::no_step_returns_the_carried_state("law-abiding", &law_abiding, laws::SHORT);
    laws::rows_are_chosen_and_reset("law-abiding", &law_abiding, laws::SHORT);
    laws::a_state_is_a_value("law-abiding", &law_abiding, laws::SHORT);
}

#[test]
#[should_panic(expected = "cut at")]
fn a_forgotten_state_is_caught_by_a_cut() {
    laws::a_cut_changes_nothing("breaker", &of(Crime::ForgetsItsState), laws::SHORT);
}

#[test]
#[should_panic(expected = "gradient")]
fn a_gradient_cut_at_the_state_is_caught_by_a_cut() {
    laws::a_cut_changes_nothing("breaker", &of(Crime::CutsGradientsOfItsState), laws::SHORT);
}

#[test]
#[should_panic(expected = "cut at")]
fn a_look_ahead_is_caught_by_a_cut() {
    laws::a_cut_changes_nothing("breaker", &of(Crime::LooksAhead), laws::SHORT);
}

#[test]
#[should_panic(expected = "against rows alone")]
fn ignored_segments_are_caught_by_rows_alone() {
    laws::segments_equal_sequences_alone("breaker", &of(Crime::IgnoresSegments), laws::SHORT);
}

#[test]
#[should_panic(expected = "against rows alone")]
fn rows_that_mix_are_caught_by_rows_alone() {
    laws::segments_equal_sequences_alone("breaker", &of(Crime::MixesRows), laws::SHORT);
}

#[test]
#[should_panic(expected = "step by step")]
fn another_step_is_caught_by_steps() {
    laws::forward_equals_steps("breaker", &of(Crime::StepsDifferently), laws::SHORT);
}

#[test]
#[should_panic(expected = "breaker, B = 3, T = 0")]
fn a_state_that_moves_on_without_steps_is_caught_by_no_step() {
    laws::no_step_returns_the_carried_state("breaker", &of(Crime::MovesOnWithoutSteps), laws::SHORT);
}

#[test]
#[should_panic(expected = "outputs of chosen rows")]
fn rows_in_another_order_are_caught_by_the_choice_of_rows() {
    laws::rows_are_chosen_and_reset("breaker", &of(Crime::ChoosesRowsInReverse), laws::SHORT);
}

#[test]
#[should_panic(expected = "every tensor has a name of its own")]
fn two_tensors_of_one_name_are_caught_by_the_value_of_a_state() {
    laws::a_state_is_a_value("breaker", &of(Crime::NamesTwoTensorsAlike), laws::SHORT);
}

#[test]
#[should_panic(expected = "gradients stop at a detached state")]
fn a_gradient_through_a_detached_state_is_caught_by_the_value_of_a_state() {
    laws::a_state_is_a_value("breaker", &of(Crime::DetachesNothing), laws::SHORT);
}
