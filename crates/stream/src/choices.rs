//! The named alternatives a model configuration chooses from; their names in files are kebab-case.

use alloc::format;
use alloc::vec::Vec;

use crate::{Error, Result};

/// An enum whose variants are known by a name: serde, `Display`, `FromStr` and the list of all agree.
macro_rules! choices {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// Every alternative, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name used in configuration files and on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }

        impl core::str::FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                Self::ALL.iter().copied().find(|choice| choice.name() == text).ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().map(|choice| choice.name()).collect();
                    Error::Config(format!("unknown {} '{text}'; expected one of {}", $what, names.join(", ")))
                })
            }
        }
    };
}

choices! {
    /// The time-mixing layer.
    MixerKind, "mixer" {
        /// minGRU: one update gate that depends on the input alone.
        #[default]
        MinGru = "min-gru",
        /// minLSTM: a forget and an input gate that depend on the input alone.
        MinLstm = "min-lstm",
        /// The gated recurrent unit, stepped through time.
        Gru = "gru",
        /// The long short-term memory, stepped through time.
        Lstm = "lstm",
        /// Beyond the paper: a minGRU whose coefficients may be negative.
        SignedMinGru = "signed-min-gru",
        /// Beyond the paper: a minGRU that also forgets with the time that passes.
        DecayMinGru = "decay-min-gru",
        /// Beyond the paper: associative memories that are corrected by the delta rule.
        Delta = "delta",
    }
}

choices! {
    /// The feed-forward part of a block.
    FeedForwardKind, "ff" {
        /// No feed-forward part.
        None = "none",
        /// Linear, GELU, linear.
        #[default]
        Mlp = "mlp",
        /// Linear to twice the width; the GELU of one half multiplies the other; linear back.
        Gated = "gated",
    }
}

choices! {
    /// The normalisation before the mixer, before the feed-forward part and before the head.
    NormKind, "norm" {
        /// LayerNorm with gain and bias.
        Layer = "layer",
        /// RMSNorm with gain 1 + γ.
        #[default]
        Rms = "rms",
        /// BatchNorm over batch and time.
        Batch = "batch",
    }
}

choices! {
    /// Where dropout acts.
    DropoutSite, "dropout site" {
        /// After the token embedding.
        #[default]
        Embedding = "embedding",
        /// On the mixer's output, before its residual.
        Mixer = "mixer",
        /// On the feed-forward part's output, before its residual.
        FeedForward = "feed-forward",
    }
}

choices! {
    /// The map from a pre-activation to the candidate state of minGRU and minLSTM.
    Candidate, "candidate" {
        /// g(v) = v + 1/2 for v ≥ 0, σ(v) below: always positive.
        #[default]
        Positive = "positive",
        /// v itself.
        Identity = "identity",
        /// tanh(v).
        Tanh = "tanh",
    }
}

choices! {
    /// The state before the first token.
    InitialState, "initial_state" {
        /// All zeros.
        #[default]
        Zero = "zero",
        /// A learned vector per layer, passed through the candidate's map.
        Learned = "learned",
    }
}

choices! {
    /// The lower bound of minGRU's forget gate.
    ForgetFloor, "forget_floor" {
        /// None: the gate may close.
        #[default]
        None = "none",
        /// Beyond the paper: learned for each channel, up to a ceiling that rises from block to block.
        Learned = "learned",
    }
}

choices! {
    /// How the recurrence of minGRU and minLSTM is evaluated over time.
    ScanKind, "scan" {
        /// In linear space: exact, and several times cheaper.
        #[default]
        Linear = "linear",
        /// In log space, as the paper does: for fidelity and study.
        LogSpace = "log-space",
    }
}

choices! {
    /// Where the GRU's reset gate acts.
    GruForm, "gru_form" {
        /// On the state, before the recurrent product.
        #[default]
        Paper = "paper",
        /// On the recurrent product with its bias, as PyTorch and cuDNN do.
        Torch = "torch",
    }
}

choices! {
    /// How a model knows the place of a token.
    Positions, "positions" {
        /// By its recurrence alone.
        #[default]
        None = "none",
        /// By a learned vector for each of `max_seq_len` positions, added to the embedding.
        Learned = "learned",
        /// By queries and keys that turn with the position.
        Rotary = "rotary",
    }
}

choices! {
    /// How the numbers of a weight matrix are stored.
    WeightFormat, "weight format" {
        /// 32-bit floats: 4 bytes a weight.
        #[default]
        F32 = "f32",
        /// The upper half of a 32-bit float: 2 bytes a weight.
        Bf16 = "bf16",
        /// Whole numbers of 8 bits and a scale for each row: 1 byte a weight.
        Int8 = "int8",
        /// Whole numbers of 4 bits and a scale for each group of 32: a little over half a byte a weight.
        Int4 = "int4",
    }
}
