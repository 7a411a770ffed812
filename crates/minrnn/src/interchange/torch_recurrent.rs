//! `torch.nn.GRU` and `torch.nn.LSTM`: the recurrent layers of a model.
//!
//! A stack, `nn.GRU(D, D, num_layers)`, names its layers `weight_ih_l0`, `weight_ih_l1` and so on; it can only hold layers whose input and
//! output widths are equal. Otherwise a file is a list of single layers, `nn.ModuleList` of `nn.GRU(D, E)`, with names such as
//! `0.weight_ih_l0`. The order of the gates and both biases are ours; without biases they are zero.

use minrnn_model::{CheckedConfig, GruForm, InitialState, MixerKind, ModelConfig};

use super::foreign::{Foreign, Side};
use super::rule::Constant;
use super::table::Table;
use super::{Format, Layout, Settings, demand, demand_one_mixer};
use crate::{Error, Result};

pub(super) const GRU: Layout = Layout { config, check: check_gru, table: gru, folder: None };
pub(super) const LSTM: Layout = Layout { config, check: check_lstm, table: lstm, folder: None };

fn config(_: &Foreign<'_>, _: &Settings) -> Result<ModelConfig> {
    Err(Error::Config("the file holds only recurrent layers; import them into a minrnn model that has such layers".to_owned()))
}

fn check_gru(config: &ModelConfig) -> Result<()> {
    check(Format::TorchGru, config, MixerKind::Gru)?;
    demand(Format::TorchGru, "gru_form", config.gru_form, GruForm::Torch)
}

fn check_lstm(config: &ModelConfig) -> Result<()> {
    check(Format::TorchLstm, config, MixerKind::Lstm)
}

fn check(format: Format, config: &ModelConfig, mixer: MixerKind) -> Result<()> {
    demand_one_mixer(format, config, &[mixer])?;
    demand(format, "initial_state", config.initial_state, InitialState::Zero)
}

fn gru(config: &CheckedConfig, side: &Side<'_>) -> Result<Table> {
    table(config, side, 3)
}

fn lstm(config: &CheckedConfig, side: &Side<'_>) -> Result<Table> {
    table(config, side, 4)
}

fn table(config: &CheckedConfig, side: &Side<'_>, gates: usize) -> Result<Table> {
    let (d, e) = (config.d_model, config.d_inner());
    let is_stack = side.has("weight_ih_l0", d == e || config.n_layers == 1);
    let mut table = Table::default();
    for i in 0..config.n_layers {
        let (list, layer) = if is_stack { (String::new(), i) } else { (format!("{i}."), 0) };
        let has_bias = side.has(&format!("{list}bias_ih_l{layer}"), true);
        table.below(format!("backbone.blocks.{i}.mixer."), list);
        table.same("in_proj.weight", &format!("weight_ih_l{layer}"), [gates * e, d]);
        table.same("recurrent.weight", &format!("weight_hh_l{layer}"), [gates * e, e]);
        for (ours, theirs) in [("in_proj.bias", "bias_ih"), ("recurrent.bias", "bias_hh")] {
            match has_bias {
                true => table.same(ours, &format!("{theirs}_l{layer}"), [gates * e]),
                false => table.fixed(ours, [gates * e], Constant::Zeros),
            }
        }
    }
    Ok(table)
}
