mod common;
use common::*;
use minrnn_kernels::split;

#[test]
fn parts_joined_are_the_whole() {
    let mut random = Random(1);
    for (rows, left, right) in [(0, 3, 2), (1, 1, 1), (5, 0, 4), (5, 4, 0), (300, 7, 33), (1000, 64, 64)] {
        let width = left + right;
        let x = random.normal(rows * width);
        let [first, second] = outputs([rows * left, rows * right], |[first, second]| split::split(rows, [left, right], &x, first, second));
        for row in 0..rows {
            assert_eq!(first[row * left..(row + 1) * left], x[row * width..row * width + left]);
            assert_eq!(second[row * right..(row + 1) * right], x[row * width + left..(row + 1) * width]);
        }
        let [whole, only_left, nothing] = outputs([x.len(); 3], |[whole, only_left, nothing]| {
            split::join(rows, [left, right], Some(&first), Some(&second), whole);
            split::join(rows, [left, right], Some(&first), None, only_left);
            split::join(rows, [left, right], None, None, nothing);
        });
        assert_eq!(whole, x);
        let is_left = |i: usize| i % width.max(1) < left;
        assert!(only_left.iter().enumerate().all(|(i, &y)| y == if is_left(i) { x[i] } else { 0.0 }));
        assert!(nothing.iter().all(|&y| y == 0.0));
    }
}

#[test]
#[should_panic(expected = "right: expected 6 elements, found 5")]
fn a_short_part_is_refused() {
    outputs([4, 5], |[left, right]| split::split(2, [2, 3], &[0.0; 10], left, right));
}
