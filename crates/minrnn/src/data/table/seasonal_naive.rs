//! The seasonal naive forecast, which needs no model.

/// `ŷ[t + h] = y[t + h − s · ⌈h / s⌉]`: the value at the same position in the last season known at step t,
///
/// where s is the number of steps in a season and h ≥ 1 the steps ahead. With s = 1, or if less than a season is known, it is the last
/// value `y[t]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeasonalNaive {
    season: usize,
}

impl SeasonalNaive {
    /// Seasons of `season` steps; 0 and 1 repeat the last value.
    pub fn new(season: usize) -> Self {
        Self { season: season.max(1) }
    }

    /// The step, at most `t`, whose value is the forecast made at step `t` for `ahead` steps later.
    pub fn source(&self, t: usize, ahead: usize) -> usize {
        self.seasonal_source(t, ahead).unwrap_or(t)
    }

    /// The same if it is one or more seasons before the forecast value; `None` if less than a season is known.
    pub fn seasonal_source(&self, t: usize, ahead: usize) -> Option<usize> {
        self.season.checked_mul(ahead.div_ceil(self.season)).and_then(|back| (t + ahead).checked_sub(back))
    }

    /// What it does, in words.
    pub fn name(&self) -> String {
        match self.season {
            1 => "last value".to_owned(),
            season => format!("seasonal naive, {season} steps"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_repeats_the_last_season_that_is_known() {
        let naive = SeasonalNaive::new(3);
        let sources: Vec<usize> = (1..=7).map(|ahead| naive.source(10, ahead)).collect();
        assert_eq!(sources, [8, 9, 10, 8, 9, 10, 8]);
        assert_eq!((naive.source(1, 1), naive.source(1, 2)), (1, 0));
        assert_eq!([1, 5].map(|ahead| SeasonalNaive::new(0).source(4, ahead)), [4, 4]);
        assert_eq!(SeasonalNaive::new(usize::MAX).source(4, 2), 4);
        assert_eq!([(10, 1), (1, 1), (1, 2)].map(|(t, ahead)| naive.seasonal_source(t, ahead)), [Some(8), None, Some(0)]);
    }
}
