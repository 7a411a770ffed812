//! A model whose outputs differ from those it learned.

use burn::module::Module;

use crate::parameters;

/// `model` with the linear map `change` applied to its outputs, by changing its head: `change` is called for each column of the head's matrix, and
/// for the bias.
pub(super) fn with_outputs<M: Module>(model: M, change: impl Fn(&mut [f32])) -> M {
    let mut head = Vec::new();
    parameters::visit(&model, |place, values| {
        if place.name == "head.weight" || place.name == "head.bias" {
            head.push((place.name, values.read()));
        }
    });
    parameters::replace(model, |place, shape| {
        // [out, in], or [out].
        let (_, values) = head.iter_mut().find(|(name, _)| *name == place.name)?;
        let width = shape.get(1).copied().unwrap_or(1);
        let mut column = Vec::with_capacity(shape[0]);
        for at in 0..width {
            column.clear();
            column.extend(values.iter().skip(at).step_by(width));
            change(&mut column);
            values.iter_mut().skip(at).step_by(width).zip(&column).for_each(|(value, new)| *value = *new);
        }
        Some(std::mem::take(values))
    })
}
