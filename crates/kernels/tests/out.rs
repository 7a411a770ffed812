//! A kernel writes the same numbers to whatever memory it is given.

mod common;
use common::*;
use core::mem::MaybeUninit;
use minrnn_kernels::matmul::{Matrix, Precision, matmul};
use minrnn_kernels::recurrence::{self, Cell, Inputs};
use minrnn_kernels::{Candidate, Out, Shape, Start, gelu};

/// What `write` writes to memory that is not initialised.
fn into_room<const N: usize>(lengths: [usize; N], write: impl FnOnce([Out<'_>; N])) -> [Vec<f32>; N] {
    let mut rooms = lengths.map(Vec::<f32>::with_capacity);
    let mut parts = rooms.iter_mut().zip(lengths).map(|(room, len)| Out::from(&mut room.spare_capacity_mut()[..len]));
    write(core::array::from_fn(|_| parts.next().expect("as many parts as rooms")));
    for (room, len) in rooms.iter_mut().zip(lengths) {
        // SAFETY: the capacity is at least `len`, and kernels write every element.
        unsafe { room.set_len(len) };
    }
    rooms
}

#[test]
fn numbers_and_room_become_the_same() {
    on_every_level(|level| {
        let mut random = Random(1);
        let shape = Shape { batch: 3, seq_len: 65, width: 33 };
        let (preact, d_y) = (random.normal(2 * shape.elements()), random.normal(shape.elements()));
        let [rows, width] = [shape.steps(), shape.width];
        let x = &preact[..shape.elements()];
        let recurrence = |[h, h_last]: [Out<'_>; 2]| {
            let inputs = Inputs { preact: &preact, bias: None, extra: &[] };
            recurrence::forward(shape, Cell::MinGru(Candidate::Positive), inputs, Start::default(), h, h_last);
        };
        let activation = |[d_x, d_bias]: [Out<'_>; 2]| gelu::backward(rows, width, x, Some(&x[..width]), &d_y, d_x, Some(d_bias));
        let product = |[out]: [Out<'_>; 1]| {
            let (left, right) = (Matrix::new(x, width).transpose(), Matrix::new(&d_y, width));
            matmul(Precision::F32, [width, rows, width], left, right, None, out);
        };
        let states = [shape.elements(), shape.states()];
        assert_eq!(outputs(states, recurrence), into_room(states, recurrence), "{level}");
        let gradients = [shape.elements(), width];
        assert_eq!(outputs(gradients, activation), into_room(gradients, activation), "{level}");
        assert_eq!(outputs([width * width], product), into_room([width * width], product), "{level}");
    });
}

#[test]
fn arrays_and_vectors_of_both_kinds_are_outputs_of_their_length() {
    let (mut numbers, mut vector) = ([1.0f32; 2], vec![1.0f32; 3]);
    let (mut room, mut rooms) = ([MaybeUninit::<f32>::uninit(); 4], vec![MaybeUninit::<f32>::uninit(); 5]);
    let outs: [Out<'_>; 4] = [(&mut numbers).into(), (&mut vector).into(), (&mut room).into(), (&mut rooms).into()];
    assert_eq!(outs.map(|out| out.len()), [2, 3, 4, 5]);
    assert!(Out::default().is_empty() && !Out::new(&mut numbers).is_empty());
    assert_eq!((numbers, vector), ([1.0; 2], vec![1.0; 3]), "making an output changes no number");
}
