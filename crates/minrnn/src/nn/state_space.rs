//! The state spaces inside S4, S4D and H3: parameters in continuous time, discretised in every call (Gu et al. 2022, arXiv:2111.00396; Gu
//! et al. 2022, arXiv:2206.11893).
//!
//! ```text
//! x' = A x + B u      y = 2 Re C x + D u      one input, one output and N/2 complex states for each channel
//! diagonal, zero-order hold:  ā = e^{ΔA}                                    b̄ = (e^{ΔA} − 1) / A,  B being 1
//! A = Λ − P P*, bilinear:     Ā = (I − ΔA/2)⁻¹ (I + ΔA/2)                   B̄ = (I − ΔA/2)⁻¹ ΔB
//! ```
//!
//! The bilinear Ā is again diagonal minus a rank-one part. With E = (I − ΔΛ/2)⁻¹, v · x = 2 Re Σ v_n x_n over the kept half, and κ = 1 +
//! (Δ/2) P̄ · E P:
//!
//! ```text
//! a = E (1 + ΔΛ/2)    g = (Δ/2) E P / κ    f = P̄ ⊙ (1 + a)    b = ΔE B − g (P̄ · ΔE B)    x_t = a ⊙ x_{t−1} − g (f · x_{t−1}) + b u_t
//! ```
//!
//! A step is thus linear in N, and so is the impulse response K_l = C Ā^l B̄ that S4 otherwise computes from its generating function:
//! neither that nor c̃ = C (I − Ā^L) is needed, C is the parameter itself, and nothing depends on a maximum length.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use minrnn_model::S4Init;

use super::complex::{Complex, planes};
use super::hippo;
use super::init::Initializer;
use super::state::{State, StateZip};
use crate::ops::{StepCodes, state_space};

/// Smallest and largest initial step Δ.
const STEPS: [f64; 2] = [1e-3, 1e-1];

/// Parameters of the state spaces of D channels; without weight decay.
#[derive(Module, Debug)]
pub struct StateSpace {
    /// ln Δ `[D]`.
    pub log_dt: Param<Tensor<1>>,
    /// ln(−Re Λ) `[D, N/2]`.
    pub log_a_real: Param<Tensor<2>>,
    /// Im Λ `[D, N/2]`.
    pub a_imag: Param<Tensor<2>>,
    /// C `[D, N/2, 2]`, real and imaginary parts.
    pub c: Param<Tensor<3>>,
    /// D `[D]`.
    pub skip: Param<Tensor<1>>,
    /// P `[D, N/2, 2]`; absent if A is diagonal.
    pub p: Option<Param<Tensor<3>>>,
    /// B `[D, N/2, 2]`; absent if A is diagonal.
    pub b: Option<Param<Tensor<3>>>,
}

/// The state of a [`StateSpace`].
#[derive(Debug, Clone)]
pub struct StateSpaceState {
    /// x `[B, N, D]`: N/2 real parts, then the imaginary ones.
    pub x: Tensor<3>,
}

impl State for StateSpaceState {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        Self { x: f.tensor("x", self.x, other.x) }
    }
}

impl StateSpace {
    /// A diagonal A with `channels` channels and `d_state` states, half of which are kept.
    pub fn diagonal(channels: usize, d_state: usize, kind: S4Init, init: &mut Initializer) -> Self {
        Self::new(channels, &hippo::frequencies(kind, d_state), init)
    }

    /// HiPPO-LegS with its rank-one part.
    pub fn legs(channels: usize, d_state: usize, init: &mut Initializer) -> Self {
        let modes = hippo::legs(d_state);
        let frequencies: Vec<f64> = modes.iter().map(|mode| mode.frequency).collect();
        let parts = |init: &mut Initializer, part: fn(&hippo::Mode) -> [f64; 2]| {
            let row: Vec<f32> = modes.iter().flat_map(part).map(|x| x as f32).collect();
            Some(init.values([channels, modes.len(), 2], row.repeat(channels)))
        };
        let (p, b) = (parts(init, |mode| mode.p), parts(init, |mode| mode.b));
        Self { p, b, ..Self::new(channels, &frequencies, init) }
    }

