mod common;
use common::*;
use minrnn_kernels::reference::state_space as reference;
use minrnn_kernels::segments::{CONTINUE, PADDING, RESET, Segments};
use minrnn_kernels::state_space::{self, Continuous, Form, Inputs, RANK_ONE, SIMPLE};
use minrnn_kernels::{Shape, conv};

/// A batch with parameters whose state neither dies nor grows.
#[derive(Clone)]
struct Case {
    shape: Shape,
    form: Form,
    u: Vec<f32>,
    parameters: Vec<f32>,
    skip: Vec<f32>,
    x0: Option<Vec<f32>>,
    codes: Option<Vec<i32>>,
    d_y: Option<Vec<f32>>,
    d_x_last: Option<Vec<f32>>,
}

impl Case {
    fn new(random: &mut Random, shape: Shape, form: Form) -> Self {
        let (n, width) = (form.states, shape.width);
        let mut parameters = random.normal(form.planes * n * width);
        let plane = n * width;
        for i in 0..plane {
            let (size, angle) = (0.6 + 0.25 * random.uniform(), 3.0 * random.uniform());
            (parameters[i], parameters[plane + i]) = ((size * angle.cos()) as f32, (size * angle.sin()) as f32);
        }
        // A rank-one part small enough for the whole to be stable.
        parameters[SIMPLE * plane..].iter_mut().for_each(|x| *x *= 0.1 / (n as f32).sqrt());
        let states = shape.batch * 2 * n * width;
        Self {
            shape,
            form,
            u: random.normal(shape.elements()),
            parameters,
            skip: random.normal(width),
            x0: Some(random.normal(states)),
            codes: None,
            d_y: Some(random.normal(shape.elements())),
            d_x_last: Some(random.normal(states)),
        }
    }

    fn segments(&self) -> Segments<'_> {
        self.codes.as_ref().map_or(Segments::DENSE, |codes| Segments::new(codes, self.shape.seq_len))
    }

    fn states(&self) -> usize {
        self.shape.batch * 2 * self.form.states * self.shape.width
    }

    fn inputs(&self) -> Inputs<'_> {
        let Self { shape, form, u, parameters, skip, x0, .. } = self;
        Inputs { shape: *shape, form: *form, u, parameters, skip, x0: x0.as_deref(), segments: self.segments() }
    }

    fn forward(&self) -> [Vec<f32>; 2] {
        outputs([self.shape.elements(), self.states()], |[y, x_last]| state_space::forward(self.inputs(), y, x_last))
    }

    fn backward(&self) -> [Vec<f32>; 4] {
        let lengths = [self.shape.elements(), self.parameters.len(), self.shape.width, self.states()];
        outputs(lengths, |[d_u, d_parameters, d_skip, d_x0]| {
            state_space::backward(self.inputs(), self.d_y.as_deref(), self.d_x_last.as_deref(), d_u, d_parameters, d_skip, d_x0);
        })
    }

    fn check(&self, what: &str) {
        let Self { shape, form, .. } = *self;
        let (u, parameters, skip) = (wide(&self.u), wide(&self.parameters), wide(&self.skip));
        let x0 = self.x0.as_deref().map(wide);
        let inputs =
            reference::Inputs { shape, form, u: &u, parameters: &parameters, skip: &skip, x0: x0.as_deref(), segments: self.segments() };
        let (y, x_last) = reference::forward(inputs);
        let (d_y, d_x_last) = (self.d_y.as_deref().map(wide), self.d_x_last.as_deref().map(wide));
        let d = reference::backward(inputs, d_y.as_deref(), d_x_last.as_deref());
        on_every_level(|level| {
            let name = |tensor: &str| format!("{what}, {shape:?}, {form:?}, {level}: {tensor}");
            let [found_y, found_x] = self.forward();
            assert_close(&name("y"), &found_y, &y, OUTPUT);
            assert_close(&name("x_last"), &found_x, &x_last, OUTPUT);
            let [d_u, d_parameters, d_skip, d_x0] = self.backward();
            assert_close(&name("d_u"), &d_u, &d.d_u, GRADIENT);
            assert_sums_close(&name("d_parameters"), &d_parameters, &d.d_parameters, shape.batch * shape.seq_len);
            assert_sums_close(&name("d_skip"), &d_skip, &d.d_skip, shape.batch * shape.seq_len);
            // What is left of a gradient after many steps may be too small for f32.
            assert_close_above(&name("d_x0"), &d_x0, &d.d_x0, GRADIENT, 1e-20);
        });
    }
}

