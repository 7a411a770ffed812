//! Columns of names, as learned in training.

use minrnn_model::{Category, Normalization, UNSEEN};

use super::columns::Names;
use super::series::Series;
use crate::Result;

/// The names of each column of a file; `None` for a column that holds no names.
pub(super) type Found = Vec<Option<Vec<String>>>;

/// The `columns` that may hold names: all except those in `aside`.
pub(super) fn open(columns: &[String], aside: &[String]) -> Vec<Names> {
    let may = columns.iter().filter(|column| !aside.contains(column));
    may.map(|column| Names { column: column.clone(), values: None }).collect()
}

/// The `columns` that hold names in the training file, with all their names, to read other files like it.
pub(super) fn of_file(columns: &[String], found: &[Option<Vec<String>>]) -> Vec<Names> {
    let names =
        |(column, names): (&String, &Option<Vec<String>>)| names.is_some().then(|| Names { column: column.clone(), values: names.clone() });
    columns.iter().zip(found).filter_map(names).collect()
}

/// The categories of the names `found` in each column: those that occur in the part of `series` that is trained on (the first `trained`
/// steps of each), in alphabetical order. Their indices replace the numbers in the file; other names become [`UNSEEN`].
///
/// # Errors
/// As [`Series::rewrite`].
pub(super) fn settle(found: Found, series: &mut [Series], trained: impl Fn(usize) -> usize) -> Result<Vec<Category>> {
    let columns = found.into_iter().enumerate().filter_map(|(column, names)| Some((column, names?)));
    let mut places_of = Vec::new();
    let settled = columns.map(|(column, names)| {
        let mut is_trained = vec![false; names.len()];
        for (at, series) in series.iter().enumerate() {
            let numbers = series.rows().take(trained(at)).map(|row| row[column]);
            // NaN and `UNSEEN` are not indices.
            numbers.filter(|&x| x >= 0.0).for_each(|x| is_trained[x as usize] = true);
        }
        let mut order: Vec<usize> = (0..names.len()).filter(|&at| is_trained[at]).collect();
        order.sort_unstable_by_key(|&at| &names[at]);
        let mut places = vec![UNSEEN; names.len()];
        order.iter().zip(0u32..).for_each(|(&at, place)| places[at] = f64::from(place));
        places_of.push((column, places));
        Category { column, values: order.into_iter().map(|at| names[at].clone()).collect() }
    });
    // A column of which training sees nothing is refused later, by its name.
    let settled = settled.filter(|category| !category.values.is_empty()).collect();
    if !places_of.is_empty() {
        Series::rewrite(series, |_, _, numbers| {
            for (column, places) in &places_of {
                let x = &mut numbers[*column];
                if *x >= 0.0 {
                    *x = places[*x as usize];
                }
            }
        })?;
    }
    Ok(settled)
}

/// The codes of names are not normalised.
pub(super) fn leave(normalization: &mut Normalization, categories: &[Category]) {
    for category in categories {
        (normalization.mean[category.column], normalization.deviation[category.column]) = (0.0, 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::table::{Clock, Values};

    #[test]
    fn names_that_training_never_sees_are_no_category() {
        let of = |values: &[f64]| Series {
            name: String::new(),
            values: values.to_vec().into(),
            width: 2,
            times: Values::default(),
            clock: Clock::Number,
            to_come: Values::default(),
            usual_step: None,
        };
        let names = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect());
        let mut series = [of(&[7.0, 0.0, 8.0, 1.0, 9.0, 2.0]), of(&[1.0, f64::NAN, 2.0, 0.0]), of(&[3.0, 3.0, 4.0, UNSEEN])];
        let categories = settle(vec![None, names(&["worn", "good", "late", "never"])], &mut series, |at| [2, 2, 0][at]).unwrap();
        assert_eq!(categories, [Category { column: 1, values: vec!["good".to_owned(), "worn".to_owned()] }]);
        assert_eq!(series[0].values, [7.0, 1.0, 8.0, 0.0, 9.0, UNSEEN]);
        assert!(series[1].values[1].is_nan() && series[1].values[3] == 1.0);
        assert_eq!(series[2].values, [3.0, UNSEEN, 4.0, UNSEEN]);
    }
}
