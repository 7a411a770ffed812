//! Arriving rows, and the state of their sequences: a flag, a zero byte, and a table; or a flag, a zero byte, and a saved state.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use minrnn::data::table::Rows;
use minrnn::data::{TokenizerKind, train_tokenizer};
use minrnn::deployed::{Deployed, Groups, Listener, Surprise};
use minrnn::generate::ModelIdentity;
use minrnn::{Error, Result};
use minrnn_fuzz::library::{TEXT, bpe, tokenizer_json};
use minrnn_fuzz::{file, folder, joined, packed_model, parts, seeds};
use minrnn_model::{Classifier, MixerKind, ModelConfig, Normalization, Section, TableTask, WeightFormat};

/// Most sessions that are kept.
const MAX_GROUPS: usize = 3;

fuzz_target!(
    init: seeds("rows", || {
        let tables = ["g,x,y\na,1,2\nb,3,4\na,5,6\nc,7,8\nd,9,1e4\na,0,0\n", "y,z,x,g\n1,,\"2\",\"a,\n\"\"b\"\n-,1,2\n3,4,NaN,e\n1e9,0,0,é\n"];
        let mut seeds: Vec<Vec<u8>> = tables.iter().flat_map(|table| [&b"r"[..], b"o"].map(|how| joined(&[how, table.as_bytes()]))).collect();
        seeds.extend([&b"c"[..], b"b", b"p"].map(|how| joined(&[how, TEXT.as_bytes()])));
        let (mut groups, mut numbers) = (Groups::new(&CLASSIFIER.model, task(), MAX_GROUPS).expect("there is room"), Vec::new());
        for name in ["a", "b", "a", "c"] {
            groups.step(name, &[0.5, -0.5], &mut numbers).expect("the numbers are finite");
        }
        let path = folder().join("groups");
        groups.save(&path, &identity(&CLASSIFIER)).expect("it can be written");
        seeds.push(joined(&[b"s", &std::fs::read(path).expect("it was written")]));
        seeds
    }),
    |data: &[u8]| {
        let Some([how, rest]) = parts(data) else { return };
        match how {
            b"r" => rows(rest, Some("g")),
            b"o" => rows(rest, None),
            b"c" => text(&TEXTS[0], rest),
            b"b" => text(&TEXTS[1], rest),
            b"p" => text(&TEXTS[2], rest),
            b"s" => {
                // The checksum is corrected, since no mutation would find it.
                let path = file("state", &minrnn_fuzz::sealed(rest[..rest.len().saturating_sub(4)].to_vec()));
                if let Ok(groups) = Groups::load(&path, &CLASSIFIER.model, task(), &identity(&CLASSIFIER), MAX_GROUPS) {
                    goes_on(groups);
                }
            }
            _ => {}
        }
    }
);

/// A packed classifier of the columns x and y.
static CLASSIFIER: LazyLock<Deployed> = LazyLock::new(|| {
    let config = ModelConfig { mixer: MixerKind::MinGru, input_width: 2, n_outputs: 2, d_model: 4, n_layers: 1, ..Default::default() };
    let table = serde_json::to_vec(&TableTask::Classify(Classifier {
        columns: vec!["x".into(), "y".into()],
        group: "g".into(),
        target: "c".into(),
        time: None,
        missing: Default::default(),
        layout: Default::default(),
        categories: Vec::new(),
        rows_per_step: None,
        classes: vec!["a".into(), "b".into()],
        normalization: Normalization { mean: vec![0.5; 2], deviation: vec![2.0; 2] },
    }));
    let table = table.expect("names and numbers are JSON");
    let path = file("classifier.minrnn", &packed_model(&config, WeightFormat::F32, &[Section::table(&table)]));
    Deployed::load(&path).expect("what was packed is read")
});

