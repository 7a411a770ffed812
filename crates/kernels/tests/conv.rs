mod common;
use common::*;
use minrnn_kernels::conv::{self, Gradients, Inputs, Upstream};
use minrnn_kernels::segments::{CONTINUE, PADDING, RESET};
use minrnn_kernels::{Segments, Shape, reference};

/// A batch of inputs, parameters and upstream gradients.
struct Case {
    shape: Shape,
    kernel_size: usize,
    x: Vec<f32>,
    weight: Vec<f32>,
    bias: Vec<f32>,
    window: Option<Vec<f32>>,
    codes: Option<Vec<i32>>,
    d_y: Option<Vec<f32>>,
    d_window_last: Option<Vec<f32>>,
    d_residual: Option<Vec<f32>>,
}

impl Case {
    fn new(random: &mut Random, shape: Shape, kernel_size: usize) -> Self {
        let window_elements = shape.batch * (kernel_size - 1) * shape.width;
        Self {
            shape,
            kernel_size,
            x: random.normal(shape.elements()),
            weight: random.normal(shape.width * kernel_size),
            bias: random.normal(shape.width),
            window: Some(random.normal(window_elements)),
            codes: None,
            d_y: Some(random.normal(shape.elements())),
            d_window_last: Some(random.normal(window_elements)),
            d_residual: None,
        }
    }

    fn segments(&self) -> Segments<'_> {
        self.codes.as_ref().map_or(Segments::DENSE, |codes| Segments::new(codes, self.shape.seq_len))
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs { x: &self.x, weight: &self.weight, window: self.window.as_deref(), segments: self.segments() }
    }

    fn forward(&self) -> [Vec<f32>; 2] {
        let window = self.shape.batch * (self.kernel_size - 1) * self.shape.width;
        outputs([self.shape.elements(), window], |[y, last]| {
            conv::forward(self.shape, self.kernel_size, self.inputs(), &self.bias, y, last)
        })
    }

    fn backward(&self) -> [Vec<f32>; 4] {
        let window = self.shape.batch * (self.kernel_size - 1) * self.shape.width;
        let (d_y, d_window_last, d_residual) = (self.d_y.as_deref(), self.d_window_last.as_deref(), self.d_residual.as_deref());
        outputs([self.shape.elements(), self.weight.len(), self.shape.width, window], |[d_x, d_weight, d_bias, d_window]| {
            let upstream = Upstream { d_y, d_window_last, d_residual };
            conv::backward(self.shape, self.kernel_size, self.inputs(), upstream, Gradients { d_x, d_weight, d_bias, d_window })
        })
    }

    fn check(&self, name: &str) {
        let (x, weight, bias, window) = (wide(&self.x), wide(&self.weight), wide(&self.bias), self.window.as_deref().map(wide));
        let (window, segments) = (window.as_deref(), self.segments());
        let inputs = Inputs { x: &x, weight: &weight, window, segments };
        let (y, window_last) = reference::conv::forward(self.shape, self.kernel_size, inputs, &bias);
        let (d_y, d_window_last) = (self.d_y.as_deref().map(wide), self.d_window_last.as_deref().map(wide));
        let upstream = Upstream { d_y: d_y.as_deref(), d_window_last: d_window_last.as_deref(), d_residual: None };
        let reference::conv::Gradients { mut d_x, d_weight, d_bias, d_window } =
            reference::conv::backward(self.shape, self.kernel_size, inputs, upstream);
        for (d, residual) in d_x.iter_mut().zip(self.d_residual.iter().flatten()) {
            *d += f64::from(*residual);
        }
        on_every_level(|level| {
            let [found_y, found_last] = self.forward();
            let [found_x, found_weight, found_bias, found_window] = self.backward();
            let name = format!("{level} {name} K={} {:?}", self.kernel_size, self.shape);
            assert_close(&format!("{name} y"), &found_y, &y, OUTPUT);
            assert_close(&format!("{name} window_last"), &found_last, &window_last, 0.0);
            assert_close(&format!("{name} d_x"), &found_x, &d_x, GRADIENT);
            assert_sums_close(&format!("{name} d_weight"), &found_weight, &d_weight, self.shape.batch * self.shape.seq_len);
            assert_sums_close(&format!("{name} d_bias"), &found_bias, &d_bias, self.shape.batch * self.shape.seq_len);
            assert_close(&format!("{name} d_window"), &found_window, &d_window, GRADIENT);
        });
    }
}

