//! Columns that are known ahead of what is forecast.

mod common;

use std::fmt::Write;

use common::{Finished, Random, Scratch, minrnn, shown};

/// A shop that sells ten times as much on days of an offer, which the past does not show: its history, the rows to come, and what will be sold.
fn shop(days: usize, to_come: usize) -> (String, String, Vec<f64>) {
    let mut random = Random(3);
    let (mut history, mut future, mut sold) = (String::from("shop,day,offer,sold\n"), String::from("day,offer,shop\n"), Vec::new());
    for day in 0..days + to_come {
        let offer = random.below(3) == 0;
        let units = if offer { 100.0 } else { 10.0 };
        if day < days {
            writeln!(history, "s,{day},{},{units}", u8::from(offer)).unwrap();
        } else {
            writeln!(future, "{day},{},s", u8::from(offer)).unwrap();
            sold.push(units);
        }
    }
    (history, future, sold)
}

const FORECAST: [&str; 12] =
    ["--task", "forecast", "--group", "shop", "--time", "day", "--target", "sold", "--horizon", "4", "--known-ahead", "offer"];
const SMALL: [&str; 12] = [
    "--set",
    "d_model=32",
    "--set",
    "warmup=10",
    "--set",
    "lr=0.01",
    "--set",
    "seq_len=32",
    "--set",
    "max_iterations=150",
    "--set",
    "threads=1",
];

/// The point forecasts in a table of predictions.
fn medians(predicted: &str) -> Vec<f64> {
    predicted.lines().skip(1).map(|line| line.split(',').nth(3).unwrap().parse().unwrap()).collect()
}

#[test]
fn what_is_known_ahead_is_forecast_by_and_given_with_the_rows_to_come() {
    let scratch = Scratch::new();
    let (history, future, sold) = shop(300, 4);
    let (data, to_come) = (shown(&scratch.write("history.csv", &history)), shown(&scratch.write("future.csv", &future)));
    let run = shown(&scratch.path("run"));
    let report = Finished::of(minrnn(&["train", "--data", &data, "--out", &run]).args(FORECAST).args(SMALL)).ok().stdout;
    let error = report.split("test mean absolute error of sold ").nth(1).unwrap().split(' ').next().unwrap().parse::<f64>().unwrap();
    assert!(error < 20.0, "without the offers it is 30: {report}");
    let predicted = Finished::of(&mut minrnn(&["predict", &run, "--data", &data, "--future", &to_come])).ok().stdout;
    assert!(predicted.starts_with("shop,day,step,sold,sold q0.1,sold q0.9\ns,300,1,"), "{predicted}");
    assert_eq!(medians(&predicted).len(), sold.len(), "{predicted}");
    for (found, sold) in medians(&predicted).into_iter().zip(&sold) {
        assert!((found - sold).abs() < 30.0, "{predicted}\n{sold:?}");
    }
    // Other rows to come give another forecast, from the packed model too.
    let file = shown(&scratch.path("shop.minrnn"));
    Finished::of(&mut minrnn(&["pack", &run, "--weights", "f32", "-o", &file])).ok();
    let without = future.lines().map(|line| line.replace(",1,s", ",0,s") + "\n").collect::<String>();
    let without = shown(&scratch.write("without.csv", without));
    let none = Finished::of(&mut minrnn(&["predict", &file, "--data", &data, "--future", &without])).ok().stdout;
    assert!(sold.contains(&100.0) && medians(&none).iter().all(|found| *found < 40.0), "{none}");

    let refused = |args: &[&str], parts: &[&str]| Finished::of(minrnn(&["predict", &run, "--data", &data]).args(args)).refused(parts);
    refused(&[], &["reads columns that are known 4 steps ahead", "give them with --future FILE"]);
    let short = shown(&scratch.write("short.csv", future.lines().take(3).collect::<Vec<_>>().join("\n")));
    refused(&["--future", &short], &["short.csv", "the sequence 's' has 2 rows to come, expected at least 4"]);
    let early = shown(&scratch.write("early.csv", future.replace("300,", "30,")));
    refused(&["--future", &early], &["early.csv", "begin at 30, expected a time after its last, 299"]);
    let gap = shown(&scratch.write("gap.csv", future.replace("303,", "305,")));
    refused(
        &["--future", &gap],
        &["gap.csv", "of the sequence 's' have the time 305, expected 303", "follow its last, 299, without a gap"],
    );
    let lacks = shown(&scratch.write("lacks.csv", future.replace("offer", "offers")));
    refused(&["--future", &lacks], &["lacks.csv", "there is no column 'offer'", "did you mean 'offers'?"]);
    refused(&["--future", &to_come, "--out", &to_come], &["future.csv"]);
    // Rows that arrive one by one bring what is known ahead with them.
    let streamed = Finished::of(minrnn(&["stream", &file]).stdin(std::fs::File::open(&data).unwrap()));
    streamed.refused(&["there is no column 'offer+1'"]);
    let wide: String = std::iter::once("shop,sold,offer,offer+1,offer+2,offer+3,offer+4\n".to_owned())
        .chain(
            offers(&history, &future)
                .windows(5)
                .zip(units(&history))
                .map(|(offers, sold)| format!("s,{sold},{}\n", offers.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))),
        )
        .collect();
    let rows = scratch.write("rows.csv", wide);
    let streamed = Finished::of(minrnn(&["stream", &file]).stdin(std::fs::File::open(rows).unwrap())).ok().stdout;
    let last: Vec<f64> = streamed.lines().last().unwrap().split(',').skip(2).step_by(3).map(|number| number.parse().unwrap()).collect();
    let of_packed = Finished::of(&mut minrnn(&["predict", &file, "--data", &data, "--future", &to_come])).ok().stdout;
    let of_packed_rows = medians(&of_packed);
    assert_eq!(last.len(), of_packed_rows.len());
    assert!(last.iter().zip(of_packed_rows).all(|(a, b)| (a - b).abs() < 1e-2), "{last:?}\n{of_packed}");
}

