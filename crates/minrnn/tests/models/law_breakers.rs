//! Mixers that break the law are caught: the checks are not empty.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use minrnn::nn::{Hidden, Initializer, Mixer, State};
use minrnn::ops::{Start, StepCodes, linear_scan};

use crate::common::subject::Cell;
use crate::common::{D_MODEL, device, laws};

/// What a mixer does wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Crime {
    ForgetsItsState,
    CutsGradientsOfItsState,
    IgnoresSegments,
    LooksAhead,
    StepsDifferently,
    MixesRows,
}

/// A running sum of weighted inputs.
#[derive(Module, Debug)]
struct Breaker {
    weight: Param<Tensor<1>>,
    #[module(skip)]
    crime: Crime,
}

impl Mixer for Breaker {
    type State = Hidden;

    fn init_state(&self, batch_size: usize) -> Hidden {
        Hidden { h: Tensor::zeros([batch_size, D_MODEL], &device()) }
    }

    fn forward(&self, x: Tensor<3>, state: Hidden, steps: &StepCodes) -> (Tensor<3>, Hidden) {
        let [batch_size, seq_len, _] = x.dims();
        let state = match self.crime {
            Crime::ForgetsItsState => self.init_state(batch_size),
            Crime::CutsGradientsOfItsState => state.detach(),
            Crime::MixesRows => Hidden { h: state.h.clone() * 0.5 + state.h.mean_dim(0) * 0.5 },
            _ => state,
        };
        let steps = if self.crime == Crime::IgnoresSegments { &StepCodes::dense() } else { steps };
        let x = if self.crime == Crime::LooksAhead && seq_len > 0 { x.flip([1]) } else { x };
        let values = x * self.weight.val().unsqueeze();
        let (y, h) = linear_scan(values.zeros_like() + 0.9, values, Start::carried(state.h), steps);
        (y, Hidden { h })
    }

    fn step(&self, x: Tensor<2>, state: Hidden) -> (Tensor<2>, Hidden) {
        let (y, state) = self.forward(x.unsqueeze_dim(1), state, &StepCodes::dense());
        let wrong = if self.crime == Crime::StepsDifferently { 1e-4 } else { 0.0 };
        (y.squeeze_dim(1) + wrong, state)
    }
}

fn of(crime: Crime) -> Cell<Breaker> {
    Cell(Breaker { weight: Initializer::new(1, &device()).normal([D_MODEL], 1.0), crime })
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
