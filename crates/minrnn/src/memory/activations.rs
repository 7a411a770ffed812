//! What the parts of a model keep for the backward pass, and hold for a moment, from its configuration alone.
//!
//! Letters: n = B · T steps of a batch; D `d_model`, E `d_inner`, H heads, N `d_state`, M the feed-forward width, V what is predicted. What
//! an operation keeps is what its `FusedOp::keeps` says (`ops/`); the layers that call it are in `nn/`. What operations of Burn keep
//! is said where they are used.

use minrnn_model::{CheckedConfig, FeedForwardKind, MixerKind, NormKind, Pooling, Positions, ScanKind, WiringKind};

use super::tape::{Operation, Tape};
use crate::Result;

/// Steps between two states that a backward pass of Mamba and of mLSTM begins from again.
const CHUNK: u128 = 64;
/// The same of RWKV-4.
const WKV_CHUNK: u128 = 128;
/// The same of the delta rule.
const DELTA_CHUNK: u128 = 16;
/// Query rows of a tile of attention.
const QUERIES: u128 = 64;

/// A batch that goes through a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Sequences B.
    pub batch_size: usize,
    /// Steps of each, T.
    pub seq_len: usize,
    /// Steps whose prediction is scored, of all B · T.
    pub scored: u128,
    /// Threads of the pool.
    pub threads: usize,
}

impl Sizes {
    /// B · T.
    pub fn steps(&self) -> u128 {
        self.batch_size as u128 * self.seq_len as u128
    }

    fn batch(&self) -> u128 {
        self.batch_size as u128
    }

    fn length(&self) -> u128 {
        self.seq_len as u128
    }
}

/// Block `layer` with the state it begins with and the one it ends with.
///
/// # Errors
/// When a width is not whole.
pub fn block(config: &CheckedConfig, layer: usize, sizes: Sizes) -> Result<Tape> {
    let d = config.d_model as u128;
    let mut part = Part::new(sizes);
    if config.conv {
        part.op(Op { keeps: &[d], reads: d, gives: d, aside: d, ..Op::default() });
        part.op(Op { keeps: &[d], reads: d, gives: d, aside: d, ..Op::default() });
        part.op(Op { reads: d, gives: d, aside: d, ..Op::default() });
    }
    // The residual stream is beside everything down to the sum.
    part.aside = d;
    part.norm(config, d);
    match config.wiring {
        WiringKind::None => part.mixer(config, layer)?,
        WiringKind::Mamba => {
            let e = config.d_inner() as u128;
            part.op(Op { keeps: &[d], reads: d, gives: 2 * e, ..Op::default() });
            part.op(Op { reads: 2 * e, gives: 2 * e, ..Op::default() });
            part.aside += e;
            part.conv_silu(e);
            part.mixer(&config.inside_wiring(), layer)?;
            part.aside -= e;
            // SiLU keeps ζ, the product y and SiLU(ζ).
            part.op(Op { keeps: &[e; 3], reads: 2 * e, gives: e, aside: e, ..Op::default() });
            part.op(Op { keeps: &[e], reads: e, gives: d, ..Op::default() });
        }
        WiringKind::H3 => {
            part.biased(d, 3 * d, true);
            // The views of queries, keys and values hold all three.
            part.op(Op { keeps: &[3 * d], reads: d, gives: d, aside: 2 * d, ..Op::default() });
            part.op(Op { keeps: &[d], reads: 2 * d, gives: d, aside: 3 * d, ..Op::default() });
            part.aside += 3 * d;
            part.mixer(&config.inside_wiring(), layer)?;
            part.aside -= 3 * d;
            part.op(Op { keeps: &[d], reads: 2 * d, gives: d, aside: 3 * d, ..Op::default() });
            part.biased(d, d, true);
        }
    }
    part.aside = 0;
    // Dropout and the sum.
    part.op(Op { reads: d, gives: d, aside: d, ..Op::default() });
    let kind = config.ff_at(layer);
    if kind != FeedForwardKind::None {
        part.aside = d;
        part.norm(config, d);
        part.feed_forward(kind, d, config.d_ff() as u128);
        part.aside = 0;
        part.op(Op { reads: d, gives: d, aside: d, ..Op::default() });
    }
    // Before the first step and after the last; a backward pass has the gradient of one.
    let cost = config.block_cost(layer);
    part.tape.held = sizes.batch() * (cost.carried(0) + cost.carried(sizes.seq_len));
    for past in &cost.past {
        part.tape.long.add(sizes.batch() * past.carried(sizes.seq_len));
    }
    part.tape.backward += sizes.batch() * cost.carried(0);
    Ok(part.tape)
}

