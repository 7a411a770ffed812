//! Writes packed models with drawn weights, to try the C functions with: `text.minrnn` of characters, `pieces.minrnn` of BPE, `table.minrnn` of a
//! classifier, and `rows` for it; `life.minrnn` of a number for each machine, and `machines.csv` with interleaved rows of two machines.

#[path = "../tests/common/mod.rs"]
mod common;

use std::path::PathBuf;

use minrnn_model::MixerKind;

fn main() {
    let folder = PathBuf::from(std::env::args_os().nth(1).expect("a folder to write to"));
    let text = [("text.minrnn", common::text_model(MixerKind::MinGru, 1)), ("pieces.minrnn", common::pieces_model(1))];
    let tables = [("table.minrnn", common::classifier(1)), ("life.minrnn", common::regressor(1))];
    for (name, packed) in text.into_iter().chain(tables) {
        std::fs::write(folder.join(name), packed.bytes).expect("the folder can be written to");
    }
    let machines = "noise,machine,heat\n0.5,a,20\n0.25,b,31.5\n0.75,a,14\n0.5,b,22\n";
    for (name, text) in [("rows", "20,0.5\n31.5,0.25\n-4,0.75\n"), ("machines.csv", machines)] {
        std::fs::write(folder.join(name), text).expect("the folder can be written to");
    }
}
