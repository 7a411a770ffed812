//! Texts: encoded and decoded by every kind of tokenizer, and the same bytes taken as ids.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use minrnn::data::{TextStream, Tokenizer};
use minrnn_fuzz::library::{TEXT, bpe};
use minrnn_fuzz::seeds;

static TOKENIZERS: LazyLock<[Tokenizer; 3]> = LazyLock::new(|| [Tokenizer::characters_of(TEXT), Tokenizer::Byte, bpe(300)]);

fuzz_target!(
    init: {
        seeds("text", || vec![TEXT, "aaaaaaaaaaaaaaaa", "      \n\n\n  \t x", "don't 12345 日本語 🦀", "\u{301}\u{200d}"]);
    },
    |data: &[u8]| {
        let text = String::from_utf8_lossy(data);
        for tokenizer in &*TOKENIZERS {
            if let Ok(ids) = tokenizer.encode(&text) {
                assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab_size()));
                assert_eq!(tokenizer.decode(&ids).expect("its own ids are known"), text);
            } else {
                assert!(matches!(tokenizer, Tokenizer::Character(_)), "bytes are enough for any text");
            }
            let ids: Vec<u32> = data.iter().map(|&byte| u32::from(byte) % tokenizer.vocab_size() as u32).collect();
            let mut stream = TextStream::new();
            let pieces: String = ids.iter().map(|&id| stream.push(tokenizer, id).expect("the id is known")).collect();
            assert_eq!(pieces + &stream.finish(), tokenizer.decode(&ids).expect("the ids are known"));
        }
    }
);
