//! What is known about future rows.

use super::*;
use crate::data::SequenceTask;

/// The sequences of the file `history`, with what is known ahead from the text `future`.
fn with_future(task: &TableTask, history: &Path, future: &str) -> Result<Vec<Series>> {
    let future = write_table(future);
    read_series_from(task, TableSource::File(history), Some(TableSource::File(future.path()))).map(|(series, _)| series)
}

#[test]
fn what_the_calendar_tells_is_known_ahead_by_the_times_of_the_rows_to_come() {
    // The first is a Monday, the 28th a Sunday.
    let rows = |header: &str, name: &str| {
        (0..28).fold(format!("{header}\n"), |text, day| text + &format!("{name}2024-01-{:02},{}\n", day + 1, day % 7))
    };
    let file = write_table(&rows("store,ds,y", "a,"));
    let config = ForecastingConfig {
        calendar: vec![CalendarPart::Weekday],
        known_ahead: owned(&["ds.weekday"]),
        group: Some("store".to_owned()),
        division: Division { time: TimeColumn::Found, validates: false, ..division(0.8) },
        ..forecasting(&["y"], 2)
    };
    let task = Forecasting::open(file.path(), &config).unwrap().table_task().unwrap();
    assert_eq!(task.columns(), ["y", "ds.weekday", "ds.weekday+1", "ds.weekday+2"]);
    for future in ["store,ds\na,2024-01-29\na,2024-01-30\n", "note,ds,store\n1,2024-01-29,a\n2,2024-01-30,a\n"] {
        let read = with_future(&task, file.path(), future).unwrap();
        assert_eq!((read[0].len(), read[0].row(27)), (28, &[6.0, 6.0, 0.0, 1.0][..]), "{future}");
    }
    // A model that reads only the calendar needs only times.
    let blind = ForecastingConfig { columns: owned(&["ds.weekday"]), calendar: Vec::new(), known_ahead: Vec::new(), ..config.clone() };
    let task = Forecasting::open(file.path(), &blind).unwrap().table_task().unwrap();
    let read = read_series(&task, write_table("store,ds\na,2024-01-30\na,2024-01-31\n").path()).unwrap();
    assert_eq!(read[0].values, [1.0, 2.0]);
    // A wide table has no place for future rows; runs that began with one are still scored.
    let division = Division { layout: LayoutChoice::WideColumns, ..config.division.clone() };
    let wide = ForecastingConfig { group: None, target: Vec::new(), division, ..config };
    let opened = Forecasting::open(write_table(&rows("ds,a", "")).path(), &wide).unwrap();
    let refused = opened.expect_to_begin().unwrap_err().to_string();
    assert!(refused.contains("known_ahead names the column 'ds.weekday', and the rows to come of a wide table"), "{refused}");
}

#[test]
fn rows_to_come_are_those_of_a_sequence_however_its_number_is_written_and_tell_the_times_of_a_single_row() {
    let rows = (0..40).fold("id,ds,y,offer\n".to_owned(), |text, t| text + &format!("1,{},{},{}\n", t + 1, t % 5, t % 3));
    let file = write_table(&rows);
    let config = ForecastingConfig {
        known_ahead: owned(&["offer"]),
        group: Some("id".to_owned()),
        division: Division { time: TimeColumn::Found, validates: false, ..division(0.8) },
        ..forecasting(&["y"], 2)
    };
    let task = Forecasting::open(file.path(), &config).unwrap().table_task().unwrap();
    let future = "id,ds,offer\n1.0,41,7\n1.0,42,8\n";
    let read = |history: &Path, future: &str| with_future(&task, history, future);
    let series = read(file.path(), future).unwrap();
    assert_eq!(series[0].row(39)[1..], [0.0, 7.0, 8.0]);
    let refused = read(file.path(), "id,ds,offer\n1,41,7\n1.0,41,7\n1,42,8\n1.0,42,8\n").unwrap_err().to_string();
    assert!(refused.contains("it names one sequence in two ways, '1' and '1.0'"), "{refused}");
    let single = write_table("id,ds,y,offer\n1,40,4,0\n");
    let series = read(single.path(), "id,ds,offer\n1,41,7\n1,43,8\n").unwrap();
    assert_eq!(series[0].next_times(2).unwrap(), ["41", "43"]);
    assert_eq!(series[0].next_times(3), None);
    assert_eq!(notes(&task, &series, &[]), Vec::<String>::new());
}

