//! The trained models of `models/`: they run as they are, and are as small as documented.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Finished, minrnn, shown};

/// All of them together, in bytes.
const ALL: u64 = 2_500_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")
}

fn ran(args: &[&str]) -> String {
    Finished::of(&mut minrnn(args)).ok().stdout
}

#[test]
fn each_is_as_small_as_it_has_to_be_and_as_its_page_says() {
    let page = fs::read_to_string(folder().join("README.md")).unwrap();
    let mut sum = 0;
    for (name, most) in [("shakespeare.minrnn", 1_800_000), ("sensors.minrnn", 20_000), ("temperature.minrnn", 50_000)] {
        let bytes = fs::metadata(folder().join(name)).unwrap().len();
        assert!(bytes <= most, "{name} has {bytes} bytes, at most {most}");
        let size = if bytes < 1_000_000 { format!("{:.0} kB", bytes as f64 / 1e3) } else { format!("{:.2} MB", bytes as f64 / 1e6) };
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}`"))).expect("a row for each");
        assert!(row.ends_with(&format!("| {size} |")), "{name} has {size}: {row}");
        sum += bytes;
    }
    let packed = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "minrnn"));
    assert_eq!(packed.map(|path| fs::metadata(path).unwrap().len()).sum::<u64>(), sum, "the page has a row for every model");
    assert!(sum < ALL, "{sum} bytes in all, fewer than {ALL}");
}

#[test]
fn they_write_and_predict_before_anything_is_trained() {
    let text = shown(&folder().join("shakespeare.minrnn"));
    let args = ["generate", &text, "--prompt", "ROMEO:", "--max-tokens", "200", "--seed", "3"];
    let written = ran(&args);
    assert!(written.len() > 150 && written.contains('\n'), "{written}");
    assert_eq!(ran(&args), written);
    let [model, table] = ["temperature.minrnn", "temperature.csv"].map(|name| shown(&folder().join(name)));
    let forecast = ran(&["predict", &model, "--data", &table]);
    assert!(forecast.lines().count() > 12, "{forecast}");
    let sensors = ran(&["inspect", &shown(&folder().join("sensors.minrnn"))]);
    assert!(sensors.starts_with("packed model"), "{sensors}");
}
