//! lucidrains/minGRU-pytorch: `minLM`, and `minGRULM` of versions before 0.1.
//!
//! The order of a layer's parts is ours: convolution, norm, cell, norm, feed-forward. The projections of the cell have no bias; with
//! expansion 1 the one back to `d_model` is left out. `minLM` stores an RMSNorm's gain, `minGRULM` its difference from 1; we write the
//! former. Filters may be shorter than ours.

use minrnn_model::{
    CONV_TAPS, Candidate, CheckedConfig, FeedForwardKind, InitialState, MixerKind, ModelConfig, NormKind, Positions, ScanKind,
};

use super::foreign::{Foreign, Side};
use super::rule::{Constant, Map};
use super::table::Table;
use super::{Format, Layout, Settings, demand, demand_one_mixer, demand_plain};
use crate::Result;

pub(super) const LAYOUT: Layout = Layout { config, check, table, folder: None };

const FORMAT: Format = Format::MinGruPytorch;
const MIXERS: [MixerKind; 2] = [MixerKind::MinGru, MixerKind::MinLstm];

/// Name of the fused input projection, and its blocks of rows.
fn gates(mixer: MixerKind) -> (&'static str, usize) {
    match mixer {
        MixerKind::MinLstm => ("to_hidden_and_f_i_gate", 3),
        _ => ("to_hidden_and_gate", 2),
    }
}

fn config(file: &Foreign<'_>, settings: &Settings) -> Result<ModelConfig> {
    let base = settings.config()?;
    let [vocab_size, d_model] = file.shape("token_emb.weight")?;
    let name = |mixer| format!("layers.0.2.{}.weight", gates(mixer).0);
    let mixer = if file.has(&name(MixerKind::MinLstm)) { MixerKind::MinLstm } else { MixerKind::MinGru };
    let [d_inner, _] = file.blocks_of_rows(&name(mixer), gates(mixer).1)?;
    let [d_ff, _] = file.shape("layers.0.4.0.weight")?;
    Ok(ModelConfig {
        mixer,
        mixers: Vec::new(),
        vocab_size,
        d_model,
        expansion: d_inner as f64 / d_model as f64,
        n_layers: file.layers("layers."),
        conv: file.has("layers.0.0.net.0.weight"),
        ff: FeedForwardKind::Mlp,
        ff_mult: d_ff as f64 / d_model as f64,
        norm: NormKind::Rms,
        rms_eps: 0.0,
        bias: true,
        tie_embeddings: false,
        candidate: Candidate::Positive,
        normalize_gates: true,
        initial_state: InitialState::Zero,
        scan: ScanKind::Linear,
        positions: Positions::None,
        ..base
    })
}

fn check(config: &ModelConfig) -> Result<()> {
    demand_one_mixer(FORMAT, config, &MIXERS)?;
    demand(FORMAT, "ff", config.ff, FeedForwardKind::Mlp)?;
    demand(FORMAT, "norm", config.norm, NormKind::Rms)?;
    demand_plain(FORMAT, config)?;
    demand(FORMAT, "initial_state", config.initial_state, InitialState::Zero)?;
    if config.mixer_at(0) == MixerKind::MinLstm {
        demand(FORMAT, "normalize_gates", config.normalize_gates, true)?;
    }
    Ok(())
}

fn table(config: &CheckedConfig, side: &Side<'_>) -> Result<Table> {
    let (v, d, e, m) = (config.vocab_size, config.d_model, config.d_inner(), config.d_ff());
    let (gates, parts) = gates(config.mixer_at(0));
    let gains = side.has("norm.weight", true);
    let norm = |table: &mut Table, ours: &str, theirs: &str| match gains {
        true => table.pair(&format!("{ours}.gamma"), &format!("{theirs}.weight"), [d], Map::Gain),
        false => table.same(&format!("{ours}.gamma"), &format!("{theirs}.gamma"), [d]),
    };
    let mut table = Table::default();
    table.same("embedding.weight", "token_emb.weight", [v, d]);
    for i in 0..config.n_layers {
        let layer = format!("layers.{i}.");
        table.below(format!("backbone.blocks.{i}."), layer.clone());
        if config.conv {
            convolution(&mut table, d, side.taps(&format!("{layer}0.net.0.weight"), CONV_TAPS)?);
        }
        norm(&mut table, "mixer_norm", "1");
        table.linear_without_bias("mixer.in_proj", &format!("2.{gates}"), parts * e, d);
        if side.has(&format!("{layer}2.to_out.weight"), e != d) || e != d {
            table.linear_without_bias("mixer.out_proj", "2.to_out", d, e);
        } else {
            table.fixed("mixer.out_proj.weight", [d, e], Constant::Identity);
            table.fixed("mixer.out_proj.bias", [d], Constant::Zeros);
        }
        norm(&mut table, "ff_norm", "3");
        table.linear("ff.up", "4.0", m, d);
        table.linear("ff.down", "4.2", d, m);
    }
    table.below("", "");
    norm(&mut table, "backbone.final_norm", "norm");
    table.head("to_logits.weight", v, d, config.tie_embeddings);
    Ok(table)
}

/// A depthwise convolution and a pointwise one, which is a linear layer written as a convolution of one tap.
pub(super) fn convolution(table: &mut Table, d: usize, taps: usize) {
    table.pair("conv.depthwise.weight", "0.net.0.weight", [d, 1, CONV_TAPS], Map::LastTaps(taps));
    table.same("conv.depthwise.bias", "0.net.0.bias", [d]);
    table.pair("conv.pointwise.weight", "0.net.1.weight", [d, d], Map::Reshaped(vec![d, d, 1]));
    table.same("conv.pointwise.bias", "0.net.1.bias", [d]);
}
