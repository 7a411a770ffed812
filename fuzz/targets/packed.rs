//! Packed models: as they are on disk, and made from a header and tensors with a valid checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn_fuzz::{configs, packed_file, packed_model, packed_parts, seeds, use_model};
use minrnn_model::{Classifier, ModelConfig, Normalization, Section, TableTask, WeightFormat};
use minrnn_stream::PackedModel;

fuzz_target!(
    init: seeds("packed", || {
        let mut files: Vec<Vec<u8>> =
            configs().iter().map(|config| packed_parts(&packed_model(config, WeightFormat::F32, &[]))).collect();
        for &format in WeightFormat::ALL {
            files.push(packed_parts(&packed_model(&configs()[0], format, &[Section::tokenizer(b"{}")])));
        }
        files.push(packed_model(&configs()[0], WeightFormat::Int8, &[]));
        let table = serde_json::to_vec(&TableTask::Classify(Classifier {
            time: None,
            missing: Default::default(),
            layout: Default::default(),
            categories: Vec::new(),
            rows_per_step: None,
            columns: vec!["x".into(), "y".into()],
            group: "g".into(),
            target: "c".into(),
            classes: vec!["a".into(), "b".into(), "d".into()],
            normalization: Normalization { mean: vec![0.0; 2], deviation: vec![1.0; 2] },
        }));
        let table = table.expect("names and numbers are JSON");
        let of_values = configs().into_iter().find(|config| config.input_width == 2).expect("one reads numbers");
        files.push(packed_parts(&packed_model(&of_values, WeightFormat::Bf16, &[Section::table(&table)])));
        let policy = ModelConfig { decision: true, input_width: 6, n_outputs: 2, d_model: 4, n_layers: 1, ..Default::default() };
        let encoding = br#"{"mean": [0, 1], "deviation": [1, 2], "action_width": 2, "return_scale": 3}"#;
        files.push(packed_parts(&packed_model(&policy, WeightFormat::Int4, &[Section::policy(encoding)])));
        files
    }),
    |data: &[u8]| {
        let made = if data.starts_with(&PackedModel::MAGIC) { None } else { packed_file(data) };
        let Ok(packed) = PackedModel::from_bytes(made.as_deref().unwrap_or(data)) else { return };
        let bytes: usize = packed.tensors.iter().map(|entry| entry.bytes).sum();
        assert!(bytes <= data.len() && packed.tokenizer.as_ref().is_none_or(|tokenizer| tokenizer.len() <= data.len()));
        if let Some(table) = &packed.table {
            let mut numbers = Vec::new();
            let row = vec![0.5; table.columns().len()];
            table.show(&row, &mut vec![0.0; table.n_inputs()]);
            table.predict_into(&row, &vec![0.5; packed.model.outputs()], &mut numbers);
        }
        use_model(&packed.model);
    }
);
