//! What one more session of a model costs, as text.

use minrnn_model::TableTask;
use minrnn_stream::Model;

/// "96 bytes", or with what past tokens add to it; for a model of a `table`, with the rows that it keeps.
pub fn session_size(model: &Model, table: Option<&TableTask>) -> String {
    let bytes = |steps| model.session_bytes_of(table, steps);
    let first = bytes(0);
    match model.steps_seen() {
        0 => format!("{first} bytes, however long"),
        steps => {
            let (each, most) = (bytes(1) - first, bytes(steps));
            format!("{first} bytes, and {each} for each step it has read, up to {steps} steps ({most} bytes)")
        }
    }
}
