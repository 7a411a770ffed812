//! The experiments built into the library.

macro_rules! built_in {
    ($($name:literal,)+) => {
        /// Names of the built-in experiments, for [`Experiment::load`](super::Experiment::load).
        pub const NAMES: &[&str] = &[$($name,)+];

        const TEXTS: &[&str] = &[$(include_str!(concat!("../../experiments/", $name, ".toml")),)+];
    };
}

built_in! {
    "selective-copying",
    "selective-copying-paper",
    "selective-copying-table2",
    "parity",
    "formal-language-paper",
    "mqar",
    "mqar-128",
    "nearest-neighbour",
    "listops",
    "retrieval",
    "image",
    "digits",
    "shakespeare-min-gru",
    "shakespeare-min-lstm",
    "shakespeare-mamba",
    "shakespeare-transformer",
    "text",
    "classify",
    "regress",
    "forecast",
    "policy",
}

/// The file of the built-in experiment `name`.
pub fn text_of(name: &str) -> Option<&'static str> {
    NAMES.iter().position(|known| *known == name).map(|at| TEXTS[at])
}

#[cfg(test)]
mod tests {
    use minrnn_model::{CheckedConfig, FeedForwardKind, MixerKind, ModelConfig, WiringKind};

    use super::*;
    use crate::data::{ListOpsTask, RetrievalTask};
    use crate::train::{DecayGroups, Experiment};

    #[test]
    fn every_built_in_experiment_is_valid_and_described() {
        for name in NAMES {
            let experiment = Experiment::load(name, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(experiment.description.len() > 10, "{name}");
        }
    }

    /// The sizes of a model whose vocabulary is not known yet.
    fn sizes(model: &ModelConfig) -> CheckedConfig {
        ModelConfig { vocab_size: 65, ..model.clone() }.checked().unwrap()
    }

    #[test]
    fn the_paper_settings_are_the_published_ones() {
        for name in ["shakespeare-min-gru", "shakespeare-min-lstm"] {
            let Experiment { model, train, .. } = Experiment::load(name, &[]).unwrap();
            assert_eq!((model.d_model, sizes(&model).d_inner(), sizes(&model).d_ff(), model.n_layers), (384, 768, 1536, 3));
            assert_eq!((model.dropout, train.clip_norm, train.lr, train.betas), (0.2, 0.25, 1e-3, [0.9, 0.99]));
            assert_eq!((train.batch_size, train.seq_len, train.max_iterations, train.eval_every), (64, 256, 5000, 25));
        }
        let Experiment { model, .. } = Experiment::load("shakespeare-mamba", &[]).unwrap();
        assert_eq!((model.d_model, sizes(&model).d_inner(), model.d_state, model.n_layers), (384, 768, 16, 3));
        assert!(model.tie_embeddings && !model.conv && model.ff == FeedForwardKind::None);
        let Experiment { model, train, .. } = Experiment::load("shakespeare-transformer", &[]).unwrap();
        assert_eq!((model.d_model, model.n_heads, sizes(&model).d_ff(), model.n_layers, model.max_seq_len), (384, 6, 1536, 3, 256));
        assert_eq!((model.dropout, train.clip_norm, train.lr, train.seq_len), (0.2, 0.25, 1e-3, 256));
        let Experiment { model, data, train, .. } = Experiment::load("selective-copying-table2", &[]).unwrap();
        assert_eq!((model.d_model, model.n_layers, model.wiring, model.mixer), (64, 2, WiringKind::Mamba, MixerKind::S6));
        assert_eq!((data.copying.length, data.copying.n_tokens, train.batch_size * train.accumulation), (4096, 16, 64));
        assert_eq!((train.lr, train.weight_decay, train.max_iterations), (1e-4, 0.0, 400_000));
        let Experiment { model, data, train, .. } = Experiment::load("selective-copying-paper", &[]).unwrap();
        assert_eq!((model.d_model, sizes(&model).d_inner(), model.n_layers), (64, 384, 3));
        assert_eq!((data.copying.length, data.copying.n_tokens, train.batch_size * train.accumulation), (4096, 16, 64));
        assert_eq!((train.decay_groups, train.clip_norm, train.lr), (DecayGroups::Official, 1.0, 3e-4));
    }

    #[test]
    fn every_row_of_table_2_is_a_wiring_and_a_mixer() {
        let rows = ["h3 hyena-filter", "mamba hyena-filter", "none s4", "h3 s4", "mamba s4", "none s6", "h3 s6", "mamba s6"];
        for row in rows {
            let (wiring, mixer) = row.split_once(' ').unwrap();
            let settings = [format!("wiring={wiring}"), format!("mixer={mixer}")];
            let Experiment { model, .. } = Experiment::load("selective-copying-table2", &settings).unwrap();
            assert_eq!((model.wiring.name(), model.mixer.name()), (wiring, mixer));
        }
    }

    #[test]
    fn the_settings_of_the_long_range_arena_are_the_published_ones() {
        for (name, n_layers, d_model, batch_size) in [("listops", 8, 128, 32), ("retrieval", 6, 128, 64), ("image", 6, 512, 64)] {
            let Experiment { model, data, train, .. } = Experiment::load(name, &[]).unwrap();
            assert_eq!((model.n_layers, model.d_model, model.conv, model.ff), (n_layers, d_model, true, FeedForwardKind::Mlp), "{name}");
            assert_eq!((train.batch_size, train.max_iterations, train.warmup), (batch_size, 250_000, 25_000), "{name}");
            assert_eq!((train.lr, train.weight_decay, train.min_lr), (1e-3, 0.05, 0.0), "{name}");
            assert!(data.task.reads_a_folder(), "{name}");
        }
        assert_eq!(Experiment::load("listops", &[]).unwrap().data.listops, ListOpsTask::default());
        assert_eq!(Experiment::load("retrieval", &[]).unwrap().data.retrieval, RetrievalTask::default());
    }
}
