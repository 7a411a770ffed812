//! Columns that are known ahead, such as prices, holidays and weather forecasts.
//!
//! A column `price` that is known ahead adds `price+1`, `price+2`, …, unless the table has columns of these names: its values that many
//! steps later in the same sequence. Beyond the last row of a sequence they come from the future rows, if given; otherwise its last value
//! is repeated.

use std::collections::{HashMap, HashSet};

use minrnn_model::Category;

use super::columns::{Numbers, Wanted};
use super::frame::{Frame, Lead};
use super::known_names::KnownNames;
use super::series::Series;
use crate::{Error, Needed, Result};

/// The names of the values of `column` at the next `horizon` steps.
pub(super) fn names(column: &str, horizon: usize) -> impl Iterator<Item = String> {
    (1..=horizon).map(move |ahead| format!("{column}+{ahead}"))
}

/// The column and the number of steps that `name` states.
fn parse(name: &str) -> Option<(&str, usize)> {
    let (column, ahead) = name.rsplit_once('+')?;
    let is_plain = ahead.bytes().all(|byte| byte.is_ascii_digit()) && !ahead.starts_with('0');
    Some((column, ahead.parse().ok().filter(|_| is_plain)?))
}

/// How many steps ahead the farthest of `columns` is known; 0 if none is ahead of another.
pub(super) fn farthest(columns: &[String]) -> usize {
    let ahead = columns.iter().filter_map(|name| parse(name).filter(|(of, _)| columns.iter().any(|other| other == of)));
    ahead.map(|(_, ahead)| ahead).max().unwrap_or(0)
}

/// `wanted` without the leads that the table lacks, and these leads; `None` if there are none.
pub(super) fn split(wanted: &Wanted, header: &[String]) -> Option<(Wanted, Vec<Lead>)> {
    let Numbers::Named(names) = &wanted.numbers else { return None };
    if wanted.leads.is_empty() {
        return None;
    }
    let may_lead: HashSet<&String> = wanted.leads.iter().collect();
    let places: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let (mut own, mut leads) = (Vec::new(), Vec::new());
    for (at, name) in names.iter().enumerate() {
        let lead = parse(name)
            .filter(|_| may_lead.contains(name) && !header.contains(name))
            .and_then(|(of, ahead)| Some(Lead { at, of: *places.get(of)?, ahead }));
        match lead {
            Some(lead) => leads.push(lead),
            None => own.push(name.clone()),
        }
    }
    (!leads.is_empty()).then(|| (Wanted { numbers: Numbers::Named(own), ..wanted.clone() }, leads))
}

/// `frame` with room for `leads`, which hold the values of the same step until they are put into sequences; `names` are all of its columns.
pub(super) fn insert(mut frame: Frame, leads: Vec<Lead>, names: &[String]) -> Frame {
    // A lead follows the column whose later steps it holds.
    for lead in &leads {
        let of = frame.names.iter().position(|name| *name == names[lead.of]).expect("the column was read");
        let (numbers, category) = (frame.numbers[of].clone(), frame.categories[of].clone());
        frame.names.insert(lead.at, names[lead.at].clone());
        frame.numbers.insert(lead.at, numbers);
        frame.categories.insert(lead.at, category);
    }
    frame.leads = leads;
    frame
}

/// `categories` in which a lead has the names of its column.
pub(super) fn settle(categories: Vec<Category>, leads: &[Lead]) -> Vec<Category> {
    let mut settled: Vec<Category> =
        categories.into_iter().filter(|category| leads.iter().all(|lead| lead.at != category.column)).collect();
    for lead in leads {
        if let Some(category) = settled.iter().find(|category| category.column == lead.of) {
            settled.push(Category { column: lead.at, values: category.values.clone() });
        }
    }
    settled.sort_unstable_by_key(|category| category.column);
    settled
}

