//! The border to C: a list of calls, each a few bytes that choose the function, the handles and the lengths, and after a zero byte a packed file.
//!
//! Buffers are as long as stated, which no library can check; everything else may be wrong.
#![no_main]

use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use minrnn_capi::*;
use minrnn_fuzz::{configs, joined, packed_file, packed_model, packed_parts, seeds};
use minrnn_model::{Classifier, Normalization, Section, TableTask, Tokenizer, WeightFormat};

/// Most elements of a buffer.
const MOST: usize = 256;
/// Models larger than this are loaded and not run.
const LARGEST: usize = 1 << 18;

/// A classifier of two columns, characters, bytes.
static FILES: LazyLock<[Vec<u8>; 3]> = LazyLock::new(|| {
    let table = serde_json::to_vec(&TableTask::Classify(Classifier {
        columns: vec!["x".into(), "y".into()],
        group: "g".into(),
        target: "c".into(),
        time: None,
        missing: Default::default(),
        layout: Default::default(),
        categories: Vec::new(),
        rows_per_step: None,
        classes: vec!["a".into(), "b".into(), "d".into()],
        normalization: Normalization { mean: vec![0.0; 2], deviation: vec![1.0; 2] },
    }));
    let table = table.expect("names and numbers are JSON");
    let of_values = configs().into_iter().find(|config| config.input_width == 2).expect("one reads numbers");
    let text = |tokenizer: Tokenizer| {
        let config = minrnn_model::ModelConfig { vocab_size: tokenizer.vocab_size(), ..configs()[0].clone() };
        let json = tokenizer.to_json().expect("it can be written");
        packed_model(&config, WeightFormat::Int8, &[Section::tokenizer(json.as_bytes())])
    };
    [
        packed_model(&of_values, WeightFormat::Bf16, &[Section::table(&table)]),
        text(Tokenizer::characters_of("abé日")),
        text(Tokenizer::Byte),
    ]
});

fuzz_target!(
    init: seeds("capi", || {
        let calls: [&[u8]; 3] = [
            &[1, 1, 1, 5, 2, 1, 8, 1, 2, 10, 1, 1, 12, 1, 3, 14, 1, 2, 6, 1, 1, 8, 2, 2, 7, 1, 1, 9, 1, 1],
            &[1, 2, 1, 16, 1, 4, 17, 1, 4, 11, 1, 9, 18, 1, 2, 19, 1, 3, 20, 1, 4, 2, 1, 1, 3, 1, 1],
            &[1, 3, 2, 10, 1, 2, 13, 1, 2, 15, 1, 1, 12, 1, 5, 9, 2, 1, 4, 1, 1, 3, 1, 1],
        ];
        let files = FILES.iter().map(|file| packed_parts(file));
        calls.iter().zip(files).map(|(calls, file)| joined(&[calls, &file])).collect()
    }),
    |data: &[u8]| {
        let at = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
        let (calls, file) = (&data[..at], data.get(at + 1..).unwrap_or_default());
        let made = if file.starts_with(b"\x89minrnn\n") { None } else { packed_file(file) };
        let mut host = Host::new(made.as_deref().unwrap_or(file));
        for call in calls.chunks_exact(3).take(64) {
            host.call(call[0], usize::from(call[1]), usize::from(call[2]));
        }
        host.end();
    }
);

/// A program in C, with every handle that it was ever given; it also makes some up.
struct Host<'a> {
    file: &'a [u8],
    models: Vec<*mut ModelHandle>,
    sessions: Vec<*mut SessionHandle>,
    samplers: Vec<*mut SamplerHandle>,
    texts: Vec<*mut TextHandle>,
    saved: Vec<u8>,
    floats: Vec<f32>,
    doubles: Vec<f64>,
    tokens: Vec<u32>,
    bytes: Vec<u8>,
    rows: Vec<usize>,
}

/// One of `handles` (some of which were freed), or one that was made up.
fn pick<T>(handles: &[*mut T], at: usize) -> *mut T {
    match handles.get(at % (handles.len() + 2)) {
        Some(&handle) => handle,
        None => without_provenance_mut(at.wrapping_mul(0x9e37_79b9)),
    }
}

/// Checks that a failed call leaves a message and is not the library's fault; returns whether it succeeded.
fn heard(status: Status) -> bool {
    assert_ne!(status, Status::Internal);
    // SAFETY: the library's own text.
    let sentence = unsafe { std::ffi::CStr::from_ptr(minrnn_last_error()) };
    assert!(status == Status::Ok || !sentence.to_bytes().is_empty() && sentence.to_str().is_ok());
    status == Status::Ok
}