#[test]
fn reference_gradients_match_differences() {
    let mut random = Random(1);
    let shape = Shape { batch: 2, seq_len: 6, width: 2 };
    for (resets, padded) in [(0.0, false), (0.3, true)] {
        let mut case = Case::new(&mut random, shape, 3);
        case.codes = Some(codes(&mut random, shape, resets, padded));
        let (x, weight, bias, window) = (wide(&case.x), wide(&case.weight), wide(&case.bias), wide(case.window.as_ref().unwrap()));
        let (w, w_last) = (wide(case.d_y.as_ref().unwrap()), wide(case.d_window_last.as_ref().unwrap()));
        let loss = |x: &[f64], weight: &[f64], bias: &[f64], window: &[f64]| {
            let inputs = Inputs { x, weight, window: Some(window), segments: case.segments() };
            let (y, last) = reference::conv::forward(shape, 3, inputs, bias);
            dot(&y, &w) + dot(&last, &w_last)
        };
        let inputs = Inputs { x: &x, weight: &weight, window: Some(&window), segments: case.segments() };
        let upstream = Upstream { d_y: Some(&w), d_window_last: Some(&w_last), d_residual: None };
        let reference::conv::Gradients { d_x, d_weight, d_bias, d_window } = reference::conv::backward(shape, 3, inputs, upstream);
        assert_gradient("d_x", &d_x, &differences(&x, |x| loss(x, &weight, &bias, &window)));
        assert_gradient("d_weight", &d_weight, &differences(&weight, |weight| loss(&x, weight, &bias, &window)));
        assert_gradient("d_bias", &d_bias, &differences(&bias, |bias| loss(&x, &weight, bias, &window)));
        assert_gradient("d_window", &d_window, &differences(&window, |window| loss(&x, &weight, &bias, window)));
    }
}

#[test]
fn kernel_matches_reference() {
    let mut random = Random(2);
    for batch in [1, 3] {
        for (i, seq_len) in LENGTHS.into_iter().enumerate() {
            for (j, kernel_size) in [4, 1, 2, 7].into_iter().enumerate() {
                let shape = Shape { batch, seq_len, width: WIDTHS[(i + j) % WIDTHS.len()] };
                let case = || Case::new(&mut Random(batch as u64 * 1000 + seq_len as u64), shape, kernel_size);
                case().check("dense");
                Case { window: None, ..case() }.check("no window");
                Case { d_residual: Some(random.normal(shape.elements())), ..case() }.check("with a residual");
                Case { d_y: None, ..case() }.check("d_window_last only");
                Case { d_window_last: None, ..case() }.check("d_y only");
                Case { codes: Some(codes(&mut random, shape, 0.0, true)), ..case() }.check("lengths");
                Case { codes: Some(codes(&mut random, shape, 0.2, false)), ..case() }.check("resets");
                Case { codes: Some(codes(&mut random, shape, 0.2, true)), ..case() }.check("both");
                Case { codes: Some(codes(&mut random, shape, 0.5, true)), window: None, ..case() }.check("both, no window");
            }
        }
    }
}

/// Filters long enough for transforms, shorter and longer than the rows.
#[test]
fn long_filters_match_the_reference() {
    let mut random = Random(7);
    for (seq_len, kernel_size, width) in [(128, 128, 9), (300, 130, 3), (200, 500, 2), (1000, 256, 1)] {
        let shape = Shape { batch: 3, seq_len, width };
        let case = || Case::new(&mut Random(70), shape, kernel_size);
        case().check("dense");
        Case { window: None, ..case() }.check("no window");
        Case { window: Some(vec![0.0; 3 * (kernel_size - 1) * width]), ..case() }.check("a window of zeros");
        Case { d_residual: Some(random.normal(shape.elements())), ..case() }.check("with a residual");
        Case { d_y: None, ..case() }.check("d_window_last only");
        Case { d_window_last: None, ..case() }.check("d_y only");
        Case { codes: Some(codes(&mut random, shape, 0.0, true)), ..case() }.check("lengths");
        Case { codes: Some(codes(&mut random, shape, 0.01, true)), ..case() }.check("both");
        Case { codes: Some(codes(&mut random, shape, 0.2, true)), window: None, ..case() }.check("both, no window");
    }
    let case = Case::new(&mut random, Shape { batch: 3, seq_len: 200, width: 20 }, 150);
    assert_threads_change_nothing(|| case.backward());
}