/// Fills the leads of `series` with the future rows of the sequences of the same names: `future` has these, and the positions in `series` of their
/// columns.
///
/// # Errors
/// When a sequence has too few future rows or they do not follow its last row, or as [`Series::rewrite`].
pub(super) fn fill_from(series: &mut [Series], leads: &[Lead], future: Option<(&[Series], &[usize])>) -> Result<()> {
    let Some(farthest) = leads.iter().map(|lead| lead.ahead).max() else { return Ok(()) };
    let Some((future, columns)) = future else {
        let sentence = format!("the model reads columns that are known {farthest} steps ahead, so the rows to come are needed");
        return Err(Error::needed(Needed::RowsToCome, sentence));
    };
    let names = KnownNames::of_sequences(series.iter().map(|series| series.name.as_str()));
    let places = names.find_all(future.iter().map(|series| series.name.as_str()))?;
    let known = places.into_iter().zip(future).filter_map(|(place, to_come)| Some((series[place?].name.clone(), to_come)));
    let of_name: HashMap<String, &Series> = known.collect();
    for series in series.iter() {
        let name = series.describe();
        let to_come = of_name.get(series.name.as_str());
        let found = to_come.map_or(0, |to_come| to_come.len());
        let Some(to_come) = to_come.filter(|to_come| to_come.len() >= farthest) else {
            return Err(Error::Data(format!("{name} has {found} rows to come, expected at least {farthest}, as many as are forecast")));
        };
        if let (Some(last), Some(next)) = (series.times.last(), to_come.times.first())
            && next <= last
        {
            let [last, next] = [*last, *next].map(|time| series.clock.write(time));
            return Err(Error::Data(format!("the rows to come of {name} begin at {next}, expected a time after its last, {last}")));
        }
        let times = &to_come.times[..farthest.min(to_come.times.len())];
        if let Some(place) = series.clock.break_in(&series.times, times) {
            let [found, expected, last] =
                [place.found, place.expected, series.times[series.len() - 1]].map(|time| series.clock.write(time));
            let by = if place.is_latest { "one by " } else { "" };
            return Err(Error::Data(format!(
                "the rows to come of {name} have the time {found}, expected {by}{expected}: they must follow its last, {last}, without a gap"
            )));
        }
    }
    for series in series.iter_mut() {
        let times = &of_name[series.name.as_str()].times;
        series.to_come = times.part(0..farthest.min(times.len()));
    }
    let place = |lead: &Lead| columns.iter().position(|&column| column == lead.of).expect("the column was read");
    let places: Vec<usize> = leads.iter().map(place).collect();
    Series::rewrite(series, |series, t, numbers| {
        for (lead, &place) in leads.iter().zip(&places) {
            if let Some(later) = (t + lead.ahead).checked_sub(series.len()) {
                numbers[lead.at] = of_name[series.name.as_str()].row(later)[place];
            }
        }
    })
}

