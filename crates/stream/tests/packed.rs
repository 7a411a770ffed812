//! Packed models: what is written is read back, and what is damaged is refused.

mod common;

use common::tables::classifier;
use common::{Tensors, assert_close, configs, distance, small, stepped, tensors, tokens, weights};
use minrnn_model::{FeedForwardKind, GruForm, InitialState, MixerKind, ModelConfig, NormKind, PackedFile, Section, WeightFormat};
use minrnn_stream::{AlignedBytes, Model, PackedModel};

fn packed(config: &ModelConfig, tensors: &Tensors, format: WeightFormat, sections: &[Section<'_>]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.minrnn");
    PackedModel::write(&path, config, &mut weights(tensors), format, sections).unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    std::fs::read(path).unwrap()
}

fn tiny() -> ModelConfig {
    ModelConfig {
        vocab_size: 5,
        d_model: 4,
        expansion: 1.0,
        n_layers: 1,
        ff: FeedForwardKind::None,
        initial_state: InitialState::Learned,
        ..small(MixerKind::MinGru)
    }
}

#[test]
fn a_packed_model_runs_as_the_model_it_was_made_of() {
    for config in configs() {
        let (tensors, tokens) = (tensors(&config, 3), tokens(&config, 12, 1));
        for &format in WeightFormat::ALL {
            let model = Model::new(&config, &mut weights(&tensors), format).unwrap();
            let read = PackedModel::from_bytes(&packed(&config, &tensors, format, &[Section::tokenizer(b"{}")])).unwrap();
            assert_eq!(read.model.config(), &config);
            assert_eq!(read.tokenizer.as_deref(), Some(&b"{}"[..]));
            assert_eq!(stepped(&read.model, &tokens), stepped(&model, &tokens), "{format} {config:?}");
        }
    }
}

#[test]
fn a_path_is_read_as_a_checkpoint_or_as_a_packed_model() {
    let (config, directory) = (tiny(), tempfile::tempdir().unwrap());
    let (tensors, tokens) = (tensors(&config, 3), tokens(&config, 12, 1));
    minrnn_model::CheckpointConfig::new(config.clone()).write(directory.path()).unwrap();
    let items = tensors.iter().map(|(name, (shape, values))| (name.clone(), shape.clone(), values.as_slice().into()));
    minrnn_model::write_safetensors(directory.path().join(minrnn_model::WEIGHTS_FILE), items, None).unwrap();
    let path = directory.path().join("model.minrnn");
    PackedModel::write(&path, &config, &mut weights(&tensors), WeightFormat::F32, &[]).unwrap();
    let [checkpoint, packed] = [directory.path(), &path].map(|path| stepped(&Model::load(path).unwrap(), &tokens));
    assert_eq!(checkpoint, packed);
    assert!(PackedModel::read(&path).unwrap().tokenizer.is_none());
    let missing = Model::load(directory.path().join("nothing")).unwrap_err().to_string();
    assert!(missing.starts_with("could not read") && missing.contains("nothing"), "{missing}");
    let foreign = Model::load(directory.path().join(minrnn_model::CONFIG_FILE)).unwrap_err().to_string();
    assert!(foreign.contains("config.json") && foreign.contains("does not begin like one"), "{foreign}");
}

/// Largest difference of the logits from those of the f32 weights, over the largest logit.
#[test]
fn formats_stay_near_f32() {
    let config = ModelConfig { d_model: 128, conv: true, norm: NormKind::Layer, ..small(MixerKind::MinGru) };
    let tensors = tensors(&config, 5);
    let tokens = tokens(&config, 60, 3);
    let run = |format| stepped(&Model::new(&config, &mut weights(&tensors), format).unwrap(), &tokens);
    let exact = run(WeightFormat::F32);
    for (format, tolerance) in [(WeightFormat::Bf16, 1e-2), (WeightFormat::Int8, 2e-2), (WeightFormat::Int4, 0.2)] {
        let error = distance(&run(format), &exact);
        assert!(error < tolerance && error > 0.0, "{format}: {error}");
    }
}

#[test]
fn embedding_and_head_have_eight_bits_where_others_have_four() {
    let config = ModelConfig { gru_form: GruForm::Torch, ..small(MixerKind::Gru) };
    let tensors = tensors(&config, 5);
    let read = PackedModel::from_bytes(&packed(&config, &tensors, WeightFormat::Int4, &[])).unwrap();
    let format = |name: &str| read.tensors.iter().find(|entry| entry.name == name).unwrap().format;
    assert_eq!(format("embedding.weight"), WeightFormat::Int8);
    assert_eq!(format("head.weight"), WeightFormat::Int8);
    assert_eq!(format("backbone.blocks.1.mixer.recurrent.weight"), WeightFormat::Int4);
    assert_eq!(format("backbone.blocks.1.mixer.recurrent.bias"), WeightFormat::F32);
    assert_eq!(read.tensors.len(), tensors.len());
}

#[test]
fn a_packed_model_is_rounded_further_and_never_back() {
    use WeightFormat::{Bf16, F32, Int4, Int8};
    let config = ModelConfig { conv: true, ..small(MixerKind::MinGru) };
    let tensors = tensors(&config, 5);
    let sections = [Section::tokenizer(b"{}"), Section { name: "later", required: false, bytes: b"abc" }];
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("from.minrnn"), directory.path().join("to.minrnn"));
    for &stored in WeightFormat::ALL {
        let bytes = packed(&config, &tensors, stored, &sections);
        std::fs::write(&from, &bytes).unwrap();
        for &wanted in WeightFormat::ALL {
            let again = PackedModel::repack(&from, &to, wanted);
            if stored == wanted || stored == F32 || (stored, wanted) == (Bf16, Int8) || (stored, wanted) == (Bf16, Int4) {
                let entries = again.unwrap();
                let read =
                    PackedFile::parse(&std::fs::read(&to).unwrap()).map(|file| (file.entries().to_vec(), file.sections().count())).unwrap();
                assert_eq!((read.0, read.1), (entries, 2), "{stored} to {wanted}");
            } else {
                let refused = again.unwrap_err().to_string();
                assert!(refused.contains("from.minrnn") && refused.contains("tensor '") && refused.contains("give the run"), "{refused}");
                assert!(!to.exists());
            }
            if stored == F32 {
                // Nothing was lost before: the same tensors as from the checkpoint.
                let expected = packed(&config, &tensors, wanted, &sections);
                assert!(tensors_of(&std::fs::read(&to).unwrap()) == tensors_of(&expected), "{wanted}");
            }
            if stored == wanted {
                assert!(tensors_of(&std::fs::read(&to).unwrap()) == tensors_of(&bytes), "{wanted}");
            }
            let _ = std::fs::remove_file(&to);
        }
    }
    let cut = &std::fs::read(&from).unwrap()[..900];
    std::fs::write(&from, cut).unwrap();
    let refused = PackedModel::repack(&from, &to, Int4).unwrap_err().to_string();
    assert!(refused.contains("from.minrnn") && refused.contains("cut short"), "{refused}");
}