#[test]
fn columns_of_the_table_in_place_of_what_is_known_ahead_are_told() {
    let open = |header: &str| {
        let file = write_table(&(0..40).fold(format!("{header}\n"), |text, t| text + &format!("{},{},{}\n", t % 3, t % 5, t % 7)));
        let division = Division { validates: false, ..division(0.8) };
        let config = ForecastingConfig { known_ahead: owned(&["offer"]), division, ..forecasting(&["y"], 2) };
        Forecasting::open(file.path(), &config).unwrap().understood().map(str::to_owned)
    };
    let told = "the table has columns that are called as what is known ahead, 'offer+1': they are read in its place; rename them if they are \
                something else";
    assert_eq!(open("offer,offer+1,y").as_deref(), Some(told));
    assert_eq!(open("offer,offer+3,y"), None);
}

#[test]
fn dates_that_are_named_for_reading_are_refused_where_they_would_tell_the_times_and_else_told() {
    let rows: String = (0..28).map(|day| format!("2024-01-{:02},{},2020-02-{:02}\n", day + 1, day % 7, 1 + day % 3)).collect();
    let file = |first: &str| write_table(&format!("{first},y,since\n{rows}"));
    let config = |columns: &[&str], known_ahead: &[&str], time| ForecastingConfig {
        columns: owned(columns),
        known_ahead: owned(known_ahead),
        division: Division { time, validates: false, ..division(0.8) },
        ..forecasting(&["y"], 2)
    };
    let refused = |columns: &[&str], known_ahead: &[&str]| {
        let task = Forecasting::open(file("ds").path(), &config(columns, known_ahead, TimeColumn::Found)).unwrap();
        assert_eq!(task.understood(), None);
        task.expect_to_begin().unwrap_err().to_string()
    };
    let ahead = refused(&[], &["ds"]);
    assert!(ahead.contains("known_ahead names the column 'ds', which holds dates: as names, none of them comes again"), "{ahead}");
    assert!(ahead.contains("such as calendar = weekday with known_ahead = ds.weekday;"), "{ahead}");
    let read = refused(&["y", "ds"], &[]);
    assert!(read.contains("columns names the column 'ds', which holds dates") && read.contains("such as ds.weekday;"), "{read}");
    // More dates than names can be told apart.
    let many: String = (0..90).map(|day| format!("2024-{:02}-{:02},1\n", 1 + day / 28, 1 + day % 28)).collect();
    let many = write_table(&format!("ds,y\n{many}"));
    let too_many = Forecasting::open(many.path(), &config(&[], &["ds"], TimeColumn::Found)).unwrap_err().to_string();
    assert_eq!(too_many, ahead);

    let told = |first: &str, columns: &[&str], known_ahead: &[&str], time| {
        let task = Forecasting::open(file(first).path(), &config(columns, known_ahead, time)).unwrap();
        task.expect_to_begin().unwrap();
        (task.table_task().unwrap().time().map(str::to_owned), task.understood().unwrap().to_owned())
    };
    let of = |name: &str| {
        format!("the column '{name}' holds dates, which are read as names: those that training does not see are unknown to the model")
    };
    assert_eq!(told("ds", &["y", "since"], &[], TimeColumn::Found), (Some("ds".to_owned()), of("since")));
    assert_eq!(told("ds", &[], &["since"], TimeColumn::Found), (Some("ds".to_owned()), of("since")));
    assert_eq!(told("ds", &["y", "ds"], &[], TimeColumn::None), (None, of("ds")));
    let in_order = "no column of times was found (1 column holds dates: day; choose it with time): rows are taken in the order of the file";
    assert_eq!(told("day", &["y", "since"], &[], TimeColumn::Found), (None, format!("{in_order}\n{}", of("since"))));
    // A column that was found by the usual names.
    let found = ForecastingConfig { target: Vec::new(), ..config(&[], &["ds"], TimeColumn::Found) };
    let tells = Forecasting::open(file("ds").path(), &found).unwrap_err().to_string();
    assert!(
        tells.ends_with("tells the time; leave it out, or name parts of the calendar if it holds dates, such as ds.weekday"),
        "{tells}"
    );
}
