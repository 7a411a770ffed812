//! Experiments: TOML, a zero byte, settings one a line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn::train::{Experiment, experiments};
use minrnn_fuzz::{joined, parts, seeds};

fuzz_target!(
    init: seeds("experiment", || {
        let built_in = experiments::NAMES.iter().filter_map(|name| experiments::text_of(name));
        let mut seeds: Vec<Vec<u8>> = built_in.map(|text| joined(&[text.as_bytes(), b""])).collect();
        let all = Experiment::default().to_toml().expect("the defaults can be written");
        seeds.push(joined(&[all.as_bytes(), b"lr=1e-4\nmodel.mixer=mamba\npreset=paper\nbetas=0.8,0.95"]));
        seeds
    }),
    |data: &[u8]| {
        let Some([text, settings]) = parts(data) else { return };
        let (Ok(text), Ok(settings)) = (std::str::from_utf8(text), std::str::from_utf8(settings)) else { return };
        let settings: Vec<String> = settings.lines().map(str::to_owned).collect();
        let Ok(experiment) = Experiment::parse(text, &settings) else { return };
        let written = experiment.to_toml().expect("what was read can be written");
        let read = Experiment::parse(&written, &[]).expect("what was written is read");
        assert_eq!(read.to_toml().expect("what was read can be written"), written);
        // A number may be NaN; everything else is equal to itself.
        assert!(read == experiment || experiment != experiment.clone());
    }
);