#[test]
fn what_would_not_be_read_is_not_written_and_the_file_before_stays() {
    let config = tiny();
    let tensors = tensors(&config, 2);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.minrnn");
    PackedModel::write(&path, &config, &mut weights(&tensors), WeightFormat::F32, &[]).unwrap();
    let before = std::fs::read(&path).unwrap();
    let write = |config: &ModelConfig, tensors: &Tensors, sections: &[Section<'_>]| {
        PackedModel::write(&path, config, &mut weights(tensors), WeightFormat::Int8, sections)
    };
    let later = Section { name: "later", required: true, bytes: b"abc" };
    let cases: [(&[Section<'_>], &str); 3] = [
        (&[Section::surprise(b"garbage")], "section 'surprise'"),
        (&[later], "needs its section 'later'"),
        (&[Section::tokenizer(b"{}"), Section::tokenizer(b"[]")], "section 'tokenizer' twice"),
    ];
    let policy = ModelConfig { decision: true, vocab_size: 0, input_width: 6, n_outputs: 2, ..tiny() };
    let of_policy = common::drawn(&policy, 4);
    let refused = cases.iter().map(|(sections, words)| (write(&config, &tensors, sections), *words));
    for (refused, words) in refused.chain([(write(&policy, &of_policy, &[]), "without a section 'policy'")]) {
        let refused = refused.unwrap_err().to_string();
        let is_told = refused.contains("model.minrnn': it was not written") && refused.contains(words);
        assert!(is_told && std::fs::read(&path).unwrap() == before, "{refused}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    // One that was made by other means is refused as well.
    write(&policy, &of_policy, &[Section::policy(b"{}")]).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let stored = tensors_of(&bytes).into_iter().map(|(.., bytes)| bytes);
    let stored: Vec<_> = PackedFile::parse(&bytes).unwrap().into_parts().1.into_iter().zip(stored).collect();
    assert!(refusal(&PackedFile::encode(&policy, &[], &stored)).contains("without a section 'policy'"));
}

#[test]
fn a_file_that_is_refused_keeps_what_was_said_of_its_bytes_as_the_source() {
    let config = tiny();
    let mut bytes = packed(&config, &tensors(&config, 2), WeightFormat::F32, &[]);
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    let of_bytes = refusal(&bytes);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.minrnn");
    std::fs::write(&path, &bytes).unwrap();
    let refused = PackedModel::read(&path).unwrap_err();
    let source = std::error::Error::source(&refused).expect("there is what it was read by");
    assert_eq!(source.to_string(), of_bytes);
    assert!(matches!(source.downcast_ref::<minrnn_stream::Error>(), Some(minrnn_stream::Error::Model(minrnn_model::Error::Packed(_)))));
    assert!(refused.to_string().ends_with(&of_bytes) && refused.to_string().contains("model.minrnn"), "{refused}");
}

#[test]
fn a_packed_model_is_told_by_its_sizes() {
    let config = small(MixerKind::MinGru);
    let bytes = packed(&config, &tensors(&config, 2), WeightFormat::F32, &[Section::tokenizer(&[b' '; 5000])]);
    let told = format!("{:?}", PackedModel::from_bytes(&bytes).unwrap());
    assert!(told.contains("Some(5000)") && told.len() < 500, "{told}");
}

/// Name, format and bytes of every tensor.
fn tensors_of(bytes: &[u8]) -> Vec<(String, WeightFormat, Vec<u8>)> {
    let mut file = PackedFile::parse(bytes).unwrap();
    let entries = file.entries().to_vec();
    let taken = |entry: minrnn_model::TensorEntry| {
        let (format, bytes) = file.take(&entry.name, &entry.shape).unwrap();
        (entry.name, format, bytes.to_vec())
    };
    entries.into_iter().map(taken).collect()
}

/// Earlier int4 files have embedding and head as bf16, from before 8 bits were found to be enough for them.
#[test]
fn files_whose_embedding_and_head_are_bf16_beside_int4_are_read() {
    let config = small(MixerKind::MinGru);
    let (tensors, tokens) = (tensors(&config, 5), tokens(&config, 30, 3));
    let of = |format| packed(&config, &tensors, format, &[]);
    let (sixteen, four) = (of(WeightFormat::Bf16), of(WeightFormat::Int4));
    let [bf16, int4] = [&sixteen, &four].map(|bytes| PackedFile::parse(bytes).unwrap().into_parts().1);
    let stored = |bytes: &[u8], i: usize| tensors_of(bytes).swap_remove(i).2;
    let is_token = |name: &str| name == "embedding.weight" || name == "head.weight";
    let mixed: Vec<_> = (0..int4.len())
        .map(|i| if is_token(&int4[i].name) { (bf16[i].clone(), stored(&sixteen, i)) } else { (int4[i].clone(), stored(&four, i)) })
        .collect();
    let old = PackedFile::encode(&config, &[], &mixed);
    let [old_logits, logits] = [&old, &four].map(|bytes| stepped(&PackedModel::from_bytes(bytes).unwrap().model, &tokens));
    let apart = distance(&logits, &old_logits);
    assert!(apart > 0.0 && apart < 2e-2, "{apart}");
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("from.minrnn"), directory.path().join("to.minrnn"));
    std::fs::write(&from, &old).unwrap();
    PackedModel::repack(&from, &to, WeightFormat::Int4).unwrap();
    let (again, expected) = (tensors_of(&std::fs::read(&to).unwrap()), tensors_of(&four));
    assert_eq!(again.len(), expected.len());
    for (again, expected) in again.iter().zip(&expected) {
        assert_eq!((&again.0, again.1), (&expected.0, expected.1));
        assert!(is_token(&again.0) || again.2 == expected.2, "{} is kept to the bit", again.0);
    }
}

fn refusal(bytes: &[u8]) -> String {
    PackedModel::from_bytes(bytes).unwrap_err().to_string()
}

#[test]
fn every_truncation_and_every_flipped_byte_is_refused() {
    for &format in WeightFormat::ALL {
        let config = tiny();
        let bytes = packed(&config, &tensors(&config, 2), format, &[Section::tokenizer(b"{\"a\": 1}")]);
        PackedModel::from_bytes(&bytes).unwrap();
        for len in 0..bytes.len() {
            assert!(refusal(&bytes[..len]).starts_with("the packed model "), "cut to {len}");
        }
        for at in 0..bytes.len() {
            for bit in [1, 0x80] {
                let mut damaged = bytes.clone();
                damaged[at] ^= bit;
                assert!(refusal(&damaged).starts_with("the packed model "), "byte {at}");
            }
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(refusal(&longer).contains("should have"));
    }
}

/// The file with its header changed, under a checksum that fits.
fn forged(bytes: &[u8], change: impl FnOnce(String) -> String) -> Vec<u8> {
    let old = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let header = change(String::from_utf8(bytes[24..24 + old].to_vec()).unwrap());
    let mut forged = [&bytes[..24], header.as_bytes()].concat();
    forged.resize(forged.len().next_multiple_of(64), 0);
    forged.extend(&bytes[(24 + old).next_multiple_of(64)..bytes.len() - 4]);
    let len = (forged.len() + 4) as u64;
    forged[12..16].copy_from_slice(&(header.len() as u32).to_le_bytes());
    forged[16..24].copy_from_slice(&len.to_le_bytes());
    let checksum = crc32c::crc32c(&forged);
    forged.extend(checksum.to_le_bytes());
    forged
}

#[test]
fn contradictions_under_a_valid_checksum_are_refused() {
    let config = tiny();
    let bytes = packed(&config, &tensors(&config, 2), WeightFormat::Int8, &[Section::tokenizer(b"{}")]);
    PackedModel::from_bytes(&forged(&bytes, |header| header)).unwrap();
    let refused = |from: &str, to: &str| {
        refusal(&forged(&bytes, |header| {
            assert!(header.contains(from), "{from} is not in {header}");
            header.replacen(from, to, 1)
        }))
    };
    let huge = "18446744073709551615";
    let section = r#"[{"name":"tokenizer","bytes":2,"required":true}]"#;
    assert!(refused(section, &section.replace('2', huge)).contains("for section 'tokenizer', more than it has"));
    assert!(refused(section, &section.replace("tokenizer", "later")).contains("needs its section 'later'"));
    assert!(refused(section, "[]").contains("does not account for"));
    assert!(refused(r#""vocab_size":5"#, &format!(r#""vocab_size":{huge}"#)).contains("vocab_size"));
    assert!(refused(r#""vocab_size":5"#, r#""vocab_size":4000000"#).contains("shape [5, 4], expected [4000000, 4]"));
    assert!(refused(r#""shape":[5,4]"#, &format!(r#""shape":[{huge},{huge}]"#)).contains("expected [5, 4]"));
    assert!(refused(r#""d_model":4"#, r#""d_model":8"#).contains("expected [5, 8]"));
    assert!(refused(r#""n_layers":1"#, r#""n_layers":2"#).contains("lacks tensor 'backbone.blocks.1"));
    assert!(refused(r#""format":"int8""#, r#""format":"f32""#).contains("no f32 matrix"));
    assert!(refused("mixer.in_proj.weight", "mixer.in_prog.weight").contains("lacks tensor"));
    assert!(refused(r#""tie_embeddings":false"#, r#""tie_embeddings":true"#).contains("'head.weight' that is not part of its model"));
    assert!(refused("{", "[").contains("header that cannot be read"));
    assert!(refused(r#""name":"embedding.weight""#, r#""name":"head.weight""#).contains("twice"));
    let surplus = forged(&[&bytes[..bytes.len() - 4], &[0; 68]].concat(), |header| header);
    assert!(refusal(&surplus).contains("does not account for"));
    let future = [&bytes[..8], &9u32.to_le_bytes(), &bytes[12..]].concat();
    assert!(refusal(&future).contains("has version 9, expected at most 2"));
    assert!(refusal(b"PK\x03\x04 this is no model of ours").contains("does not begin like one"));
}

#[test]
fn logits_of_a_packed_model_are_those_of_the_reference() {
    let config = ModelConfig { conv: true, ..small(MixerKind::MinLstm) };
    let tensors = tensors(&config, 3);
    let read = PackedModel::from_bytes(&packed(&config, &tensors, WeightFormat::F32, &[])).unwrap();
    let tokens = tokens(&config, 20, 1);
    let mut reference = common::reference::Reference::new(&config, &tensors);
    let expected: Vec<f32> = tokens.iter().flat_map(|&token| reference.step(token)).collect();
    assert_close(&stepped(&read.model, &tokens), &expected, 2e-6, "packed");
}

#[test]
fn a_model_in_memory_of_others_gives_the_same_bits() {
    for config in configs() {
        let (tensors, tokens) = (tensors(&config, 3), tokens(&config, 12, 1));
        for &format in WeightFormat::ALL {
            let bytes = packed(&config, &tensors, format, &[Section::tokenizer(b"{}")]);
            let expected = stepped(&PackedModel::from_bytes(&bytes).unwrap().model, &tokens);
            let aligned = PackedModel::from_aligned(&AlignedBytes::copied(&bytes).unwrap()).unwrap();
            let constant = PackedModel::from_constant(bytes.leak()).unwrap();
            for PackedModel { model, tokenizer, .. } in [aligned, constant] {
                assert_eq!(tokenizer.as_deref(), Some(&b"{}"[..]));
                assert!(stepped(&model, &tokens) == expected, "{format} {config:?}");
            }
        }
    }
}

#[test]
fn a_packed_classifier_keeps_its_columns_classes_and_means() {
    let config = ModelConfig { vocab_size: 0, input_width: 2, n_outputs: 3, ..tiny() };
    let tensors = common::drawn(&config, 4);
    let table = classifier();
    let json = serde_json::to_vec(&table).unwrap();
    let bytes = packed(&config, &tensors, WeightFormat::Int8, &[Section::table(&json)]);
    let read = PackedModel::from_bytes(&bytes).unwrap();
    assert_eq!((read.table.as_ref(), read.tokenizer, read.policy), (Some(&table), None, None));
    let format = |name: &str| read.tensors.iter().find(|entry| entry.name == name).unwrap().format;
    assert_eq!((format("input.weight"), format("head.weight")), (WeightFormat::F32, WeightFormat::Int8));
    // Without the section the model reads numbers of unknown meaning.
    assert_eq!(PackedModel::from_bytes(&packed(&config, &tensors, WeightFormat::F32, &[])).unwrap().table, None);
    let other = ModelConfig { n_outputs: 2, ..config.clone() };
    let path = tempfile::tempdir().unwrap();
    let path = path.path().join("model.minrnn");
    let mut of_other = weights(&common::drawn(&other, 4));
    let refused = PackedModel::write(&path, &other, &mut of_other, WeightFormat::F32, &[Section::table(&json)]).unwrap_err().to_string();
    assert!(refused.contains("cannot be used: expected what 2 outputs stand for") && !path.exists(), "{refused}");
    let damaged = json.iter().map(|&byte| if byte == b'2' { b'3' } else { byte }).collect::<Vec<_>>();
    let length = format!(r#""bytes":{}"#, json.len());
    assert!(String::from_utf8_lossy(&bytes).contains(&length));
    let at = bytes.windows(json.len()).position(|window| window == json).unwrap();
    let mut garbled = bytes.clone();
    garbled[at..at + 8].copy_from_slice(&damaged[1..9]);
    let end = garbled.len() - 4;
    let checksum = crc32c::crc32c(&garbled[..end]).to_le_bytes();
    garbled[end..].copy_from_slice(&checksum);
    let refused = refusal(&garbled);
    assert!(refused.contains("the packed model has a section 'table': the description of the task cannot be used"), "{refused}");
}
