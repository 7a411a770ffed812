//! Linear attention: elu + 1 as features, divided by their sum.

use super::retention::{queries_keys_values, retained};
use super::{head_width, query_sizes, y_by_head};
use crate::ops::Retention;
use crate::verify::cell::Cell;

pub(super) const CELL: Cell = Cell {
    name: "linear_attention",
    settings: &[],
    told_by: "queries",
    sizes: query_sizes,
    remembers: Some(head_width),
    inputs: queries_keys_values,
    outputs: y_by_head,
    run: |given| vec![retained(given, &Retention::linear_attention(given.sizes.n_heads))],
};
