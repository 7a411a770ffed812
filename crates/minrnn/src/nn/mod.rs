//! Layers: the contract of mixers, the mixers themselves, and the block around them.
//!
//! Letters in shapes: `B` batch, `T` time, `D` model width (`d_model`), `E` inner width (`d_inner`, the paper's d_h).

mod bidirectional;
mod block;
mod complex;
mod conv;
mod feed_forward;
mod gru;
mod h3;
mod hidden;
mod hippo;
mod hyena;
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
mod s4;
mod s4d;
mod state;
mod state_space;

pub use bidirectional::Bidirectional;
pub use block::{Block, BlockState};
pub use conv::{CausalConv, Depthwise, KERNEL_SIZE, Window};
pub use feed_forward::FeedForward;
pub use gru::{Gru, GruConfig};
pub use h3::{H3, H3Config, H3State, Shift};
pub use hidden::Hidden;
pub use hyena::{Filter, Hyena, HyenaConfig, HyenaState};
pub use init::Initializer;
pub use lstm::{Lstm, LstmConfig, LstmState};
pub use min_gru::{MinGru, MinGruConfig};
pub use min_lstm::{MinLstm, MinLstmConfig};
pub use mixer::{AnyMixer, AnyState, Mixer};
pub use mode::Mode;
pub use norm::{BatchNorm, LayerNorm, Norm, RmsNorm};
pub use recurrent::Recurrent;
pub use s4::{S4, S4Config};
pub use s4d::{S4d, S4dConfig};
pub use state::{State, StateZip};
pub use state_space::{StateSpace, StateSpaceState};
