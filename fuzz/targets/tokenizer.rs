//! Files of tokenizers: `tokenizer.json`, and after a zero byte a text to encode.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn::data::{Tokenizer, TokenizerKind};
use minrnn_fuzz::library::{TEXT, bpe, tokenizer_json};
use minrnn_fuzz::{folder, joined, parts, seeds};

fuzz_target!(
    init: seeds("tokenizer", || {
        let tokenizers = [Tokenizer::characters_of(TEXT), Tokenizer::Byte, bpe(260)];
        tokenizers.iter().map(|tokenizer| joined(&[&tokenizer_json(tokenizer), TEXT.as_bytes()])).collect()
    }),
    |data: &[u8]| {
        let Some([json, text]) = parts(data) else { return };
        let Ok(tokenizer) = Tokenizer::from_bytes(json, "tokenizer.json") else { return };
        let path = folder().join("tokenizer.json");
        tokenizer.save(&path).expect("it can be written");
        let again = Tokenizer::load(&path).expect("what was written is read");
        assert_eq!(again.vocab_size(), tokenizer.vocab_size());
        for text in [TEXT, &String::from_utf8_lossy(text)] {
            let Ok(ids) = tokenizer.encode(text) else { continue };
            assert_eq!(again.encode(text).expect("it is the same tokenizer"), ids);
            let decoded = tokenizer.decode(&ids).expect("its own ids are known");
            if tokenizer.kind() != TokenizerKind::Bpe {
                assert_eq!(decoded, text);
            }
        }
    }
);
