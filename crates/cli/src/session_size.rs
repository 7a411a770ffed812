//! What one more session of a model costs, as text.

use minrnn_stream::Model;

/// "96 bytes", or with what past tokens add to it.
pub fn session_size(model: &Model) -> String {
    let first = model.session_bytes(0);
    match model.steps_seen() {
        0 => format!("{first} bytes, however long"),
        steps => {
            let (each, most) = (model.session_bytes(1) - first, model.session_bytes(steps));
            format!("{first} bytes, and {each} for each step it has read, up to {steps} steps ({most} bytes)")
        }
    }
}
