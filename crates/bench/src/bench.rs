//! The list of benches.

use burn::tensor::Device;
use minrnn_kernels::choices;
use minrnn_model::{MixerKind, WeightFormat};

use crate::case::{Case, Defaults};
use crate::timing::Plan;
use crate::{Measured, Result, decode, layer, lm, prefill};

choices! {
    /// What one iteration does.
    Bench, "bench" {
        /// One recurrent layer: in-projection, recurrence, loss, backward.
        #[default]
        Layer = "layer",
        /// One training step of the Shakespeare language model.
        Lm = "lm",
        /// The language model one token after the other.
        Decode = "decode",
        /// The language model on a whole prompt.
        Prefill = "prefill",
    }
}

type Measure = fn(&Case, Plan, &Device) -> Result<Measured>;

impl Bench {
    /// Its own sizes, and how it is measured.
    fn parts(self) -> (Defaults, Measure) {
        match self {
            Self::Layer => (layer::DEFAULTS, layer::measure),
            Self::Lm => (lm::DEFAULTS, lm::measure),
            Self::Decode => (decode::DEFAULTS, decode::measure),
            Self::Prefill => (prefill::DEFAULTS, prefill::measure),
        }
    }

    pub(crate) fn measure(self, case: &Case, plan: Plan, device: &Device) -> Result<Measured> {
        self.parts().1(case, plan, device)
    }

    /// minGRU at the bench's own sizes and the first of its lengths.
    pub fn case(self) -> Case {
        let Defaults { d_model, d_hidden, batch_size, seq_len, .. } = self.parts().0;
        let (mixer, precision) = (MixerKind::MinGru, WeightFormat::F32);
        Case { mixer, d_model, d_hidden, batch_size, seq_len: seq_len[0], precision, checkpoint_blocks: false }
    }

    /// The lengths measured by default.
    pub fn lengths(self) -> &'static [usize] {
        self.parts().0.seq_len
    }

    /// The default number of timed iterations.
    pub fn iterations(self) -> usize {
        self.parts().0.iterations
    }
}
