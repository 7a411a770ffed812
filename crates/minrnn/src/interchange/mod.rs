//! Reads and writes weights under the names of other libraries.
//!
//! | format | library | what a file holds |
//! |---|---|---|
//! | [`MinGruPytorch`](Format::MinGruPytorch) | lucidrains/minGRU-pytorch, `minLM` and the older `minGRULM` | a language model of minGRU or minLSTM |
//! | [`MinRnns`](Format::MinRnns) | BorealisAI/minRNNs, `Model` over tokens | the same with the switches of the paper's release |
//! | [`MambaHf`](Format::MambaHf) | Hugging Face transformers, `MambaForCausalLM` | a language model of Mamba |
//! | [`Xlstm`](Format::Xlstm) | NX-AI's xlstm, `xLSTMLMModel` | a language model of mLSTM and sLSTM blocks |
//! | [`NanoGpt`](Format::NanoGpt) | karpathy/nanoGPT, `GPT` | a Transformer |
//! | [`TorchGru`](Format::TorchGru), [`TorchLstm`](Format::TorchLstm) | `torch.nn.GRU`, `torch.nn.LSTM` | the recurrent layers alone |
//!
//! A format is one file: the configuration implied by a file's shapes, what the format cannot represent, and a table of rules that is read
//! in both directions. Files are safetensors of f32, f16 or bf16, one or several with an index ([`ForeignModel`]), and written as f32; a
//! state dictionary is converted by `save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, path)`. If a
//! library has a folder for a model, [`export_folder`] writes all of it.
//!
//! Every number is kept as it is, except for two differences of form: a gain that one side stores as g and the other as g − 1 (rounded to
//! 2⁻²⁴; exact for g between ½ and 2 that the library stores), and a tensor that the other library lacks, such as a bias, which is zero
//! here and must be zero to be exported.

mod folder;
mod foreign;
mod form;
mod mamba_hf;
mod min_gru_pytorch;
mod min_rnns;
mod nano_gpt;
mod rule;
mod said;
mod settings;
mod table;
mod torch_recurrent;
mod xlstm;

use std::fmt;

use minrnn_kernels::choices;
use minrnn_model::{Candidate, CheckedConfig, ForgetFloor, MixerKind, ModelConfig, Pooling, Positions, Tensor, Weights, WiringKind};

use self::folder::Folder;
pub use self::folder::{ForeignModel, export_folder};
use self::foreign::{Foreign, Side};
pub use self::form::Form;
pub use self::settings::Settings;
use self::table::Table;
use crate::counted::counted;
use crate::{Error, Result};

/// A tensor and its name.
pub type NamedTensor = (String, Tensor);

choices! {
    /// The names and layouts of another library.
    #[non_exhaustive]
    Format, "format" {
        /// `minLM` or `minGRULM` of lucidrains/minGRU-pytorch.
        #[default]
        MinGruPytorch = "min-gru-pytorch",
        /// `Model` of BorealisAI/minRNNs.
        MinRnns = "min-rnns",
        /// `MambaForCausalLM` of transformers.
        MambaHf = "mamba-hf",
        /// `xLSTMLMModel` of NX-AI's xlstm.
        Xlstm = "xlstm",
        /// The model of karpathy/nanoGPT.
        NanoGpt = "nano-gpt",
        /// Layers of `torch.nn.GRU`.
        TorchGru = "torch-gru",
        /// Layers of `torch.nn.LSTM`.
        TorchLstm = "torch-lstm",
    }
}

