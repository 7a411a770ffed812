//! What the targets share: files for readers that want a path, files under a valid checksum, small models, and seeds.
//!
//! Letters in shapes: `B` sessions, `V` vocabulary.

#[cfg(feature = "library")]
pub mod library;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use minrnn_model::{
    Candidate, FeedForwardKind, InitialState, MixerKind, ModelConfig, NormKind, Pooling, Positions, Section, TensorSpec, WeightFormat,
    Weights, WiringKind, write_safetensors,
};
use minrnn_stream::{Model, PackedModel, Reads, State, Workspace};

/// The folder that inputs are written to, inside that of temporary files; fast if that is a memory file system.
pub fn folder() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = std::env::temp_dir().join(format!("minrnn-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the folder of temporary files can be written to");
        folder
    });
    &FOLDER
}

/// The file `name` with these bytes.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder().join(name);
    std::fs::write(&path, bytes).expect("the folder of temporary files can be written to");
    path
}

/// The parts of an input made of N files one after the other, with a zero byte between them; the last may have any bytes.
pub fn parts<const N: usize>(input: &[u8]) -> Option<[&[u8]; N]> {
    input.splitn(N, |&byte| byte == 0).collect::<Vec<_>>().try_into().ok()
}

/// An input for [`parts`].
pub fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.join(&0)
}

