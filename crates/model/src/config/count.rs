//! Counts the cost of a model, from its configuration alone.

use super::{CheckedConfig, Cost, KvCache, ModelConfig};
use crate::spec::{Role, TensorSpec, Tensors};
use crate::{FeedForwardKind, Pooling, Positions, Result, WiringKind};

impl Cost {
    /// The cost that follows from tensors alone.
    fn of(tensors: impl FnOnce(&mut Tensors)) -> Self {
        let mut list = Tensors::default();
        tensors(&mut list);
        list.into_list().iter().fold(Self::default(), |cost, tensor| cost + Self::of_tensor(tensor))
    }

    fn of_tensor(tensor: &TensorSpec) -> Self {
        let elements = tensor.elements();
        match tensor.role {
            Role::Weight => Self { parameters: elements, matmul_macs: elements, ..Self::default() },
            Role::Parameter => Self { parameters: elements, ..Self::default() },
            Role::Buffer => Self::default(),
        }
    }
}

impl ModelConfig {
    /// The cost of the whole model.
    ///
    /// # Errors
    /// As [`checked`](Self::checked).
    pub fn cost(&self) -> Result<Cost> {
        Ok(self.checked()?.cost())
    }
}

impl CheckedConfig {
    /// The cost of the whole model.
    pub fn cost(&self) -> Cost {
        let ends = self.embedding_cost() + Cost::of(|tensors| self.norm_tensors("backbone.final_norm", tensors)) + self.head_cost();
        (0..self.n_layers).fold(ends, |cost, layer| cost + self.block_cost(layer))
    }

    /// The cost of looking up tokens or mapping values, and of learned positions; without the head.
    pub fn embedding_cost(&self) -> Cost {
        let places = if self.positions == Positions::Learned { Cost::state(1) } else { Cost::default() };
        // Whether an episode has begun, and the time of its last step.
        let places = if self.decision { Cost::state(2) } else { places };
        Cost::of(|tensors| self.embedding_tensors(tensors)) + places
    }

    /// The cost from normalised features to predictions.
    pub fn head_cost(&self) -> Cost {
        let d = self.sizes().d;
        // A head that shares the embedding's matrix still multiplies by it.
        let tied = if self.tie_embeddings { Cost { matmul_macs: d * self.outputs() as u128, ..Cost::default() } } else { Cost::default() };
        // The mean is a sum and a count that are carried, and a division.
        let pooling = if self.pooling == Pooling::Mean { Cost::elementwise(d) + Cost::state(d + 1) } else { Cost::default() };
        // Differences and products of two features; those before the last reset and the current ones are carried.
        let pair = if self.pair_head { Cost::elementwise(d) + Cost::state(2 * d) } else { Cost::default() };
        Cost::of(|tensors| self.head_tensors(tensors)) + tied + pooling + pair
    }

    /// Numbers the inference runtime keeps for a session in the last layers: what is carried, and the rounding error of a mean's sums.
    pub fn end_state_len(&self) -> usize {
        let lost = if self.pooling == Pooling::Mean { self.d_model } else { 0 };
        usize::try_from(self.head_cost().state).unwrap_or(usize::MAX).saturating_add(lost)
    }

    /// Numbers the inference runtime keeps for a session in block `layer`.
    pub fn block_state_len(&self, layer: usize) -> usize {
        let (spec, inside) = (self.mixer_at(layer).spec(), self.inside_wiring());
        let around = self.block_cost(layer).state - spec.cell(&inside).state;
        usize::try_from(around).unwrap_or(usize::MAX).saturating_add(spec.state_len(&inside))
    }

    /// What block `layer` keeps of past tokens, if anything.
    pub fn block_past(&self, layer: usize) -> Option<KvCache> {
        self.mixer_at(layer).spec().cell(&self.inside_wiring()).past.first().copied()
    }

    /// The cost of block `layer`: convolution, mixer and feed-forward part with their norms.
    pub fn block_cost(&self, layer: usize) -> Cost {
        let d = self.sizes().d;
        let conv = if self.conv { Cost::short_conv(d) } else { Cost::default() };
        let inside = self.inside_wiring();
        let wiring = match self.wiring {
            WiringKind::None => Cost::default(),
            WiringKind::Mamba => Cost::short_conv(inside.sizes().d) + Cost::elementwise(inside.sizes().d),
            WiringKind::H3 => Cost::shift(self) + Cost::elementwise(2 * d),
        };
        let ff = match (self.ff_at(layer), self.d_ff() as u128) {
            (FeedForwardKind::None | FeedForwardKind::Mlp, _) => Cost::default(),
            (FeedForwardKind::Gated, m) => Cost::elementwise(2 * m),
            (FeedForwardKind::GeGlu | FeedForwardKind::SwiGlu, m) => Cost::elementwise(m),
            // Two token shifts, the square, the gate; the previous input is carried.
            (FeedForwardKind::ChannelMix, m) => Cost::elementwise(4 * d + m + d) + Cost::state(d),
        };
        Cost::of(|tensors| self.block_tensors(layer, tensors)) + conv + wiring + self.mixer_at(layer).spec().cell(&inside) + ff
    }
}
