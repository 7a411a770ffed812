//! The cells: each file has one cell's gate formulas, with their slopes.

pub mod decay_min_gru;
pub mod floored_min_gru;
pub mod linear;
pub mod log_space;
pub mod min_gru;
pub mod min_lstm;
pub mod rg_lru;
pub mod scaled_min_gru;
pub mod signed_min_gru;
mod update;

/// Runs `$body` with the [`Formulas`](super::formulas::Formulas) of a [`Cell`](super::Cell).
macro_rules! with_formulas {
    ($cell:expr, $formulas:ident => $body:expr) => {{
        use $crate::recurrence::candidate::with_candidate;
        use $crate::recurrence::cells::{
            decay_min_gru, floored_min_gru::FlooredMinGru, linear::Linear, log_space::LogSpace, min_gru::MinGru, min_lstm,
            rg_lru::RgLru, scaled_min_gru::ScaledMinGru, signed_min_gru,
        };
        match $cell {
            Cell::Linear => {
                let $formulas = Linear;
                $body
            }
            Cell::LogSpace => {
                let $formulas = LogSpace;
                $body
            }
            Cell::MinGru(candidate) => with_candidate!(candidate, activation => {
                let $formulas = MinGru(activation);
                $body
            }),
            Cell::MinLstm(candidate, Gates::Normalized) => with_candidate!(candidate, activation => {
                let $formulas = min_lstm::Normalized(activation);
                $body
            }),
            Cell::MinLstm(candidate, Gates::Unnormalized) => with_candidate!(candidate, activation => {
                let $formulas = min_lstm::Unnormalized(activation);
                $body
            }),
            Cell::SignedMinGru(candidate) => with_candidate!(candidate, activation => {
                let $formulas = ScaledMinGru(activation, signed_min_gru::Tanh);
                $body
            }),
            Cell::DecayMinGru(candidate) => with_candidate!(candidate, activation => {
                let $formulas = ScaledMinGru(activation, decay_min_gru::Decay);
                $body
            }),
            Cell::FlooredMinGru(candidate) => with_candidate!(candidate, activation => {
                let $formulas = FlooredMinGru(activation);
                $body
            }),
            Cell::RgLru => {
                let $formulas = RgLru;
                $body
            }
        }
    }};
}
pub(super) use with_formulas;
