//! Layers: the contract of mixers, the mixers themselves, and the block around them.
//!
//! Letters in shapes: `B` batch, `T` time, `D` model width (`d_model`), `E` inner width (`d_inner`, the paper's d_h).

mod bidirectional;
mod block;
mod conv;
mod decay_min_gru;
mod delta;
mod feed_forward;
mod gru;
mod hidden;
mod highway;
mod init;
mod kernel_names;
pub(crate) mod linear;
mod lstm;
mod min_gru;
mod min_lstm;
mod mixer;
mod mode;
mod norm;
mod recurrent;
mod signed_min_gru;
mod state;

pub use bidirectional::Bidirectional;
pub use block::{Block, BlockState};
pub use conv::{CausalConv, Depthwise, KERNEL_SIZE, Window};
pub use decay_min_gru::{DecayMinGru, DecayMinGruConfig};
pub use delta::{Delta, DeltaConfig, DeltaState};
pub use feed_forward::FeedForward;
pub use gru::{Gru, GruConfig};
pub use hidden::Hidden;
pub use init::Initializer;
pub use lstm::{Lstm, LstmConfig, LstmState};
pub use min_gru::{MinGru, MinGruConfig};
pub use min_lstm::{MinLstm, MinLstmConfig};
pub use mixer::{AnyMixer, AnyState, Mixer};
pub use mode::Mode;
pub use norm::{BatchNorm, LayerNorm, Norm, RmsNorm};
pub use recurrent::Recurrent;
pub use signed_min_gru::{SignedMinGru, SignedMinGruConfig};
pub use state::{State, StateZip};
