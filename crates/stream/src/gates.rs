//! The element-wise arithmetic between the matrix products, vectorised.
//!
//! Each function reads rows of one length and updates one of them in place; its previous content is one of the inputs.

use minrnn_kernels::simd::{self, Level, Simd, WithSimd, mul_add, sigmoid};
use minrnn_kernels::{gru, highway, lstm, silu};

/// A formula: the new element from the inputs' elements and the old one.
trait Formula<const N: usize>: Copy {
    fn value<S: Simd>(self, simd: S, inputs: [S::f32s; N], old: S::f32s) -> S::f32s;
}

struct Each<'a, F, const N: usize> {
    formula: F,
    inputs: [&'a [f32]; N],
    out: &'a mut [f32],
}

impl<F: Formula<N>, const N: usize> WithSimd for Each<'_, F, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let len = self.out.len();
        let inputs = self.inputs.map(|input| &input[..len]);
        for at in (0..len).step_by(S::F32_LANES) {
            // No `map`: its closure would be a function of its own, without this level's instructions.
            let mut x = [simd.splat_f32s(0.0); N];
            for (x, input) in x.iter_mut().zip(&inputs) {
                *x = simd::load(simd, input, at);
            }
            let value = self.formula.value(simd, x, simd::load(simd, self.out, at));
            simd::put(simd, self.out, at, value);
        }
    }
}