/// The packed file for `input`, which has the header (JSON) and, after a zero byte, everything behind it but the checksum: no mutation would find the
/// right length and checksum.
pub fn packed_file(input: &[u8]) -> Option<Vec<u8>> {
    let [header, rest] = parts(input)?;
    let mut bytes = PackedModel::MAGIC.to_vec();
    // The first version, which is still read, kept a tokenizer in place of a list of sections.
    let version = if header.windows(15).any(|name| name == b"tokenizer_bytes") { 1u32 } else { 2 };
    bytes.extend(version.to_le_bytes());
    bytes.extend(u32::try_from(header.len()).ok()?.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(header);
    if !rest.is_empty() {
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        bytes.extend(rest);
    }
    let len = bytes.len() as u64 + 4;
    bytes[16..24].copy_from_slice(&len.to_le_bytes());
    Some(sealed(bytes))
}

/// The input from which [`packed_file`] makes `file`.
pub fn packed_parts(file: &[u8]) -> Vec<u8> {
    let end = 24 + u32::from_le_bytes(file[12..16].try_into().expect("four bytes")) as usize;
    let rest = end.next_multiple_of(64).min(file.len() - 4);
    joined(&[&file[24..end], &file[rest..file.len() - 4]])
}

/// `bytes` and their CRC-32C.
pub fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

/// Small models with every mixer of the runtime, and one for each other choice.
pub fn configs() -> Vec<ModelConfig> {
    let base = ModelConfig { vocab_size: 5, d_model: 4, n_layers: 1, n_heads: 2, d_state: 4, max_seq_len: 6, ..Default::default() };
    let mut configs: Vec<ModelConfig> =
        MixerKind::ALL.iter().map(|&mixer| ModelConfig { mixer, ff: FeedForwardKind::None, ..base.clone() }).collect();
    for ff in [FeedForwardKind::Mlp, FeedForwardKind::Gated, FeedForwardKind::ChannelMix, FeedForwardKind::SwiGlu] {
        configs.push(ModelConfig { ff, conv: true, n_layers: 2, ..base.clone() });
    }
    for norm in [NormKind::Layer, NormKind::Batch] {
        configs.push(ModelConfig { norm, tie_embeddings: true, initial_state: InitialState::Learned, ..base.clone() });
    }
    for wiring in [WiringKind::H3, WiringKind::Mamba] {
        configs.push(ModelConfig { wiring, ff: FeedForwardKind::None, ..base.clone() });
    }
    for mixer in [MixerKind::MinLstm, MixerKind::Attention] {
        let values = ModelConfig { mixer, vocab_size: 0, input_width: 2, n_outputs: 3, ..base.clone() };
        configs.push(ModelConfig { pooling: Pooling::Mean, pair_head: true, positions: Positions::Learned, ..values.clone() });
        configs.push(values);
    }
    configs.push(ModelConfig { highway: true, candidate: Candidate::Tanh, ..base });
    configs.retain(|config| config.validate().is_ok());
    configs
}

/// A tensor's name, shape and values.
pub type NamedTensor = (String, Vec<usize>, Vec<f32>);

/// Drawn weights of a model.
pub fn tensors(config: &ModelConfig) -> Vec<NamedTensor> {
    let mut drawn = 1u64;
    let mut number = || {
        drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (drawn >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    let listed = config.checked().expect("the configuration is valid").tensors();
    let drawn = |tensor: TensorSpec| {
        let values = (0..tensor.elements()).map(|_| number()).collect();
        (tensor.name, tensor.shape, values)
    };
    listed.into_iter().map(drawn).collect()
}

/// These tensors as read from a file.
pub fn weights(tensors: &[NamedTensor]) -> Weights {
    let path = safetensors_file("made.safetensors", tensors, None);
    Weights::read(path).expect("what was written is read")
}

/// The file `name` with these tensors.
pub fn safetensors_file(name: &str, tensors: &[NamedTensor], metadata: Option<(&str, &str)>) -> PathBuf {
    let path = folder().join(name);
    let views = tensors.iter().map(|(name, shape, values)| (name.clone(), shape.clone(), Cow::Borrowed(&values[..])));
    write_safetensors(&path, views, metadata).expect("the folder of temporary files can be written to");
    path
}

/// The packed file of a small model.
pub fn packed_model(config: &ModelConfig, format: WeightFormat, sections: &[Section<'_>]) -> Vec<u8> {
    let path = folder().join("made.minrnn");
    PackedModel::write(&path, config, &mut weights(&tensors(config)), format, sections).expect("the model can be packed");
    std::fs::read(path).expect("what was written is read")
}

/// Runs a loaded model: a prompt read at once and token by token gives the same bits, and so does a saved state.
pub fn use_model(model: &Model) {
    // A file may describe a model that is small on disk and large in use; only what loading takes is bounded.
    let sessions = |rows| model.init_state(rows).expect("there is room for a few sessions");
    if model.parameters() > 1 << 18 || sessions(0).bytes_per_row() > 1 << 20 {
        return;
    }
    let v = model.outputs();
    let mut workspace = Workspace::new();
    let (mut state, mut stepped) = (sessions(1), sessions(2));
    let (mut logits, mut step_logits) = (vec![0.0; v], vec![0.0; 2 * v]);
    match model.reads() {
        Reads::Tokens { vocab } => {
            let tokens = [0, vocab as u32 - 1, 0, vocab as u32 / 2];
            model.prefill(&[tokens], &mut state, &mut logits, &mut workspace).expect("the tokens are known");
            for token in tokens {
                model.step(&[token; 2], &mut stepped, &mut step_logits, &mut workspace).expect("the tokens are known");
            }
        }
        Reads::Values { width } => {
            let values: Vec<f32> = (0..4 * width).map(|i| i as f32 / 8.0 - 1.0).collect();
            model.prefill_values(&[&values], &mut state, &mut logits, &mut workspace).expect("the numbers are finite");
            for values in values.chunks_exact(width) {
                let both = [values, values].concat();
                model.step_values(&both, &mut stepped, &mut step_logits, &mut workspace).expect("the numbers are finite");
            }
        }
    }
    assert_same(&logits, &step_logits[..v]);
    assert_same(&logits, &step_logits[v..]);
    let pasts = |state: &State| state.pasts(0).flatten().copied().collect::<Vec<f32>>();
    assert_same(&pasts(&state), &pasts(&stepped));
    assert_same(state.values(), stepped.select(&[1]).expect("there are two").values());
    let saved = state.to_bytes().and_then(|bytes| State::from_bytes(&bytes, model));
    // Finite weights may give results that are not finite, such as the root of a negative variance.
    if state.values().iter().chain(&pasts(&state)).all(|value| value.is_finite()) {
        assert_same(saved.expect("what was saved is loaded").values(), state.values());
    } else {
        assert!(saved.is_err(), "a session that is not finite is not gone on with");
    }
}

/// Panics if bits differ, except those of NaN.
pub fn assert_same(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        assert!(x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan(), "number {i} is {x} and {y}");
    }
}

/// If `MINRNN_FUZZ_SEEDS` names a folder, writes the seeds of `target` into a subfolder with the target's name and ends the process;
/// otherwise does nothing. Called before the first input.
pub fn seeds<B: AsRef<[u8]>>(target: &str, make: impl FnOnce() -> Vec<B>) {
    let Some(folder) = std::env::var_os("MINRNN_FUZZ_SEEDS") else { return };
    let folder = Path::new(&folder).join(target);
    std::fs::create_dir_all(&folder).expect("the folder of the seeds can be made");
    for (number, seed) in make().into_iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number:02}")), seed).expect("the folder of the seeds can be written to");
    }
    std::process::exit(0);
}

/// The files below `folder` of the repository whose names end with `extension`, in order, none longer than `longest` bytes.
pub fn repository_files(folder: &str, extension: &str, longest: usize) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    let files = paths.iter().map(|path| std::fs::read(path).expect("the file can be read"));
    files.filter(|bytes| bytes.len() <= longest).collect()
}
