//! Sequences with a number.

use super::*;
use crate::data::{IoKind, SequenceTask};
use crate::rng::Purpose;

fn of_numbers() -> LabellingConfig {
    LabellingConfig { label: Label::Number, target: "life".to_owned(), ..of_classes() }
}

#[test]
fn a_number_stands_at_the_last_step_and_is_compared_with_the_median() {
    let rows: String = (0..20).map(|id| format!("s{id},{0}.5,{id}\ns{id},{0}.5,1\n", 100 * id)).collect();
    let file = write_table(&("id,life,x\n".to_owned() + &rows));
    let task =
        Labelling::open(file.path(), LabellingConfig { division: Division { validates: false, ..division(0.5) }, ..of_numbers() }).unwrap();
    assert_eq!(task.predicts(), IoKind::Values { width: 1 });
    let Some(TableTask::Regress(regressor)) = task.description().map(|value| TableTask::from_json(value, 1, 1).unwrap()) else {
        panic!("expected a regressor")
    };
    let number = |seen: f32| regressor.target_scale().restore(seen);
    let of = |purpose| {
        let mut set = task.evaluation(64, 0, purpose, 1).unwrap();
        let batch = set.batch(0).unwrap();
        let mask = batch.mask.clone().unwrap();
        let numbers: Vec<f64> =
            batch.targets.values().iter().zip(&mask).filter(|(_, mask)| **mask != 0.0).map(|(x, _)| number(*x)).collect();
        (batch, numbers)
    };
    let ((_, mut trained), (batch, tested)) = (of(Purpose::TrainData), of(Purpose::TestData));
    assert_eq!((trained.len(), tested.len()), (10, 10));
    assert!(tested.iter().all(|number| ((number - 0.5) / 100.0 - ((number - 0.5) / 100.0).round()).abs() < 1e-4), "{tested:?}");
    assert!((trained.iter().sum::<f64>() / 10.0 - regressor.target_normalization.mean[0]).abs() < 1e-3);
    trained.sort_unstable_by(f64::total_cmp);
    let median = 0.5 * (trained[4] + trained[5]);
    // Always predicts the mean of training.
    let mut comparison = task.comparison(Purpose::TestData).unwrap();
    comparison.add(0, &batch, &vec![0.0; batch.batch_size * batch.seq_len]);
    let measure = &comparison.measures()[0];
    let error = |constant: f64| tested.iter().map(|number| (number - constant).abs()).sum::<f64>() / 10.0;
    assert_eq!((measure.name().as_str(), measure.n), ("mean absolute error of life", 10));
    assert!((measure.found - error(regressor.target_normalization.mean[0])).abs() < 1e-2, "{measure:?}");
    assert!((measure.baseline.as_ref().unwrap().found - error(median)).abs() < 1e-2, "{measure:?}");
    let worst = comparison.examples();
    assert!(matches!(&worst[0], Example::Measured { number, predicted, .. } if (number - predicted).abs() > 400.0), "{:?}", worst[0]);
    assert_eq!(measure.baseline.as_ref().unwrap().name, "median of training");
    assert!((regressor.target_median.unwrap() - median).abs() < 1e-2);
    let of_before = Regressor { target_median: None, ..regressor.clone() };
    let [unseen, of_before] = [regressor, of_before].map(|task| Labelling::unseen(file.path(), &TableTask::Regress(task)).unwrap());
    for (task, name) in [(&unseen, "median of training"), (&of_before, "median of what is scored")] {
        let measures = task.comparison(Purpose::TestData).unwrap().measures();
        assert_eq!(measures[0].baseline.as_ref().unwrap().name, name);
    }
    assert_eq!(unseen.evaluation(64, 0, Purpose::TestData, 1).unwrap().batch(0).unwrap().n_scored(), 20);
}

#[test]
fn the_number_of_an_archive_is_found_by_its_name() {
    let rows = (0..20).fold("@targetlabel true\n@data\n".to_owned(), |text, at| text + &format!("{at},2,3:{}\n", 10 * at));
    let open = |text: &str, label| {
        let (target, group) = (String::new(), String::new());
        Labelling::open(write_table(text).path(), LabellingConfig { label, target, group, ..of_numbers() })
    };
    let task = open(&rows, Label::Number).unwrap();
    assert_eq!(task.table_task().unwrap().targets(), ["target"]);
    assert_eq!(task.understood(), Some("read with group = series, target = target, as its columns are called"));
    let refused = open(&rows, Label::Class).unwrap_err().to_string();
    assert_eq!(refused, "to classify, name the column with the class, found 0 columns");
    let names: String = (0..20).map(|at| format!(" {}", 10 * at)).collect();
    let classes = rows.replace("@targetlabel true", &format!("@classlabel true{names}"));
    assert_eq!(open(&classes, Label::Number).unwrap().table_task().unwrap().targets(), ["class"]);
}

#[test]
fn what_has_no_number_to_learn_is_a_sentence() {
    let refused = |text: &str| Labelling::open(write_table(text).path(), of_numbers()).unwrap_err().to_string();
    assert!(
        refused("id,life,x\na,soon,1\na,soon,2\n").contains("the column 'life' holds 'soon', expected a finite number for each sequence")
    );
    assert!(refused("id,life,x\na,inf,1\na,inf,2\n").contains("holds 'inf'"));
    assert!(refused("id,life,x\na,1,1\na,2,2\n").contains("has the number '1' and, in row 2 of the data, '2'"));
    let empty = "line 2, column 'life': the cell is empty, expected a number; fill it, or leave the rows of its sequence out";
    assert!(refused("id,life,x\na,,1\na,,2\n").contains(empty));
    let wide = LabellingConfig { division: Division { layout: LayoutChoice::WideSeries, ..division(0.6) }, ..of_numbers() };
    let refused_wide = Labelling::open(write_table("id,life,t1,t2\na, ,1,2\nb,3,1,2\n").path(), wide).unwrap_err().to_string();
    assert!(refused_wide.contains(empty), "{refused_wide}");
    assert!(refused("id,life,x\n,1,1\n").contains("line 2, column 'id': the cell is empty, expected a name"));
    let same: String = (0..9).map(|id| format!("s{id},7,{id}\ns{id},7,1\n")).collect();
    assert!(refused(&("id,life,x\n".to_owned() + &same)).contains("the column 'life' has one value in what is trained on, 7"));
}
