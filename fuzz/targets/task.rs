//! `task.json` of a model for tables: the model's widths in the first two bytes, then the description.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn::data::table::{Prediction, TableTask};
use minrnn_fuzz::{file, seeds};

fuzz_target!(
    init: seeds("task", || {
        let classify = br#"{"task":"classify","columns":["x","y"],"group":"id","target":"label","classes":["a","b"],
            "normalization":{"mean":[0,1.5],"deviation":[1,2e-3]}}"#;
        let forecast = br#"{"task":"forecast","columns":["x","y"],"target":["y"],"horizon":3,"season":2,
            "normalization":{"mean":[0,1.5],"deviation":[1,2e-3]},"target_normalization":{"mean":[1.5],"deviation":[2e-3]}}"#;
        let level = br#"{"task":"forecast","columns":["x"],"target":["x"],"horizon":2,"season":2,
            "normalization":{"mean":[0],"deviation":[0.5]},"target_normalization":{"mean":[0],"deviation":[2e-3]},
            "of_table":{"mean":[1],"deviation":[2]},"scaling":{"kind":"level","transforms":[{"of":"log","floor":0.5}],"span":2,"lags":[1,2]},"quantiles":[0.1,0.5,0.9]}"#;
        vec![[&[2, 2], &classify[..]].concat(), [&[2, 3], &forecast[..]].concat(), [&[3, 6], &level[..]].concat()]
    }),
    |data: &[u8]| {
        let Some((&[inputs, outputs], json)) = data.split_first_chunk() else { return };
        let (inputs, outputs) = (usize::from(inputs), usize::from(outputs));
        let Ok(value) = serde_json::from_slice(json) else { return };
        let Ok(task) = TableTask::from_json(value, inputs, outputs) else { return };
        assert_eq!(task.n_inputs(), inputs);
        let rows = vec![0.5; task.columns().len() * task.reach().min(100)];
        task.show(&rows, &mut vec![0.0; inputs]);
        let written = serde_json::to_value(&task).expect("numbers and names serialise");
        assert_eq!(TableTask::from_json(written, inputs, outputs).expect("what was written is read"), task);
        let predicted = match task.prediction(&rows, &vec![0.25; outputs]) {
            Prediction::Classes(classes) => {
                assert!(classes.iter().all(|share| (0.0..=1.0).contains(share)));
                classes
            }
            Prediction::Values(values) => values,
        };
        assert_eq!(predicted.len(), outputs);
        let _ = minrnn::data::table::read_series(&task, &file("table", b"id,x,y\na,1,2\na,3,4\n"));
    }
);
