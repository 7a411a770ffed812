//! Choosing tokens: settings (JSON), a zero byte, logits (f32).
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn_fuzz::{joined, parts, seeds};
use minrnn_stream::{Sampler, Sampling};

fuzz_target!(
    init: seeds("sampler", || {
        let settings = [
            Sampling::default(),
            Sampling::greedy(),
            Sampling { temperature: 0.7, top_k: 3, top_p: 0.9, min_p: 0.05, repetition_penalty: 1.2, seed: 7 },
        ];
        let logits: Vec<u8> = [0.5f32, -1.0, 3.0, f32::NEG_INFINITY, 1e30, 2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        settings.iter().map(|sampling| joined(&[&serde_json::to_vec(sampling).expect("numbers serialise"), &logits])).collect()
    }),
    |data: &[u8]| {
        let Some([settings, logits]) = parts(data) else { return };
        let Ok(sampling) = serde_json::from_slice::<Sampling>(settings) else { return };
        let Ok(mut sampler) = Sampler::new(sampling) else { return };
        let logits: Vec<f32> = logits.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        for _ in 0..2 {
            let saved = serde_json::to_string(&sampler).expect("numbers serialise");
            let mut loaded: Sampler = serde_json::from_str(&saved).expect("what was written is read");
            let chosen = sampler.sample(&mut logits.clone(), &[1, 1, u32::MAX]);
            assert_eq!(chosen.as_ref().ok(), loaded.sample(&mut logits.clone(), &[1, 1, u32::MAX]).as_ref().ok());
            if let Ok(token) = chosen {
                assert!(logits[token as usize].is_finite(), "token {token} was masked");
            }
        }
    }
);
