//! Named sessions as the bytes of a file: after the header of the [frame](crate::framed) come logits f32 …, histories f64 …, forecasts
//! f32 … and the state as written by `State::to_bytes`.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::{format, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::framed::{self, Flaw};
use crate::{Error, Model, Result, State};

/// Version of files with forecasts.
const WITH_FORECASTS: u64 = 3;
/// Version of files with histories and without forecasts.
const WITH_HISTORIES: u64 = 2;
/// Version of files with neither.
const PLAIN: u64 = 1;

/// Sessions about to be written, whose total size is known before any byte is.
#[derive(Debug)]
pub struct Saving<'a> {
    header: Vec<u8>,
    logits: &'a [f32],
    histories: Vec<&'a [f64]>,
    forecasts: Vec<&'a [f32]>,
    state_header: Vec<u8>,
    state: &'a State,
    size: usize,
}

impl<'a> Saving<'a> {
    /// Checks the parts and prepares [`SavedSessions`] of them for writing.
    pub(crate) fn new(identity: &str, names: &[String], parts: Parts<'a>) -> Result<Self> {
        let Parts { logits, histories, forecasts, state } = parts;
        state.expect_finite()?;
        let rows = state.rows();
        if names.len() != rows {
            return Err(Error::State(format!("would have {} names for {rows} sessions, expected one for each", names.len())));
        }
        let mut before = BTreeSet::new();
        if let Some(twice) = names.iter().find(|&name| !before.insert(name)) {
            return Err(Error::State(format!("would have two sessions with the name '{twice}', expected a name of its own for each")));
        }
        for (found, what) in [(histories.len(), "histories"), (forecasts.len(), "forecasts")] {
            if found != 0 && found != rows {
                return Err(Error::State(format!("would have {found} {what} for {rows} sessions, expected one for each or none at all")));
            }
        }
        let mut numbers = logits.iter().map(|x| ("logit", x)).chain(forecasts.iter().flat_map(|each| each.iter()).map(|x| ("forecast", x)));
        if let Some((what, found)) = numbers.find(|(_, x)| !x.is_finite()) {
            return Err(Error::State(format!("holds the {what} {found}, expected finite numbers; begin anew")));
        }
        // Forecasts none of which is known say nothing.
        let forecasts = if forecasts.iter().all(|each| each.is_empty()) { Vec::new() } else { forecasts };
        let mut header = Header {
            version: 0,
            model: Cow::Borrowed(identity),
            names: Cow::Borrowed(names),
            logits: logits.len(),
            histories: histories.iter().map(|rows| rows.len()).collect(),
            forecasts: forecasts.iter().map(|each| each.len()).collect(),
        };
        header.version = header.version_of_parts();
        let header = serde_json::to_vec(&header).map_err(|error| Error::State(format!("cannot be written: {error}")))?;
        let state_header = state.header();
        let of_histories: usize = histories.iter().map(|rows| size_of_val(*rows)).sum();
        let of_forecasts: usize = forecasts.iter().map(|each| size_of_val(*each)).sum();
        let numbers = size_of_val(logits) + of_histories + of_forecasts;
        let size = state.len_with(&state_header).and_then(|state| framed::len(&header, numbers.checked_add(state)?));
        let size = size.ok_or_else(|| Error::State("would be too large: its names, or its counts of steps, take 4 GiB or more".into()))?;
        Ok(Self { header, logits, histories, forecasts, state_header, state, size })
    }

    /// The number of bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Writes them to `bytes`.
    ///
    /// # Panics
    /// When `bytes` does not have exactly [`size`](Self::size) bytes.
    pub fn write(&self, bytes: &mut [u8]) {
        assert_eq!(bytes.len(), self.size, "a place for every byte");
        framed::write(SavedSessions::MAGIC, &self.header, bytes, |mut bytes| {
            framed::put(&mut bytes, self.logits, f32::to_le_bytes);
            self.histories.iter().for_each(|&rows| framed::put(&mut bytes, rows, f64::to_le_bytes));
            self.forecasts.iter().for_each(|&each| framed::put(&mut bytes, each, f32::to_le_bytes));
            self.state.write(&self.state_header, bytes);
        });
    }

    /// Returns the bytes.
    ///
    /// # Errors
    /// When memory cannot hold them.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = framed::room(self.size)?;
        self.write(&mut bytes);
        Ok(bytes)
    }
}

/// What is saved besides the names; see [`SavedSessions`].
pub(crate) struct Parts<'a> {
    pub logits: &'a [f32],
    pub histories: Vec<&'a [f64]>,
    pub forecasts: Vec<&'a [f32]>,
    pub state: &'a State,
}

/// Sessions with names, to be restored later.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedSessions {
    /// The names, all different.
    pub names: Vec<String>,
    /// The logits after a text's last step; empty for tables.
    pub logits: Vec<f32>,
    /// The last rows of each session, if its numbers are read relative to them; otherwise empty.
    pub histories: Vec<Vec<f64>>,
    /// What was forecast for the next row of each session, if that says how surprising the row is
    /// ([`TableSessions::forecasts`](crate::TableSessions::forecasts)): the model's first outputs, empty where not known. None if no session
    /// has one.
    pub forecasts: Vec<Vec<f32>>,
    /// The model's state for each.
    pub state: State,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header<'a> {
    version: u64,
    /// The SHA-256 of its files, in hexadecimal digits.
    model: Cow<'a, str>,
    names: Cow<'a, [String]>,
    logits: usize,
    /// How many numbers each history has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    histories: Vec<usize>,
    /// How many numbers each forecast has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    forecasts: Vec<usize>,
}