/// Embedding or the map of values, places, and dropout on both.
pub fn embedding(config: &CheckedConfig, sizes: Sizes) -> Tape {
    let (d, width) = (config.d_model as u128, config.input_width as u128);
    let mut part = Part::new(sizes);
    match width {
        0 => part.op(Op { gives: d, ..Op::default() }),
        _ => part.biased(width, d, true),
    }
    if config.positions == Positions::Learned {
        part.op(Op { reads: d, gives: d, aside: d, ..Op::default() });
    }
    if config.dropout > 0.0 {
        part.op(Op { reads: d, gives: d, ..Op::default() });
    }
    part.tape
}

/// From the last block to the loss: the final norm, pooling, the comparison of pairs, and the head where steps are scored.
pub fn head(config: &CheckedConfig, sizes: Sizes) -> Tape {
    let (d, v) = (config.d_model as u128, config.outputs() as u128);
    let mut part = Part::new(sizes);
    part.norm(config, d);
    if config.pooling == Pooling::Mean {
        // Ones, and the sums; then the product keeps sums and shares.
        part.op(Op { keeps: &[d; 3], reads: 2 * d, gives: d, ..Op::default() });
        part.op(Op { keeps: &[1], reads: d, gives: d, ..Op::default() });
    }
    if config.pair_head {
        // What stood before, its copy at resets, the recurrence over it, and the four features with their products.
        part.op(Op { keeps: &[d; 4], reads: 2 * d, gives: d, aside: 2 * d, ..Op::default() });
        part.op(Op { keeps: &[d, d, 4 * d], reads: 4 * d, gives: d, aside: 4 * d, ..Op::default() });
        part.op(Op { keeps: &[d], reads: d, gives: d, ..Op::default() });
    }
    let (all, scored) = (sizes.steps(), sizes.scored);
    if scored < all {
        // Rows are chosen: the gradient of all is made of zeros and theirs.
        part.tape.push(Operation { reads: all * d, gives: scored * d, ..Operation::default() });
    }
    // The product keeps features, the loss logits. Their gradient follows; a bias is added to a copy.
    part.tape.keep(scored * d);
    part.tape.push(Operation { reads: scored * d, gives: scored * v, ..Operation::default() });
    if config.n_outputs > 0 {
        part.tape.push(Operation { reads: scored * v, gives: scored * v, ..Operation::default() });
    }
    part.tape.keep(scored * v);
    part.tape.push(Operation { reads: scored * v, gives: 2 * scored, ..Operation::default() });
    part.tape
}

/// An operation, numbers of one step.
#[derive(Debug, Clone, Copy, Default)]
struct Op<'a> {
    /// Each of the tensors it keeps.
    keeps: &'a [u128],
    reads: u128,
    gives: u128,
    aside: u128,
    /// Numbers of its workspaces in all.
    works: u128,
}

/// The operations of a part, by numbers of a step.
struct Part {
    sizes: Sizes,
    tape: Tape,
    /// Numbers of a step that wait beside the operations to come.
    aside: u128,
}

impl Part {
    fn new(sizes: Sizes) -> Self {
        Self { sizes, tape: Tape::default(), aside: 0 }
    }

    fn op(&mut self, Op { keeps, reads, gives, aside, works }: Op<'_>) {
        let n = self.sizes.steps();
        for numbers in keeps {
            self.tape.keep(n * numbers);
        }
        self.tape.push(Operation { reads: n * reads, gives: n * gives, aside: n * (aside + self.aside), works });
    }

    /// x W + b of a kept x.
    fn biased(&mut self, from: u128, to: u128, bias: bool) {
        self.op(Op { keeps: &[from], reads: from, gives: to, ..Op::default() });
        if bias {
            self.op(Op { reads: to, gives: to, ..Op::default() });
        }
    }

    /// x W + b of an x that an operation before it keeps.
    fn out(&mut self, from: u128, to: u128, bias: bool) {
        self.op(Op { reads: from, gives: to, ..Op::default() });
        if bias {
            self.op(Op { reads: to, gives: to, ..Op::default() });
        }
    }

