//! `MambaForCausalLM` of Hugging Face transformers (`state-spaces/mamba-130m-hf` and its kin).
//!
//! Its layers have our names. Its RMSNorms keep the gain, and have an ε that is not in the file: 1e-5, the library's default, unless
//! `rms_eps` is set or a `config.json` beside it specifies it. Filters may be shorter than ours (`conv_kernel`) and lack the bias
//! (`use_conv_bias`). The head shares the embedding's matrix if the file has no `lm_head.weight`, or one with the same numbers.

use minrnn_model::{CONV_TAPS, CheckedConfig, FeedForwardKind, InitialState, MixerKind, ModelConfig, NormKind, Positions, ScanKind};

use serde_json::{Value, json};

use super::folder::Folder;
use super::foreign::{Foreign, Side};
use super::rule::{Constant, Map};
use super::said::Said;
use super::table::Table;
use super::{Form, Format, Layout, Settings, demand, demand_one_mixer};
use crate::{Error, Result};

pub(super) const LAYOUT: Layout = Layout { config, check, table, folder: Some(&FOLDER) };

const FORMAT: Format = Format::MambaHf;
/// `layer_rms_epsilon` of transformers' configuration.
const RMS_EPS: f64 = 1e-5;

fn config(file: &Foreign<'_>, settings: &Settings) -> Result<ModelConfig> {
    let base = settings.config()?;
    let [vocab_size, d_model] = file.shape("backbone.embeddings.weight")?;
    let [d_inner, d_state] = file.shape("backbone.layers.0.mixer.A_log")?;
    let [_, rank] = file.shape("backbone.layers.0.mixer.dt_proj.weight")?;
    for projection in ["in_proj", "out_proj"] {
        let bias = format!("backbone.layers.0.mixer.{projection}.bias");
        if file.has(&bias) {
            let problem = "but the projections of our Mamba have none; models made with use_bias = False can be read";
            return Err(file.wrong(format!("tensor '{bias}' is a bias, {problem}")));
        }
    }
    Ok(ModelConfig {
        mixer: MixerKind::Mamba,
        mixers: Vec::new(),
        vocab_size,
        d_model,
        d_state,
        dt_rank: if rank == d_model.div_ceil(16) { 0 } else { rank },
        expansion: d_inner as f64 / d_model as f64,
        n_layers: file.layers("backbone.layers."),
        conv: false,
        ff: FeedForwardKind::None,
        norm: NormKind::Rms,
        rms_eps: if settings.has("rms_eps") { base.rms_eps } else { RMS_EPS },
        tie_embeddings: file.repeats("backbone.embeddings.weight", "lm_head.weight"),
        initial_state: InitialState::Zero,
        positions: Positions::None,
        scan: ScanKind::Linear,
        ..base
    })
}

fn check(config: &ModelConfig) -> Result<()> {
    demand_one_mixer(FORMAT, config, &[MixerKind::Mamba])?;
    demand(FORMAT, "conv", config.conv, false)?;
    demand(FORMAT, "ff", config.ff, FeedForwardKind::None)?;
    demand(FORMAT, "norm", config.norm, NormKind::Rms)?;
    demand(FORMAT, "positions", config.positions, Positions::None)
}

fn table(config: &CheckedConfig, side: &Side<'_>) -> Result<Table> {
    let (v, d, e, n, r) = (config.vocab_size, config.d_model, config.d_inner(), config.d_state, config.step_rank());
    let mut table = Table::default();
    table.same("embedding.weight", "backbone.embeddings.weight", [v, d]);
    for i in 0..config.n_layers {
        let layer = format!("backbone.layers.{i}.");
        table.below(format!("backbone.blocks.{i}."), layer.clone());
        table.pair("mixer_norm.gamma", "norm.weight", [d], Map::Gain);
        table.below(format!("backbone.blocks.{i}.mixer."), format!("{layer}mixer."));
        table.same("in_proj.weight", "in_proj.weight", [2 * e, d]);
        let taps = side.taps(&format!("{layer}mixer.conv1d.weight"), CONV_TAPS)?;
        table.pair("conv1d.weight", "conv1d.weight", [e, 1, CONV_TAPS], Map::LastTaps(taps));
        match side.has_conv_bias(&format!("{layer}mixer.conv1d.bias")) {
            true => table.same("conv1d.bias", "conv1d.bias", [e]),
            false => table.fixed("conv1d.bias", [e], Constant::Zeros),
        }
        table.same("x_proj.weight", "x_proj.weight", [r + 2 * n, e]);
        table.linear("dt_proj", "dt_proj", e, r);
        table.same("A_log", "A_log", [e, n]);
        table.same("D", "D", [e]);
        table.same("out_proj.weight", "out_proj.weight", [d, e]);
    }
    table.below("", "");
    table.pair("backbone.final_norm.gamma", "backbone.norm_f.weight", [d], Map::Gain);
    table.head("lm_head.weight", v, d, config.tie_embeddings);
    Ok(table)
}

