//! What was marked.

use minrnn::words::counted;

use crate::say::say;

/// Counts rows, and knows the most surprising of them.
#[derive(Default)]
pub struct Tally {
    rows: u64,
    marked: u64,
    unknown: u64,
    most: Option<(f64, String)>,
}

impl Tally {
    /// Counts a row called `name`.
    pub fn count(&mut self, surprise: Option<f64>, is_marked: Option<bool>, has_unknown: bool, name: impl FnOnce() -> String) {
        self.rows += 1;
        self.unknown += u64::from(has_unknown);
        if let Some(surprise) = surprise
            && self.most.as_ref().is_none_or(|(most, _)| surprise > *most)
        {
            self.most = Some((surprise, name()));
        }
        self.marked += u64::from(is_marked == Some(true));
    }

    /// Reports what was found; `what` is the word for a row.
    pub fn tell(&self, what: &str) {
        let (rows, marked) = (self.rows, self.marked);
        let most = self
            .most
            .as_ref()
            .map_or(String::new(), |(surprise, name)| format!("; the most surprising is {name}, with {surprise:.3} nats"));
        let are = if marked == 1 || rows == 1 { "is" } else { "are" };
        say(format_args!("{marked} of {} {are} marked{most}", counted(rows, what)));
        if self.unknown > 0 {
            say(format_args!("{} of them contain something that is not in the vocabulary", self.unknown));
        }
    }
}
