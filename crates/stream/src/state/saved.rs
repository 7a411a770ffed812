//! Takes states apart into numbers or bytes, and restores them for the model they belong to.

use alloc::{format, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::shape::with_zeros;
use super::{State, StateShape};
use crate::framed;
use crate::past::Past;
use crate::{Error, Model, Result};

const MAGIC: [u8; 8] = *b"\x89minrnnS";
const VERSION: u64 = 2;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: u64,
    rows: usize,
    shape: StateShape,
    /// How many tokens each list of each session holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kept: Vec<usize>,
}

impl State {
    /// `rows` sessions of `model` with the numbers from [`values`](State::values), and the `pasts` of the first session, then those of the
    /// second, and so on.
    ///
    /// # Errors
    /// When the number of values does not match this model, or one is NaN or infinite.
    pub fn from_parts(model: &Model, rows: usize, values: Vec<f32>, pasts: Vec<Vec<f32>>) -> Result<Self> {
        let state = Self::of_values(model, rows, values)?;
        let shapes = state.shape.pasts().iter().cycle();
        let fits = pasts
            .iter()
            .zip(shapes)
            .all(|(past, shape)| past.len().is_multiple_of(shape.width) && past.len() / shape.width <= shape.tokens);
        if !fits || rows.checked_mul(state.shape.pasts().len()) != Some(pasts.len()) {
            return Err(Error::State("has other past tokens than the sessions of this model keep; it belongs to another model".into()));
        }
        let state = Self { pasts: pasts.into_iter().map(Past::of).collect(), ..state };
        state.expect_finite()?;
        Ok(state)
    }

    /// As [`from_parts`](State::from_parts), for a model that keeps no past tokens.
    ///
    /// # Errors
    /// As [`from_parts`](State::from_parts); also when the model keeps some.
    pub fn from_values(model: &Model, rows: usize, values: Vec<f32>) -> Result<Self> {
        Self::from_parts(model, rows, values, Vec::new())
    }

    /// A state without its lists of past tokens, which the caller adds.
    fn of_values(model: &Model, rows: usize, values: Vec<f32>) -> Result<Self> {
        let shape = model.state_shape().clone();
        if rows.checked_mul(shape.row_len()) != Some(values.len()) {
            let (expected, found) = (shape.row_len(), values.len());
            let sentence = format!("has {found} numbers for {rows} sessions, expected {expected} for each; it belongs to another model");
            return Err(Error::State(sentence));
        }
        Ok(Self { shape, rows, values, pasts: Vec::new() })
    }

    /// Everything as bytes: the sizes of the model, the numbers (little-endian) of all sessions, their past tokens, and a checksum.
    ///
    /// # Errors
    /// When a number is NaN or infinite, so that [`from_bytes`](State::from_bytes) would refuse the bytes; when there are so many sessions
    /// that their token counts take 4 GiB or more; or when memory cannot hold the bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.expect_finite()?;
        let header = self.header();
        let too_large = || Error::State("would be too large: its counts of steps take 4 GiB or more; save fewer sessions at once".into());
        let mut bytes = framed::room(self.len_with(&header).ok_or_else(too_large)?)?;
        self.write(&header, &mut bytes);
        Ok(bytes)
    }

    /// The header that describes the numbers in [`to_bytes`](State::to_bytes).
    pub(crate) fn header(&self) -> Vec<u8> {
        let kept = self.seen().zip(self.shape.pasts().iter().cycle()).map(|(seen, shape)| seen.len() / shape.width).collect();
        let header = Header { version: VERSION, rows: self.rows, shape: self.shape.clone(), kept };
        serde_json::to_vec(&header).expect("numbers and names serialise")
    }

    /// Bytes of the whole with this header; none if it takes 4 GiB or more.
    pub(crate) fn len_with(&self, header: &[u8]) -> Option<usize> {
        framed::len(header, self.bytes())
    }

    /// Writes everything into `bytes`, as many as [`len_with`](State::len_with) says for the `header`.
    pub(crate) fn write(&self, header: &[u8], bytes: &mut [u8]) {
        framed::write(MAGIC, header, bytes, |mut bytes| {
            core::iter::once(&self.values[..]).chain(self.seen()).for_each(|numbers| framed::put(&mut bytes, numbers, f32::to_le_bytes));
        });
    }

    /// The state saved by [`to_bytes`](State::to_bytes), for `model`. That the weights are the same is not checked.
    ///
    /// # Errors
    /// When the bytes are damaged, from another version, or of a model of other sizes, or a number is NaN or infinite.
    pub fn from_bytes(bytes: &[u8], model: &Model) -> Result<Self> {
        let wrong = |problem: String| Err(Error::State(problem));
        let parts = framed::parse(MAGIC, bytes).map_err(|flaw| Error::State(flaw.sentence("save it again")));
        let (header, numbers): (Header, _) = parts?;
        if header.version != VERSION {
            return wrong(format!("has version {}, expected {VERSION}; use the minrnn that wrote it", header.version));
        }
        let (found, expected) = (header.shape, model.state_shape());
        let earlier = expected.without_losses(model.checked());
        let gaps = match earlier.iter().find(|(shape, _)| *shape == found) {
            _ if found == *expected => &[][..],
            Some((_, gaps)) => gaps,
            None => return wrong(format!("belongs to another model: {}", found.difference(expected))),
        };
        let sessions = header.rows.checked_mul(found.row_len());
        let past_len = found.past_len(header.rows, &header.kept);
        let all = sessions.zip(past_len).and_then(|(sessions, past)| sessions.checked_add(past)?.checked_mul(size_of::<f32>()));
        let (Some(sessions), true) = (sessions, all == Some(numbers.len())) else {
            return wrong(format!("claims {} sessions but holds {} bytes of them; save it again", header.rows, numbers.len()));
        };
        let mut numbers = numbers.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        let values: Vec<f32> = numbers.by_ref().take(sessions).collect();
        let values = if gaps.is_empty() { values } else { with_zeros(&values, found.row_len(), gaps) };
        let lists = header.kept.iter().zip(expected.pasts().iter().cycle());
        let pasts = lists.map(|(kept, shape)| Past::of(numbers.by_ref().take(kept * shape.width).collect())).collect();
        let state = Self { shape: expected.clone(), rows: header.rows, values, pasts };
        state.expect_finite()?;
        Ok(state)
    }
}
