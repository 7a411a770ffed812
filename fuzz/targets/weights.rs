//! Safetensors files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn_fuzz::{NamedTensor, assert_same, configs, file, safetensors_file, seeds, tensors};
use minrnn_model::Weights;

fuzz_target!(
    init: seeds("weights", || {
        let file = |tensors: &[NamedTensor], metadata| std::fs::read(safetensors_file("seed", tensors, metadata)).expect("it was written");
        let scalar = ("scalar".to_owned(), vec![], vec![1.0]);
        let empty = ("empty".to_owned(), vec![3, 0], vec![]);
        vec![file(&tensors(&configs()[0]), None), file(&[scalar, empty], Some(("format", "pt"))), file(&[], None)]
    }),
    |data: &[u8]| {
        let Ok(mut read) = Weights::read(file("w.safetensors", data)) else { return };
        assert!(4 * read.value_count() <= data.len());
        let names: Vec<String> = read.names().map(str::to_owned).collect();
        let tensors: Vec<NamedTensor> = names.iter().map(|name| {
            let (shape, data) = read.get(name).expect("it is named").clone().into_parts();
            (name.clone(), shape, data)
        }).collect();
        let mut again = Weights::read(safetensors_file("again.safetensors", &tensors, None)).expect("what was written is read");
        for (name, shape, values) in &tensors {
            if values.iter().all(|value| value.is_finite()) {
                assert_same(&again.take(name, shape).expect("it is there"), values);
            } else {
                assert!(again.clone().take(name, shape).is_err(), "weights are finite");
                assert_same(&again.take_any(name).expect("it is there").into_data(), values);
            }
            read.take_any(name).expect("it is there");
        }
        again.expect_empty().and(read.expect_empty()).expect("all were taken");
    }
);