impl<'a> Host<'a> {
    fn new(file: &'a [u8]) -> Self {
        Self {
            file,
            models: Vec::new(),
            sessions: Vec::new(),
            samplers: Vec::new(),
            texts: Vec::new(),
            saved: Vec::new(),
            floats: (0..MOST).map(|i| i as f32 * 0.125 - 2.0).collect(),
            doubles: (0..MOST).map(|i| i as f64 * 0.25 - 1.0).collect(),
            tokens: (0..MOST as u32).map(|i| i % 5).collect(),
            bytes: "ab日é\u{7f}\n".bytes().cycle().take(MOST).collect(),
            rows: (0..MOST).collect(),
        }
    }

    /// Rows, as `b` says: a prefix of all, a single one, or no list.
    fn listed(&self, b: usize) -> (*const usize, usize) {
        match b % 4 {
            0 => (self.rows.as_ptr(), b % 5),
            1 => (self.rows[b % 7..].as_ptr(), 1),
            _ => (null(), 0),
        }
    }

    /// How many outputs a call on `session` needs, or another number.
    fn wanted(&self, model: *mut ModelHandle, session: *mut SessionHandle, n_rows: usize, b: usize) -> usize {
        let rows = if n_rows > 0 { n_rows } else { minrnn_session_size(session, 0) };
        let outputs = rows.saturating_mul(minrnn_model_size(model, 2));
        if b % 8 == 7 || outputs > MOST { b % MOST } else { outputs }
    }