/// What there is to know about a format.
struct Layout {
    /// The configuration of the model in a file.
    config: fn(&Foreign<'_>, &Settings) -> Result<ModelConfig>,
    /// Refuses a model that the format cannot hold.
    check: fn(&ModelConfig) -> Result<()>,
    /// Which tensor is which; the other side may have several forms for the same model.
    table: fn(&CheckedConfig, &Side<'_>) -> Result<Table>,
    /// How the library stores a whole model, if it has its own way.
    folder: Option<&'static Folder>,
}

impl Layout {
    /// Refuses a model that the format cannot hold; no format holds a wiring around another mixer, and whole models must be language
    /// models.
    fn expect_to_hold(&self, config: &ModelConfig, format: Format) -> Result<()> {
        demand(format, "wiring", config.wiring, WiringKind::None)?;
        if !format.is_part() {
            expect_language_model(format, config)?;
            demand(format, "pooling", config.pooling, Pooling::Last)?;
        }
        (self.check)(config)
    }
}

impl Format {
    /// Whether a file holds only the mixers of a model. Its configuration, and all other tensors, then come from elsewhere.
    pub fn is_part(self) -> bool {
        matches!(self, Self::TorchGru | Self::TorchLstm)
    }

    /// The configuration of the model in `weights`: what its shapes imply, and `settings` for what they leave open.
    ///
    /// # Errors
    /// When a required tensor is missing or has an impossible shape, when a required setting is not given, or when one contradicts the
    /// file.
    pub fn config(self, weights: &Weights, settings: &Settings) -> Result<ModelConfig> {
        let config = (self.layout().config)(&Foreign::new(weights), settings)?;
        config.validate().map_err(|error| Error::malformed(weights.path(), error.to_string()))?;
        settings.expect_in(&config, weights.path())?;
        Ok(config)
    }

    fn layout(self) -> Layout {
        match self {
            Self::MinGruPytorch => min_gru_pytorch::LAYOUT,
            Self::MinRnns => min_rnns::LAYOUT,
            Self::MambaHf => mamba_hf::LAYOUT,
            Self::Xlstm => xlstm::LAYOUT,
            Self::NanoGpt => nano_gpt::LAYOUT,
            Self::TorchGru => torch_recurrent::GRU,
            Self::TorchLstm => torch_recurrent::LSTM,
        }
    }
}

/// The tensors of a minrnn model from a file of `format`; all of `weights` are taken out. For a [part](Format::is_part) they are those of
/// the mixers, except the projections back to `d_model`.
///
/// # Errors
/// When the model of `config` is not one of this format, or a tensor is missing, surplus or of the wrong shape.
pub fn import(format: Format, weights: &mut Weights, config: &ModelConfig) -> Result<Vec<NamedTensor>> {
    let config = &config.checked()?;
    let layout = format.layout();
    layout.expect_to_hold(config, format)?;
    let table = (layout.table)(config, &Side::Import(Foreign::new(weights)))?;
    let tensors = table.import(weights)?;
    weights.expect_empty()?;
    Ok(tensors)
}

/// The tensors of a file of `format` from `weights`, a minrnn model's; everything that the format holds is taken out of `weights`. `form`
/// is that of the file the model came from, as far as the model still fits it, or the default.
///
/// # Errors
/// When the format cannot represent the model of `config`, or a tensor is missing, surplus or of the wrong shape, or does not have the
/// values the format assumes.
pub fn export(format: Format, weights: &mut Weights, config: &ModelConfig, form: Form) -> Result<Vec<NamedTensor>> {
    let config = &config.checked()?;
    let layout = format.layout();
    layout.expect_to_hold(config, format)?;
    let tensors = (layout.table)(config, &Side::Export(form.that_holds(weights)?))?.export(weights, format)?;
    if !format.is_part() {
        weights.expect_empty()?;
    }
    Ok(tensors)
}

/// Refuses a model that does not predict the token after those that it reads.
fn expect_language_model(format: Format, config: &ModelConfig) -> Result<()> {
    if config.is_language_model() {
        return Ok(());
    }
    let found = match config.input_width {
        0 => format!("has a head of {} of its own", counted(config.n_outputs, "output")),
        width => format!("reads {} a step", counted(width, "number")),
    };
    Err(Error::Config(format!("a file of format {format} holds models that read tokens and predict the next one, and this one {found}")))
}

/// Refuses a model whose blocks do not all have the same one of these mixers.
fn demand_one_mixer(format: Format, config: &ModelConfig, expected: &[MixerKind]) -> Result<()> {
    let kinds = config.mixer_kinds();
    kinds.iter().try_for_each(|&kind| demand_one_of(format, "mixer", kind, expected))?;
    match kinds[..] {
        [first, other, ..] => demand(format, "mixer", other, first),
        _ => Ok(()),
    }
}

/// Refuses what the minimal cells of other libraries do not have: an epsilon, positions, layers without biases, gates and candidates other than the paper's.
fn demand_plain(format: Format, config: &ModelConfig) -> Result<()> {
    demand(format, "rms_eps", config.rms_eps, 0.0)?;
    demand(format, "positions", config.positions, Positions::None)?;
    demand(format, "bias", config.bias, true)?;
    demand(format, "highway", config.highway, false)?;
    demand(format, "forget_floor", config.forget_floor, ForgetFloor::None)?;
    demand(format, "candidate", config.candidate, Candidate::Positive)
}

/// Refuses `found` unless it is `expected`, the only value that the format holds.
fn demand<T: PartialEq + fmt::Display>(format: Format, key: &str, found: T, expected: T) -> Result<()> {
    demand_one_of(format, key, found, &[expected])
}

/// Refuses `found` unless it is one of `expected`.
fn demand_one_of<T: PartialEq + fmt::Display>(format: Format, key: &str, found: T, expected: &[T]) -> Result<()> {
    if expected.contains(&found) {
        return Ok(());
    }
    let expected: Vec<_> = expected.iter().map(ToString::to_string).collect();
    let expected = expected.join(" or ");
    Err(Error::Config(format!("a file of format {format} holds models with {key} = {expected}, found {key} = {found}")))
}
