//! What the parts of a model keep for the backward pass, and hold for a moment, from its configuration alone.
//!
//! Letters: n = B · T steps of a batch; D `d_model`, E `d_inner`, H heads, N `d_state`, M the feed-forward width, V what is predicted. What
//! an operation keeps is what its `FusedOp::keeps` says (`ops/`). What a mixer keeps is said beside its `forward` (`nn/`), the rest is here.
//! What operations of Burn keep is said where they are used.

use minrnn_model::{CheckedConfig, FeedForwardKind, NormKind, Pooling, Positions, WiringKind};

use super::tape::{Operation, Tape};
use crate::nn::AnyMixer;

/// Steps between two states that the backward pass of selective state spaces and of matrix memories begins from again.
pub(crate) const CHUNK: u128 = 64;

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
}

/// Block `layer` with the state it begins with and the one it ends with.
pub fn block(config: &CheckedConfig, layer: usize, sizes: Sizes) -> Tape {
    let d = config.d_model as u128;
    let mut part = Activations::new(sizes);
    if config.conv {
        part.op(Op { keeps: &[d], reads: d, gives: d, aside: d, ..Op::default() });
        part.op(Op { keeps: &[d], reads: d, gives: d, aside: d, ..Op::default() });
        part.op(Op { reads: d, gives: d, aside: d, ..Op::default() });
    }
    // The residual stream is beside everything down to the sum.
    part.aside = d;
    part.norm(config, d);
    match config.wiring {
        WiringKind::None => AnyMixer::activations(config, layer, &mut part),
        WiringKind::Mamba => {
            let e = config.d_inner() as u128;
            part.op(Op { keeps: &[d], reads: d, gives: 2 * e, ..Op::default() });
            part.op(Op { reads: 2 * e, gives: 2 * e, ..Op::default() });
            part.aside += e;
            part.conv_silu(e);
            AnyMixer::activations(config, layer, &mut part);
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
            AnyMixer::activations(config, layer, &mut part);
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
    part.tape.held = part.batch() * (cost.carried(0) + cost.carried(sizes.seq_len));
    for past in &cost.past {
        part.tape.long.add(part.batch() * past.carried(sizes.seq_len));
    }
    part.tape.backward += part.batch() * cost.carried(0);
    part.tape
}

/// Embedding or the map of values, places, and dropout on both.
pub fn embedding(config: &CheckedConfig, sizes: Sizes) -> Tape {
    let (d, width) = (config.d_model as u128, config.input_width as u128);
    let mut part = Activations::new(sizes);
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
    let mut part = Activations::new(sizes);
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
pub(crate) struct Op<'a> {
    /// Each of the tensors it keeps.
    pub keeps: &'a [u128],
    /// Of its inputs.
    pub reads: u128,
    /// Of its outputs.
    pub gives: u128,
    /// Of tensors that wait for another operation.
    pub aside: u128,
    /// Numbers of its workspaces in all.
    pub works: u128,
}

/// The operations of a part, by numbers of a step.
pub(crate) struct Activations {
    sizes: Sizes,
    tape: Tape,
    /// Numbers of a step that wait beside the operations to come.
    pub aside: u128,
}

impl Activations {
    fn new(sizes: Sizes) -> Self {
        Self { sizes, tape: Tape::default(), aside: 0 }
    }

    /// B.
    pub fn batch(&self) -> u128 {
        self.sizes.batch_size as u128
    }

    /// T.
    pub fn length(&self) -> u128 {
        self.sizes.seq_len as u128
    }

    /// n = B · T.
    pub fn steps(&self) -> u128 {
        self.sizes.steps()
    }

    /// Threads of the pool.
    pub fn threads(&self) -> u128 {
        self.sizes.threads as u128
    }

    /// A tensor of `numbers` in all that the next operation keeps beside those of a step.
    pub fn keep(&mut self, numbers: u128) {
        self.tape.keep(numbers);
    }

    pub fn op(&mut self, Op { keeps, reads, gives, aside, works }: Op<'_>) {
        let n = self.sizes.steps();
        for numbers in keeps {
            self.tape.keep(n * numbers);
        }
        self.tape.push(Operation { reads: n * reads, gives: n * gives, aside: n * (aside + self.aside), works });
    }

    /// x W + b of a kept x.
    pub fn biased(&mut self, from: u128, to: u128, bias: bool) {
        self.op(Op { keeps: &[from], reads: from, gives: to, ..Op::default() });
        if bias {
            self.op(Op { reads: to, gives: to, ..Op::default() });
        }
    }

    /// x W + b of an x that an operation before it keeps.
    pub fn out(&mut self, from: u128, to: u128, bias: bool) {
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
    pub fn conv_silu(&mut self, e: u128) {
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
    pub fn recurrence(&mut self, d: u128, e: u128, inputs: u128, keeps: &[u128]) {
        self.op(Op { keeps: &[d], reads: d, gives: inputs, ..Op::default() });
        self.op(Op { keeps, reads: inputs, gives: e, ..Op::default() });
    }

    /// A sequence map of D channels that reads what it keeps, and what mixes the channels behind it.
    pub fn sequence_map(&mut self, config: &CheckedConfig, works: u128) {
        let d = config.d_model as u128;
        self.op(Op { keeps: &[d], reads: d, gives: d, works, ..Op::default() });
        self.output_mixing(config);
    }

    /// What mixes the channels behind a sequence map that stands alone.
    pub fn output_mixing(&mut self, config: &CheckedConfig) {
        if !config.has_output_mixing() {
            return;
        }
        let d = config.d_model as u128;
        self.op(Op { keeps: &[d], reads: d, gives: d, ..Op::default() });
        self.op(Op { keeps: &[d], reads: d, gives: 2 * d, ..Op::default() });
        self.op(Op { reads: 2 * d, gives: 2 * d, ..Op::default() });
        // A gate between a value and nothing, which is as large.
        self.op(Op { keeps: &[d; 3], reads: 3 * d, gives: d, ..Op::default() });
    }
}
