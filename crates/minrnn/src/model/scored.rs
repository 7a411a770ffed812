//! Predictions at the positions scored by a loss.

use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData};

use super::inputs::Targets;
use crate::memory::activations::Activations;
use crate::nn::linear;
use crate::ops::{cross_entropy, pinball, squared_error};

/// A model's predictions at N positions, with their targets.
#[derive(Debug)]
pub struct Scored {
    /// Logits or values `[N, V]`.
    pub predicted: Tensor<2>,
    /// N classes or N·V values, or N·V / Q values with Q predicted quantiles each.
    pub targets: Targets,
    /// N weights; if absent, all are 1. Weight 0 leaves a position out.
    pub mask: Option<Arc<[f32]>>,
}

impl Scored {
    /// What everything from features of `d` channels to the loss of `v` numbers keeps for a batch, if scored positions are selected.
    pub(super) fn activations(list: &mut Activations, d: u128, v: u128, has_bias: bool) {
        let (all, scored) = (list.steps(), list.scored());
        if scored < all {
            // The gradient of all features is zeros, with theirs inserted.
            list.whole(all * d, scored * d);
        }
        // The matmul keeps features, the loss predictions. Their gradient follows; a bias is added to a copy.
        list.keep(scored * d);
        list.whole(scored * d, scored * v);
        if has_bias {
            list.whole(scored * v, scored * v);
        }
        list.keep(scored * v);
        list.whole(scored * v, 2 * scored);
    }

    /// Mean cross-entropy in nats, mean squared error of values, or mean pinball loss of quantiles.
    pub fn loss(self) -> Tensor<1> {
        match self.targets {
            Targets::Classes(classes) => cross_entropy(self.predicted, classes, self.mask),
            Targets::Values(values) => squared_error(self.predicted, &values, self.mask.as_deref()),
            Targets::Quantiles { values, levels } => pinball(self.predicted, &values, &levels, self.mask.as_deref()),
        }
    }
}

/// Features `[B, T, D]` as `[1, N, D]` at the positions with a weight, with their targets and weights, if these are at most half of all;
/// otherwise everything unchanged. There must be as many targets and weights as positions.
pub(super) fn where_scored(features: Tensor<3>, targets: Targets, mask: Option<Arc<[f32]>>) -> (Tensor<3>, Targets, Option<Arc<[f32]>>) {
    let Some(weights) = &mask else { return (features, targets, mask) };
    let positions: Vec<usize> = weights.iter().enumerate().filter(|&(_, &weight)| weight != 0.0).map(|(at, _)| at).collect();
    if positions.is_empty() || 2 * positions.len() > weights.len() {
        return (features, targets, mask);
    }
    let targets = match targets {
        Targets::Classes(classes) => Targets::Classes(positions.iter().map(|&at| classes[at]).collect()),
        Targets::Values(values) => Targets::Values(rows_of(&values, weights.len(), &positions)),
        Targets::Quantiles { values, levels } => Targets::Quantiles { values: rows_of(&values, weights.len(), &positions), levels },
    };
    let weights = positions.iter().map(|&at| weights[at]).collect();
    let indices = TensorData::new(positions.iter().map(|&at| at as i64).collect(), [positions.len()]);
    let indices = Tensor::<1, Int>::from_data(indices, &features.device());
    (linear::rows(features).select(0, indices).unsqueeze(), targets, Some(weights))
}

/// The given `rows` of the `n` rows of `values`.
fn rows_of(values: &[f32], n: usize, rows: &[usize]) -> Arc<[f32]> {
    let width = values.len() / n;
    rows.iter().flat_map(|&at| &values[at * width..][..width]).copied().collect()
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    fn features(device: &Device) -> Tensor<3> {
        let numbers: Vec<f32> = (0..16).map(|i| (i as f32 * 0.7).sin()).collect();
        Tensor::from_data(TensorData::new(numbers, [2, 4, 2]), device)
    }

    fn loss(x: Tensor<3>, targets: Targets, mask: Option<Arc<[f32]>>) -> Tensor<1> {
        Scored { predicted: linear::rows(x), targets, mask }.loss()
    }

    /// Value and gradient of the loss over all positions and over the scored ones.
    fn both_ways(targets: Targets, mask: Arc<[f32]>) -> [(f32, Vec<f32>); 2] {
        let device = Device::flex().autodiff();
        [false, true].map(|is_cut| {
            let x = features(&device).require_grad();
            let value = match is_cut {
                false => loss(x.clone(), targets.clone(), Some(mask.clone())),
                true => {
                    let (cut, targets, mask) = where_scored(x.clone(), targets.clone(), Some(mask.clone()));
                    assert_eq!(cut.dims(), [1, 3, 2]);
                    loss(cut, targets, mask)
                }
            };
            let gradient = x.grad(&value.clone().backward()).unwrap();
            (value.into_scalar(), gradient.into_data().try_to_vec().unwrap())
        })
    }

    #[test]
    fn positions_that_are_not_scored_can_be_left_out() {
        let mask: Arc<[f32]> = vec![0.0, 1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 2.0].into();
        let values: Arc<[f32]> = (0..16).map(|i| i as f32 * 0.1).collect();
        let quantiles = Targets::Quantiles { values: values[..8].into(), levels: vec![0.2, 0.5].into() };
        for targets in [vec![9, 1, 9, 9, 0, 9, 9, 1].into(), Targets::Values(values), quantiles] {
            let [whole, cut] = both_ways(targets, mask.clone());
            assert!((whole.0 - cut.0).abs() < 1e-6, "{whole:?} {cut:?}");
            assert!(whole.1.iter().zip(&cut.1).all(|(a, b)| (a - b).abs() < 1e-6), "{whole:?} {cut:?}");
            assert!(cut.1[2] != 0.0 && cut.1[0] == 0.0);
        }
    }

    #[test]
    fn with_most_positions_scored_or_none_nothing_is_cut() {
        let x = features(&Device::flex());
        for mask in [vec![1.0; 8], [vec![1.0; 5], vec![0.0; 3]].concat(), vec![0.0; 8]] {
            assert_eq!(where_scored(x.clone(), vec![0; 8].into(), Some(mask.into())).0.dims(), [2, 4, 2]);
        }
        assert_eq!(where_scored(x, vec![0; 8].into(), None).0.dims(), [2, 4, 2]);
    }
}