/// The offers of all days, and what was sold on those of the history.
fn offers(history: &str, future: &str) -> Vec<u8> {
    let of =
        |text: &str, at: usize| text.lines().skip(1).map(|line| line.split(',').nth(at).unwrap().parse().unwrap()).collect::<Vec<u8>>();
    [of(history, 2), of(future, 1)].concat()
}

fn units(history: &str) -> Vec<f64> {
    history.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn what_makes_no_sense_is_a_sentence() {
    let scratch = Scratch::new();
    let (history, future, _) = shop(60, 4);
    let (data, to_come) = (shown(&scratch.write("history.csv", history)), shown(&scratch.write("future.csv", future)));
    let run = shown(&scratch.path("run"));
    let refused = |args: &[&str], parts: &[&str]| {
        Finished::of(minrnn(&["train", "--data", &data, "--out", &run]).args(&FORECAST[..8]).args(SMALL).args(args)).refused(parts);
    };
    refused(&["--known-ahead", "offer", "--horizon", "5000"], &["known_ahead and horizon make 5000 inputs, expected at most 4096"]);
    refused(&["--known-ahead", "offer,offer"], &["known_ahead names the column 'offer' twice"]);
    refused(&["--known-ahead", "offr"], &["there is no column 'offr'; did you mean 'offer'?"]);
    refused(&["--known-ahead", "offer,sold"], &["known_ahead names the column 'sold', which is forecast"]);
    refused(&["--known-ahead", "shop"], &["known_ahead names the column 'shop', which names sequences"]);
    refused(&["--known-ahead", "day"], &["known_ahead names the column 'day', which tells the time"]);
    // A table has no columns of later steps, except those said to be known ahead.
    let train = ["train", "--task", "forecast", "--group", "shop", "--data", &data, "--out", &run, "--horizon", "4"];
    let lead = ["--target", "sold+1", "--columns", "sold"];
    Finished::of(minrnn(&train).args(lead)).refused(&["there is no column 'sold+1'", "did you mean 'sold'?"]);
    let plain = ["--task", "forecast", "--group", "shop", "--time", "day", "--target", "sold", "--set", "max_iterations=4"];
    Finished::of(minrnn(&["train", "--data", &data, "--out", &run]).args(plain).args(&SMALL[..6])).ok();
    Finished::of(&mut minrnn(&["predict", &run, "--data", &data, "--future", &to_come])).refused(&["reads no column that is known ahead"]);
}

#[test]
fn a_model_of_columns_known_ahead_is_scored_on_other_tables() {
    let scratch = Scratch::new();
    let (history, ..) = shop(200, 0);
    let data = shown(&scratch.write("history.csv", &history));
    let run = shown(&scratch.path("run"));
    Finished::of(minrnn(&["train", "--data", &data, "--out", &run]).args(FORECAST).args(SMALL)).ok();
    // The whole table, and its last origins: the offers of the steps to come decide what is sold then.
    for more in [&[][..], &["--backtest", "3"]] {
        let report = Finished::of(minrnn(&["eval", &run, "--data", &data]).args(more)).ok().stdout;
        let error = report.split("mean absolute error of sold ").nth(1).unwrap().split(' ').next().unwrap().parse::<f64>().unwrap();
        assert!(error < 20.0, "without the offers it is 30: {report}");
    }
    let scored = Finished::of(&mut minrnn(&["score", &run, "--data", &data])).ok().stdout;
    assert_eq!(scored.lines().count(), 201, "{scored}");
}