/// A function that updates a row by a formula of its inputs.
macro_rules! formula {
    ($(#[$doc:meta])* $name:ident($simd:ident, [$($input:ident),*] as $count:literal, $old:ident) $body:expr) => {
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name(level: Level, inputs: [&[f32]; $count], out: &mut [f32]) {
            #[derive(Clone, Copy)]
            struct Here;
            impl Formula<$count> for Here {
                #[inline(always)]
                fn value<S: Simd>(self, $simd: S, [$($input),*]: [S::f32s; $count], $old: S::f32s) -> S::f32s {
                    $body
                }
            }
            level.run(Each { formula: Here, inputs, out });
        }
    };
}

formula! {
    /// out ← out + x + bias.
    add_biased(s, [x, bias] as 2, old) s.add_f32s(old, s.add_f32s(x, bias))
}

formula! {
    /// out ← out + x.
    add(s, [x] as 1, old) s.add_f32s(old, x)
}

formula! {
    /// out ← out − x.
    subtract(s, [x] as 1, old) s.sub_f32s(old, x)
}

formula! {
    /// out ← (sum + x) − sum − x, what rounding adds to the sum. Inputs: sum, x.
    excess(s, [sum, x] as 2, _old) s.sub_f32s(s.sub_f32s(s.add_f32s(sum, x), sum), x)
}

/// sum ← sum + x, corrected by `surplus`, what rounding has added to earlier sums (Kahan 1965, doi:10.1145/363707.363723). `x` becomes what was added.
#[inline]
pub(crate) fn add_exactly(level: Level, x: &mut [f32], surplus: &mut [f32], sum: &mut [f32]) {
    subtract(level, [surplus], x);
    excess(level, [sum, x], surplus);
    add(level, [x], sum);
}

/// out ← decay · out + factor · x.
#[inline]
pub(crate) fn decay_and_add(level: Level, x: &[f32], decay: f32, factor: f32, out: &mut [f32]) {
    #[derive(Clone, Copy)]
    struct Here {
        decay: f32,
        factor: f32,
    }
    impl Formula<1> for Here {
        #[inline(always)]
        fn value<S: Simd>(self, simd: S, [x]: [S::f32s; 1], old: S::f32s) -> S::f32s {
            mul_add(simd, simd.splat_f32s(self.factor), x, simd.mul_f32s(simd.splat_f32s(self.decay), old))
        }
    }
    level.run(Each { formula: Here { decay, factor }, inputs: [x], out });
}

formula! {
    /// out ← out + (value + bias) ⊙ σ(gate + bias'). Inputs: value, bias, gate, bias'.
    add_gated_linear(s, [value, bias, gate, gate_bias] as 4, old)
        mul_add(s, s.add_f32s(value, bias), sigmoid(s, s.add_f32s(gate, gate_bias)), old)
}

formula! {
    /// out ← out ⊙ (value + bias) ⊙ scale.
    scale_all(s, [value, bias, scale] as 3, old) s.mul_f32s(old, s.mul_f32s(s.add_f32s(value, bias), scale))
}

/// out ← out ⊙ (value + bias) ⊙ scale.
#[inline]
pub(crate) fn scale_by(level: Level, value: &[f32], bias: &[f32], scale: &[f32], out: &mut [f32]) {
    scale_all(level, [value, bias, scale], out);
}

formula! {
    /// out ← value ⊙ SiLU(gate). Inputs: value, gate.
    swi_glu(s, [value, gate] as 2, _old) s.mul_f32s(value, silu::silu(s, gate).0)
}

formula! {
    /// out ← (x − mean) ⊙ scale + shift.
    scale_shift(s, [x, mean, scale, shift] as 4, _old) mul_add(s, s.sub_f32s(x, mean), scale, shift)
}

formula! {
    /// out ← x ⊙ scale.
    scaled(s, [x, scale] as 2, _old) s.mul_f32s(x, scale)
}

formula! {
    /// out ← out ⊙ x.
    times(s, [x] as 1, old) s.mul_f32s(old, x)
}

formula! {
    /// out ← SiLU(out).
    silu(s, [] as 0, old) silu::silu(s, old).0
}

formula! {
    /// out ← out ⊙ SiLU(x).
    gate_by_silu(s, [x] as 1, old) s.mul_f32s(old, silu::silu(s, x).0)
}

formula! {
    /// out ← softplus(out + bias).
    softplus(s, [bias] as 1, old) simd::softplus(s, s.add_f32s(old, bias)).0
}

formula! {
    convolve_all(s, [a, b, c, d, p, q, r, t, bias] as 9, _old)
        mul_add(s, d, t, mul_add(s, c, r, mul_add(s, b, q, mul_add(s, a, p, bias))))
}

/// y ← bias + Σ_j taps_j ⊙ inputs_j.
#[inline]
pub(crate) fn convolve(level: Level, [a, b, c, d]: [&[f32]; 4], [p, q, r, t]: [&[f32]; 4], bias: &[f32], y: &mut [f32]) {
    convolve_all(level, [a, b, c, d, p, q, r, t, bias], y);
}

formula! {
    /// out ← σ(p + u + bias).
    gate(s, [p, u, bias] as 3, _old) sigmoid(s, s.add_f32s(s.add_f32s(p, u), bias))
}

formula! {
    /// out ← σ(p + u + bias) ⊙ h.
    gated(s, [p, u, bias, h] as 4, _old) s.mul_f32s(sigmoid(s, s.add_f32s(s.add_f32s(p, u), bias)), h)
}

formula! {
    /// h ← h + z ⊙ (tanh(p + u + bias) − h): the last step of the paper's GRU.
    gru_paper(s, [p, u, bias, z] as 4, h) gru::advance_paper(s, z, s.add_f32s(s.add_f32s(p, u), bias), h)
}

formula! {
    /// h ← n + z ⊙ (h − n) with r, z = σ(p + u + bias), n = tanh(p + bias + r ⊙ (u + bias')): PyTorch's GRU. Inputs: p, u and bias of
    /// r, of z, of n; bias'.
    gru_torch(s, [p_r, u_r, b_r, p_z, u_z, b_z, p_n, u_n, b_n, inner] as 10, h) {
        let (r, z) = (s.add_f32s(s.add_f32s(p_r, u_r), b_r), s.add_f32s(s.add_f32s(p_z, u_z), b_z));
        gru::advance_torch(s, [r, z, s.add_f32s(u_n, inner), s.add_f32s(p_n, b_n)], h)
    }
}

formula! {
    /// c ← σ(f) ⊙ c + σ(i) ⊙ tanh(g), each gate being p + u + bias. Inputs: p, u, bias of i, of f, of g.
    lstm_cell(s, [p_i, u_i, b_i, p_f, u_f, b_f, p_g, u_g, b_g] as 9, c) {
        let (i, f) = (s.add_f32s(s.add_f32s(p_i, u_i), b_i), s.add_f32s(s.add_f32s(p_f, u_f), b_f));
        lstm::advance(s, [i, f, s.add_f32s(s.add_f32s(p_g, u_g), b_g)], c)
    }
}

formula! {
    /// h ← σ(p + u + bias) ⊙ tanh(c).
    lstm_output(s, [p, u, bias, c] as 4, _old) lstm::output(s, s.add_f32s(s.add_f32s(p, u), bias), c)
}

formula! {
    /// out ← share ⊙ x + (1 − share) ⊙ previous.
    mix_with(s, [x, previous, share] as 3, _old) mul_add(s, share, s.sub_f32s(x, previous), previous)
}

formula! {
    /// out ← out + share ⊙ (x − out).
    move_to(s, [x, share] as 2, old) mul_add(s, share, s.sub_f32s(x, old), old)
}

formula! {
    /// out ← relu(x)².
    squared_relu(s, [x] as 1, _old) {
        let positive = s.max_f32s(x, s.splat_f32s(0.0));
        s.mul_f32s(positive, positive)
    }
}

formula! {
    /// out ← out + σ(gate) ⊙ x.
    add_gated(s, [x, gate] as 2, old) mul_add(s, sigmoid(s, gate), x, old)
}

formula! {
    /// out ← out + s ⊙ (value + value_bias) + (1 − s) ⊙ x with s = σ(gate + gate_bias).
    highway(s, [gate, gate_bias, value, value_bias, x] as 5, old)
        s.add_f32s(old, highway::mixture(s, s.add_f32s(gate, gate_bias), s.add_f32s(value, value_bias), x))
}

/// One state of each channel through a token: h ← exp(Δ ⊙ a) ⊙ h + input · Δ u, y ← y + output · h.
pub(crate) struct StateStep<'a> {
    pub(crate) a: &'a [f32],
    pub(crate) delta: &'a [f32],
    pub(crate) delta_u: &'a [f32],
    pub(crate) input: f32,
    pub(crate) output: f32,
    pub(crate) h: &'a mut [f32],
    pub(crate) y: &'a mut [f32],
}

impl WithSimd for StateStep<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let len = self.h.len();
        let [a, delta, delta_u] = [&self.a[..len], &self.delta[..len], &self.delta_u[..len]];
        let (input, output) = (simd.splat_f32s(self.input), simd.splat_f32s(self.output));
        for at in (0..len).step_by(S::F32_LANES) {
            let decay = simd::exp(simd, simd.mul_f32s(simd::load(simd, delta, at), simd::load(simd, a, at)));
            let added = simd.mul_f32s(input, simd::load(simd, delta_u, at));
            let h = mul_add(simd, decay, simd::load(simd, self.h, at), added);
            let y = mul_add(simd, output, h, simd::load(simd, self.y, at));
            simd::put(simd, self.h, at, h);
            simd::put(simd, self.y, at, y);
        }
    }
}
