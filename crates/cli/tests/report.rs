//! The page that a training leaves for a browser.

mod common;

use std::fmt::Write;
use std::path::PathBuf;

use common::{Finished, Scratch, minrnn};

const SMALL: [&str; 12] = [
    "--set",
    "max_iterations=6",
    "--set",
    "d_model=8",
    "--set",
    "warmup=1",
    "--set",
    "checkpoint_every=6",
    "--set",
    "threads=1",
    "--set",
    "eval_every=3",
];

fn page(scratch: &Scratch, table: &str, args: &[&str]) -> String {
    let (data, out) = (scratch.write("data.csv", table), scratch.path("run"));
    let told = Finished::of(minrnn(&["train"]).args(args).args(SMALL).arg("--data").arg(data).arg("--out").arg(&out)).ok();
    let path: PathBuf = out.join("report.html");
    assert!(told.stdout.contains(&format!("report: {}", path.display())), "{}", told.stdout);
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    // Nothing is fetched or run, and every element is closed.
    for part in ["http", "<script", "<img", "NaN", "inf "] {
        assert!(!page.contains(part), "{part}");
    }
    for name in ["section", "svg", "figure", "table", "tr", "td", "div", "header", "details", "body", "p"] {
        let (opened, closed) = (
            page.matches(&format!("<{name}>")).count() + page.matches(&format!("<{name} ")).count(),
            page.matches(&format!("</{name}>")).count(),
        );
        assert_eq!(opened, closed, "{name}");
    }
    page
}

#[test]
fn a_text_is_scored_in_bits_per_byte_as_the_closing_lines_say() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &[]);
    let told = training.run().ok().stdout;
    let page = std::fs::read_to_string(training.out.join("report.html")).unwrap();
    let number_after = |text: &str, before: &str| -> f64 {
        let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("expected '{before}' in {text}"));
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap();
        rest[..end].parse().unwrap()
    };
    let (shown, said) = (number_after(&page, ">bits per byte<b>"), number_after(&told, "\ntest bits per byte "));
    assert!(said > 1.0 && (shown - said).abs() < 1e-3, "{shown}, {said}");
}

#[test]
fn classes_are_shown_with_what_was_taken_for_what() {
    let scratch = Scratch::new();
    let mut table = String::from("machine,state,x\n");
    for machine in 0..20 {
        for t in 0..9 {
            // Nothing distinguishes the classes, so some are missed.
            writeln!(table, "<m&{machine}>,{},{}", ["<b>good</b>", "worn"][machine % 2], (t * machine % 7) as f64).unwrap();
        }
    }
    let page = page(&scratch, &table, &["--task", "classify", "--group", "machine", "--target", "state"]);
    for part in [
        "<h2>Result</h2>",
        "accuracy<b>",
        "beside always &#39;",
        "<h2>Classes</h2>",
        "&lt;b&gt;good&lt;/b&gt;",
        "<h2>Learning</h2>",
        "retrained on all data",
        "d_model = 8",
    ] {
        assert!(page.contains(&part.replace("&#39;", "'")), "{part}: {page}");
    }
    assert!(page.contains("<figure>") && page.contains("<b>&lt;m&amp;") && page.contains("taken for"), "{page}");
    // What is drawn has a name, which is escaped once; a name in a picture lay over the curve, and those of classes cut the table off.
    assert!(
        page.contains(">x of these sequences, step by step</p>") && page.contains("aria-label=\"x of the sequence &lt;m&amp;"),
        "{page}"
    );
    assert!(page.contains("class=\"mark\"") && !page.contains(">retrained on all data</text>"), "{page}");
    assert!(page.contains("th, td:first-child { white-space: normal; }"), "{page}");
    assert!(!page.contains("<b>good</b>"));
    let note = "The score belongs to the earlier model, which never saw the test part";
    assert!(page.contains(note), "{page}");
    let scratch = Scratch::new();
    let columns = ["--task", "classify", "--group", "machine", "--target", "state", "--set", "refit=false"];
    assert!(!self::page(&scratch, &table, &columns).contains(note), "one model is scored and kept");
}

#[test]
fn forecasts_are_shown_beside_what_came() {
    let scratch = Scratch::new();
    let mut table = String::from("shop,sold\n");
    for shop in 0..15 {
        for t in 0..40 {
            writeln!(table, "s{shop},{}", 10.0 + shop as f64 + (t as f64).sin()).unwrap();
        }
    }
    let page = page(&scratch, &table, &["--task", "forecast", "--group", "shop", "--target", "sold", "--horizon", "4", "--season", "6"]);
    assert_eq!(page.matches("<figure>").count(), 12);
    for part in ["<h2>Forecasts and what came</h2>", "mean absolute error of sold<b>", "class=\"band\"", "class=\"came\"", "scaled error"] {
        assert!(page.contains(part), "{part}");
    }
    // The worst first, the best last.
    let errors: Vec<f64> = page.split(": scaled error ").skip(1).map(|rest| rest.split('<').next().unwrap().parse().unwrap()).collect();
    assert!(errors.windows(2).all(|pair| pair[0] >= pair[1]), "{errors:?}");
}

#[test]
fn a_text_has_its_loss_and_its_curves() {
    let scratch = Scratch::new();
    let page =
        page(&scratch, &"to be or not to be, that is the question. ".repeat(60), &["text", "--set", "seq_len=16", "--set", "batch_size=2"]);
    assert!(page.contains("loss (nats per token)<b>") && page.contains("<h2>Learning</h2>") && page.contains("class=\"dot\""), "{page}");
}
