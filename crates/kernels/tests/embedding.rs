mod common;
use common::*;
use minrnn_kernels::embedding;

#[test]
fn every_token_gets_its_row_and_the_table_the_sum_of_its_tokens() {
    let mut random = Random(1);
    for (rows, width, vocab) in [(0, 3, 2), (1, 1, 1), (5, 33, 3), (300, 64, 7), (1000, 130, 65), (7, 0, 3)] {
        let (table, d_y) = (random.normal(vocab * width), random.normal(rows * width));
        let tokens: Vec<u32> = (0..rows).map(|_| random.below(vocab) as u32).collect();
        let mut d_table = vec![0.0f64; vocab * width];
        for (n, &token) in tokens.iter().enumerate() {
            for i in 0..width {
                d_table[token as usize * width + i] += f64::from(d_y[n * width + i]);
            }
        }
        on_every_level(|level| {
            let [y] = outputs([rows * width], |[y]| embedding::forward(width, &tokens, &table, y));
            for (n, &token) in tokens.iter().enumerate() {
                assert_eq!(y[n * width..(n + 1) * width], table[token as usize * width..][..width]);
            }
            let [found] = outputs([vocab * width], |[d]| embedding::backward(width, &tokens, &d_y, d));
            assert_sums_close(&format!("{level} {rows}x{width} d_table"), &found, &d_table, rows.max(1));
        });
    }
}

#[test]
fn threads_change_nothing() {
    let mut random = Random(2);
    let (rows, width, vocab) = (2000, 200, 11);
    let d_y = random.normal(rows * width);
    let tokens: Vec<u32> = (0..rows).map(|_| random.below(vocab) as u32).collect();
    assert_threads_change_nothing(|| outputs([vocab * width], |[d]| embedding::backward(width, &tokens, &d_y, d)));
}

#[test]
#[should_panic(expected = "token 3 is not below the 3 rows of the table")]
fn a_token_outside_the_table_is_named() {
    outputs([2], |[y]| embedding::forward(2, &[3], &[0.0; 6], y));
}