/// The positions of the columns whose later steps `leads` hold.
pub(super) fn known_ahead(leads: &[Lead]) -> Vec<usize> {
    let mut known: Vec<usize> = leads.iter().map(|lead| lead.of).collect();
    known.sort_unstable();
    known.dedup();
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::table::{Clock, Values};

    fn wanted(names: &[&str]) -> Wanted {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        Wanted { numbers: Numbers::Named(names.clone()), leads: names, ..Wanted::default() }
    }

    #[test]
    fn a_lead_is_a_column_of_later_steps_that_the_table_lacks() {
        let header = ["y", "c++", "c+1", "p"].map(str::to_owned);
        let (own, leads) = split(&wanted(&["y", "p", "p+1", "p+12", "c+1", "q+1", "p+01", "c++", "p+x"]), &header).unwrap();
        assert_eq!(leads, [Lead { at: 2, of: 1, ahead: 1 }, Lead { at: 3, of: 1, ahead: 12 }]);
        assert_eq!(own.numbers, wanted(&["y", "p", "c+1", "q+1", "p+01", "c++", "p+x"]).numbers);
        assert!(split(&wanted(&["y", "c++", "c+1"]), &header).is_none());
        // A lead of a column that is not known ahead is a missing column.
        let leads = ["p+2".to_owned()].to_vec();
        let (own, leads) = split(&Wanted { leads, ..wanted(&["y", "p", "p+1", "p+2"]) }, &header).unwrap();
        assert_eq!((own.numbers, leads), (wanted(&["y", "p", "p+1"]).numbers, [Lead { at: 3, of: 1, ahead: 2 }].to_vec()));
        assert_eq!(names("p", 2).collect::<Vec<_>>(), ["p+1", "p+2"]);
    }

    fn series(values: &[f64], width: usize) -> Series {
        let (times, to_come) = (Values::default(), Values::default());
        Series { name: "a".to_owned(), values: values.to_vec().into(), width, times, clock: Clock::Number, to_come, usual_step: None }
    }

    #[test]
    fn leads_are_filled_from_later_steps_and_from_rows_to_come() {
        let leads = [Lead { at: 1, of: 0, ahead: 1 }, Lead { at: 2, of: 0, ahead: 3 }];
        let mut all = [series(&[1.0, 0.0, 0.0, 2.0, 0.0, 0.0], 3)];
        Series::fill_leads(&mut all, &leads).unwrap();
        assert_eq!(all[0].values, [1.0, 2.0, 2.0, 2.0, 2.0, 2.0]);
        let future = [series(&[7.0, 3.0, 8.0, 4.0, 9.0, 5.0], 2)];
        fill_from(&mut all, &leads, Some((&future, &[9, 0]))).unwrap();
        assert_eq!(all[0].values, [1.0, 2.0, 4.0, 2.0, 3.0, 5.0]);
        let refused = |future: Option<(&[Series], &[usize])>| fill_from(&mut all.clone(), &leads, future).unwrap_err().to_string();
        assert!(refused(None).contains("known 3 steps ahead"));
        assert!(refused(Some((&[series(&[7.0, 3.0], 2)], &[9, 0]))).contains("the sequence 'a' has 1 rows to come, expected at least 3"));
        assert!(refused(Some((&[], &[9, 0]))).contains("has 0 rows to come"));
        let dated = |times: &[f64], values: &[f64], width| Series { times: times.to_vec().into(), ..series(values, width) };
        let mut all = [dated(&[5.0, 6.0], &all[0].values, 3)];
        let early = [dated(&[6.0, 7.0, 8.0], &[7.0, 3.0, 8.0, 4.0, 9.0, 5.0], 2)];
        let sentence = fill_from(&mut all, &leads, Some((&early, &[9, 0]))).unwrap_err().to_string();
        assert!(sentence.contains("begin at 6, expected a time after its last, 6"), "{sentence}");
        // If there is no usual step, future times are those of their rows.
        let mut all = [dated(&[1.0, 2.0, 6.0], &[1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 3.0, 0.0, 0.0], 3)];
        let to_come = [dated(&[8.5, 9.0, 13.0, 14.0], &[7.0, 3.0, 8.0, 4.0, 9.0, 5.0, 9.0, 6.0], 2)];
        fill_from(&mut all, &leads, Some((&to_come, &[9, 0]))).unwrap();
        assert_eq!(all[0].next_times(4).unwrap(), ["8.5", "9", "13", "17"]);
    }

    #[test]
    fn a_lead_has_the_names_of_its_column() {
        let of = |column, values: &[&str]| Category { column, values: values.iter().map(ToString::to_string).collect() };
        let leads = [Lead { at: 1, of: 2, ahead: 1 }, Lead { at: 3, of: 0, ahead: 1 }];
        let settled = settle(vec![of(1, &["x"]), of(2, &["a", "b"]), of(3, &["y"])], &leads);
        assert_eq!(settled, [of(1, &["a", "b"]), of(2, &["a", "b"])]);
    }
}