    fn norm(&mut self, config: &CheckedConfig, d: u128) {
        let keeps = match config.norm {
            // Composed of operations of Burn: x, and what the last products read.
            NormKind::Rms if config.rms_eps > 0.0 => 3,
            NormKind::Rms | NormKind::Layer => 1,
            // The masked x, the centred one with its mask and its square, and what the last products read.
            NormKind::Batch => 5,
        };
        self.op(Op { keeps: &[d; 5][..keeps], reads: d, gives: d, ..Op::default() });
    }

    /// SiLU(DW(x)).
    fn conv_silu(&mut self, e: u128) {
        self.op(Op { keeps: &[e], reads: e, gives: e, ..Op::default() });
        self.op(Op { keeps: &[e], reads: e, gives: e, ..Op::default() });
    }

    fn feed_forward(&mut self, kind: FeedForwardKind, d: u128, m: u128) {
        match kind {
            FeedForwardKind::None => {}
            FeedForwardKind::Mlp | FeedForwardKind::Gated => {
                let halves = if kind == FeedForwardKind::Gated { 2 } else { 1 };
                self.op(Op { keeps: &[d], reads: d, gives: halves * m, ..Op::default() });
                // The activation's gradient is made whole before that of its input.
                self.op(Op { keeps: &[halves * m], reads: halves * m, gives: d, works: self.sizes.steps() * m, ..Op::default() });
            }
            FeedForwardKind::GeGlu | FeedForwardKind::SwiGlu => {
                self.op(Op { keeps: &[d], reads: d, gives: 2 * m, ..Op::default() });
                self.op(Op { keeps: &[2 * m], reads: 2 * m, gives: m, ..Op::default() });
                self.op(Op { keeps: &[m], reads: m, gives: d, ..Op::default() });
            }
            FeedForwardKind::ChannelMix => {
                self.op(Op { keeps: &[d], reads: d, gives: 2 * d, ..Op::default() });
                // relu(k), its square, r, and the two factors of the gate.
                self.op(Op { keeps: &[d], reads: d, gives: m, aside: d, ..Op::default() });
                self.op(Op { keeps: &[m], reads: m, gives: m, aside: d, ..Op::default() });
                self.op(Op { keeps: &[m], reads: m, gives: d, aside: d + m, ..Op::default() });
                self.op(Op { keeps: &[d; 3], reads: 2 * d, gives: d, aside: d, ..Op::default() });
            }
        }
    }

    /// A recurrence of E channels from the `inputs` that x W gives.
    fn recurrence(&mut self, d: u128, e: u128, inputs: u128, keeps: &[u128]) {
        self.op(Op { keeps: &[d], reads: d, gives: inputs, ..Op::default() });
        self.op(Op { keeps, reads: inputs, gives: e, ..Op::default() });
    }

    /// S6 of E channels behind what gives u, which is kept here and read twice.
    fn selective(&mut self, config: &CheckedConfig, e: u128, gated: bool) {
        let (n, r, z) = (config.d_state as u128, config.step_rank() as u128, if gated { e } else { 0 });
        self.op(Op { keeps: &[e], reads: e, gives: r + 2 * n, aside: z + e, ..Op::default() });
        self.op(Op { reads: r + 2 * n, gives: r + 2 * n, aside: z + e, ..Op::default() });
        self.op(Op { keeps: &[r], reads: r, gives: e, aside: z + e + 2 * n, ..Op::default() });
        let chunks = self.sizes.batch() * self.sizes.length().div_ceil(CHUNK) * n * e;
        self.tape.keep(chunks);
        self.op(Op { keeps: &[e, 2 * n, z], reads: 2 * e + 2 * n + z, gives: e, ..Op::default() });
    }

    /// What mixes the channels behind a sequence map that stands alone.
    fn output_mixing(&mut self, config: &CheckedConfig, d: u128) {
        if config.wiring != WiringKind::None {
            return;
        }
        self.op(Op { keeps: &[d], reads: d, gives: d, ..Op::default() });
        self.op(Op { keeps: &[d], reads: d, gives: 2 * d, ..Op::default() });
        self.op(Op { reads: 2 * d, gives: 2 * d, ..Op::default() });
        // A gate between a value and nothing, which is as large.
        self.op(Op { keeps: &[d; 3], reads: 3 * d, gives: d, ..Op::default() });
    }