const FORMS: [Form; 6] = [
    Form { states: 1, planes: SIMPLE },
    Form { states: 8, planes: SIMPLE },
    Form { states: 5, planes: RANK_ONE },
    Form { states: 8, planes: RANK_ONE },
    Form { states: 2, planes: SIMPLE },
    Form { states: 7, planes: SIMPLE },
];

#[test]
fn reference_gradients_are_those_of_the_outputs() {
    let mut random = Random(1);
    for planes in [SIMPLE, RANK_ONE] {
        let (shape, form) = (Shape { batch: 2, seq_len: 5, width: 2 }, Form { states: 3, planes });
        let case = Case::new(&mut random, shape, form);
        let codes = [CONTINUE, CONTINUE, RESET, CONTINUE, CONTINUE, RESET, CONTINUE, CONTINUE, PADDING, PADDING];
        for segments in [Segments::DENSE, Segments::new(&codes, 5)] {
            let (u, parameters, skip) = (wide(&case.u), wide(&case.parameters), wide(&case.skip));
            let (x0, d_y, d_x) = (wide(case.x0.as_ref().unwrap()), wide(case.d_y.as_ref().unwrap()), wide(case.d_x_last.as_ref().unwrap()));
            let real = |y: Vec<f64>| -> Vec<f64> {
                let padded = |i: usize| segments.row(i / 10, 5).is_some_and(|row| row[i / 2 % 5] == PADDING);
                y.into_iter().enumerate().map(|(i, y)| if padded(i) { 0.0 } else { y }).collect()
            };
            let loss = |u: &[f64], parameters: &[f64], skip: &[f64], x0: &[f64]| {
                let (y, x_last) = reference::forward(reference::Inputs { shape, form, u, parameters, skip, x0: Some(x0), segments });
                dot(&real(y), &d_y) + dot(&x_last, &d_x)
            };
            let inputs = reference::Inputs { shape, form, u: &u, parameters: &parameters, skip: &skip, x0: Some(&x0), segments };
            let d = reference::backward(inputs, Some(&d_y), Some(&d_x));
            assert_gradient("d_u", &d.d_u, &differences(&u, |u| loss(u, &parameters, &skip, &x0)));
            assert_gradient("d_parameters", &d.d_parameters, &differences(&parameters, |p| loss(&u, p, &skip, &x0)));
            assert_gradient("d_skip", &d.d_skip, &differences(&skip, |skip| loss(&u, &parameters, skip, &x0)));
            assert_gradient("d_x0", &d.d_x0, &differences(&x0, |x0| loss(&u, &parameters, &skip, x0)));
        }
    }
}

#[test]
fn kernel_matches_reference() {
    let mut random = Random(2);
    for (batch, forms) in [(1, &FORMS[..4]), (3, &FORMS[..4]), (1, &FORMS[4..]), (3, &FORMS[4..])] {
        for (i, seq_len) in LENGTHS.into_iter().enumerate() {
            for (j, &form) in forms.iter().enumerate() {
                let shape = Shape { batch, seq_len, width: WIDTHS[(i + j) % WIDTHS.len()] };
                let case = Case::new(&mut random, shape, form);
                let with = |codes| Case { codes: Some(codes), ..case.clone() };
                case.check("dense");
                Case { x0: None, ..case.clone() }.check("no carried state");
                Case { d_y: None, ..case.clone() }.check("d_x_last only");
                Case { d_x_last: None, ..case.clone() }.check("d_y only");
                with(codes(&mut random, shape, 0.0, true)).check("lengths");
                with(codes(&mut random, shape, 0.1, true)).check("resets and lengths");
            }
        }
    }
}

#[test]
fn many_rows_and_empty_batches_work() {
    for form in FORMS {
        for shape in [
            Shape { batch: 19, seq_len: 33, width: 40 },
            Shape { batch: 0, seq_len: 5, width: 3 },
            Shape { batch: 2, seq_len: 5, width: 0 },
        ] {
            Case::new(&mut Random(3), shape, form).check("shape");
        }
    }
}

#[test]
fn threads_change_nothing() {
    for form in FORMS {
        let case = Case::new(&mut Random(4), Shape { batch: 20, seq_len: 70, width: 33 }, form);
        assert_threads_change_nothing(|| case.backward());
        assert_threads_change_nothing(|| case.forward());
    }
}

/// (re, im) parts of the product of two complex numbers.
fn times([a, b]: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
    [a * c - b * d, a * d + b * c]
}

