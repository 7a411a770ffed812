//! Which limits and models a server accepts.

mod common;

use minrnn_model::{ModelConfig, Pooling, Tokenizer};
use minrnn_serve::{Error, ServedModel, Server, Settings};

use common::{model, pool, settings};

fn text() -> ModelConfig {
    ModelConfig { vocab_size: 256, d_model: 8, n_layers: 1, ..Default::default() }
}

fn bound(config: &ModelConfig, settings: Settings) -> Result<(), Error> {
    let served = ServedModel { name: "m".into(), model: model(config, |_| 0.1), tokenizer: Tokenizer::Byte };
    Server::bind(vec![served], Vec::new(), settings, pool()).map(drop)
}

#[test]
fn a_limit_of_nothing_is_refused() {
    let changed = |change: fn(&mut Settings)| {
        let mut settings = settings();
        change(&mut settings);
        bound(&text(), settings)
    };
    let rest = "must be at least 1, found 0; raise it";
    let refused = |change: fn(&mut Settings)| changed(change).unwrap_err().to_string();
    assert_eq!(refused(|settings| settings.max_request = 0), format!("max_request {rest}"));
    assert_eq!(refused(|settings| settings.session_bytes = 0), format!("the memory of the sessions of a model (session_bytes) {rest}"));
    changed(|settings| (settings.max_request, settings.session_bytes) = (1, 1)).unwrap();
}

#[test]
fn only_models_that_continue_text_are_served_as_such() {
    bound(&text(), settings()).unwrap();
    let classes = ModelConfig { n_outputs: 256, ..text() };
    for config in [
        classes.clone(),
        ModelConfig { pooling: Pooling::Mean, ..classes.clone() },
        ModelConfig { pair_head: true, ..classes },
        // What it made of one text would affect the next.
        ModelConfig { pair_head: true, tie_embeddings: false, ..text() },
    ] {
        let refused = bound(&config, settings()).unwrap_err();
        assert!(matches!(&refused, Error::Input(sentence) if sentence.contains("does not continue text with its 256 tokens")), "{refused}");
    }
}