    #[allow(clippy::undocumented_unsafe_blocks, reason = "every buffer is one of the host's, with a length that it has")]
    fn call(&mut self, function: u8, a: usize, b: usize) {
        let (model, session) = (pick(&self.models, a), pick(&self.sessions, a));
        let (sampler, text) = (pick(&self.samplers, a), pick(&self.texts, a));
        let small = minrnn_model_size(model, 3) <= LARGEST;
        match function % 24 {
            0 | 1 => {
                let file = if a % 4 == 0 { self.file } else { &FILES[a % 4 - 1] };
                let mut out = null_mut();
                if heard(unsafe { minrnn_model_from_memory(file.as_ptr(), file.len(), &mut out) }) {
                    self.models.push(out);
                }
            }
            2 => _ = heard(minrnn_model_free(model)),
            3 => _ = heard(minrnn_session_free(session)),
            4 => _ = heard(minrnn_session_reset(session, if b % 3 == 0 { usize::MAX } else { b % 5 })),
            5 => {
                let mut out = null_mut();
                if small
                    && minrnn_model_session_bytes(model, MOST) < 1 << 20
                    && heard(unsafe { minrnn_session_new(model, b % 4, &mut out) })
                {
                    self.sessions.push(out);
                }
            }
            6 => {
                let mut out = null_mut();
                if heard(unsafe { minrnn_session_fork(session, &mut out) }) {
                    self.sessions.push(out);
                }
            }
            7 => _ = heard(minrnn_session_copy_row(session, b % 3, pick(&self.sessions, b), a % 3)),
            8 => {
                let mut len = 0;
                if heard(unsafe { minrnn_session_save(session, null_mut(), 0, &mut len) }) {
                    self.saved = vec![0; len];
                    assert!(heard(unsafe { minrnn_session_save(session, self.saved.as_mut_ptr(), len, &mut len) }));
                    if let (Some(byte), true) = (self.saved.get_mut(b * 7), b % 2 == 1) {
                        *byte ^= 1 << (b % 8);
                    }
                }
            }
            9 => {
                let mut out = null_mut();
                if heard(unsafe { minrnn_session_restore(model, self.saved.as_ptr(), self.saved.len(), &mut out) }) {
                    self.sessions.push(out);
                }
            }
            10 => {
                let (rows, n) = self.listed(b);
                let wanted = self.wanted(model, session, n, b);
                let tokens = if n > 0 { n } else { minrnn_session_size(session, 0).min(MOST) };
                let floats = self.floats.as_mut_ptr();
                heard(unsafe { minrnn_step_tokens(session, rows, n, self.tokens.as_ptr(), tokens, floats, wanted) });
            }
            11 => {
                let wanted = if b % 3 == 0 { 0 } else { minrnn_model_size(model, 2).min(MOST) };
                let floats = self.floats.as_mut_ptr();
                heard(unsafe { minrnn_prefill_tokens(session, b % 3, self.tokens.as_ptr(), b % 40, floats, wanted) });
            }
            12 => {
                let (rows, n) = self.listed(b);
                let wanted = self.wanted(model, session, n, b);
                let count = if n > 0 { n } else { minrnn_session_size(session, 0) };
                let values = (count * minrnn_model_size(model, 1)).min(MOST);
                let mut outputs = vec![0.0; wanted];
                heard(unsafe { minrnn_step_values(session, rows, n, self.floats.as_ptr(), values, outputs.as_mut_ptr(), wanted) });
            }
            13 => {
                let n = b % 9;
                let wanted = (n * minrnn_model_size(model, 2)).min(MOST);
                let floats = self.floats.as_mut_ptr();
                heard(unsafe { minrnn_forward_tokens(session, self.tokens.as_ptr(), n, floats, wanted) });
            }
            14 => {
                let (rows, n) = self.listed(b);
                let wanted = self.wanted(model, session, n, b);
                let count = if n > 0 { n } else { minrnn_session_size(session, 0) };
                let values = (count * minrnn_model_size(model, 4)).min(MOST);
                let mut surprises = vec![0.0; count];
                heard(unsafe { minrnn_table_surprise(session, rows, n, self.doubles.as_ptr(), values, surprises.as_mut_ptr(), count) });
                let mut predictions = vec![0.0; wanted];
                heard(unsafe { minrnn_table_step(session, rows, n, self.doubles.as_ptr(), values, predictions.as_mut_ptr(), wanted) });
            }
            15 => {
                // Makes numbers unreadable, or readable again.
                self.doubles[b % MOST] = [f64::NAN, f64::INFINITY, 1e300, 0.5][a % 4];
                self.floats[b % MOST] = [f32::NAN, f32::INFINITY, 1e30, 0.5][a % 4];
                self.tokens[b % MOST] = [u32::MAX, 0, 1, 2][a % 4];
                self.bytes[b % MOST] = a as u8;
            }
            16 => {
                let mut out = null_mut();
                if heard(unsafe { minrnn_text_new(model, &mut out) }) {
                    self.texts.push(out);
                }
            }
            17 => {
                let mut n = 0;
                let room = if b % 5 == 0 { b % 3 } else { MOST };
                let bytes = &self.bytes[b % 16..];
                heard(unsafe {
                    minrnn_text_encode(text, bytes.as_ptr().cast(), b % 20, (b % 2) as i32, self.tokens.as_mut_ptr(), room, &mut n)
                });
            }
            18 => {
                let (mut n, mut piece) = (0, [0u8; 64]);
                let room = if b % 5 == 0 { b % 3 } else { piece.len() };
                if heard(unsafe { minrnn_text_decode(text, self.tokens[b % MOST], piece.as_mut_ptr().cast(), room, &mut n) }) {
                    assert!(n <= room && std::str::from_utf8(&piece[..n]).is_ok());
                }
            }
            19 => {
                let (mut n, mut tokens, mut back) = (0, [0u32; 64], [0u8; 256]);
                let len = b % 32;
                if heard(unsafe { minrnn_encode(model, self.bytes.as_ptr().cast(), len, tokens.as_mut_ptr(), 64, &mut n) }) {
                    let known = unsafe { minrnn_decode(model, tokens.as_ptr(), n, back.as_mut_ptr().cast(), 256, &mut n) };
                    assert!(heard(known) && back[..n] == self.bytes[..len]);
                }
            }
            20 => {
                let mut out = null_mut();
                if heard(unsafe { minrnn_sampler_new(b as u64, &mut out) }) {
                    self.samplers.push(out);
                }
            }
            21 => _ = heard(minrnn_sampler_set(sampler, (b % 7) as i32 - 1, [0.0, 0.5, 1.0, 3.0, -1.0, f64::NAN][b % 6])),
            22 => {
                let mut token = 0;
                let (n, recent) = (b % 32, a % 4);
                if heard(unsafe { minrnn_sampler_sample(sampler, self.floats.as_mut_ptr(), n, self.tokens.as_ptr(), recent, &mut token) }) {
                    assert!((token as usize) < n);
                }
            }
            _ => {
                let name = minrnn_model_name(model, (a % 9) as i32, b % 5);
                // SAFETY: the library's own text.
                assert!(name.is_null() || unsafe { std::ffi::CStr::from_ptr(name) }.to_str().is_ok());
                minrnn_model_kind(model);
                minrnn_model_quantile(model, b);
                heard(minrnn_sampler_free(sampler));
                heard(minrnn_text_free(text));
            }
        }
    }

    /// Frees every handle once, including those freed before.
    fn end(self) {
        self.sessions.into_iter().for_each(|session| _ = heard(minrnn_session_free(session)));
        self.texts.into_iter().for_each(|text| _ = heard(minrnn_text_free(text)));
        self.samplers.into_iter().for_each(|sampler| _ = heard(minrnn_sampler_free(sampler)));
        self.models.into_iter().for_each(|model| _ = heard(minrnn_model_free(model)));
    }
}
