//! Texts that a later request may continue, by the id of the answer that they end with.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Approximate bytes of an entry beside its tokens: the answer's id and the rest.
const ENTRY_BYTES: usize = 256;

/// The tokens of texts; the oldest are dropped for new ones.
pub(crate) struct Kept {
    texts: Mutex<Texts>,
    most: usize,
}

#[derive(Default)]
struct Texts {
    by_id: HashMap<String, Text>,
    oldest_first: VecDeque<String>,
    bytes: usize,
}

/// A text of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub model: String,
    pub tokens: Vec<u32>,
}

impl Text {
    fn bytes(&self) -> usize {
        size_of_val(self.tokens.as_slice()) + ENTRY_BYTES
    }
}

impl Kept {
    /// With room for `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { texts: Mutex::default(), most }
    }

    /// The text that ends with the answer `id`.
    pub fn get(&self, id: &str) -> Option<Text> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).by_id.get(id).cloned()
    }

    /// Keeps the text, unless it is larger than the whole room.
    pub fn insert(&self, id: String, text: Text) {
        if text.bytes() > self.most {
            return;
        }
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.bytes += text.bytes();
        texts.oldest_first.push_back(id.clone());
        texts.by_id.insert(id, text);
        while texts.bytes > self.most {
            let Some(oldest) = texts.oldest_first.pop_front() else { break };
            if let Some(text) = texts.by_id.remove(&oldest) {
                texts.bytes -= text.bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_text_makes_room() {
        let text = |n: usize| Text { model: "m".into(), tokens: vec![7; n] };
        let kept = Kept::new(3 * text(10).bytes());
        for id in ["a", "b", "c", "d"] {
            kept.insert(id.to_owned(), text(10));
        }
        kept.insert("e".to_owned(), text(10_000));
        assert_eq!(["a", "b", "c", "d", "e"].map(|id| kept.get(id).is_some()), [false, true, true, true, false]);
        assert_eq!(kept.get("d"), Some(text(10)));
    }
}
