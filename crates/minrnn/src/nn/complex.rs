//! Pairs of tensors that represent complex numbers.

use burn::tensor::Tensor;

/// Real and imaginary parts `[D, N]`.
#[derive(Debug, Clone)]
pub(super) struct Complex {
    pub re: Tensor<2>,
    pub im: Tensor<2>,
}

impl Complex {
    pub fn new(re: Tensor<2>, im: Tensor<2>) -> Self {
        Self { re, im }
    }

    /// From `[D, N, 2]`.
    pub fn of_parts(parts: Tensor<3>) -> Self {
        let part = |i| parts.clone().narrow(2, i, 1).squeeze_dim(2);
        Self::new(part(0), part(1))
    }

    pub fn conj(self) -> Self {
        Self::new(self.re, -self.im)
    }

    /// Multiplies by real numbers `[D, 1]` or `[D, N]`.
    pub fn scale(self, factor: Tensor<2>) -> Self {
        Self::new(self.re * factor.clone(), self.im * factor)
    }

    /// 1 + z for `sign` 1, 1 − z for −1.
    pub fn one_plus(self, sign: f32) -> Self {
        Self::new(self.re * sign + 1.0, self.im * sign)
    }

    pub fn times(&self, other: &Self) -> Self {
        Self::new(
            self.re.clone() * other.re.clone() - self.im.clone() * other.im.clone(),
            self.re.clone() * other.im.clone() + self.im.clone() * other.re.clone(),
        )
    }

    pub fn minus(self, other: Self) -> Self {
        Self::new(self.re - other.re, self.im - other.im)
    }

    /// 1 / z.
    pub fn recip(self) -> Self {
        let square = self.re.clone() * self.re.clone() + self.im.clone() * self.im.clone();
        self.conj().scale(square.recip())
    }

    /// e^z − 1, accurate even for small z: e^x − 1 = 2 tanh(x/2) / (1 − tanh(x/2)) and 1 − cos y = 2 sin²(y/2).
    pub fn exp_minus_one(self) -> Self {
        let half = (self.re * 0.5).tanh();
        let grown = half.clone() * 2.0 / (-half + 1.0);
        let sine = (self.im.clone() * 0.5).sin();
        let size = grown.clone() + 1.0;
        Self::new(grown * self.im.clone().cos() - sine.clone() * sine * 2.0, size * self.im.sin())
    }

    /// 2 Re Σ_n of the products with `other`: `[D, 1]`.
    pub fn dot(&self, other: &Self) -> Tensor<2> {
        self.times(other).re.sum_dim(1) * 2.0
    }
}

/// Real and imaginary parts of all numbers, one plane after the other: `[P, N, D]`.
pub(super) fn planes(numbers: Vec<Complex>) -> Tensor<3> {
    let parts = numbers.into_iter().flat_map(|number| [number.re, number.im]);
    Tensor::stack(parts.map(|part| part.transpose()).collect(), 0)
}