impl Header<'_> {
    /// The first version that has these parts.
    fn version_of_parts(&self) -> u64 {
        match (self.histories.is_empty(), self.forecasts.is_empty()) {
            (_, false) => WITH_FORECASTS,
            (false, true) => WITH_HISTORIES,
            (true, true) => PLAIN,
        }
    }
}

impl SavedSessions {
    /// The bytes every file begins with.
    pub const MAGIC: [u8; 8] = *b"\x89minrnnG";

    /// The bytes of a file, for the `model` identified by `identity`: the SHA-256 of its files, in hexadecimal digits.
    ///
    /// # Errors
    /// When [`from_bytes`](Self::from_bytes) would refuse them: the state is that of another model, a number is NaN or infinite, the number
    /// of names, logits, histories or forecasts (if any) is wrong, or two names are equal; when the names or the counts of steps take 4 GiB or more; or when
    /// memory cannot hold the bytes.
    pub fn to_bytes(&self, model: &Model, identity: &str) -> Result<Vec<u8>> {
        let Self { names, logits, histories, forecasts, state } = self;
        state.expect_shape(model.state_shape())?;
        if !logits.is_empty() && logits.len() != model.outputs() {
            let (found, expected) = (logits.len(), model.outputs());
            return Err(Error::State(format!("would have {found} logits, expected the {expected} of the model or none")));
        }
        let histories = histories.iter().map(Vec::as_slice).collect();
        let forecasts = forecasts.iter().map(Vec::as_slice).collect();
        Saving::new(identity, names, Parts { logits, histories, forecasts, state })?.to_bytes()
    }

    /// The sessions saved by [`to_bytes`](Self::to_bytes), for the `model` identified by `identity`.
    ///
    /// # Errors
    /// When the bytes are damaged, or were saved with another model. No size is used for allocation before it has been checked.
    pub fn from_bytes(bytes: &[u8], model: &Model, identity: &str) -> Result<Self> {
        Self::parse(bytes, model, identity).map_err(Error::State)
    }

    fn parse(bytes: &[u8], model: &Model, identity: &str) -> Result<Self, String> {
        const REMEDY: &str = "begin without it or take another one";
        let damaged = |what: &str| format!("{what}; it is damaged, {REMEDY}");
        let shorter = || Flaw::Shorter.sentence(REMEDY);
        let (header, rest): (Header<'static>, _) = framed::parse(Self::MAGIC, bytes).map_err(|flaw| flaw.sentence(REMEDY))?;
        if !(PLAIN..=WITH_FORECASTS).contains(&header.version) {
            return Err(format!("has version {}, expected {PLAIN} to {WITH_FORECASTS}; use the minrnn that wrote it", header.version));
        }
        if header.version != header.version_of_parts() {
            return Err(damaged(&format!("has version {}, which does not fit its parts", header.version)));
        }
        if header.model != identity {
            return Err("was saved with another model; give the model that its sessions were made with".into());
        }
        for (found, what) in [(header.histories.len(), "histories"), (header.forecasts.len(), "forecasts")] {
            if found != 0 && found != header.names.len() {
                return Err(damaged(&format!("has {found} {what} of {} sessions", header.names.len())));
            }
        }
        if header.logits != 0 && header.logits != model.outputs() {
            return Err(damaged(&format!("has {} logits, expected {}", header.logits, model.outputs())));
        }
        let (logits, rest) = header.logits.checked_mul(4).and_then(|n| rest.split_at_checked(n)).ok_or_else(shorter)?;
        let bytes_of = |counts: &[usize], size: usize| counts.iter().try_fold(0usize, |sum, &n| sum.checked_add(n))?.checked_mul(size);
        let n_histories = bytes_of(&header.histories, size_of::<f64>());
        let (histories, rest) = n_histories.and_then(|n| rest.split_at_checked(n)).ok_or_else(shorter)?;
        let n_forecasts = bytes_of(&header.forecasts, size_of::<f32>());
        let (forecasts, state) = n_forecasts.and_then(|n| rest.split_at_checked(n)).ok_or_else(shorter)?;
        let mut numbers = histories.as_chunks().0.iter().map(|&x| f64::from_le_bytes(x));
        let histories: Vec<Vec<f64>> = header.histories.iter().map(|&n| numbers.by_ref().take(n).collect()).collect();
        let mut numbers = forecasts.as_chunks().0.iter().map(|&x| f32::from_le_bytes(x));
        let forecasts: Vec<Vec<f32>> = header.forecasts.iter().map(|&n| numbers.by_ref().take(n).collect()).collect();
        let logits: Vec<f32> = logits.as_chunks().0.iter().map(|&x| f32::from_le_bytes(x)).collect();
        let state = State::from_bytes(state, model).map_err(|error| format!("has sessions that cannot be used: {error}"))?;
        let distinct: BTreeSet<&String> = header.names.iter().collect();
        let is_finite = logits.iter().chain(forecasts.iter().flatten()).all(|x| x.is_finite());
        if state.rows() != header.names.len() || distinct.len() != header.names.len() || !is_finite {
            return Err(damaged("has names, numbers and sessions that do not fit each other"));
        }
        Ok(Self { names: header.names.into_owned(), logits, histories, forecasts, state })
    }
}
