//! The keys of an experiment, in a file or a setting, and how values override existing ones.

use toml::{Table, Value};

use super::Experiment;
use crate::memory::Size;
use crate::train::data_config::DataConfig;
use crate::train::settings::{overlay_section, suggestion, unknown_section, with_suggestion};
use crate::train::train_config::TrainConfig;
use crate::{Error, Result};

/// Keys of `[model]` that the data determine.
pub(in super::super) const SHAPED: [&str; 3] = ["vocab_size", "input_width", "n_outputs"];

/// Overlays `value` on a top-level entry of `table`: the section `name`, or the description. `known` has all existing sections and keys.
///
/// # Errors
/// When there is no such section or key, or the value does not fit it.
pub(super) fn overlay_top(table: &mut Table, known: &Table, name: &str, value: Value) -> Result<()> {
    match (name, value) {
        ("description", Value::String(text)) => {
            table.insert(name.to_owned(), Value::String(text));
        }
        ("description", other) => return Err(Error::Config(format!("description must be a text, found {other}"))),
        // As written by `[[model]]` or `model = 5`.
        (section, value) if !value.is_table() && (section == "expect" || known.contains_key(section)) => {
            return Err(Error::Config(format!("[{section}] must be a section: write [{section}] once, and its keys below it")));
        }
        ("expect", value) => {
            check_key("expect", Table::from_iter([(name.to_owned(), value.clone())]))?;
            table.insert(name.to_owned(), value);
        }
        (section, Value::Table(_)) if !known.contains_key(section) => {
            return Err(unknown_section(section, known.keys().map(String::as_str).chain(["expect"])));
        }
        (section, Value::Table(values)) => {
            overlay_section(table, known, section, values.clone())?;
            for (key, _) in values {
                let value = table[section][&key].clone();
                check_key(
                    &format!("{section}.{key}"),
                    Table::from_iter([(section.to_owned(), Value::Table([(key, value)].into_iter().collect()))]),
                )?;
            }
        }
        (key, _) => {
            let mut sections =
                known.iter().filter_map(|(section, keys)| keys.as_table().filter(|keys| keys.contains_key(key)).map(|_| section));
            let names = known.keys().map(String::as_str).chain(["description", "preset", "expect"]);
            return Err(Error::Config(match sections.next_back() {
                Some(section) => format!("the key '{key}' stands before the first section; it belongs below [{section}]"),
                None => format!("unknown key '{key}'{}", suggestion(key, names)),
            }));
        }
    }
    Ok(())
}

/// Reads the defaults with only this one key changed, so that a refusal can name the key.
fn check_key(name: &str, changed: Table) -> Result<()> {
    changed.try_into::<Experiment>().map(drop).map_err(|error| Error::Config(format!("{name}: {}", with_suggestion(error.message()))))
}

/// `experiment` as the sections and keys of its file.
pub(super) fn to_table(experiment: &Experiment) -> Result<Table> {
    Table::try_from(experiment).map_err(|error| Error::Config(error.to_string()))
}

/// The sections with every key that they may have, including optional ones.
pub(in super::super) fn known_keys() -> Result<Table> {
    let data = DataConfig::filled();
    let train = TrainConfig { memory_limit: Some(Size(1)), eval_seed: Some(0), from: Some("run".into()), ..Default::default() };
    let mut table = to_table(&Experiment { data, train, ..Default::default() })?;
    table.remove("description");
    Ok(table)
}

/// What is wrong with `text`, which is not TOML, and on which line.
pub(super) fn syntax_error(text: &str, error: &toml::de::Error) -> Error {
    let line =
        error.span().map_or(1, |span| text.as_bytes()[..span.start.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1);
    Error::Config(format!("line {line}: {}", error.message().lines().collect::<Vec<_>>().join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Experiment::parse(text, &[]).unwrap_err().to_string()
    }

    fn refused_setting(setting: &str) -> String {
        Experiment::parse("", &[setting.to_owned()]).unwrap_err().to_string()
    }

    #[test]
    fn unknown_keys_get_a_suggestion() {
        assert_eq!(refusal("[model]\nd_modle = 3"), "unknown key 'd_modle' in section [model]; did you mean 'd_model'?");
        assert_eq!(refusal("[trian]\nlr = 3"), "unknown section [trian]; did you mean 'train'?");
        assert_eq!(refusal("[nope]\nlr = 3"), "unknown section [nope]; expected one of 'data', 'model', 'train', 'expect'");
        assert_eq!(refusal("lr = 3"), "the key 'lr' stands before the first section; it belongs below [train]");
        assert_eq!(refusal("descripton = 'x'"), "unknown key 'descripton'; did you mean 'description'?");
        assert_eq!(refusal("preset = 'offical'"), "unknown preset 'offical'; did you mean 'official'?");
        assert_eq!(refused_setting("warm_up=3"), "unknown key 'warm_up'; did you mean 'warmup'?");
    }

    #[test]
    fn values_that_do_not_fit_name_their_key() {
        assert_eq!(refusal("[model]\nmixer = 'mingru'"), "model.mixer: there is no 'mingru'; did you mean 'min-gru'?");
        assert!(refused_setting("mixers=[1,2]").contains("expected the name of a mixer"));
        assert!(refusal("[model]\nmixer = 'xyz'").starts_with("model.mixer: there is no 'xyz'; expected one of 'min-gru', "));
        assert_eq!(refusal("[model]\nconv = 1"), "model.conv must be true or false, found 1");
        assert_eq!(refusal("[train]\nlr = 'fast'"), r#"train.lr must be a number, found "fast""#);
        assert_eq!(refusal("[train]\nprecision = 'f16'"), "train.precision: there is no 'f16'; did you mean 'bf16'? (of f32, bf16)");
        assert!(refusal("[train]\ndevice = 'abacus'").contains("there is no device 'abacus'"));
        assert!(refusal("[train]\nbetas = [0.9]").starts_with("train.betas: "));
        assert!(refusal("[expect]\nmetric = 'test-loss'").starts_with("expect: missing field"));
        assert!(refusal("[model").starts_with("line 1: "));
        assert!(refusal("\n\n[model]\nd_model = = 3").starts_with("line 4: "));
    }

    #[test]
    fn what_is_no_section_is_not_taken_for_an_unknown_key() {
        for text in ["model = 5", "[[model]]\nd_model = 8", "train = 'x'", "[[expect]]\nvalue = 1"] {
            let refused = refusal(text);
            assert!(refused.contains("] must be a section: write [") && !refused.contains("did you mean"), "{refused}");
        }
        assert_eq!(refusal("model = 5"), "[model] must be a section: write [model] once, and its keys below it");
    }
}
