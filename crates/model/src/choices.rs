//! The named alternatives in a model's configuration; their names in files are kebab-case. Those computed by a kernel are defined with the
//! kernels.

use minrnn_kernels::choices;
pub use minrnn_kernels::{Candidate, GruForm, s_lstm::ForgetGate, weight_matrix::WeightFormat};

choices! {
    /// What a block puts around its mixer.
    WiringKind, "wiring" {
        /// Nothing.
        #[default]
        None = "none",
        /// H3's: the mixer reads the products of shifted keys and values, and queries multiply its output.
        H3 = "h3",
        /// Mamba's: a convolution with SiLU before the mixer, a gate beside it.
        Mamba = "mamba",
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
        /// The channel mixing of RWKV-4: squared ReLU under a gate, each of a mixture of this and the previous step.
        ChannelMix = "channel-mix",
        /// xLSTM's: as `gated`, gate first, without biases and scale, the width rounded up to a multiple of 64.
        GeGlu = "ge-glu",
        /// SwiGLU, Llama's: linear to twice the width; the SiLU of one half multiplies the other; linear back; no biases. The width is
        /// rounded up to a multiple of 64.
        SwiGlu = "swi-glu",
    }
}

choices! {
    /// What the weights are before training.
    Initialization, "init" {
        /// Each mixer's own; PyTorch's for linear layers, standard normal for embeddings.
        #[default]
        Default = "default",
        /// GPT-2's: normal with deviation 0.02, in the matrices that end a residual branch 0.02/√(2 n_layers); biases 0.
        Gpt = "gpt",
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
    /// Initial values of sLSTM's recurrent weights.
    RecurrentInit, "slstm_recurrent_init" {
        /// All 0.
        #[default]
        Zeros = "zeros",
        /// Uniform in ±1/√D.
        Uniform = "uniform",
        /// Normal with the deviation of the other weights, √(2/(5D)).
        Normal = "normal",
    }
}

choices! {
    /// Initial frequencies of S4D's states.
    S4Init, "s4_init" {
        /// Those of the HiPPO-LegS matrix.
        #[default]
        Legs = "legs",
        /// πn.
        Lin = "lin",
        /// (N/π) (N/(2n + 1) − 1).
        Inv = "inv",
    }
}

choices! {
    /// What of the past the head of a model sees.
    Pooling, "pooling" {
        /// The features of the current step.
        #[default]
        Last = "last",
        /// The mean of the features since the last reset, so that the last step has the mean of the whole sequence.
        Mean = "mean",
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
        /// By rotating queries and keys by the position.
        Rotary = "rotary",
    }
}
