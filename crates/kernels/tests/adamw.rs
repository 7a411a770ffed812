mod common;
use common::*;
use minrnn_kernels::adamw::{AdamW, sum_of_squares};
use minrnn_kernels::reference;

fn settings(time: u64) -> AdamW {
    AdamW { lr: 1e-3, beta_1: 0.9, beta_2: 0.95, eps: 1e-8, weight_decay: 0.1, time, gradient_scale: 0.25 }
}

fn update(time: u64, [parameters, gradients, first, second]: [&[f32]; 4]) -> [Vec<f32>; 3] {
    outputs([parameters.len(); 3], |[updated, first_out, second_out]| {
        settings(time).update(parameters, gradients, [first, second], updated, [first_out, second_out]);
    })
}

#[test]
fn three_updates_match_the_reference() {
    let mut random = Random(1);
    for len in [0, 1, 15, 16, 17, 1000, 70_000] {
        let start = random.normal(len);
        let gradients: Vec<_> = (0..3).map(|_| random.normal(len)).collect();
        let mut expected = [wide(&start), vec![0.0; len], vec![0.0; len]];
        for (gradient, time) in gradients.iter().zip(1..) {
            let [parameters, first, second] = &expected;
            expected = reference::adamw::update(&settings(time), parameters, &wide(gradient), [first, second]);
        }
        on_every_level(|level| {
            let (mut parameters, mut first, mut second) = (start.clone(), vec![0.0; len], vec![0.0; len]);
            for (gradient, time) in gradients.iter().zip(1..) {
                [parameters, first, second] = update(time, [&parameters, gradient, &first, &second]);
            }
            for (name, found, expected) in [("θ", &parameters, &expected[0]), ("m", &first, &expected[1]), ("v", &second, &expected[2])] {
                assert_close(&format!("{level} {len} {name}"), found, expected, OUTPUT);
            }
        });
    }
}

#[test]
fn a_zero_gradient_only_decays() {
    let [updated, ..] = update(1, [&[1.0, -2.0, 0.0], &[0.0; 3], &[0.0; 3], &[0.0; 3]]);
    assert_eq!(updated, [0.9999, -1.9998, 0.0]);
}

#[test]
fn the_smallest_eps_keeps_a_step_without_a_gradient_a_number() {
    let settings = AdamW { eps: f64::from(f32::MIN_POSITIVE), ..settings(1) };
    on_every_level(|level| {
        let [updated, ..] = outputs([2; 3], |[updated, first, second]| {
            settings.update(&[1.0, 0.0], &[0.0; 2], [&[0.0; 2], &[0.0; 2]], updated, [first, second]);
        });
        assert_eq!(updated, [0.9999, 0.0], "{level}");
    });
}

#[test]
fn settings_that_would_make_everything_nan_are_refused_by_name() {
    // A panic cannot be caught there.
    if cfg!(target_family = "wasm") {
        return;
    }
    let good = settings(1);
    let refused = [
        (settings(0), "time: expected the number of the update, counted from 1, found 0"),
        (AdamW { lr: f64::NAN, ..good }, "lr: expected a finite number, found NaN"),
        (AdamW { beta_1: 1.0, ..good }, "beta_1: expected a number of at least 0 and below 1, found 1"),
        (AdamW { beta_2: -0.5, ..good }, "beta_2: expected a number of at least 0 and below 1, found -0.5"),
        (AdamW { weight_decay: f64::INFINITY, ..good }, "weight_decay: expected a finite number, found inf"),
        (AdamW { eps: -1e-8, ..good }, "eps: expected a finite number that is above 0 as an f32, found -1e-8"),
        (AdamW { eps: 0.0, ..good }, "eps: expected a finite number that is above 0 as an f32, found 0.0"),
        (AdamW { eps: 1e-50, ..good }, "eps: expected a finite number that is above 0 as an f32, found 1e-50"),
    ];
    for (settings, expected) in refused {
        for of_reference in [false, true] {
            let message = panic_of(|| {
                if of_reference {
                    drop(reference::adamw::update(&settings, &[1.0f64], &[1.0], [&[0.0], &[0.0]]));
                } else {
                    drop(outputs([1; 3], |[updated, first, second]| {
                        settings.update(&[1.0], &[1.0], [&[0.0], &[0.0]], updated, [first, second]);
                    }));
                }
            });
            assert_eq!(message, expected);
        }
    }
    AdamW { beta_1: 0.0, beta_2: 0.0, eps: f64::from(f32::MIN_POSITIVE), lr: 0.0, ..good }.expect_valid();
}

#[test]
fn squares_add_up_like_in_f64_and_name_what_is_not_finite() {
    let mut random = Random(2);
    for len in [0, 1, 17, 1023, 1025, 200_000] {
        let x = random.normal(len);
        let expected: f64 = x.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        on_every_level(|level| {
            let found = sum_of_squares(&x);
            assert!((found - expected).abs() <= 1e-6 * expected, "{level} {len}: {found}, expected {expected}");
        });
    }
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut x = random.normal(100_000);
        x[99_999] = bad;
        assert!(!sum_of_squares(&x).is_finite());
    }
}

#[test]
fn threads_change_nothing() {
    let mut random = Random(3);
    let (x, g) = (random.normal(200_000), random.normal(200_000));
    assert_threads_change_nothing(|| {
        let [updated, first, second] = update(1, [&x, &g, &x, &g.iter().map(|g| g * g).collect::<Vec<_>>()]);
        [updated, first, second, vec![sum_of_squares(&g) as f32]]
    });
}
