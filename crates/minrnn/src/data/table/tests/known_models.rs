//! What a checkpoint keeps of a table, and other tables that are read by it.

use super::*;
use crate::data::SequenceTask;
use crate::rng::Purpose;

#[test]
fn a_known_model_meets_new_tables() {
    let file = classes(20);
    let task = classification(file.path()).unwrap();
    let Some(TableTask::Classify(classifier)) = task.description().map(|value| TableTask::from_json(value, 1, 2).unwrap()) else {
        panic!("expected a classifier")
    };
    let other = write_table("id,x,class\na,1,up\na,2,up\nb,3,down\nb,4,down\nc,1,down\nc,0,down\n");
    let unseen = Labelling::unseen(other.path(), &TableTask::Classify(classifier.clone())).unwrap();
    let mut comparison = unseen.comparison(Purpose::TestData).unwrap();
    let mut set = unseen.evaluation(8, 0, Purpose::TestData, 1).unwrap();
    assert_eq!(set.n_batches(), 1);
    let batch = set.batch(0).unwrap();
    comparison.add(0, &batch, &[0.0, 1.0].repeat(6));
    let measure = &comparison.measures()[0];
    assert!((measure.found - 1.0 / 3.0).abs() < 1e-9 && (measure.baseline.as_ref().unwrap().found - 2.0 / 3.0).abs() < 1e-9);
    assert_eq!(comparison.confusion().unwrap().of_class(0).recall, Some(0.0));
    let strange = write_table("id,x,class\na,1,upp\na,2,upp\n");
    let refused = Labelling::unseen(strange.path(), &TableTask::Classify(classifier.clone())).unwrap_err().to_string();
    assert!(refused.contains("the class 'upp' was not seen in training; did you mean 'up'?"), "{refused}");
    let labels = |path| read_labels(&TableTask::Classify(classifier.clone()), TableSource::File(path)).unwrap();
    assert_eq!((labels(other.path()), labels(strange.path())), (owned(&["up", "down", "down"]), owned(&["upp"])));
    assert_eq!(read_series(&TableTask::Classify(classifier), strange.path()).unwrap()[0].values, [1.0, 2.0]);
}

#[test]
fn a_description_of_another_model_is_refused() {
    let file = counting(&[40]);
    let description = grouped(file.path(), 2).unwrap().description().unwrap();
    let mut broken = description.clone();
    broken["normalization"]["deviation"][0] = 0.0.into();
    let other = serde_json::json!({"task": "sing"});
    for (description, inputs, outputs, problem) in [
        (&description, 2, 2, "expected the columns, means and deviations of 2 inputs"),
        (&description, 1, 3, "expected what 3 outputs stand for"),
        (&broken, 1, 2, "expected the columns, means and deviations of 1 inputs"),
        (&other, 1, 2, "unknown variant `sing`, expected one of `classify`, `regress`, `forecast`"),
    ] {
        let refused = TableTask::from_json(description.clone(), inputs, outputs).unwrap_err().to_string();
        assert_eq!(refused, format!("the description of the task cannot be used: {problem}"));
    }
}
