//! Prints the instruction set that the kernels use on this machine, and all that they could use:
//!
//! ```text
//! cargo run --release -p minrnn-kernels --example levels
//! ```

use minrnn_kernels::matmul::bf16::has_tiles;
use minrnn_kernels::simd::Level;

fn main() {
    let (current, available) = (Level::current(), Level::available());
    let names: Vec<&str> = available.iter().map(|level| level.name()).collect();
    let [bf16, tiles, int8] = [current.multiplies_bf16(), has_tiles(), current.multiplies_int8()];
    println!("in use: {}; available: {}; multiplies bf16: {bf16}, in tiles: {tiles}, int8: {int8}", current.name(), names.join(", "));
}