    fn new(channels: usize, frequencies: &[f64], init: &mut Initializer) -> Self {
        let half = frequencies.len();
        let row: Vec<f32> = frequencies.iter().map(|&x| x as f32).collect();
        Self {
            log_dt: init.between([channels], STEPS.map(f64::ln)),
            log_a_real: init.constant([channels, half], 0.5f32.ln()),
            a_imag: init.values([channels, half], row.repeat(channels)),
            c: init.normal([channels, half, 2], 0.5f32.sqrt()),
            skip: init.normal([channels], 1.0),
            p: None,
            b: None,
        }
    }

    /// x = 0 for `copies` sets of states per channel.
    pub(super) fn init_state(&self, batch_size: usize, copies: usize) -> StateSpaceState {
        let [channels, half] = self.log_a_real.dims();
        StateSpaceState { x: Tensor::zeros([batch_size, 2 * half, copies * channels], &self.device()) }
    }

    fn device(&self) -> Device {
        self.skip.val().device()
    }

    /// `u` `[B, T, D · copies]`, where `copies` neighbours share the parameters of a channel, → y of that shape.
    pub(super) fn forward(&self, u: Tensor<3>, state: StateSpaceState, steps: &StepCodes, copies: usize) -> (Tensor<3>, StateSpaceState) {
        let [channels, half] = self.log_a_real.dims();
        let (mut parameters, mut skip) = (self.discrete(), self.skip.val());
        if copies > 1 {
            let count = parameters.dims()[0];
            parameters = parameters.unsqueeze_dim::<4>(3).repeat_dim(3, copies).reshape([count, half, channels * copies]);
            skip = skip.unsqueeze_dim::<2>(1).repeat_dim(1, copies).reshape([channels * copies]);
        }
        let (y, x) = state_space(u, parameters, skip, state.x, steps);
        (y, StateSpaceState { x })
    }

    /// The numbers of the discrete recurrence, `[P, N/2, D]` as [`state_space`] takes them.
    fn discrete(&self) -> Tensor<3> {
        let (Some(p), Some(b)) = (&self.p, &self.b) else {
            return diagonal_recurrence(self.log_dt.val(), self.log_a_real.val(), self.a_imag.val(), self.c.val());
        };
        let (dt, a) = continuous(self.log_dt.val(), self.log_a_real.val(), self.a_imag.val());
        let c = Complex::of_parts(self.c.val());
        let (p, b) = (Complex::of_parts(p.val()), Complex::of_parts(b.val()));
        let half_dt = dt.clone() * 0.5;
        let half = a.scale(half_dt.clone());
        let e = half.clone().one_plus(-1.0).recip();
        let a = e.times(&half.one_plus(1.0));
        let g = e.times(&p).scale(half_dt);
        let p = p.conj();
        let kappa = p.dot(&g) + 1.0;
        let g = g.scale(kappa.recip());
        let b = e.times(&b).scale(dt);
        let f = p.times(&a.clone().one_plus(1.0));
        let b = b.clone().minus(g.clone().scale(p.dot(&b)));
        planes(vec![a, b, c, g, f])
    }
}

/// Δ `[D, 1]` and Λ.
fn continuous(log_dt: Tensor<1>, log_a_real: Tensor<2>, a_imag: Tensor<2>) -> (Tensor<2>, Complex) {
    (log_dt.exp().unsqueeze_dim(1), Complex::new(-log_a_real.exp(), a_imag))
}

/// The numbers of the discrete recurrence of a diagonal A, by zero-order hold, `[P, N/2, D]` as [`state_space`] takes them.
///
/// # Shapes
/// * `log_dt` `[D]`, `log_a_real` and `a_imag` `[D, N/2]`, `c` `[D, N/2, 2]`, the parameters of a [`StateSpace`]
pub(crate) fn diagonal_recurrence(log_dt: Tensor<1>, log_a_real: Tensor<2>, a_imag: Tensor<2>, c: Tensor<3>) -> Tensor<3> {
    let (dt, a) = continuous(log_dt, log_a_real, a_imag);
    let grown = a.clone().scale(dt).exp_minus_one();
    let b = grown.times(&a.recip());
    planes(vec![grown.one_plus(1.0), b, Complex::of_parts(c)])
}