const FOLDER: Folder = Folder {
    config: described,
    others: &[("generation_config.json", "{\n  \"do_sample\": true\n}\n")],
    settings,
    expect,
    library: "transformers",
    loading: r#"
import torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("model")
with torch.no_grad():
    logits = model(ids).logits
"#,
};

/// The ε written for our norm without ε, which has a floor instead: it matters only where that floor does.
const LEAST_EPS: f64 = 1e-30;

/// `MambaConfig`.
fn described(config: &CheckedConfig, form: Form) -> Result<Value> {
    if config.expansion.fract() != 0.0 {
        let found = config.expansion;
        let problem = "transformers' MambaConfig has a whole number for expand";
        return Err(Error::Config(format!(
            "{problem}, found expansion = {found}; write the tensors alone, to a file that ends in .safetensors"
        )));
    }
    Ok(json!({
        "architectures": ["MambaForCausalLM"], "model_type": "mamba", "dtype": "float32",
        "vocab_size": config.vocab_size, "hidden_size": config.d_model, "state_size": config.d_state, "num_hidden_layers": config.n_layers,
        "expand": config.expansion as u64, "intermediate_size": config.d_inner(), "time_step_rank": config.step_rank(),
        "conv_kernel": form.taps, "use_conv_bias": form.conv_bias, "use_bias": false, "hidden_act": "silu",
        "layer_norm_epsilon": config.rms_eps.max(LEAST_EPS), "tie_word_embeddings": config.tie_embeddings, "residual_in_fp32": true,
        "bos_token_id": null, "eos_token_id": null, "pad_token_id": null,
    }))
}

fn settings(said: &Said) -> Result<Vec<String>> {
    // The activation has a default.
    for (key, expected, default) in [("model_type", "mamba", "none"), ("hidden_act", "silu", "silu")] {
        let found = said.get(key).map_or(default, |found| found.as_str().unwrap_or("no text"));
        if found != expected {
            return Err(said.wrong(format!("it says {key} = {found}, expected {expected}; the model is not of format {FORMAT}")));
        }
    }
    let Some(found) = said.get("layer_norm_epsilon") else { return Ok(Vec::new()) };
    let eps = found
        .as_f64()
        .filter(|eps| eps.is_finite() && *eps >= 0.0)
        .ok_or_else(|| said.wrong(format!("it says layer_norm_epsilon = {found}, expected a number of at least 0")))?;
    Ok(vec![format!("rms_eps={:?}", if eps == LEAST_EPS { 0.0 } else { eps })])
}

fn expect(said: &Said, config: &CheckedConfig, file: &Foreign<'_>) -> Result<()> {
    let (d, e, bias) = (config.d_model, config.d_inner(), "backbone.layers.0.mixer.conv1d.bias");
    let [_, _, taps] = file.shape("backbone.layers.0.mixer.conv1d.weight")?;
    for (key, found) in [
        ("vocab_size", config.vocab_size),
        ("hidden_size", d),
        ("state_size", config.d_state),
        ("num_hidden_layers", config.n_layers),
        ("intermediate_size", e),
        ("conv_kernel", taps),
    ] {
        said.expect_size(key, found)?;
    }
    if said.number("expand")?.is_some_and(|expand| (expand * d as f64).trunc() != e as f64) {
        return Err(said.contradicted("expand", &format!("an inner width of {e} for a width of {d}")));
    }
    // "auto" stands for the rank that transformers computes from the width.
    match said.get("time_step_rank").and_then(Value::as_str) {
        Some("auto") if config.step_rank() == d.div_ceil(16) => {}
        _ => said.expect_size("time_step_rank", config.step_rank())?,
    }
    match (said.get("use_conv_bias"), file.has(bias)) {
        (Some(Value::Bool(true)), false) => return Err(said.contradicted("use_conv_bias", &format!("no '{bias}'"))),
        (Some(Value::Bool(false)), true) => return Err(said.contradicted("use_conv_bias", &format!("'{bias}'"))),
        _ => {}
    }
    said.expect("use_bias", false)?;
    said.expect_head("tie_word_embeddings", config)
}
