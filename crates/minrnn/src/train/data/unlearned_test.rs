//! A test table is not one that the model learns from under another name.

use crate::output::is_same_file;
use crate::train::experiment::Experiment;
use crate::train::files::is_same_data;
use crate::{Error, Result};

/// Refuses a test table that is the validation table too, or has the same bytes, if the model is retrained on the validation table in the end. If it is
/// not, the test table only chooses the checkpoint.
///
/// # Errors
/// When it is, or when the two cannot be compared.
pub(super) fn expect_unlearned_test(experiment: &Experiment) -> Result<()> {
    let (data, is_refitted) = (&experiment.data, experiment.train.refit);
    let (Some(validation), Some(test)) = (&data.table.validation, &data.table.test) else { return Ok(()) };
    if !(data.task.reads_table() && is_refitted && is_same_data(validation, test)?) {
        return Ok(());
    }
    let found =
        if is_same_file(validation, test) { "it is the validation table too" } else { "it has the content of the validation table" };
    let problem = format!(
        "{found}, on which the model is retrained in the end, so that its score would say nothing about new data; validate or test with another table, \
         leave the validation table out, or set refit = false"
    );
    Err(Error::malformed(test, problem))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::train::data_config::Task;

    #[test]
    fn a_test_table_that_would_be_learned_from_is_refused_under_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let [validation, copy, other] = ["validation.csv", "copy.csv", "other.csv"].map(|name| folder.path().join(name));
        for (path, text) in [(&validation, "x,class\n1,a\n"), (&copy, "x,class\n1,a\n"), (&other, "x,class\n1,b\n")] {
            fs::write(path, text).unwrap();
        }
        let refused = |test: &std::path::Path, refit: bool| {
            let mut experiment = Experiment::default();
            (experiment.data.task, experiment.train.refit) = (Task::Classify, refit);
            (experiment.data.table.validation, experiment.data.table.test) = (Some(validation.clone()), Some(test.to_owned()));
            expect_unlearned_test(&experiment).err().map(|error| error.to_string())
        };
        for (test, found) in [(&validation, "it is the validation table too"), (&copy, "it has the content of the validation table")] {
            let told = refused(test, true).unwrap();
            assert!(told.starts_with(&format!("'{}': {found}, on which the model is retrained", test.display())), "{told}");
            assert_eq!(refused(test, false), None, "nothing learns from it");
        }
        assert_eq!(refused(&other, true), None);
    }
}
