//! mLSTM:
//!
//! ```text
//! [u, ζ] = W_in x      c̄ = SiLU(conv4(u))      q, k = W c̄      v = W u      ĩ, f̃ = W [q, k, v] + b      m⁺ = max(ln f + m, ĩ)
//! C ← e^(ln f + m − m⁺) C + e^(ĩ − m⁺) k vᵀ/√e     h = Cᵀ q / η      (norm of each head of h + s ⊙ c̄) ⊙ SiLU(ζ)
//! ```
//!
//! After the in-projection sessions are split over the workers; each runs its own token by token, for a prompt as for a step.

use alloc::vec::Vec;

use minrnn_kernels::layer_norm::EPS;
use minrnn_kernels::m_lstm::{self, EMPTY_M};
use minrnn_kernels::weight_matrix::WeightMatrix;
use minrnn_kernels::{Out, head_norm, skip_gate};
use minrnn_model::MLSTM_BLOCK;

use super::Mixer;
use crate::block_diagonal::BlockDiagonal;
use crate::conv::{Conv, Depthwise};
use crate::linear::write;
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result};

/// A session keeps the window `[K − 1, E]`, then C, n and m of every head.
#[derive(Debug, Clone)]
pub(super) struct MLstm {
    heads: usize,
    /// D → 2E, rows u then ζ.
    in_proj: WeightMatrix,
    conv: Depthwise,
    /// Of q, k, v.
    maps: [BlockDiagonal; 3],
    /// Of the input gates, then the forget gates `[3E, 2NH]` by columns, and their biases.
    gates: BlockDiagonal,
    gate_bias: Vec<f32>,
    /// w; the gain is 1 + w.
    norm: Vec<f32>,
    skip: Vec<f32>,
}

impl MLstm {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let (d, e, heads) = (config.d_model, config.mlstm_inner(), config.n_heads);
        let in_proj = source.matrix(&join(name, "in_proj.weight"), 2 * e, d)?;
        let conv = Depthwise::read(source, &join(name, "conv1d"), e)?;
        let mut map = |map: &str| BlockDiagonal::read(source, &join(name, map), [e / MLSTM_BLOCK, MLSTM_BLOCK, MLSTM_BLOCK]);
        let maps = [map("q_proj")?, map("k_proj")?, map("v_proj")?];
        let (mut rows, mut gate_bias) = (Vec::new(), Vec::new());
        for gate in ["igate", "fgate"] {
            let gate = join(name, gate);
            rows.extend(source.vector(&join(&gate, "weight"), &[heads, 3 * e])?);
            gate_bias.extend(source.vector(&join(&gate, "bias"), &[heads])?);
        }
        Ok(Self {
            heads,
            in_proj,
            conv,
            maps,
            gates: BlockDiagonal::new(&rows, 2 * heads, 3 * e),
            gate_bias,
            norm: source.vector(&join(name, "outnorm.weight"), &[e])?,
            skip: source.vector(&join(name, "learnable_skip"), &[e])?,
        })
    }

    /// Numbers that a token needs: c̄, q, k, v, h, its norm, and the gates.
    fn scratch(&self) -> usize {
        6 * self.norm.len() + 2 * self.heads
    }

    /// `up` is [u, ζ].
    fn token(&self, pass: &Pass<'_>, memory: &mut [f32], up: &[f32], scratch: &mut [f32], y: &mut [f32]) {
        let (e, heads, level) = (self.norm.len(), self.heads, pass.level);
        let head = e / heads;
        let (u, z) = up.split_at(e);
        let (window, rest) = memory.split_at_mut(Conv::state_len(e));
        let (c, rest) = rest.split_at_mut(e * head);
        let (n, m) = rest.split_at_mut(e);
        let (gated, rest) = scratch.split_at_mut(e);
        let (qkv, rest) = rest.split_at_mut(3 * e);
        let (h, rest) = rest.split_at_mut(e);
        let (normed, gates) = rest.split_at_mut(e);
        self.conv.step_silu(pass, window, u, gated);
        for ((map, out), x) in self.maps.iter().zip(qkv.chunks_exact_mut(e)).zip([&*gated, gated, u]) {
            map.row(level, x, out);
        }
        self.gates.row(level, qkv, gates);
        gates.iter_mut().zip(&self.gate_bias).for_each(|(gate, bias)| *gate += bias);
        for i in 0..heads {
            let part = i * head..(i + 1) * head;
            let of = |x: usize| &qkv[x * e..][part.clone()];
            let c = &mut c[i * head * head..][..head * head];
            let pair = [gates[i], gates[heads + i]];
            m_lstm::step(level, [of(0), of(1), of(2)], pair, c, &mut n[part.clone()], &mut m[i], &mut h[part.clone()]);
        }
        head_norm::forward(1, heads, head_norm::Inputs { x: h, weight: &self.norm, eps: EPS }, Out::new(normed));
        skip_gate::forward(1, skip_gate::Inputs { y: normed, c: gated, skip: &self.skip, z }, Out::new(y));
    }
}

impl Mixer for MLstm {
    fn width(&self) -> usize {
        self.norm.len()
    }

    fn out_bias(&self) -> bool {
        false
    }

    fn init_memory(&self, memory: &mut [f32]) {
        let (rest, m) = memory.split_at_mut(memory.len() - self.heads);
        rest.fill(0.0);
        m.fill(EMPTY_M);
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (e, rows) = (self.norm.len(), pass.rows);
        let [up, scratch, ..] = &mut buffers.recurrent;
        let up = room(up, rows * 2 * e);
        write(pass, &self.in_proj, &buffers.normed, room(&mut buffers.product, rows * 2 * e), up);
        let up = Shared::new(up, 2 * e);
        let width = self.scratch();
        let scratch = Shared::new(room(scratch, rows * width), width);
        let hidden = Shared::new(room(&mut buffers.hidden, rows * e), e);
        pass.workers.split(pass.spans.len(), 1, rows * 2 * e * e / self.heads, |_, range| {
            for span in &pass.spans[range] {
                // SAFETY: pieces have sessions of their own, and so memories and rows.
                let memory = unsafe { memory.whole(span.session) };
                for row in span.first..span.first + span.len {
                    // SAFETY: a session's rows belong to the piece that has the session.
                    let (up, scratch, y) = unsafe { (up.part(row, 0..2 * e), scratch.part(row, 0..width), hidden.part(row, 0..e)) };
                    self.token(pass, memory, up, scratch, y);
                }
            }
        });
    }
}
