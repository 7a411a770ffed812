//! The discrete state spaces of S4, S4D and H3: x ← a ⊙ x − g (f · x) + b u, y = c · x + skip u, with v · x = 2 Re Σ_n v_n x_n.

use minrnn_kernels::state_space::{A, B, C, Continuous, F, G};

use crate::graph::{Graph, Initial, Value};
use crate::{Result, join};

/// The state spaces `name` applied to `u` `[B, channels · copies]`: one of N/2 complex states for each of `channels`, shared by `copies` neighbours;
/// returns y in that shape.
pub(crate) fn state_space(g: &mut Graph<'_>, name: &str, [channels, copies, half]: [usize; 3], rank_one: bool, u: Value) -> Result<Value> {
    let width = channels * copies;
    let mut tensor = |part: &str, shape: &[usize]| g.tensor(&join(name, part), shape);
    let log_dt = tensor("log_dt", &[channels])?;
    let (log_a_real, a_imag) = (tensor("log_a_real", &[channels, half])?, tensor("a_imag", &[channels, half])?);
    let (c, skip) = (tensor("c", &[channels, half, 2])?, tensor("skip", &[channels])?);
    let low_rank = match rank_one {
        true => Some([tensor("p", &[channels, half, 2])?, tensor("b", &[channels, half, 2])?]),
        false => None,
    };
    let low_rank = low_rank.as_ref().map(|[p, b]| [&p[..], b]);
    let planes = Continuous { log_dt: &log_dt, log_a_real: &log_a_real, a_imag: &a_imag, c: &c, low_rank }.discrete(copies);
    let mut plane = |part: &str, plane: usize, factor: f32| {
        let each = |(i, part): (usize, &str), g: &mut Graph<'_>| {
            let numbers: Vec<f32> = planes[(plane + i) * half * width..][..half * width].iter().map(|x| x * factor).collect();
            g.constant(&format!("{}.{part}", join(name, "step")), &[half, width], &numbers)
        };
        [each((0, &format!("{part}_real")), g), each((1, &format!("{part}_imag")), g)]
    };
    let (a, b, c) = (plane("a", A, 1.0), plane("b", B, 1.0), plane("c", C, 2.0));
    let feedback = if rank_one { Some([plane("g", G, 1.0), plane("f", F, -2.0)]) } else { None };
    let skip: Vec<f32> = skip.into_iter().flat_map(|skip| std::iter::repeat_n(skip, copies)).collect();
    let skip = g.constant(&join(name, "step.skip"), &[width], &skip);

    let states = ["real", "imag"].map(|part| join(name, part));
    let x = states.each_ref().map(|state| g.state(state, &[half, width], Initial::All(0.0)));
    let row = g.reshape(u, &[1, width]);
    let turned = complex_product(g, a, x);
    let mut next = [0, 1].map(|part| {
        let input = g.mul(b[part], row);
        g.add(turned[part], input)
    });
    if let Some([into, out]) = feedback {
        let product = real_part(g, out, x);
        let back = g.sum(product, 1, true);
        next = [0, 1].map(|part| {
            let fed = g.mul(into[part], back);
            g.add(next[part], fed)
        });
    }
    states.iter().zip(next).for_each(|(state, next)| g.keep(state, next));
    let product = real_part(g, c, next);
    let sum = g.sum(product, 1, false);
    let direct = g.mul(skip, u);
    Ok(g.add(sum, direct))
}

/// Re(a b).
fn real_part(g: &mut Graph<'_>, a: [Value; 2], b: [Value; 2]) -> Value {
    let (first, second) = (g.mul(a[0], b[0]), g.mul(a[1], b[1]));
    g.sub(first, second)
}

fn complex_product(g: &mut Graph<'_>, a: [Value; 2], b: [Value; 2]) -> [Value; 2] {
    let real = real_part(g, a, b);
    let (first, second) = (g.mul(a[0], b[1]), g.mul(a[1], b[0]));
    [real, g.add(first, second)]
}
