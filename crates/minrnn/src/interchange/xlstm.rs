//! NX-AI's xlstm: `xLSTMLMModel`, any order of mLSTM and sLSTM blocks.
//!
//! The layers have our names except for sLSTM's gates: what the library calls `fgate` feeds its input gate, and `igate` its forget gate.
//! Its LayerNorms store the difference of the gain from 1 and have no bias. The recurrent weights and biases of sLSTM are in another order
//! if they were trained with the library's CUDA kernels; either order is read, and that of the vanilla back end is written.

use std::collections::BTreeSet;

use minrnn_model::{
    CONV_TAPS, CheckedConfig, FeedForwardKind, ForgetGate, InitialState, MLSTM_BLOCK, MixerKind, ModelConfig, NormKind, Positions, ScanKind,
};

use serde_json::{Value, json};

use super::folder::Folder;
use super::foreign::{Foreign, Side};
use super::rule::{Constant, Map};
use super::said::Said;
use super::table::Table;
use super::{Form, Format, Layout, Settings, demand, demand_one_of};
use crate::Result;

pub(super) const LAYOUT: Layout = Layout { config, check, table, folder: Some(&FOLDER) };

const FORMAT: Format = Format::Xlstm;
const BLOCKS: &str = "xlstm_block_stack.blocks.";
/// `round_proj_up_to_multiple_of` of the library's configuration.
const ROUNDED_WIDTH: f64 = 64.0;

fn config(file: &Foreign<'_>, settings: &Settings) -> Result<ModelConfig> {
    let base = settings.config()?;
    let [vocab_size, d_model] = file.shape("token_embedding.weight")?;
    let n_layers = file.layers(BLOCKS);
    let in_block = |layer: usize, name: &str| format!("{BLOCKS}{layer}.{name}");
    let is_matrix = |layer: &usize| file.has(&in_block(*layer, "xlstm.proj_up.weight"));
    let matrix = (0..n_layers).find(is_matrix);
    let scalar = (0..n_layers).find(|layer| !is_matrix(layer));
    let mixers: Vec<_> = (0..n_layers).map(|layer| if is_matrix(&layer) { MixerKind::MLstm } else { MixerKind::SLstm }).collect();
    let (mut n_heads, mut expansion) = (base.n_heads, base.expansion);
    let (mut ff, mut ff_mult, mut slstm_conv) = (FeedForwardKind::None, base.ff_mult, base.slstm_conv);
    if let Some(layer) = scalar {
        [n_heads, _, _] = file.shape(&in_block(layer, "xlstm.igate.weight"))?;
        slstm_conv = file.has(&in_block(layer, "xlstm.conv1d.conv.weight"));
        let down = in_block(layer, "ffn.proj_down.weight");
        if file.has(&down) {
            let [_, d_ff] = file.shape(&down)?;
            (ff, ff_mult) = (FeedForwardKind::GeGlu, d_ff as f64 / d_model as f64);
        }
    }
    if let Some(layer) = matrix {
        [n_heads, _] = file.shape(&in_block(layer, "xlstm.mlstm_cell.igate.weight"))?;
        let [d_inner, _] = file.blocks_of_rows(&in_block(layer, "xlstm.proj_up.weight"), 2)?;
        expansion = d_inner as f64 / d_model as f64;
    }
    Ok(ModelConfig {
        mixer: mixers.first().copied().unwrap_or(MixerKind::MLstm),
        mixers,
        vocab_size,
        d_model,
        expansion,
        n_layers,
        n_heads,
        conv: false,
        ff,
        ff_mult,
        norm: NormKind::Layer,
        bias: false,
        tie_embeddings: file.repeats("token_embedding.weight", "lm_head.weight"),
        initial_state: InitialState::Zero,
        positions: Positions::None,
        scan: ScanKind::Linear,
        slstm_conv,
        slstm_forget_gate: ForgetGate::Sigmoid,
        ..base
    })
}

