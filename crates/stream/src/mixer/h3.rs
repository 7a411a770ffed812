//! H3: a shift and a diagonal state space between products of queries, keys and values:
//!
//! ```text
//! q, k, v = W x + b      k̄_t = Σ_l K_l ⊙ k_{t−l}      m_ab = k̄_a v_b      y_b = Σ_a q_a S4D(m_ab)
//! ```
//!
//! with a and b channels of one head. A session keeps the last N − 1 keys, oldest first, then the state spaces. Heads are independent, so
//! each worker runs its own through all tokens.

use super::Mixer;
use super::state_space::StateSpace;
use crate::linear::{LANES, Linear};
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::shift::Shift;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result};

#[derive(Debug, Clone)]
pub(super) struct H3 {
    /// D → 3D, rows query, key, value.
    in_proj: Linear,
    shift: Shift,
    /// Of all D · e products.
    ssm: StateSpace,
    /// e.
    head_width: usize,
}

impl H3 {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let (d, n, e) = (config.d_model, config.d_state, config.head_width);
        let in_proj = source.linear(&join(name, "in_proj"), 3 * d, d)?;
        let shift = Shift::read(source, &join(name, "shift_ssm"), d, n)?;
        let ssm = StateSpace::read(source, &join(name, "ssm"), [d / e, e * e], n, false)?;
        Ok(Self { in_proj, shift, ssm, head_width: e })
    }
}

impl Mixer for H3 {
    fn width(&self) -> usize {
        self.in_proj.weight.inputs()
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (n, d, e) = (pass.rows, self.width(), self.head_width);
        let [all, products, memories, _] = &mut buffers.recurrent;
        let all = room(all, n * 3 * d);
        self.in_proj.write(pass, n, &buffers.normed, room(&mut buffers.product, n * 3 * d), all);
        let all = &*all;
        let [products, memories] = [products, memories].map(|buffer| Shared::new(room(buffer, n * d * e), d * e));
        let hidden = Shared::new(room(&mut buffers.hidden, n * d), d);
        let cost = n * (self.shift.state_len() + self.ssm.state_len() + d);
        pass.workers.split(d / e, LANES.div_ceil(e), cost, |_, heads| {
            let (channels, pairs) = (heads.start * e..heads.end * e, heads.start * e * e..heads.end * e * e);
            let part = |row: usize, i: usize| &all[row * 3 * d + i * d..][channels.clone()];
            for &span in pass.spans {
                let rows = span.first..span.first + span.len;
                for row in rows.clone() {
                    let (key, value) = (part(row, 1), part(row, 2));
                    // SAFETY: pieces have heads of their own.
                    let products = unsafe { products.part(row, pairs.clone()) };
                    for (a, &key) in key.iter().enumerate() {
                        // SAFETY: pieces have heads of their own, and so channels of the kept keys.
                        let key = unsafe { self.shift.step(memory, span.session, channels.start + a, key) };
                        let values = &value[a / e * e..][..e];
                        products[a * e..][..e].iter_mut().zip(values).for_each(|(product, value)| *product = key * value);
                    }
                }
                let memory = (memory, self.shift.state_len());
                // SAFETY: pieces have heads of their own, and so state spaces.
                unsafe { self.ssm.forward(pass, memory, span, pairs.clone(), [products, memories]) };
                for row in rows {
                    let query = part(row, 0);
                    // SAFETY: pieces have heads of their own.
                    let (memories, hidden) = unsafe { (memories.part(row, pairs.clone()), hidden.part(row, channels.clone())) };
                    for (b, hidden) in hidden.iter_mut().enumerate() {
                        let head = b / e * e;
                        *hidden = (0..e).map(|a| query[head + a] * memories[(head + a) * e + b - head]).sum();
                    }
                }
            }
        });
    }
}
