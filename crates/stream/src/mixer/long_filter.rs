//! Hyena's long filter, whose taps a small network computes from the lag:
//!
//! ```text
//! y_t = Σ_{l<L} h_l ⊙ u_{t−l} + b ⊙ u_t
//! h_l = F(z_l) ⊙ e^{−|δ| τ}      τ = l / (L − 1)      F: linear, then sin(w ⊙ ·) and linear, 3 times
//! ```
//!
//! The taps are computed once, in f64. A session keeps the last L − 1 inputs; what lies before its first is 0 and not summed.

use alloc::vec::Vec;
use alloc::{format, vec};
use core::ops::Range;

use minrnn_kernels::simd::{self, Simd, WithSimd, mul_add};
use minrnn_model::{HYENA_FEATURES, HYENA_HIDDEN, hyena_layers};

use crate::linear::LANES;
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::{CheckedConfig, Error, Result};

/// Filters of D channels.
#[derive(Debug, Clone)]
pub(super) struct LongFilter {
    /// `[L, D]`; the first row meets the current step and holds b too.
    taps: Vec<f32>,
    /// D.
    width: usize,
}

impl LongFilter {
    /// The filter of the part `filter` of `name`.
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let (lags, d, name) = (config.max_seq_len, config.d_model, join(name, "filter"));
        let features = source.vector(&join(&name, "features"), &[lags, HYENA_FEATURES])?;
        let mut layers = Vec::new();
        for (i, (from, to, bias)) in hyena_layers(d).into_iter().enumerate() {
            let weight = source.vector(&join(&name, &format!("layers.{i}.weight")), &[to, from])?;
            let bias = if bias { source.vector(&join(&name, &format!("layers.{i}.bias")), &[to])? } else { vec![0.0; to] };
            layers.push((weight, bias));
        }
        let frequency = source.vector(&join(&name, "frequency"), &[HYENA_HIDDEN])?;
        let skip = source.vector(&join(&name, "skip"), &[d])?;
        let mut taps = Vec::new();
        if lags.checked_mul(d).is_none_or(|len| taps.try_reserve_exact(len).is_err()) {
            return Err(Error::Memory(format!(
                "memory cannot hold a filter of {lags} lags for each of {d} channels; run the model where there is more"
            )));
        }
        let rates: Vec<f64> = (0..d).map(|channel| rate(channel, d)).collect();
        for (lag, features) in features.chunks_exact(HYENA_FEATURES).enumerate() {
            let mut x: Vec<f64> = features.iter().map(|&x| f64::from(x)).collect();
            for (i, (weight, bias)) in layers.iter().enumerate() {
                if i > 0 {
                    x.iter_mut().zip(&frequency).for_each(|(x, &w)| *x = libm::sin(*x * f64::from(w)));
                }
                let output = |(row, &bias): (&[f32], &f32)| {
                    f64::from(bias) + row.iter().zip(&x).map(|(&weight, x)| f64::from(weight) * x).sum::<f64>()
                };
                x = weight.chunks_exact(x.len()).zip(bias).map(output).collect();
            }
            let age = lag as f64 / (lags - 1) as f64;
            taps.extend(x.iter().zip(&rates).map(|(x, rate)| (x * libm::exp(rate * age)) as f32));
        }
        taps.iter_mut().zip(&skip).for_each(|(tap, skip)| *tap += skip);
        Ok(Self { taps, width: d })
    }

    /// D.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Filters `u` `[N, D]` into `y` `[N, D]` and adds `u` to the sessions' pasts; `then(row, channels, y)` gets each piece of a row.
    pub(super) fn forward(
        &self,
        pass: &Pass<'_>,
        memory: Memory<'_>,
        u: &[f32],
        y: Shared<'_>,
        then: impl Fn(usize, Range<usize>, &mut [f32]) + Sync,
    ) {
        let d = self.width;
        // SAFETY: called between two phases, when nothing else uses the pasts.
        unsafe { memory.remember(pass, |row| &u[row * d..][..d]) };
        // SAFETY: pasts are written nowhere else, and the phase below is over before the next layer begins.
        let past = |session: usize| unsafe { memory.past(session) };
        let lags = self.taps.len() / d;
        pass.workers.split(d, LANES, pass.rows * self.taps.len(), |_, channels| {
            for span in pass.spans {
                let past = past(span.session);
                let first = past.len() / d - span.len;
                for t in 0..span.len {
                    let end = first + t + 1;
                    let inputs = &past[(end - end.min(lags)) * d..end * d];
                    // SAFETY: pieces have channels of their own.
                    let y = unsafe { y.part(span.first + t, channels.clone()) };
                    pass.level.run(Convolve { taps: &self.taps, inputs, width: d, first: channels.start, y });
                    then(span.first + t, channels.clone(), y);
                }
            }
        });
    }
}

/// How fast the filter of a channel fades: ln of what is left of it at the last lag.
fn rate(channel: usize, channels: usize) -> f64 {
    let [slowest, fastest] = [1.5, 0.3].map(|share| libm::log(0.01) / share);
    slowest + (fastest - slowest) * channel as f64 / (channels.max(2) - 1) as f64
}

/// One step of some channels.
struct Convolve<'a> {
    /// `[L, D]`, the newest lag first.
    taps: &'a [f32],
    /// `[at most L, D]`, the newest step last.
    inputs: &'a [f32],
    /// D.
    width: usize,
    /// The first channel of `y`.
    first: usize,
    y: &'a mut [f32],
}

impl WithSimd for Convolve<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { taps, inputs, width, first, y } = self;
        let len = y.len();
        for at in (0..len).step_by(S::F32_LANES) {
            let columns = first + at..first + len;
            let mut sum = simd.splat_f32s(0.0);
            for (tap, input) in taps.chunks_exact(width).zip(inputs.chunks_exact(width).rev()) {
                sum = mul_add(simd, simd::load(simd, &tap[columns.clone()], 0), simd::load(simd, &input[columns.clone()], 0), sum);
            }
            simd::put(simd, y, at, sum);
        }
    }
}