fn check(config: &ModelConfig) -> Result<()> {
    let kinds = config.mixer_kinds();
    kinds.iter().try_for_each(|&kind| demand_one_of(FORMAT, "mixer", kind, &[MixerKind::MLstm, MixerKind::SLstm]))?;
    demand(FORMAT, "conv", config.conv, false)?;
    demand(FORMAT, "norm", config.norm, NormKind::Layer)?;
    demand(FORMAT, "positions", config.positions, Positions::None)?;
    if kinds.contains(&MixerKind::SLstm) {
        demand(FORMAT, "slstm_forget_gate", config.slstm_forget_gate, ForgetGate::Sigmoid)?;
        demand_one_of(FORMAT, "ff", config.ff, &[FeedForwardKind::GeGlu, FeedForwardKind::None])?;
    }
    Ok(())
}

fn table(config: &CheckedConfig, side: &Side<'_>) -> Result<Table> {
    let (v, d) = (config.vocab_size, config.d_model);
    let mut table = Table::default();
    table.same("embedding.weight", "token_embedding.weight", [v, d]);
    for i in 0..config.n_layers {
        let (ours, theirs) = (format!("backbone.blocks.{i}."), format!("{BLOCKS}{i}."));
        table.below(ours.clone(), theirs.clone());
        norm(&mut table, config, "mixer_norm", "xlstm_norm");
        if config.ff_at(i) != FeedForwardKind::None {
            let m = config.d_ff();
            norm(&mut table, config, "ff_norm", "ffn_norm");
            table.same("ff.up.weight", "ffn.proj_up.weight", [2 * m, d]);
            table.same("ff.down.weight", "ffn.proj_down.weight", [d, m]);
        }
        let theirs = format!("{theirs}xlstm.");
        table.below(format!("{ours}mixer."), theirs.clone());
        match config.mixer_at(i) {
            MixerKind::MLstm => m_lstm(&mut table, config, side, &theirs)?,
            _ => s_lstm(&mut table, config, side, &theirs)?,
        }
    }
    table.below("", "");
    norm(&mut table, config, "backbone.final_norm", "xlstm_block_stack.post_blocks_norm");
    table.head("lm_head.weight", v, d, config.tie_embeddings);
    Ok(table)
}

fn m_lstm(table: &mut Table, config: &CheckedConfig, side: &Side<'_>, theirs: &str) -> Result<()> {
    let (d, e, heads) = (config.d_model, config.mlstm_inner(), config.n_heads);
    table.same("in_proj.weight", "proj_up.weight", [2 * e, d]);
    convolution(table, e, side, theirs)?;
    for name in ["q_proj.weight", "k_proj.weight", "v_proj.weight"] {
        table.same(name, name, [e / MLSTM_BLOCK, MLSTM_BLOCK, MLSTM_BLOCK]);
    }
    for gate in ["igate", "fgate"] {
        table.linear(gate, &format!("mlstm_cell.{gate}"), heads, 3 * e);
    }
    table.same("outnorm.weight", "mlstm_cell.outnorm.weight", [e]);
    table.same("learnable_skip", "learnable_skip", [e]);
    table.same("out_proj.weight", "proj_down.weight", [d, e]);
    Ok(())
}

fn s_lstm(table: &mut Table, config: &CheckedConfig, side: &Side<'_>, theirs: &str) -> Result<()> {
    let (d, heads) = (config.d_model, config.n_heads);
    let head = d / heads;
    if config.slstm_conv {
        convolution(table, d, side, theirs)?;
    }
    for (ours, theirs) in [("igate", "fgate"), ("fgate", "igate"), ("zgate", "zgate"), ("ogate", "ogate")] {
        table.same(&format!("{ours}.weight"), &format!("{theirs}.weight"), [heads, head, head]);
    }
    let kernel = "slstm_cell._recurrent_kernel_";
    let (map_kernel, map_bias) = match side.last_size(&format!("{theirs}{kernel}"), head)? {
        columns if columns == 4 * head => (
            Map::Permuted { view: [heads, 4 * head, head], axes: [0, 2, 1], shape: vec![heads, head, 4 * head] },
            Map::Permuted { view: [4, heads, head], axes: [1, 0, 2], shape: vec![4 * d] },
        ),
        _ => (Map::Same, Map::Same),
    };
    table.pair("recurrent.weight", kernel, [heads, 4 * head, head], map_kernel);
    table.pair("bias", "slstm_cell._bias_", [4 * d], map_bias);
    table.same("group_norm.weight", "group_norm.weight", [d]);
    Ok(())
}

