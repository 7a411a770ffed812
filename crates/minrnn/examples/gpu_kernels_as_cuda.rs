//! Writes the GPU kernels as CUDA text, one file each, for `.ci/cuda_kernels.py`, which compiles them without a GPU.
//!
//! ```text
//! cargo run --release -p minrnn --features cuda-source --example gpu_kernels_as_cuda -- FOLDER
//! ```

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("error: expected a folder to write to");
        return ExitCode::from(2);
    };
    for source in minrnn::ops::cuda_sources() {
        let text = format!("// steps {} slices {} arrays {}\n{}", source.steps, source.slices, source.arrays, source.text);
        if let Err(error) = fs::write(folder.join(format!("{}.cu", source.name)), text) {
            eprintln!("error: '{}' cannot be written to: {error}", folder.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
