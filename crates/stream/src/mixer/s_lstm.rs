//! sLSTM:
//!
//! ```text
//! ĩ, f̃ = W SiLU(conv4(x)) + R h + b      z̃, õ = W x + R h + b      m⁺ = max(ln f + m, ĩ)
//! c ← e^(ln f + m − m⁺) c + e^(ĩ − m⁺) tanh z̃     n ← e^(ln f + m − m⁺) n + e^(ĩ − m⁺)     h ← σ(õ) c / n      y = norm of each head of h
//! ```
//!
//! Sessions are split over the workers; each runs its own token by token, for a prompt as for a step.

use alloc::vec::Vec;

use minrnn_kernels::layer_norm::EPS;
use minrnn_kernels::s_lstm::{self, EMPTY_M};
use minrnn_kernels::{Out, head_norm, s_lstm::ForgetGate};

use super::{Mixer, Output};
use crate::block_diagonal::BlockDiagonal;
use crate::conv::Depthwise;
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result};

/// A session keeps the window of the convolution, if there is one, `[K − 1, D]`, then h, c, n, m `[D]`.
#[derive(Debug, Clone)]
pub(super) struct SLstm {
    heads: usize,
    forget: ForgetGate,
    conv: Option<Depthwise>,
    /// Of the gates i, f, z, o.
    maps: [BlockDiagonal; 4],
    /// Rows i, f, z, o of each head.
    recurrent: BlockDiagonal,
    /// `[4D]`.
    bias: Vec<f32>,
    /// w; the gain is 1 + w.
    norm: Vec<f32>,
}

impl SLstm {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let (d, heads) = (config.d_model, config.n_heads);
        let head = d / heads;
        let conv = if config.slstm_conv { Some(Depthwise::read(source, &join(name, "conv1d"), d)?) } else { None };
        let mut map = |gate: &str| BlockDiagonal::read(source, &join(name, gate), [heads, head, head]);
        let maps = [map("igate")?, map("fgate")?, map("zgate")?, map("ogate")?];
        Ok(Self {
            heads,
            forget: config.slstm_forget_gate,
            conv,
            maps,
            recurrent: BlockDiagonal::read(source, &join(name, "recurrent"), [heads, 4 * head, head])?,
            bias: source.vector(&join(name, "bias"), &[4 * d])?,
            norm: source.vector(&join(name, "group_norm.weight"), &[d])?,
        })
    }

    fn token(&self, pass: &Pass<'_>, memory: &mut [f32], x: &[f32], scratch: &mut [f32], y: &mut [f32]) {
        let d = self.norm.len();
        let (window, state) = memory.split_at_mut(memory.len() - 4 * d);
        let (gated, rest) = scratch.split_at_mut(d);
        let (preact, product) = rest.split_at_mut(4 * d);
        let gated = match &self.conv {
            Some(conv) => {
                conv.step_silu(pass, window, x, gated);
                &*gated
            }
            None => x,
        };
        for ((map, preact), x) in self.maps.iter().zip(preact.chunks_exact_mut(d)).zip([gated, gated, x, x]) {
            map.row(pass.level, x, preact);
        }
        let [h, c, n, m] = parts(state, d);
        self.recurrent.row(pass.level, h, product);
        s_lstm::step(pass.level, self.heads, self.forget, preact, product, &self.bias, [h, c, n, m]);
        let [h, ..] = parts(state, d);
        head_norm::forward(1, self.heads, head_norm::Inputs { x: h, weight: &self.norm, eps: EPS }, Out::new(y));
    }
}

/// h, c, n, m.
fn parts(state: &mut [f32], d: usize) -> [&mut [f32]; 4] {
    let (hc, nm) = state.split_at_mut(2 * d);
    let ((h, c), (n, m)) = (hc.split_at_mut(d), nm.split_at_mut(d));
    [h, c, n, m]
}

impl Mixer for SLstm {
    fn width(&self) -> usize {
        self.norm.len()
    }

    fn output(&self) -> Output {
        Output::Hidden
    }

    fn init_memory(&self, memory: &mut [f32]) {
        let (rest, m) = memory.split_at_mut(memory.len() - self.norm.len());
        rest.fill(0.0);
        m.fill(EMPTY_M);
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (d, rows) = (self.norm.len(), pass.rows);
        let normed = &buffers.normed[..rows * d];
        let hidden = Shared::new(room(&mut buffers.hidden, rows * d), d);
        let scratch = Shared::new(room(&mut buffers.product, rows * 9 * d), 9 * d);
        pass.workers.split(pass.spans.len(), 1, rows * 8 * d * d / self.heads, |_, range| {
            for span in &pass.spans[range] {
                // SAFETY: pieces have sessions of their own, and so memories and rows.
                let memory = unsafe { memory.whole(span.session) };
                for row in span.first..span.first + span.len {
                    // SAFETY: a session's rows belong to the piece that has the session.
                    let (scratch, y) = unsafe { (scratch.part(row, 0..9 * d), hidden.part(row, 0..d)) };
                    self.token(pass, memory, &normed[row * d..][..d], scratch, y);
                }
            }
        });
    }
}