fn convolution(table: &mut Table, width: usize, side: &Side<'_>, theirs: &str) -> Result<()> {
    let taps = side.taps(&format!("{theirs}conv1d.conv.weight"), CONV_TAPS)?;
    table.pair("conv1d.weight", "conv1d.conv.weight", [width, 1, CONV_TAPS], Map::LastTaps(taps));
    table.same("conv1d.bias", "conv1d.conv.bias", [width]);
    Ok(())
}

/// A LayerNorm; ours keeps the gain itself.
fn norm(table: &mut Table, config: &CheckedConfig, ours: &str, theirs: &str) {
    table.pair(&format!("{ours}.weight"), &format!("{theirs}.weight"), [config.d_model], Map::Offset);
    if config.bias {
        table.fixed(&format!("{ours}.bias"), [config.d_model], Constant::Zeros);
    }
}

const FOLDER: Folder = Folder {
    config: described,
    others: &[],
    settings: |said| match said.get("mlstm_block").or(said.get("slstm_block")) {
        Some(_) => Ok(Vec::new()),
        None => Err(said.wrong("it has neither mlstm_block nor slstm_block, expected those of xLSTMLMModelConfig".to_owned())),
    },
    expect,
    library: "xlstm",
    loading: r#"
import json
from pathlib import Path

import torch
from dacite import Config, from_dict
from safetensors.torch import load_file
from xlstm import xLSTMLMModel, xLSTMLMModelConfig

folder = Path("model")
config = from_dict(xLSTMLMModelConfig, json.loads((folder / "config.json").read_text()), Config(strict=True))
model = xLSTMLMModel(config).eval()
model.load_state_dict(load_file(folder / "model.safetensors"))
with torch.no_grad():
    logits = model(ids)
"#,
};

/// `xLSTMLMModelConfig`.
fn described(config: &CheckedConfig, form: Form) -> Result<Value> {
    let scalar: Vec<usize> = (0..config.n_layers).filter(|&layer| config.mixer_at(layer) == MixerKind::SLstm).collect();
    let mut said = json!({
        "vocab_size": config.vocab_size, "embedding_dim": config.d_model, "num_blocks": config.n_layers,
        "context_length": config.max_seq_len, "slstm_at": scalar, "tie_weights": config.tie_embeddings, "bias": false,
    });
    if scalar.len() < config.n_layers {
        let layer = json!({
            "num_heads": config.n_heads, "conv1d_kernel_size": form.taps, "qkv_proj_blocksize": MLSTM_BLOCK, "proj_factor": config.expansion,
        });
        said["mlstm_block"] = json!({"mlstm": layer});
    }
    if !scalar.is_empty() {
        let taps = if config.slstm_conv { form.taps } else { 0 };
        let layer = json!({"backend": "vanilla", "num_heads": config.n_heads, "conv1d_kernel_size": taps});
        let feed_forward = match config.ff {
            FeedForwardKind::None => Value::Null,
            _ => json!({"proj_factor": config.ff_mult, "act_fn": "gelu"}),
        };
        said["slstm_block"] = json!({"slstm": layer, "feedforward": feed_forward});
    }
    Ok(said)
}

fn expect(said: &Said, config: &CheckedConfig, file: &Foreign<'_>) -> Result<()> {
    for (key, found) in [("vocab_size", config.vocab_size), ("embedding_dim", config.d_model), ("num_blocks", config.n_layers)] {
        said.expect_size(key, found)?;
    }
    expect_places(said, config)?;
    let first = |kind: MixerKind| (0..config.n_layers).find(|&layer| config.mixer_at(layer) == kind);
    if let Some(layer) = first(MixerKind::MLstm) {
        expect_m_lstm(said, config, file, &format!("{BLOCKS}{layer}."))?;
    }
    if let Some(layer) = first(MixerKind::SLstm) {
        expect_s_lstm(said, config, file, &format!("{BLOCKS}{layer}."))?;
    }
    said.expect("add_post_blocks_norm", true)?;
    said.expect_head("tie_weights", config)
}

