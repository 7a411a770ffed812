//! Text to tokens and back, at once or as it arrives.

use std::ffi::c_char;
use std::sync::Arc;

use minrnn_model::{TextInput, TextStream};

use crate::failure::{Failure, guarded};
use crate::handles::{Named, Opaque, Table};
use crate::model::{Loaded, MODELS, ModelHandle};
use crate::pointers::{self, expect_apart};
use crate::status::Status;

/// Text on its way in and out.
pub(crate) struct Text {
    model: Arc<Loaded>,
    input: TextInput,
    /// Number of characters encoded so far.
    characters: u64,
    output: TextStream,
}

impl Named for Text {
    const NAME: &'static str = "text";
    const KIND: usize = 3;
}

static TEXTS: Table<Text> = Table::new();

/// `minrnn_text` of the header.
pub type TextHandle = Opaque<TextStream>;

/// The token that stands for an empty prompt.
///
/// # Safety
/// `token` is null or has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_start_token(model: *const ModelHandle, token: *mut u32) -> Status {
    guarded(|| {
        let model = MODELS.shared(model.addr())?.clone();
        let start = model.tokenizer()?.start_token();
        // SAFETY: the caller's promise.
        unsafe { pointers::give("token", token, start) }
    })
}

/// The tokens of a text of `len` bytes; `n_tokens` receives their number, even if `capacity` is 0.
///
/// # Safety
/// The pointers are null or have the stated number of elements; `n_tokens` is null or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_encode(
    model: *const ModelHandle,
    text: *const c_char,
    len: usize,
    tokens: *mut u32,
    capacity: usize,
    n_tokens: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (text, tokens) =
            unsafe { pointers::read_and_write(["text", "tokens", "n_tokens"], (text.cast::<u8>(), len), (tokens, capacity), n_tokens) }?;
        // The handle is released at once, so that others may free the model meanwhile.
        let model = MODELS.shared(model.addr())?.clone();
        let tokenizer = model.tokenizer()?;
        let mut found = Vec::new();
        let refused = |_| Failure::new(Status::Memory, format!("memory cannot hold the tokens of {len} bytes; encode fewer at once"));
        found.try_reserve(len).map_err(refused)?;
        tokenizer.encode_bytes_into(text, 0, &mut found)?;
        // SAFETY: the caller's promise.
        unsafe { pointers::fill(["tokens", "n_tokens"], tokens, &found, n_tokens) }
    })
}

/// The bytes of tokens, which may begin and end inside a character; `len` receives their number, even if `capacity` is 0.
///
/// # Safety
/// The pointers are null or have the stated number of elements; `len` is null or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_decode(
    model: *const ModelHandle,
    tokens: *const u32,
    n_tokens: usize,
    text: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (tokens, text) =
            unsafe { pointers::read_and_write(["tokens", "text", "len"], (tokens, n_tokens), (text.cast::<u8>(), capacity), len) }?;
        let mut found = Vec::new();
        let model = MODELS.shared(model.addr())?.clone();
        let tokenizer = model.tokenizer()?;
        tokens.iter().try_for_each(|&token| tokenizer.append_bytes(token, &mut found))?;
        // SAFETY: the caller's promise.
        unsafe { pointers::fill(["text", "len"], text, &found, len) }
    })
}

/// A new text stream, for encoding an arriving text and decoding generated tokens.
///
/// # Safety
/// `out` is null or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_text_new(model: *const ModelHandle, out: *mut *mut TextHandle) -> Status {
    guarded(|| {
        pointers::expect_place("out", out)?;
        let model = MODELS.shared(model.addr())?.clone();
        model.tokenizer()?;
        let name = TEXTS.insert(Text { model, input: TextInput::new(), characters: 0, output: TextStream::new() })?;
        // SAFETY: the caller's promise.
        unsafe { pointers::give("out", out, std::ptr::without_provenance_mut(name)) }
    })
}

/// Frees a text. Freeing null does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_text_free(text: *mut TextHandle) -> Status {
    guarded(|| if text.is_null() { Ok(()) } else { TEXTS.remove(text.addr()).map(drop) })
}

/// Drops what is pending in either direction.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_text_reset(text: *mut TextHandle) -> Status {
    guarded(|| {
        let mut text = TEXTS.exclusive(text.addr())?;
        (text.input, text.characters, text.output) = (TextInput::new(), 0, TextStream::new());
        Ok(())
    })
}

/// The tokens that the next `len` bytes of a text complete; everything pending if these are the `last` ones. If the call fails, the bytes
/// were not taken.
///
/// # Safety
/// The pointers are null or have the stated number of elements; `n_tokens` is null or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_text_encode(
    text: *mut TextHandle,
    bytes: *const c_char,
    len: usize,
    last: i32,
    tokens: *mut u32,
    capacity: usize,
    n_tokens: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (bytes, tokens) =
            unsafe { pointers::read_and_write(["bytes", "tokens", "n_tokens"], (bytes.cast::<u8>(), len), (tokens, capacity), n_tokens) }?;
        let mut text = TEXTS.exclusive(text.addr())?;
        let Text { model, input, characters, .. } = &mut *text;
        let tokenizer = model.tokenizer()?;
        let waiting = input.pending().len();
        let mut ready = input.push(tokenizer, bytes);
        if last != 0 {
            ready.extend(input.finish());
        }
        let mut found = Vec::new();
        if let Err(error) = tokenizer.encode_bytes_into(&ready, *characters, &mut found) {
            input.take_back(ready, waiting);
            return Err(error.into());
        }
        if found.len() > tokens.len() {
            input.take_back(ready, waiting);
            // SAFETY: the caller's promise.
            unsafe { pointers::give("n_tokens", n_tokens, found.len()) }?;
            return Err(pointers::no_room("tokens", tokens.len(), found.len()));
        }
        // SAFETY: the caller's promise.
        unsafe { pointers::fill(["tokens", "n_tokens"], tokens, &found, n_tokens) }?;
        *characters += String::from_utf8_lossy(&ready).chars().count() as u64;
        Ok(())
    })
}

/// The whole characters that `token` completes, as UTF-8; bytes that cannot form a character become U+FFFD. If the call fails, the token
/// was not taken.
///
/// # Safety
/// `bytes` is null or has room for `capacity`; `len` is null or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_text_decode(
    text: *mut TextHandle,
    token: u32,
    bytes: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> Status {
    guarded(|| {
        expect_apart(["bytes", "len"], (bytes.cast_const(), capacity), (len, 1))?;
        // SAFETY: the caller's promise, and they lie apart.
        let bytes = unsafe { pointers::write("bytes", bytes.cast::<u8>(), capacity) }?;
        let mut text = TEXTS.exclusive(text.addr())?;
        let mut output = text.output.clone();
        let found = output.push(text.model.tokenizer()?, token)?;
        if found.len() > bytes.len() {
            // SAFETY: the caller's promise.
            unsafe { pointers::give("len", len, found.len()) }?;
            return Err(pointers::no_room("bytes", bytes.len(), found.len()));
        }
        // SAFETY: the caller's promise.
        unsafe { pointers::fill(["bytes", "len"], bytes, found.as_bytes(), len) }?;
        text.output = output;
        Ok(())
    })
}