#[test]
fn an_empty_batch_and_no_channels_equal_the_reference() {
    let shape = Shape { batch: 0, seq_len: 5, width: 3 };
    Case::new(&mut Random(3), shape, 4).check("empty batch");
    let shape = Shape { batch: 2, seq_len: 5, width: 0 };
    Case::new(&mut Random(3), shape, 4).check("no channels");
}

#[test]
fn padded_steps_are_not_looked_at() {
    let shape = Shape { batch: 1, seq_len: 6, width: 3 };
    let mut case = Case::new(&mut Random(4), shape, 4);
    case.codes = Some(vec![CONTINUE, CONTINUE, RESET, CONTINUE, PADDING, PADDING]);
    case.x[12..].fill(f32::NAN);
    case.d_y.as_mut().unwrap()[12..].fill(f32::NAN);
    let [y, last] = case.forward();
    assert!(y.iter().chain(&last).all(|y| y.is_finite()) && y[12..] == [0.0; 6]);
    assert_eq!(last, [vec![0.0; 3], case.x[6..12].to_vec()].concat());
    for gradient in case.backward() {
        assert!(gradient.iter().all(|d| d.is_finite()));
    }
}

/// Steps `from..to` of every row of `[B, T, D]`.
fn steps(shape: Shape, x: &[f32], from: usize, to: usize) -> Vec<f32> {
    x.chunks(shape.seq_len * shape.width).flat_map(|row| &row[from * shape.width..to * shape.width]).copied().collect()
}

#[test]
fn cut_anywhere_equals_the_whole() {
    let mut random = Random(5);
    let shape = Shape { batch: 2, seq_len: 9, width: 5 };
    for kernel_size in [2, 4, 6] {
        for (resets, padded) in [(0.0, false), (0.25, false), (0.25, true)] {
            let whole = Case { codes: Some(codes(&mut random, shape, resets, padded)), ..Case::new(&mut random, shape, kernel_size) };
            let [y, window_last] = whole.forward();
            let [d_x, d_weight, d_bias, d_window] = whole.backward();
            for cut in 0..=shape.seq_len {
                let part = |from: usize, to: usize| Case {
                    shape: Shape { seq_len: to - from, ..shape },
                    kernel_size,
                    x: steps(shape, &whole.x, from, to),
                    weight: whole.weight.clone(),
                    bias: whole.bias.clone(),
                    window: None,
                    codes: whole.codes.as_ref().map(|codes| codes.chunks(shape.seq_len).flat_map(|row| row[from..to].to_vec()).collect()),
                    d_y: whole.d_y.as_ref().map(|d| steps(shape, d, from, to)),
                    d_window_last: None,
                    d_residual: None,
                };
                let mut first = Case { window: whole.window.clone(), ..part(0, cut) };
                let [y_first, carried] = first.forward();
                let last = Case { window: Some(carried), d_window_last: whole.d_window_last.clone(), ..part(cut, shape.seq_len) };
                let [y_last, found_window] = last.forward();
                let [d_x_last, d_weight_last, d_bias_last, d_carried] = last.backward();
                first.d_window_last = Some(d_carried);
                let [d_x_first, d_weight_first, d_bias_first, found_d_window] = first.backward();
                let name = |what: &str| format!("K={kernel_size} cut {cut} {what}");
                assert_eq!(y_first, steps(shape, &y, 0, cut), "{}", name("y before"));
                assert_eq!(y_last, steps(shape, &y, cut, shape.seq_len), "{}", name("y after"));
                assert_eq!(found_window, window_last, "{}", name("window_last"));
                assert_close(&name("d_x before"), &d_x_first, &wide(&steps(shape, &d_x, 0, cut)), GRADIENT);
                assert_close(&name("d_x after"), &d_x_last, &wide(&steps(shape, &d_x, cut, shape.seq_len)), GRADIENT);
                assert_close(&name("d_window"), &found_d_window, &wide(&d_window), GRADIENT);
                let sum = |a: &[f32], b: &[f32]| -> Vec<f32> { a.iter().zip(b).map(|(a, b)| a + b).collect() };
                assert_sums_close(&name("d_weight"), &sum(&d_weight_first, &d_weight_last), &wide(&d_weight), 18);
                assert_sums_close(&name("d_bias"), &sum(&d_bias_first, &d_bias_last), &wide(&d_bias), 18);
            }
        }
    }
}

#[test]
fn threads_change_nothing() {
    for shape in [Shape { batch: 1, seq_len: 3000, width: 33 }, Shape { batch: 300, seq_len: 7, width: 33 }] {
        let case = Case::new(&mut Random(9), shape, 4);
        assert_threads_change_nothing(|| case.backward());
    }
}
