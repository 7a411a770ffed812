//! From the input to the residual stream: tokens are looked up, values mapped, and learned positions added.

use alloc::boxed::Box;

use minrnn_kernels::count;
use minrnn_kernels::weight_matrix::WeightMatrix;

use crate::decision::Decision;
use crate::gates;
use crate::linear::Linear;
use crate::pass::{Memory, Pass};
use crate::reads::{Input, Reads};
use crate::source::Source;
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Positions, Result};

/// The first layers of a model.
#[derive(Debug)]
pub(crate) struct Front {
    reads: Embedding,
    /// `[max_seq_len, D]`.
    places: Option<WeightMatrix>,
}

#[derive(Debug)]
enum Embedding {
    /// `[V, D]`.
    Tokens(WeightMatrix),
    /// F → D.
    Values(Linear),
    /// Three rows for a step of a policy.
    Policy(Box<Decision>),
}

impl Front {
    pub(crate) fn read(config: &CheckedConfig, source: &mut dyn Source) -> Result<Self> {
        let d = config.d_model;
        let reads = match config.input_width {
            _ if config.decision => Embedding::Policy(Box::new(Decision::read(config, source)?)),
            0 => Embedding::Tokens(source.matrix("embedding.weight", config.vocab_size, d)?),
            width => Embedding::Values(source.linear("input", d, width)?),
        };
        let places = match config.positions {
            Positions::Learned => Some(source.matrix("positions.weight", config.max_seq_len, d)?),
            _ => None,
        };
        Ok(Self { reads, places })
    }

    pub(crate) fn reads(&self) -> Reads {
        match &self.reads {
            Embedding::Tokens(table) => Reads::Tokens { vocab: table.outputs() },
            Embedding::Values(input) => Reads::Values { width: input.weight.inputs() },
            Embedding::Policy(policy) => Reads::Values { width: policy.row_len() },
        }
    }

    pub(crate) fn is_policy(&self) -> bool {
        matches!(self.reads, Embedding::Policy(_))
    }

    /// Numbers kept for a session.
    pub(crate) fn state_len(&self) -> usize {
        match (&self.reads, &self.places) {
            (Embedding::Policy(_), _) => Decision::STATE_LEN,
            (_, Some(_)) => 1,
            (_, None) => 0,
        }
    }

    /// The matrix `[V, D]` of a model that reads tokens.
    pub(crate) fn embedding(&self) -> Option<&WeightMatrix> {
        match &self.reads {
            Embedding::Tokens(table) => Some(table),
            _ => None,
        }
    }

    /// Rows of the residual stream for `steps` steps of a session whose memory is `memory`.
    pub(crate) fn rows(&self, memory: &[f32], steps: usize) -> usize {
        match &self.reads {
            Embedding::Policy(_) => Decision::rows(memory, steps),
            _ => steps,
        }
    }

    /// Rows of the residual stream for the first `steps` steps of a session.
    pub(crate) fn rows_of(&self, steps: usize) -> usize {
        match &self.reads {
            Embedding::Policy(_) => Decision::rows(&[0.0; Decision::STATE_LEN], steps),
            _ => steps,
        }
    }

    /// Writes the residual stream `x` `[N, D]` of what is to be read, and advances the memory of each span.
    pub(crate) fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, input: &Input, x: &mut [f32], buffers: &mut Buffers) {
        let d = x.len() / pass.rows;
        match &self.reads {
            Embedding::Tokens(table) => {
                input.tokens.iter().zip(x.chunks_exact_mut(d)).for_each(|(&token, x)| table.row(token as usize, x));
            }
            Embedding::Values(linear) => {
                linear.write(pass, pass.rows, &input.values, room(&mut buffers.product, pass.rows * d), x);
            }
            Embedding::Policy(policy) => return policy.forward(pass, memory, &input.values, x, buffers),
        }
        let Some(places) = &self.places else { return };
        let place = room(&mut buffers.normed, d);
        for span in pass.spans {
            // SAFETY: called between two phases, when nothing else uses the memory.
            let kept = &mut unsafe { memory.part(span.session, 0, 1) }[0];
            let mut at = count::of(*kept);
            for x in x[span.first * d..][..span.len * d].chunks_exact_mut(d) {
                // A model has learned nothing beyond its last position; later steps stay there, as in training.
                places.row((at as usize).min(places.outputs() - 1), place);
                gates::add(pass.level, [place], x);
                at = count::next(at);
            }
            *kept = count::kept(at);
        }
    }
}