/// K_l = 2 Re Σ C ((e^{ΔA} − 1)/A) e^{ΔAl} (arXiv:2206.11893), as an impulse response.
#[test]
fn an_impulse_response_is_the_published_kernel() {
    let (delta, a) = (0.1f64, [[-0.5, 0.0], [-0.5, core::f64::consts::PI]]);
    let c = [[1.0, 0.5], [-0.25, 1.0]];
    let mut parameters = vec![0.0; SIMPLE * 2];
    for n in 0..2 {
        let size = (delta * a[n][0]).exp();
        let angle = delta * a[n][1];
        let discrete = [size * angle.cos(), size * angle.sin()];
        let norm = a[n][0] * a[n][0] + a[n][1] * a[n][1];
        let input = times([discrete[0] - 1.0, discrete[1]], [a[n][0] / norm, -a[n][1] / norm]);
        for (parameter, value) in [discrete, input, c[n]].into_iter().enumerate() {
            (0..2).for_each(|part| parameters[(2 * parameter + part) * 2 + n] = value[part]);
        }
    }
    let shape = Shape { batch: 1, seq_len: 4, width: 1 };
    let form = Form { states: 2, planes: SIMPLE };
    let u = [1.0, 0.0, 0.0, 0.0];
    let (kernel, _) = reference::forward(reference::Inputs {
        shape,
        form,
        u: &u,
        parameters: &parameters,
        skip: &[0.0],
        x0: None,
        segments: Segments::DENSE,
    });
    for (found, expected) in kernel.iter().zip([0.11695942, 0.06069055, 0.02125973, -0.00001278]) {
        assert!((found - expected).abs() < 1e-8, "{found}, expected {expected}");
    }
}

/// The recurrence is the convolution with its impulse response, long enough for transforms.
#[test]
fn the_recurrence_is_a_convolution() {
    let shape = Shape { batch: 2, seq_len: 300, width: 5 };
    for form in FORMS {
        let case = Case { x0: None, ..Case::new(&mut Random(6), shape, form) };
        let mut impulse = Case { u: vec![0.0; shape.elements()], ..case.clone() };
        impulse.u[..shape.width].fill(1.0);
        let [kernel, _] = impulse.forward();
        let taps: Vec<f32> = (0..shape.width).flat_map(|d| (0..300).rev().map(move |l| (d, l))).map(|(d, l)| kernel[l * 5 + d]).collect();
        let [y, _] = outputs([shape.elements(), 2 * 299 * 5], |[y, window]| {
            let inputs = conv::Inputs { x: &case.u, weight: &taps, window: None, segments: Segments::DENSE };
            conv::forward(shape, 300, inputs, &[0.0; 5], y, window);
        });
        assert_close(&format!("{form:?}"), &y, &wide(&case.forward()[0]), 1e-5);
    }
}

#[test]
fn lengths_that_do_not_fit_each_other_are_not_discretised() {
    let zeros = [0.0; 40];
    let discrete = |[log_dt, log_a_real, a_imag, c]: [usize; 4], low_rank: Option<[usize; 2]>| {
        let low_rank = low_rank.map(|lengths| lengths.map(|n| &zeros[..n]));
        let (log_dt, log_a_real, a_imag, c) = (&zeros[..log_dt], &zeros[..log_a_real], &zeros[..a_imag], &zeros[..c]);
        Continuous { log_dt, log_a_real, a_imag, c, low_rank }.discrete(3).len()
    };
    assert_eq!(discrete([2, 4, 4, 8], None), SIMPLE * 2 * 2 * 3);
    assert_eq!(discrete([2, 4, 4, 8], Some([8, 8])), RANK_ONE * 2 * 2 * 3);
    assert_eq!(discrete([0; 4], None), 0);
    // A panic cannot be caught there.
    if cfg!(target_family = "wasm") {
        return;
    }
    for (lengths, low_rank, expected) in [
        ([2, 9, 5, 40], None, "a_imag: expected as many numbers for each of 2 channels of log_dt, found 5"),
        ([0, 1, 1, 2], None, "a_imag: expected as many numbers for each of 0 channels of log_dt, found 1"),
        ([2, 3, 4, 8], None, "log_a_real: expected 4 elements, found 3"),
        ([2, 9, 4, 8], None, "log_a_real: expected 4 elements, found 9"),
        ([2, 4, 4, 7], None, "c: expected 8 elements, found 7"),
        ([2, 4, 4, 8], Some([7, 8]), "p: expected 8 elements, found 7"),
        ([2, 4, 4, 8], Some([8, 9]), "b: expected 8 elements, found 9"),
    ] {
        let message = panic_of(|| _ = discrete(lengths, low_rank));
        assert!(message.starts_with(expected), "{message}");
    }
}
