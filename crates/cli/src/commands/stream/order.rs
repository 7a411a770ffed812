//! Whether the rows of a sequence come in the order of time.

use std::collections::HashMap;

use minrnn::Error;
use minrnn::data::table::Row;

/// The time of the last row of each sequence.
#[derive(Default)]
pub struct Order(HashMap<String, f64>);

impl Order {
    /// The row, if it is later than the last one of its sequence.
    pub fn expect_later<'a>(&self, row: Row<'a>) -> minrnn::Result<Row<'a>> {
        let (Some((clock, time)), Some(&last)) = (row.time, self.0.get(row.group)) else { return Ok(row) };
        if time > last {
            return Ok(row);
        }
        let of = if row.group.is_empty() { String::new() } else { format!(" of the sequence '{}'", row.group) };
        let [time, last] = [time, last].map(|time| clock.write(time));
        Err(Error::Data(format!(
            "line {}: the time{of} is {time} after {last}, expected a later one; a stream reads the rows of a sequence in the order of time",
            row.line
        )))
    }

    /// Keeps the time of `row` once it has been read.
    pub fn keep(&mut self, row: &Row<'_>) {
        let Some((_, time)) = row.time else { return };
        match self.0.get_mut(row.group) {
            Some(last) => *last = time,
            None => _ = self.0.insert(row.group.to_owned(), time),
        }
    }

    /// Forgets the sequence `name`, which starts anew if it comes again.
    pub fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }
}
