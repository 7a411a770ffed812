//! States of texts that were read before, so that a text with the same beginning need not read it again.

use std::collections::{BTreeMap, HashMap};

/// Approximate bytes of an entry beside its state and its tokens.
const ENTRY_BYTES: usize = 512;

/// States by the tokens that led to them; the least recently used are dropped for new ones.
///
/// A session's numbers are the same bits however its tokens were cut into passes, so a cached state changes no text.
#[derive(Debug)]
pub(crate) struct Cache<S> {
    entries: HashMap<u64, Entry<S>>,
    /// The entries' keys by when they were used.
    used: BTreeMap<u64, u64>,
    clock: u64,
    bytes: usize,
    most: usize,
}

#[derive(Debug)]
struct Entry<S> {
    tokens: Box<[u32]>,
    state: S,
    bytes: usize,
    used: u64,
}

/// The key of a text with one more token.
fn extended(key: u64, token: u32) -> u64 {
    // Texts whose keys collide are told apart by their tokens.
    (key ^ u64::from(token).wrapping_add(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29)
}

fn key_of(tokens: &[u32]) -> u64 {
    tokens.iter().fold(0, |key, &token| extended(key, token))
}

impl<S> Cache<S> {
    /// A cache that holds at most `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { entries: HashMap::new(), used: BTreeMap::new(), clock: 0, bytes: 0, most }
    }

    /// Approximate bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of states.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The length and the state of the longest prefix of `tokens` that is known.
    pub fn longest(&mut self, tokens: &[u32]) -> Option<(usize, &S)> {
        let mut key = 0;
        let mut known = Vec::new();
        for (i, &token) in tokens.iter().enumerate() {
            key = extended(key, token);
            if self.entries.contains_key(&key) {
                known.push((i + 1, key));
            }
        }
        let (len, key) = known.into_iter().rev().find(|(len, key)| *self.entries[key].tokens == tokens[..*len])?;
        self.touch(key);
        Some((len, &self.entries[&key].state))
    }

    /// Whether the state of exactly these tokens is known; it then counts as used.
    pub fn has(&mut self, tokens: &[u32]) -> bool {
        let key = key_of(tokens);
        let has = self.entries.get(&key).is_some_and(|entry| *entry.tokens == *tokens);
        if has {
            self.touch(key);
        }
        has
    }

    /// Keeps the state of a session that has read `tokens`, `state_bytes` large, unless it is larger than the whole cache.
    pub fn insert(&mut self, tokens: &[u32], state: S, state_bytes: usize) {
        let bytes = size_of_val(tokens) + state_bytes + ENTRY_BYTES;
        if bytes > self.most {
            return;
        }
        let key = key_of(tokens);
        self.remove(key);
        while self.bytes + bytes > self.most {
            let Some((_, &oldest)) = self.used.first_key_value() else { break };
            self.remove(oldest);
        }
        self.clock += 1;
        self.used.insert(self.clock, key);
        self.bytes += bytes;
        self.entries.insert(key, Entry { tokens: tokens.into(), state, bytes, used: self.clock });
    }

    fn touch(&mut self, key: u64) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        self.clock += 1;
        self.used.remove(&entry.used);
        self.used.insert(self.clock, key);
        entry.used = self.clock;
    }

    fn remove(&mut self, key: u64) {
        if let Some(entry) = self.entries.remove(&key) {
            self.used.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: usize = 100;

    #[test]
    fn the_longest_known_beginning_is_found() {
        let mut cache = Cache::new(1 << 20);
        cache.insert(&[1, 2], "short", STATE);
        cache.insert(&[1, 2, 3, 4], "long", STATE);
        assert_eq!(cache.longest(&[1, 2, 3, 4, 5]), Some((4, &"long")));
        assert_eq!(cache.longest(&[1, 2, 3, 5]), Some((2, &"short")));
        assert_eq!(cache.longest(&[2, 1]), None);
        assert!(cache.has(&[1, 2]) && !cache.has(&[1]));
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let one = size_of_val(&[0u32, 0]) + STATE + ENTRY_BYTES;
        let mut cache = Cache::new(3 * one);
        for token in 0..3 {
            cache.insert(&[token, 0], token, STATE);
        }
        assert_eq!((cache.len(), cache.bytes()), (3, 3 * one));
        // The first is used again, so the second is dropped next.
        assert_eq!(cache.longest(&[0, 0]), Some((2, &0)));
        cache.insert(&[3, 0], 3, STATE);
        assert_eq!([0, 1, 2, 3].map(|token| cache.has(&[token, 0])), [true, false, true, true]);
        assert_eq!((cache.len(), cache.bytes()), (3, 3 * one));
        // The same text again takes its own place, and what can never fit takes none.
        cache.insert(&[3, 0], 4, STATE);
        cache.insert(&vec![0; 4 * one], 5, STATE);
        assert_eq!((cache.len(), cache.bytes()), (3, 3 * one));
        assert_eq!(cache.longest(&[3, 0]), Some((2, &4)));
    }
}
