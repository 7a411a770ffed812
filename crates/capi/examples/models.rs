//! Writes packed models with drawn weights, to try the C functions with: `text.minrnn` of characters, `table.minrnn` of a classifier, and `rows`
//! for it.

#[path = "../tests/common/mod.rs"]
mod common;

use std::path::PathBuf;

use minrnn_model::MixerKind;

fn main() {
    let folder = PathBuf::from(std::env::args_os().nth(1).expect("a folder to write to"));
    for (name, packed) in [("text.minrnn", common::text_model(MixerKind::MinGru, 1)), ("table.minrnn", common::classifier(1))] {
        std::fs::write(folder.join(name), packed.bytes).expect("the folder can be written to");
    }
    std::fs::write(folder.join("rows"), "20,0.5\n31.5,0.25\n-4,0.75\n").expect("the folder can be written to");
}
