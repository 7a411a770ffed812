//! BorealisAI/minRNNs: `Model` over tokens, with `minGRU` or `minLSTM`.
//!
//! The block is the one ours was modelled on, switch by switch. Its second norm exists even without a feed-forward part, and then has no
//! effect. Whether minLSTM divides its gates by their sum (`use_coeff_norm`) is not in the file.

use minrnn_model::{
    CONV_TAPS, Candidate, CheckedConfig, FeedForwardKind, InitialState, MixerKind, ModelConfig, NormKind, Positions, ScanKind,
};

use super::foreign::{Foreign, Side};
use super::min_gru_pytorch::convolution;
use super::table::Table;
use super::{Format, Layout, Settings, demand_one_mixer, demand_one_of, demand_plain};
use crate::Result;

pub(super) const LAYOUT: Layout = Layout { config, check, table, folder: None };

const FORMAT: Format = Format::MinRnns;
const MIXERS: [MixerKind; 2] = [MixerKind::MinGru, MixerKind::MinLstm];

fn config(file: &Foreign<'_>, settings: &Settings) -> Result<ModelConfig> {
    let base = settings.config()?;
    let [vocab_size, d_model] = file.shape("token_emb.weight")?;
    let [d_model_of_cell, d_inner] = file.shape("layers.0.2.to_out.weight")?;
    let [rows, _] = file.shape("layers.0.2.to_hidden_and_gate.weight")?;
    let mixer = match rows.checked_div(d_inner) {
        Some(2) => MixerKind::MinGru,
        Some(3) => {
            settings
                .demand("normalize_gates", "a file of format min-rnns does not say whether minLSTM's gates are divided by their sum")?;
            MixerKind::MinLstm
        }
        _ => {
            let shapes = format!("'layers.0.2.to_hidden_and_gate.weight' has {rows} rows and 'layers.0.2.to_out.weight' {d_inner} columns");
            return Err(file.wrong(format!("{shapes}, expected 2 (minGRU) or 3 (minLSTM) times as many rows as columns")));
        }
    };
    let (ff, ff_mult) = match file.has("layers.0.4.2.weight") {
        true => (FeedForwardKind::Gated, file.shape::<2>("layers.0.4.2.weight")?[1] as f64 / d_model as f64),
        false => (FeedForwardKind::None, base.ff_mult),
    };
    let learned = file.has("layers.0.2.init_hidden_state");
    Ok(ModelConfig {
        mixer,
        mixers: Vec::new(),
        vocab_size,
        d_model,
        expansion: d_inner as f64 / d_model_of_cell as f64,
        n_layers: file.layers("layers."),
        conv: file.has("layers.0.0.net.0.weight"),
        ff,
        ff_mult,
        norm: if file.has("norm.gamma") { NormKind::Rms } else { NormKind::Batch },
        rms_eps: 0.0,
        bias: true,
        tie_embeddings: false,
        candidate: Candidate::Positive,
        initial_state: if learned { InitialState::Learned } else { InitialState::Zero },
        scan: ScanKind::Linear,
        positions: Positions::None,
        ..base
    })
}

fn check(config: &ModelConfig) -> Result<()> {
    demand_one_mixer(FORMAT, config, &MIXERS)?;
    demand_one_of(FORMAT, "ff", config.ff, &[FeedForwardKind::Gated, FeedForwardKind::None])?;
    demand_one_of(FORMAT, "norm", config.norm, &[NormKind::Rms, NormKind::Batch])?;
    demand_plain(FORMAT, config)
}

fn table(config: &CheckedConfig, side: &Side<'_>) -> Result<Table> {
    let (v, d, e) = (config.vocab_size, config.d_model, config.d_inner());
    let parts = if config.mixer_at(0) == MixerKind::MinGru { 2 } else { 3 };
    let mut table = Table::default();
    table.same("embedding.weight", "token_emb.weight", [v, d]);
    for i in 0..config.n_layers {
        let layer = format!("layers.{i}.");
        table.below(format!("backbone.blocks.{i}."), layer.clone());
        if config.conv {
            convolution(&mut table, d, side.taps(&format!("{layer}0.net.0.weight"), CONV_TAPS)?);
        }
        norm(&mut table, config.norm, "mixer_norm", "1", d);
        table.linear("mixer.in_proj", "2.to_hidden_and_gate", parts * e, d);
        table.linear("mixer.out_proj", "2.to_out", d, e);
        if config.initial_state == InitialState::Learned {
            table.same("mixer.initial_state", "2.init_hidden_state", [e]);
        }
        if config.ff == FeedForwardKind::None {
            unused_norm(&mut table, config.norm, "3", d);
        } else {
            let m = config.d_ff();
            norm(&mut table, config.norm, "ff_norm", "3", d);
            table.linear("ff.up", "4.0", 2 * m, d);
            table.same("ff.scale", "4.1.mult_bias", [m]);
            table.linear("ff.down", "4.2", d, m);
        }
    }
    table.below("", "");
    norm(&mut table, config.norm, "backbone.final_norm", "norm", d);
    table.head("to_out.weight", v, d, config.tie_embeddings);
    Ok(table)
}

const BATCH_NORM: [(&str, f32); 4] = [("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)];

fn norm(table: &mut Table, kind: NormKind, ours: &str, theirs: &str, d: usize) {
    if kind == NormKind::Rms {
        return table.same(&format!("{ours}.gamma"), &format!("{theirs}.gamma"), [d]);
    }
    for (name, _) in BATCH_NORM {
        table.same(&format!("{ours}.{name}"), &format!("{theirs}.norm.{name}"), [d]);
    }
    table.unused(&format!("{theirs}.norm.num_batches_tracked"), [], 0.0);
}

fn unused_norm(table: &mut Table, kind: NormKind, theirs: &str, d: usize) {
    if kind == NormKind::Rms {
        return table.unused(&format!("{theirs}.gamma"), [d], 0.0);
    }
    for (name, value) in BATCH_NORM {
        table.unused(&format!("{theirs}.norm.{name}"), [d], value);
    }
    table.unused(&format!("{theirs}.norm.num_batches_tracked"), [], 0.0);
}
