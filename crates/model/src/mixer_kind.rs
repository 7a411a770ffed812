//! The list of mixers, each with its variant, its name in files, and its specification in [`spec`](crate::spec).

/// Calls a macro with the list.
macro_rules! mixers {
    ($call:ident $($first:tt)*) => {
        $call! {
            $($first)*
                /// minGRU: one update gate that depends on the input alone.
                #[default]
                MinGru = "min-gru" => min_gru::Spec,
                /// minLSTM: a forget and an input gate that depend on the input alone.
                MinLstm = "min-lstm" => min_lstm::Spec,
                /// The gated recurrent unit, stepped through time.
                Gru = "gru" => gru::Spec,
                /// The long short-term memory, stepped through time.
                Lstm = "lstm" => lstm::Spec,
                /// Mamba (S6): a state space model whose step size, input and output depend on the input; its own convolution and gate.
                Mamba = "mamba" => mamba::Spec,
                /// S6: Mamba's selective state spaces alone, without its convolution and gate.
                S6 = "s6" => s6::Spec,
                /// The gated impulse linear recurrence: a minGRU with the candidate tanh.
                Gilr = "gilr" => gilr::Spec,
                /// The time mixing of RWKV-4: a fading average of values, weighted by the exponentials of keys.
                Rwkv4 = "rwkv4" => rwkv4::Spec,
                /// Softmax attention to everything read, with a learned query for each head.
                Aaren = "aaren" => aaren::Spec,
                /// Attention with elu(x) + 1 in place of the softmax.
                LinearAttention = "linear-attention" => linear_attention::Spec,
                /// RetNet's multi-scale retention.
                RetNet = "ret-net" => ret_net::Spec,
                /// xLSTM's scalar memory: exponential gates, heads, stepped through time.
                SLstm = "s-lstm" => s_lstm::Spec,
                /// xLSTM's matrix memory, in a block of its own without feed-forward part.
                MLstm = "m-lstm" => m_lstm::Spec,
                /// Causal softmax attention, whose state is a cache of keys and values.
                Attention = "attention" => attention::Spec,
                /// S4: a state space whose matrix is a diagonal minus a rank-one part.
                S4 = "s4" => s4::Spec { name: "s4", rank_one: true },
                /// S4D: a diagonal state space.
                S4d = "s4d" => s4::Spec { name: "s4d", rank_one: false },
                /// H3: a shift and a diagonal state space between products of queries, keys and values.
                H3 = "h3" => h3::Spec,
                /// Hyena: gates around a convolution with a long implicit filter.
                Hyena = "hyena" => hyena::Spec,
                /// Hyena's long implicit filter alone, without its gates and short convolution.
                HyenaFilter = "hyena-filter" => hyena_filter::Spec,
                /// Beyond the paper: a minGRU whose coefficients may be negative.
                SignedMinGru = "signed-min-gru" => signed_min_gru::Spec,
                /// Beyond the paper: a minGRU that also forgets as time passes.
                DecayMinGru = "decay-min-gru" => decay_min_gru::Spec,
                /// Beyond the paper: associative memories that are corrected by the delta rule.
                Delta = "delta" => delta::Spec,
                /// RG-LRU, the gated linear recurrence of Griffin and RecurrentGemma.
                RgLru = "rg-lru" => rg_lru::Spec,
        }
    };
}
pub(crate) use mixers;

macro_rules! kinds {
    ($dollar:tt; $($(#[$doc:meta])* $variant:ident = $text:literal => $spec:expr,)+) => {
        minrnn_kernels::choices! {
            /// The time-mixing layer.
            MixerKind, "mixer" {
                $($(#[$doc])* $variant = $text,)+
            }
        }

        /// Calls a macro with the names of all variants of `MixerKind`, for tests of each of them.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! each_mixer {
            ($dollar call:ident) => {
                $dollar call! { $($variant)+ }
            };
        }
    };
}

mixers!(kinds $;);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_and_unknown_ones_list_the_choices() {
        for &mixer in MixerKind::ALL {
            assert_eq!(mixer.name().parse::<MixerKind>().unwrap(), mixer);
        }
        let refused = "min-gruu".parse::<MixerKind>().unwrap_err().to_string();
        assert!(refused.starts_with("unknown mixer 'min-gruu'; expected one of min-gru, min-lstm, gru, lstm"), "{refused}");
    }
}