    fn mixer(&mut self, config: &CheckedConfig, layer: usize) -> Result<()> {
        let kind = config.mixer_at(layer);
        let (d, e, h) = (config.d_model as u128, config.d_inner() as u128, config.n_heads.max(1) as u128);
        let (threads, length) = (self.sizes.threads as u128, self.sizes.length());
        match kind {
            MixerKind::MinGru | MixerKind::Gilr | MixerKind::MinLstm | MixerKind::SignedMinGru => {
                let inputs = if matches!(kind, MixerKind::MinGru | MixerKind::Gilr) { 2 * e } else { 3 * e };
                match config.scan {
                    // The logarithms are composed of operations of Burn: four sequences for each softplus, of which there are three or
                    // five, two for ln(v + 1/2); then the scan's own.
                    ScanKind::LogSpace => {
                        let softplus = if kind == MixerKind::MinGru { 3 } else { 5 };
                        self.recurrence(d, e, inputs, &[e; 25][..4 * softplus + 2 + 3]);
                    }
                    ScanKind::Linear => self.recurrence(d, e, inputs, &[inputs, e]),
                }
                match config.highway {
                    true => {
                        self.op(Op { reads: e + d, gives: 2 * d, aside: d, ..Op::default() });
                        self.op(Op { keeps: &[d; 2], reads: 3 * d, gives: d, ..Op::default() });
                    }
                    false => self.out(e, d, true),
                }
            }
            MixerKind::DecayMinGru => {
                // The exponent is the product of a rate and the time since the last step.
                self.recurrence(d, e, 2 * e, &[2 * e, e, e, e]);
                self.out(e, d, true);
            }
            MixerKind::Gru => {
                self.recurrence(d, e, 3 * e, &[3 * e, e]);
                self.out(e, d, true);
            }
            MixerKind::Lstm => {
                self.recurrence(d, e, 4 * e, &[4 * e, e, e]);
                self.out(e, d, true);
            }
            MixerKind::Mamba => {
                self.op(Op { keeps: &[d], reads: d, gives: 2 * e, ..Op::default() });
                self.op(Op { reads: 2 * e, gives: 2 * e, ..Op::default() });
                self.aside += e;
                self.conv_silu(e);
                self.aside -= e;
                self.selective(config, e, true);
                self.biased(e, d, false);
            }
            MixerKind::S6 => {
                self.selective(config, d, false);
                self.output_mixing(config, d);
            }
            MixerKind::Rwkv4 => {
                self.op(Op { keeps: &[d], reads: d, gives: 3 * d, ..Op::default() });
                self.op(Op { keeps: &[d; 3], reads: 3 * d, gives: 3 * e, ..Op::default() });
                self.tape.keep(self.sizes.batch() * length.div_ceil(WKV_CHUNK) * 2 * e);
                self.op(Op { keeps: &[e; 3], reads: 3 * e, gives: e, ..Op::default() });
                self.biased(e, d, false);
            }
            MixerKind::Aaren => {
                self.op(Op { keeps: &[d], reads: d, gives: e + h, aside: d, ..Op::default() });
                self.op(Op { keeps: &[e, e, h, h], reads: e + h, gives: e, ..Op::default() });
                self.out(e, d, false);
            }
            MixerKind::LinearAttention => {
                self.op(Op { keeps: &[d], reads: d, gives: 3 * e, aside: d, ..Op::default() });
                let w = e / h;
                let works = threads * length.div_ceil(CHUNK) * w * (w + 1);
                self.op(Op { keeps: &[e; 3], reads: 3 * e, gives: e, works, ..Op::default() });
                self.biased(e, d, false);
            }
            MixerKind::RetNet => {
                self.op(Op { keeps: &[d], reads: d, gives: 2 * d + 2 * e, aside: d, ..Op::default() });
                let works = threads * length.div_ceil(CHUNK) * (d / h) * (e / h);
                self.op(Op { keeps: &[d, d, e], reads: 2 * d + e, gives: e, aside: e, works });
                // The norm of heads and the gate are composed of operations of Burn.
                self.op(Op { keeps: &[e; 5], reads: 2 * e, gives: e, aside: e, ..Op::default() });
                self.biased(e, d, false);
            }
            MixerKind::SLstm => {
                if config.slstm_conv {
                    self.aside += d;
                    self.conv_silu(d);
                    self.aside -= d;
                }
                self.op(Op { keeps: &[d], reads: 2 * d, gives: 4 * d, aside: d, ..Op::default() });
                self.op(Op { reads: 4 * d, gives: 4 * d, ..Op::default() });
                self.op(Op { keeps: &[4 * d, d, d, d, d], reads: 4 * d, gives: 4 * d, ..Op::default() });
                self.op(Op { reads: d, gives: d, ..Op::default() });
            }
            MixerKind::MLstm => self.m_lstm(d, config.mlstm_inner() as u128, h),
            MixerKind::Attention => {
                self.biased(d, 3 * d, config.bias);
                if config.positions == Positions::Rotary {
                    self.op(Op { reads: 3 * d, gives: 3 * d, ..Op::default() });
                }
                // Gradients of keys and values from each share of a head's queries.
                let all = (self.sizes.batch() * h).max(1);
                let shares = threads.div_ceil(all).min(length.div_ceil(QUERIES)).max(1);
                let works = shares * 2 * d * (self.sizes.steps() + self.sizes.batch());
                self.op(Op { keeps: &[3 * d, d, h], reads: 3 * d, gives: d, works, ..Op::default() });
                self.out(d, d, config.bias);
            }
            MixerKind::S4 | MixerKind::S4d => {
                self.op(Op { keeps: &[d], reads: d, gives: d, ..Op::default() });
                self.output_mixing(config, d);
            }
            MixerKind::H3 => {
                let w = config.head_width.max(1) as u128;
                self.biased(d, 3 * d, true);
                self.op(Op { keeps: &[3 * d], reads: d, gives: d, aside: 2 * d, ..Op::default() });
                self.op(Op { keeps: &[d], reads: 2 * d, gives: d * w, aside: 3 * d, ..Op::default() });
                self.op(Op { keeps: &[d * w], reads: d * w, gives: d * w, aside: 3 * d, ..Op::default() });
                self.op(Op { keeps: &[d * w], reads: d + d * w, gives: d * w, aside: 3 * d, ..Op::default() });
                self.biased(d, d, true);
            }
            MixerKind::Hyena => {
                self.biased(d, 3 * d, true);
                self.op(Op { keeps: &[3 * d], reads: 3 * d, gives: 3 * d, ..Op::default() });
                self.op(Op { keeps: &[3 * d], reads: 2 * d, gives: d, aside: 3 * d, ..Op::default() });
                self.op(Op { keeps: &[d], reads: d, gives: d, aside: 3 * d, works: filter(config, d) });
                self.op(Op { keeps: &[d], reads: 2 * d, gives: d, aside: 3 * d, ..Op::default() });
                self.biased(d, d, true);
            }
            MixerKind::HyenaFilter => {
                self.op(Op { keeps: &[d], reads: d, gives: d, works: filter(config, d), ..Op::default() });
                self.output_mixing(config, d);
            }
            MixerKind::Delta => {
                self.biased(d, 3 * e + h, true);
                let w = e / h;
                let works = threads * (length.div_ceil(DELTA_CHUNK) + DELTA_CHUNK) * w * w;
                self.op(Op { keeps: &[3 * e + h], reads: 3 * e + h, gives: e, works, ..Op::default() });
                self.biased(e, d, true);
            }
        }
        Ok(())
    }

