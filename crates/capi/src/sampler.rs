//! Choosing a token from logits.

use minrnn_stream::{Error, Sampler, Sampling};

use crate::constants::*;
use crate::failure::{Failure, guarded};
use crate::handles::{Named, Opaque, Table};
use crate::pointers::{self, expect_apart};
use crate::status::Status;

impl Named for Sampler {
    const NAME: &'static str = "sampler";
    const KIND: usize = 2;
}

static SAMPLERS: Table<Sampler> = Table::new();

/// `minrnn_sampler` of the header.
pub type SamplerHandle = Opaque<Sampler>;

/// A sampler that draws from the model's own distribution.
///
/// # Safety
/// `out` is null or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_sampler_new(seed: u64, out: *mut *mut SamplerHandle) -> Status {
    guarded(|| {
        pointers::expect_place("out", out)?;
        let name = SAMPLERS.insert(Sampler::new(Sampling { seed, ..Sampling::default() })?)?;
        // SAFETY: the caller's promise.
        unsafe { pointers::give("out", out, std::ptr::without_provenance_mut(name)) }
    })
}

/// Frees a sampler. Freeing null does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_sampler_free(sampler: *mut SamplerHandle) -> Status {
    guarded(|| if sampler.is_null() { Ok(()) } else { SAMPLERS.remove(sampler.addr()).map(drop) })
}

/// Changes one of the settings, a `MINRNN_SAMPLING_`.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_sampler_set(sampler: *mut SamplerHandle, setting: i32, value: f64) -> Status {
    guarded(|| {
        let mut sampler = SAMPLERS.exclusive(sampler.addr())?;
        let mut sampling = sampler.sampling().clone();
        match setting {
            SAMPLING_TEMPERATURE => sampling.temperature = value,
            SAMPLING_TOP_K => sampling.top_k = whole(value)?,
            SAMPLING_TOP_P => sampling.top_p = value,
            SAMPLING_MIN_P => sampling.min_p = value,
            SAMPLING_REPETITION_PENALTY => sampling.repetition_penalty = value,
            _ => return Err(Failure::new(Status::Input, format!("there is no setting {setting}, expected a MINRNN_SAMPLING_"))),
        }
        Ok(sampler.set_sampling(sampling)?)
    })
}

fn whole(value: f64) -> crate::failure::Result<usize> {
    match value >= 0.0 && value.fract() == 0.0 && value <= f64::from(u32::MAX) {
        true => Ok(value as usize),
        false => Err(Failure::new(Status::Input, format!("top_k must be a whole number from 0 (off), found {value}"))),
    }
}

/// Chooses one of `n_logits` tokens. The repetition penalty is written into the logits.
///
/// # Safety
/// The pointers are null or have the stated number of elements; `token` is null or has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_sampler_sample(
    sampler: *mut SamplerHandle,
    logits: *mut f32,
    n_logits: usize,
    recent: *const u32,
    n_recent: usize,
    token: *mut u32,
) -> Status {
    guarded(|| {
        expect_apart(["recent", "logits"], (recent, n_recent), (logits, n_logits))?;
        expect_apart(["recent", "token"], (recent, n_recent), (token, 1))?;
        expect_apart(["logits", "token"], (logits.cast_const(), n_logits), (token, 1))?;
        // SAFETY: the caller's promise, and they do not overlap.
        let (logits, recent) = unsafe { (pointers::write("logits", logits, n_logits)?, pointers::read("recent", recent, n_recent)?) };
        let chosen = SAMPLERS.exclusive(sampler.addr())?.sample(logits, recent).map_err(|error| match error {
            // The logits are the caller's.
            error @ Error::Logit { .. } => Failure::of(Status::Input, error),
            error => error.into(),
        })?;
        // SAFETY: the caller's promise.
        unsafe { pointers::give("token", token, chosen) }
    })
}
