//! Weights of classes in training.

use std::collections::HashMap;

use crate::suggestion::suggestion;
use crate::{Error, Result};

/// The largest weight of a class.
const MOST: f64 = 1e6;

/// Weights of classes: sequences are drawn in proportion to the weight of their class.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ClassWeights {
    /// All sequences count equally.
    #[default]
    Equal,
    /// All classes count equally, however many sequences each has.
    Balanced,
    /// These classes have the given weights, all others 1.
    Named(Vec<(String, f64)>),
}

impl ClassWeights {
    /// The meaning of a setting: empty, `balanced`, or entries such as `worn=5`.
    ///
    /// # Errors
    /// When an entry is something else.
    pub fn of_setting(setting: &[String]) -> Result<Self> {
        match setting {
            [] => return Ok(Self::Equal),
            [balanced] if balanced == "balanced" => return Ok(Self::Balanced),
            _ => {}
        }
        let mut named: Vec<(String, f64)> = Vec::new();
        for entry in setting {
            let read = entry.rsplit_once('=').and_then(|(class, weight)| Some((class.trim(), weight.trim().parse::<f64>().ok()?)));
            let Some((class, weight)) = read.filter(|&(_, weight)| weight > 0.0 && weight <= MOST) else {
                return Err(Error::Config(format!(
                    "class_weights must be balanced, or a class with a weight above 0 and at most {MOST:e}, such as worn=5; found '{entry}'; where a \
                     class has a comma in its name, give them as a list: class_weights = [\"worn, badly=5\"]"
                )));
            };
            if named.iter().any(|(known, _)| known == class) {
                return Err(Error::Config(format!("class_weights names the class '{class}' twice")));
            }
            named.push((class.to_owned(), weight));
        }
        Ok(Self::Named(named))
    }

    /// The weight of a sequence of each of `classes`, each with `n_of` training sequences; `None` if all are the same.
    ///
    /// # Errors
    /// When a named class does not exist.
    pub(super) fn of(&self, classes: &[String], n_of: impl Fn(usize) -> usize) -> Result<Option<Vec<f64>>> {
        match self {
            Self::Equal => Ok(None),
            Self::Balanced => Ok(Some((0..classes.len()).map(|class| 1.0 / n_of(class).max(1) as f64).collect())),
            Self::Named(named) => {
                if let Some((unknown, _)) = named.iter().find(|(name, _)| !classes.contains(name)) {
                    let names = suggestion(unknown, classes.iter().map(String::as_str));
                    return Err(Error::Config(format!("class_weights names the class '{unknown}', which the data lack{names}")));
                }
                let weights: HashMap<&String, f64> = named.iter().map(|(name, weight)| (name, *weight)).collect();
                Ok(Some(classes.iter().map(|class| weights.get(class).copied().unwrap_or(1.0)).collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(entries: &[&str]) -> Result<ClassWeights> {
        ClassWeights::of_setting(&entries.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn weights_are_those_that_are_named_or_make_classes_equal() {
        let classes = ["a=b", "good", "worn"].map(str::to_owned);
        let of = |entries: &[&str]| setting(entries).unwrap().of(&classes, |class| [1, 8, 2][class]).unwrap();
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["balanced"]), Some(vec![1.0, 0.125, 0.5]));
        assert_eq!(of(&["worn=5", "a=b = 0.5"]), Some(vec![0.5, 1.0, 5.0]));
        let unknown = setting(&["wron=5"]).unwrap().of(&classes, |_| 1).unwrap_err().to_string();
        assert_eq!(unknown, "class_weights names the class 'wron', which the data lack; did you mean 'worn'?");
    }

    #[test]
    fn what_is_no_weight_is_a_sentence() {
        for entry in ["worn", "worn=", "worn=0", "worn=-1", "worn=nan", "worn=inf", "worn=1e7", ""] {
            let refused = setting(&["good=1", entry]).unwrap_err().to_string();
            assert!(refused.contains(&format!("such as worn=5; found '{entry}'")), "{refused}");
        }
        assert!(setting(&["good=1", "good=2"]).unwrap_err().to_string().contains("twice"));
    }
}
