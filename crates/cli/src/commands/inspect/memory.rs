//! The memory that a model needs, in training and in use, as lines.

use minrnn::memory::rounded;
use minrnn::subject::{Training, Use};
use minrnn_model::ModelConfig;

use super::section;

/// The section about `training`, when there is one, and the one about use, whose weights have `packed` bytes or are f32.
pub fn sections(config: &ModelConfig, training: Option<&Training>, packed: Option<u128>) -> anyhow::Result<String> {
    let mut text = String::new();
    if let Some(training) = training {
        let estimate = training.estimate(config)?;
        let mut rows: Vec<(String, String)> = estimate.parts.iter().map(|part| (part.name.to_owned(), rounded(part.bytes))).collect();
        rows.push(("total".to_owned(), format!("about {}", rounded(estimate.total()))));
        text += &section("memory for training", &rows);
    }
    let Use { weights, session, token } = Use::of(config, packed)?;
    let mut rows = vec![("weights".to_owned(), rounded(weights)), ("each sequence".to_owned(), rounded(session))];
    if token > 0 {
        rows.push(("each token of it".to_owned(), format!("{} (where a cache grows)", rounded(token))));
    }
    Ok(text + &section("memory for use", &rows))
}
