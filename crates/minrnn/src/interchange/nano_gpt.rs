//! The model of karpathy/nanoGPT, with or without biases.
//!
//! Its parts are, in number and order, those of our block of attention and feed-forward part; `c_attn` and our input projection both have
//! rows for queries, keys, values. The number of heads is not in the file. The head shares the embedding's matrix, which is written twice.

use minrnn_model::{CheckedConfig, FeedForwardKind, MixerKind, ModelConfig, NormKind, Positions, ScanKind};

use super::foreign::{Foreign, Side};
use super::table::Table;
use super::{Format, Layout, Settings, demand, demand_one_mixer};
use crate::Result;

pub(super) const LAYOUT: Layout = Layout { config, check, table, folder: None };

const FORMAT: Format = Format::NanoGpt;

fn config(file: &Foreign<'_>, settings: &Settings) -> Result<ModelConfig> {
    settings.demand("n_heads", "a file of format nano-gpt does not say how many heads the attention has")?;
    let base = settings.config()?;
    let [vocab_size, d_model] = file.shape("transformer.wte.weight")?;
    let [max_seq_len, _] = file.shape("transformer.wpe.weight")?;
    let [d_ff, _] = file.shape("transformer.h.0.mlp.c_fc.weight")?;
    Ok(ModelConfig {
        mixer: MixerKind::Attention,
        mixers: Vec::new(),
        vocab_size,
        d_model,
        max_seq_len,
        n_layers: file.layers("transformer.h."),
        conv: false,
        ff: FeedForwardKind::Mlp,
        ff_mult: d_ff as f64 / d_model as f64,
        norm: NormKind::Layer,
        bias: file.has("transformer.ln_f.bias"),
        tie_embeddings: file.repeats("transformer.wte.weight", "lm_head.weight"),
        positions: Positions::Learned,
        window: 0,
        scan: ScanKind::Linear,
        ..base
    })
}

fn check(config: &ModelConfig) -> Result<()> {
    demand_one_mixer(FORMAT, config, &[MixerKind::Attention])?;
    demand(FORMAT, "conv", config.conv, false)?;
    demand(FORMAT, "ff", config.ff, FeedForwardKind::Mlp)?;
    demand(FORMAT, "norm", config.norm, NormKind::Layer)?;
    demand(FORMAT, "positions", config.positions, Positions::Learned)?;
    demand(FORMAT, "window", config.attention_window(), config.max_seq_len)
}

fn table(config: &CheckedConfig, _: &Side<'_>) -> Result<Table> {
    let (v, d, m) = (config.vocab_size, config.d_model, config.d_ff());
    let mut table = Table::default();
    let norm = |table: &mut Table, ours: &str, theirs: &str| {
        table.same(&format!("{ours}.weight"), &format!("{theirs}.weight"), [d]);
        if config.bias {
            table.same(&format!("{ours}.bias"), &format!("{theirs}.bias"), [d]);
        }
    };
    let linear = |table: &mut Table, ours: &str, theirs: &str, rows: usize, columns: usize| match config.bias {
        true => table.linear(ours, theirs, rows, columns),
        false => table.same(&format!("{ours}.weight"), &format!("{theirs}.weight"), [rows, columns]),
    };
    table.same("embedding.weight", "transformer.wte.weight", [v, d]);
    table.same("positions.weight", "transformer.wpe.weight", [config.max_seq_len, d]);
    for i in 0..config.n_layers {
        table.below(format!("backbone.blocks.{i}."), format!("transformer.h.{i}."));
        norm(&mut table, "mixer_norm", "ln_1");
        linear(&mut table, "mixer.in_proj", "attn.c_attn", 3 * d, d);
        linear(&mut table, "mixer.out_proj", "attn.c_proj", d, d);
        norm(&mut table, "ff_norm", "ln_2");
        linear(&mut table, "ff.up", "mlp.c_fc", m, d);
        linear(&mut table, "ff.down", "mlp.c_proj", d, m);
    }
    table.below("", "");
    norm(&mut table, "backbone.final_norm", "transformer.ln_f");
    table.head("lm_head.weight", v, d, config.tie_embeddings);
    Ok(table)
}
