//! Writes the state of a packed model after 40 tokens, as bytes, and the logits after each of 8 further ones, as JSON. An example of the
//! minrnn-stream of before, for `compatibility_fixtures.sh`: `saved_state MODEL STATE LOGITS`.

use minrnn_stream::{Model, Workspace};

fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let model = Model::load(&paths[0]).unwrap();
    let (mut state, mut workspace) = (model.init_state(1), Workspace::new());
    let mut logits = vec![0.0; model.vocab_size()];
    let token = |i: u32| i * 7 % model.vocab_size() as u32;
    model.advance(&[(0..40).map(token).collect::<Vec<u32>>()], &mut state, &mut workspace).unwrap();
    std::fs::write(&paths[1], state.to_bytes()).unwrap();
    let mut after = Vec::new();
    for i in 40..48 {
        model.step(&[token(i)], &mut state, &mut logits, &mut workspace).unwrap();
        after.push(logits.clone());
    }
    std::fs::write(&paths[2], serde_json::to_string(&after).unwrap() + "\n").unwrap();
}