/// Packed models of text: characters, bytes, pieces.
static TEXTS: LazyLock<[Deployed; 3]> = LazyLock::new(|| {
    let corpus = file("corpus", TEXT.as_bytes());
    let of = |kind| train_tokenizer(kind, 0, &corpus).expect("there is something to learn from");
    [of(TokenizerKind::Character), of(TokenizerKind::Byte), bpe(280)].map(|tokenizer| {
        let config = ModelConfig { vocab_size: tokenizer.vocab_size(), d_model: 4, n_layers: 1, ..Default::default() };
        let json = tokenizer_json(&tokenizer);
        let path = file("text.minrnn", &packed_model(&config, WeightFormat::Bf16, &[Section::tokenizer(&json)]));
        Deployed::load(&path).expect("what was packed is read")
    })
});

fn task() -> &'static TableTask {
    CLASSIFIER.table.as_ref().expect("it was packed with its table")
}

fn identity(deployed: &Deployed) -> ModelIdentity {
    deployed.identity().expect("the file is there")
}

/// Every row that can be read advances its sequence, others leave no trace; predictions are probabilities.
fn rows(table: &[u8], group: Option<&str>) {
    let task = task();
    let Ok(mut rows) = Rows::new(table, task, group) else { return };
    let mut groups = Groups::new(&CLASSIFIER.model, task, MAX_GROUPS).expect("there is room");
    let mut numbers = Vec::new();
    while let Ok(Some((line, row))) = rows.advance() {
        let Ok(row) = row else { continue };
        assert!(row.line == line && row.values.iter().all(|x| x.is_finite()));
        if row.values.iter().enumerate().any(|(column, &x)| !task.of_table().is_near(column, x)) {
            continue;
        }
        groups.step(row.group, row.values, &mut numbers).expect("the numbers are near");
        assert!(numbers.iter().all(|share| (0.0..=1.0).contains(share)) && groups.len() <= MAX_GROUPS);
    }
    goes_on(groups);
}

/// What was saved continues with the same bits.
fn goes_on(mut groups: Groups<'_>) {
    let path = folder().join("again");
    groups.save(&path, &identity(&CLASSIFIER)).expect("it can be written");
    let mut again = Groups::load(&path, &CLASSIFIER.model, task(), &identity(&CLASSIFIER), MAX_GROUPS).expect("what was saved is loaded");
    assert_eq!(again.len(), groups.len());
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for name in ["a", "new"] {
        let step = |groups: &mut Groups<'_>, numbers: &mut Vec<f64>| groups.step(name, &[0.25, -1.0], numbers).map(drop);
        if step(&mut groups, &mut here).is_ok() {
            step(&mut again, &mut there).expect("it does so here too");
            assert!(here.iter().map(|x| x.to_bits()).eq(there.iter().map(|x| x.to_bits())));
        }
    }
}

/// A text in two pieces is as surprising as in one.
fn text(deployed: &Deployed, bytes: &[u8]) {
    #[derive(Default)]
    struct Heard(Vec<u8>, Vec<Option<f64>>, usize);
    impl Listener for Heard {
        fn token(&mut self, _: u64, text: &[u8], log_probability: Option<f64>) -> Result<()> {
            assert!(log_probability.is_none_or(|x| x <= 1e-3));
            self.0.extend_from_slice(text);
            self.1.push(log_probability);
            Ok(())
        }

        fn flaw(&mut self, _: u64, _: Error) -> Result<()> {
            self.2 += 1;
            Ok(())
        }
    }
    let tokenizer = deployed.tokenizer.as_ref().expect("it reads text");
    let heard = |cut: usize| {
        let (mut surprise, mut heard) = (Surprise::new(&deployed.model, tokenizer).expect("there is room"), Heard::default());
        for piece in [&bytes[..cut], &bytes[cut..]] {
            surprise.push(piece, &mut heard).expect("a small model has no limit");
        }
        surprise.finish(&mut heard).expect("a small model has no limit");
        heard
    };
    let (whole, cut) = (heard(bytes.len()), heard(bytes.len() / 2));
    assert!(whole.0 == cut.0 && whole.1.len() == cut.1.len() && whole.2 == cut.2);
    let close = |(a, b): (&Option<f64>, &Option<f64>)| (a.unwrap_or(0.0) - b.unwrap_or(0.0)).abs() < 1e-9;
    assert!(whole.1.iter().zip(&cut.1).all(close));
}
