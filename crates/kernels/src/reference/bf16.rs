//! Rounding to bf16, the upper half of an f32.

/// The bf16 nearest to `x`, the one with an even last bit if two are equally near; ±∞ beyond the largest. ±∞ stays ±∞, and NaN becomes quiet.
pub fn to_bf16(x: f32) -> f32 {
    const UPPER: u32 = 0xffff_0000;
    const QUIET: u32 = 0x0040_0000;
    if x.is_nan() {
        return f32::from_bits((x.to_bits() | QUIET) & UPPER);
    }
    if x.is_infinite() {
        return x;
    }
    // The bf16 towards 0, and the next one away from 0; beyond the largest, 2¹²⁸ stands for ∞.
    let below = x.to_bits() & UPPER;
    let above = f32::from_bits(below + 0x1_0000);
    let wide = |x: f32| if x.is_infinite() { f64::from(x.signum()) * libm::exp2(128.0) } else { f64::from(x) };
    let (under, over) = (f64::from(x) - wide(f32::from_bits(below)), wide(above) - f64::from(x));
    let is_even = below & 0x1_0000 == 0;
    if under.abs() < over.abs() || under.abs() == over.abs() && is_even { f32::from_bits(below) } else { above }
}