    fn m_lstm(&mut self, d: u128, e: u128, h: u128) {
        let (threads, length, w) = (self.sizes.threads as u128, self.sizes.length(), e / h);
        self.op(Op { keeps: &[d], reads: d, gives: 2 * e, ..Op::default() });
        // u and ζ are views of both, which stay whole; operations work on copies of them.
        self.op(Op { keeps: &[2 * e], reads: e, gives: e, aside: 2 * e, ..Op::default() });
        self.op(Op { keeps: &[e], reads: e, gives: e, aside: 2 * e, ..Op::default() });
        self.op(Op { keeps: &[e], reads: 2 * e, gives: 3 * e, aside: 2 * e, ..Op::default() });
        self.op(Op { keeps: &[e; 3], reads: 3 * e, gives: 2 * h, aside: 3 * e, ..Op::default() });
        let works = threads.min(self.sizes.batch() * h) * length.div_ceil(CHUNK) * w * w;
        self.op(Op { keeps: &[2 * h, e], reads: 3 * e + 2 * h, gives: e, aside: 2 * e, works });
        self.op(Op { reads: e, gives: e, aside: 2 * e, ..Op::default() });
        self.op(Op { keeps: &[e], reads: 3 * e, gives: e, ..Op::default() });
        self.biased(e, d, false);
    }
}

/// The filter of Hyena as taps, the hidden layers that make it, and its gradient.
fn filter(config: &CheckedConfig, d: u128) -> u128 {
    config.max_seq_len as u128 * (3 * d + 12 * 64)
}
