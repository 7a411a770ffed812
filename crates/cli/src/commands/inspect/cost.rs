//! What a model costs, as lines.

use minrnn::Error;
use minrnn_model::{CheckedConfig, Cost, KvCache, ModelConfig};

use super::{grouped, section};

/// Bytes of a number of the state, and of a weight before packing.
const F32: u128 = size_of::<f32>() as u128;

/// The sections `size`, with `more` lines at its end, and `parts`.
pub fn sections(config: &ModelConfig, more: Vec<(String, String)>) -> anyhow::Result<String> {
    let config = &config.checked().map_err(Error::from)?;
    let cost = config.cost();
    let mut size = vec![
        ("parameters".to_owned(), grouped(cost.parameters)),
        ("weights".to_owned(), format!("{} bytes as f32", grouped(F32 * cost.parameters))),
        ("state".to_owned(), format!("{} bytes per sequence", grouped(F32 * cost.state))),
    ];
    size.extend(cost.past.iter().map(|past| ("cache".to_owned(), cache(past))));
    size.push(("FLOPs".to_owned(), flops(&cost)));
    size.extend(more);
    Ok(section("size", &size) + &section("parts", &parts(config)))
}

/// Memory for the tokens read.
fn cache(past: &KvCache) -> String {
    let KvCache { mixer, len_per_token, capacity, grows, .. } = past;
    let each = grouped(F32 * len_per_token);
    let limit = grouped(*capacity as u128);
    let whole = grouped(F32 * past.carried(*capacity));
    match grows {
        true => format!("{each} bytes per token, up to {limit} tokens ({whole} bytes) of {mixer}"),
        false => format!("{each} bytes per token for {limit} tokens ({whole} bytes), from the first on, of {mixer}"),
    }
}

/// FLOPs of one token: of the first, and of one that sees the most.
fn flops(cost: &Cost) -> String {
    let note = "forward; in training about 3 times as many";
    let first = grouped(cost.flops(1));
    match cost.past.iter().map(|past| past.window).max() {
        None => format!("{first} per token ({note})"),
        Some(most) => {
            let (last, most) = (grouped(cost.flops(most)), grouped(most as u128));
            format!("{first} for the first token, {last} for one that sees {most} ({note})")
        }
    }
}

/// The parts of a model; blocks of the same mixer in one line.
fn parts(config: &CheckedConfig) -> Vec<(String, String)> {
    let mut parts = vec![("embedding".to_owned(), config.embedding_cost())];
    for kind in config.mixer_kinds() {
        let layers: Vec<usize> = (0..config.n_layers).filter(|&layer| config.mixer_at(layer) == kind).collect();
        // Blocks of the same mixer cost the same.
        parts.push((format!("{} × block of {kind}", layers.len()), config.block_cost(layers[0])));
    }
    parts.push(("head".to_owned(), config.head_cost()));
    let line = |cost: &Cost| {
        let (parameters, flops, carried) = (grouped(cost.parameters), grouped(cost.flops(1)), grouped(F32 * cost.carried(1)));
        format!("{parameters} parameters, {flops} FLOPs, {carried} bytes of state")
    };
    parts.iter().map(|(name, cost)| (name.clone(), line(cost))).collect()
}
