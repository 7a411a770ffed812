//! Layers: the contract of mixers, the mixers themselves, and the block around them.
//!
//! Letters in shapes: `B` batch, `T` time, `D` model width (`d_model`), `E` inner width (`d_inner`, the paper's d_h).

mod aaren;
mod attention;
mod bidirectional;
mod block;
mod channel_mix;
mod conv;
mod feed_forward;
mod gilr;
mod gru;
mod hidden;
mod init;
mod kernel_names;
pub(crate) mod linear;
mod linear_attention;
mod lstm;
mod m_lstm;
mod mamba;
mod min_gru;
mod min_lstm;
mod mixer;
mod mode;
mod norm;
pub(crate) mod places;
mod recurrent;
mod ret_net;
mod rwkv4;
mod s_lstm;
mod state;
mod token_shift;

pub use aaren::{Aaren, AarenConfig, AarenState};
pub use attention::{Attention, AttentionConfig, AttentionState};
pub use bidirectional::Bidirectional;
pub use block::{Block, BlockState, FeedForwardPart};
pub use channel_mix::ChannelMix;
pub use conv::{CausalConv, Depthwise, KERNEL_SIZE, Window};
pub use feed_forward::FeedForward;
pub use gilr::{Gilr, GilrConfig};
pub use gru::{Gru, GruConfig};
pub use hidden::Hidden;
pub use init::Initializer;
pub use linear_attention::{LinearAttention, LinearAttentionConfig, LinearAttentionState};
pub use lstm::{Lstm, LstmConfig, LstmState};
pub use m_lstm::{MLstm, MLstmConfig, MLstmState};
pub use mamba::{Mamba, MambaConfig, MambaState};
pub use min_gru::{MinGru, MinGruConfig};
pub use min_lstm::{MinLstm, MinLstmConfig};
pub use mixer::{AnyMixer, AnyState, Mixer};
pub use mode::Mode;
pub use norm::{BatchNorm, LayerNorm, Norm, RmsNorm};
pub use recurrent::Recurrent;
pub use ret_net::{RetNet, RetNetConfig, RetNetState};
pub use rwkv4::{Rwkv4, Rwkv4Config, Rwkv4State};
pub use s_lstm::{HeadNorm, Headwise, SLstm, SLstmConfig, SLstmState};
pub use state::{State, StateZip};