/// Checks which blocks are sLSTM.
fn expect_places(said: &Said, config: &CheckedConfig) -> Result<()> {
    let Some(at) = said.get("slstm_at") else { return Ok(()) };
    let n_layers = config.n_layers as i64;
    let scalar: BTreeSet<i64> = (0..n_layers).filter(|&layer| config.mixer_at(layer as usize) == MixerKind::SLstm).collect();
    // Without mlstm_block the library makes every block an sLSTM, whatever this says.
    let is_all = at.as_str() == Some("all") || said.get("mlstm_block").is_none_or(Value::is_null);
    // Python counts negative indices from the end.
    let place = |place: &Value| place.as_i64().map(|place| if place < 0 { place + n_layers } else { place });
    let places: Option<BTreeSet<i64>> = at.as_array().and_then(|places| places.iter().map(place).collect());
    if places.as_ref() == Some(&scalar) || (is_all && scalar.len() == config.n_layers) {
        return Ok(());
    }
    Err(said.contradicted("slstm_at", &format!("sLSTM in the blocks {:?}", scalar.into_iter().collect::<Vec<_>>())))
}

fn expect_m_lstm(said: &Said, config: &CheckedConfig, file: &Foreign<'_>, block: &str) -> Result<()> {
    let [heads, _] = file.shape(&format!("{block}xlstm.mlstm_cell.igate.weight"))?;
    let [_, _, taps] = file.shape(&format!("{block}xlstm.conv1d.conv.weight"))?;
    let [_, _, qkv_block] = file.shape(&format!("{block}xlstm.q_proj.weight"))?;
    let [inner, _] = file.blocks_of_rows(&format!("{block}xlstm.proj_up.weight"), 2)?;
    said.expect_size("mlstm_block.mlstm.num_heads", heads)?;
    said.expect_size("mlstm_block.mlstm.conv1d_kernel_size", taps)?;
    said.expect_size("mlstm_block.mlstm.qkv_proj_blocksize", qkv_block)?;
    // A key of the whole stack, which the library passes on to mLSTM blocks only.
    said.expect("bias", false)?;
    expect_width(said, "mlstm_block.mlstm", config.d_model, inner)
}

fn expect_s_lstm(said: &Said, config: &CheckedConfig, file: &Foreign<'_>, block: &str) -> Result<()> {
    let [heads, _, _] = file.shape(&format!("{block}xlstm.igate.weight"))?;
    let [_, _, taps] = if config.slstm_conv { file.shape(&format!("{block}xlstm.conv1d.conv.weight"))? } else { [0; 3] };
    said.expect_size("slstm_block.slstm.num_heads", heads)?;
    said.expect_size("slstm_block.slstm.conv1d_kernel_size", taps)?;
    said.expect("slstm_block.slstm.function", "slstm")?;
    said.expect("slstm_block.slstm.group_norm_weight", true)?;
    let feed_forward = "slstm_block.feedforward";
    match (said.get(feed_forward), config.ff) {
        (None, _) | (Some(Value::Null), FeedForwardKind::None) => Ok(()),
        (Some(Value::Null), _) => Err(said.contradicted(feed_forward, "a feed-forward part")),
        (Some(_), FeedForwardKind::None) => Err(said.contradicted(feed_forward, "no feed-forward part")),
        (Some(_), _) => {
            said.expect("slstm_block.feedforward.act_fn", "gelu")?;
            said.expect("slstm_block.feedforward.bias", false)?;
            let [_, inner] = file.shape(&format!("{block}ffn.proj_down.weight"))?;
            expect_width(said, feed_forward, config.d_model, inner)
        }
    }
}

/// Checks an inner width against what the library computes from `proj_factor` and its rounding.
fn expect_width(said: &Said, part: &str, d_model: usize, found: usize) -> Result<()> {
    let key = |name: &str| format!("{part}.{name}");
    let Some(factor) = said.number(&key("proj_factor"))? else { return Ok(()) };
    let multiple = said.number(&key("round_proj_up_to_multiple_of"))?.unwrap_or(ROUNDED_WIDTH);
    let is_up = said.get(&key("round_proj_up_dim_up")) != Some(&Value::Bool(false));
    let rounded = |width: f64| {
        let parts = width / multiple;
        multiple * if is_up { parts.ceil() } else { parts.floor() }
    };
    let width = factor * d_model as f64;
    // A ratio such as 8/3 written in decimal still means the exact ratio.
    if [width, width * (1.0 - 1e-8)].into_iter().any(|width| rounded(width) == found as f64) {
        return Ok(());
    }
    let made = rounded(width);
    Err(said.contradicted(&key("proj_factor"), &format!("an inner width of {found} where it makes {made} of {d_model}")))
}
