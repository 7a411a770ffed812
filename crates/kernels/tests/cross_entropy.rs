mod common;
use common::*;
use minrnn_kernels::{cross_entropy, reference};

const SIZES: [(usize, usize); 8] = [(0, 3), (1, 1), (2, 2), (3, 16), (5, 33), (130, 65), (300, 5), (2, 1000)];

fn targets(random: &mut Random, rows: usize, classes: usize) -> Vec<i32> {
    (0..rows).map(|_| random.below(classes) as i32).collect()
}

#[test]
fn reference_gradient_matches_differences() {
    let mut random = Random(1);
    let (rows, classes, scale) = (4, 5, 0.7);
    let logits = wide(&random.normal(rows * classes));
    let (targets, mask) = (targets(&mut random, rows, classes), [1.0, 0.0, 0.5, 1.0]);
    let d_logits = reference::cross_entropy::backward(rows, classes, &logits, &targets, Some(&mask), scale);
    let loss = |x: &[f64]| scale * reference::cross_entropy::forward(rows, classes, x, &targets, Some(&mask)).0;
    assert_gradient("d_logits", &d_logits, &differences(&logits, loss));
}

#[test]
fn kernel_matches_reference() {
    let mut random = Random(2);
    for (rows, classes) in SIZES {
        for with_mask in [false, true] {
            let logits: Vec<f32> = random.normal(rows * classes).iter().map(|x| 3.0 * x).collect();
            let targets = targets(&mut random, rows, classes);
            let mask: Option<Vec<f32>> = with_mask.then(|| (0..rows).map(|_| [0.0, 1.0, 0.25][random.below(3)]).collect());
            let (mask, wide_mask) = (mask.as_deref(), mask.as_deref().map(wide));
            let (loss, weight) = reference::cross_entropy::forward(rows, classes, &wide(&logits), &targets, wide_mask.as_deref());
            let d_logits = reference::cross_entropy::backward(rows, classes, &wide(&logits), &targets, wide_mask.as_deref(), 0.5);
            on_every_level(|level| {
                let (found, found_weight) = cross_entropy::forward(rows, classes, &logits, &targets, mask);
                let close = (found - loss).abs() <= OUTPUT * loss.abs().max(1e-6 * rows as f64);
                assert!(close, "{level} {rows}x{classes} loss {found}, expected {loss}");
                assert_eq!(found_weight, weight);
                let [d] = outputs([rows * classes], |[d]| cross_entropy::backward(rows, classes, &logits, &targets, mask, 0.5, d));
                assert_close(&format!("{level} {rows}x{classes} d_logits"), &d, &d_logits, GRADIENT);
            });
        }
    }
}

#[test]
fn huge_logits_do_not_overflow() {
    let logits = [3e38, -3e38, 0.0, -1e4, -1e4 + 1.0, -1e4];
    on_every_level(|_| {
        let (loss, weight) = cross_entropy::forward(2, 3, &logits, &[0, 1], None);
        let expected = (1.0 + 2.0 * (-1f64).exp()).ln();
        assert!((loss - expected).abs() < 1e-6 && weight == 2.0, "{loss}");
        let [d] = outputs([6], |[d]| cross_entropy::backward(2, 3, &logits, &[0, 1], None, 1.0, d));
        assert!(d[..3] == [0.0; 3] && d[3..].iter().sum::<f32>().abs() < 1e-6, "{d:?}");
    });
}

#[test]
fn masked_rows_are_not_looked_at() {
    let logits = [f32::NAN, 1.0, 0.5, 0.25];
    on_every_level(|_| {
        let (loss, weight) = cross_entropy::forward(2, 2, &logits, &[-7, 1], Some(&[0.0, 1.0]));
        let (alone, _) = cross_entropy::forward(1, 2, &logits[2..], &[1], None);
        assert_eq!((loss, weight), (alone, 1.0));
        let [d] = outputs([4], |[d]| cross_entropy::backward(2, 2, &logits, &[-7, 1], Some(&[0.0, 1.0]), 1.0, d));
        assert!(d[..2] == [0.0; 2] && d[2..].iter().all(|d| d.is_finite()));
    });
}

#[test]
fn nan_logits_give_a_nan_loss() {
    for at in [0, 20, 64] {
        let mut logits = vec![0.0; 65];
        logits[at] = f32::NAN;
        on_every_level(|level| {
            assert!(cross_entropy::forward(1, 65, &logits, &[3], None).0.is_nan(), "{level}");
            let [d] = outputs([65], |[d]| cross_entropy::backward(1, 65, &logits, &[3], None, 1.0, d));
            assert!(d.iter().all(|d| d.is_nan()), "{level}");
        });
    }
}

#[test]
#[should_panic(expected = "expected a class in 0..2, found 2 in row 1")]
fn a_target_out_of_range_is_refused() {
    cross_entropy::forward(2, 2, &[0.0; 4], &[0, 2], None);
}

#[test]
fn threads_change_nothing() {
    let mut random = Random(9);
    let (rows, classes) = (3000, 65);
    let (logits, targets) = (random.normal(rows * classes), targets(&mut random, rows, classes));
    assert_threads_change_nothing(|| [vec![cross_entropy::forward(rows, classes, &logits, &targets, None).0 as f32]]);
}
