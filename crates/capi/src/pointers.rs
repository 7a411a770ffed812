//! The caller's buffers: pointers and lengths are checked before they are used.

use crate::failure::{Failure, Result};
use crate::status::Status;

/// The `len` elements at `pointer`, which may be null if there are none.
///
/// # Safety
/// If `pointer` is neither null nor misaligned, it points to `len` elements, which nobody writes to during the call.
pub(crate) unsafe fn read<'a, T>(name: &str, pointer: *const T, len: usize) -> Result<&'a [T]> {
    check(name, pointer, len)?;
    if len == 0 {
        return Ok(&[]);
    }
    // SAFETY: it is neither null nor misaligned, and the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts(pointer, len) })
}

/// The same, to be written to.
///
/// # Safety
/// As [`read`]; nobody else reads or writes the elements during the call either, and they are initialised numbers.
pub(crate) unsafe fn write<'a, T>(name: &str, pointer: *mut T, len: usize) -> Result<&'a mut [T]> {
    check(name, pointer, len)?;
    if len == 0 {
        return Ok(&mut []);
    }
    // SAFETY: it is neither null nor misaligned, and the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, len) })
}

/// An input buffer and an output buffer, which must not overlap each other or the place `len` for the number of outputs.
///
/// # Safety
/// As [`read`] and [`write`] say of the buffers; `len` is null or has room for a number.
pub(crate) unsafe fn read_and_write<'a, A, B>(
    [name, other, len_name]: [&str; 3],
    input: (*const A, usize),
    output: (*mut B, usize),
    len: *mut usize,
) -> Result<(&'a [A], &'a mut [B])> {
    expect_apart([name, other], input, output)?;
    expect_apart([name, len_name], input, (len, 1))?;
    expect_apart([other, len_name], (output.0.cast_const(), output.1), (len, 1))?;
    // SAFETY: the caller's promise, and they do not overlap.
    unsafe { Ok((read(name, input.0, input.1)?, write(other, output.0, output.1)?)) }
}

/// Writes `value` to the `place` of a result.
///
/// # Safety
/// If `place` is neither null nor misaligned, it has room for the value.
pub(crate) unsafe fn give<T>(name: &str, place: *mut T, value: T) -> Result<()> {
    check(name, place, 1)?;
    // SAFETY: it is neither null nor misaligned, and the caller promises the rest.
    unsafe { place.write(value) };
    Ok(())
}

/// Checks that a result can be written to `place`, before anything is computed.
pub(crate) fn expect_place<T>(name: &str, place: *mut T) -> Result<()> {
    check(name, place, 1)
}

/// The text that ends with a zero byte.
///
/// # Safety
/// If `pointer` is not null, it points to such a text.
pub(crate) unsafe fn text<'a>(name: &str, pointer: *const std::ffi::c_char) -> Result<&'a std::ffi::CStr> {
    check(name, pointer, 1)?;
    // SAFETY: it is not null, and the caller promises the rest.
    Ok(unsafe { std::ffi::CStr::from_ptr(pointer) })
}

/// Checks two buffers, and that the one that is read, or written first, does not overlap the one that is written.
pub(crate) fn expect_apart<A, B>([name, other]: [&str; 2], read: (*const A, usize), written: (*mut B, usize)) -> Result<()> {
    check(name, read.0, read.1)?;
    check(other, written.0, written.1)?;
    // Both have been checked, so their ends do not overflow.
    let start = read.0.addr();
    let written_start = written.0.addr();
    let overlap = start < written_start + written.1 * size_of::<B>() && written_start < start + read.1 * size_of::<A>();
    match overlap && read.1 > 0 && written.1 > 0 {
        true => Err(Failure::new(Status::Pointer, format!("{name} and {other} overlap, expected buffers of their own"))),
        false => Ok(()),
    }
}

/// Checks a length that is known beforehand.
pub(crate) fn expect_len(name: &str, found: usize, expected: usize, of: &str) -> Result<()> {
    match found == expected {
        true => Ok(()),
        false => Err(Failure::new(Status::Length, format!("{name}: expected {expected} elements, found {found}: {of}"))),
    }
}

/// The refusal of a buffer that holds only `room` of the `needed` elements.
pub(crate) fn no_room(name: &str, room: usize, needed: usize) -> Failure {
    Failure::new(Status::Length, format!("{name} has room for {room}, expected at least {needed}"))
}

fn check<T>(name: &str, pointer: *const T, len: usize) -> Result<()> {
    if len == 0 {
        return Ok(());
    }
    if pointer.is_null() {
        return Err(Failure::new(Status::Pointer, format!("{name} is a null pointer, expected {len} elements")));
    }
    if !pointer.is_aligned() {
        let (name, alignment) = (name, align_of::<T>());
        return Err(Failure::new(Status::Pointer, format!("{name} is not aligned, expected an address that is a multiple of {alignment}")));
    }
    let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
    if bytes.is_none_or(|bytes| pointer.addr().checked_add(bytes).is_none()) {
        return Err(Failure::new(Status::Length, format!("{name} is said to have {len} elements, more than memory can hold")));
    }
    Ok(())
}

/// Writes to `len` that there are `needed` elements, and returns the place for them in `buffer`: none if it is empty, by which a caller only asks
/// how many there are.
///
/// # Safety
/// `len` is null or has room for a number, outside of `buffer`.
pub(crate) unsafe fn place<'a, T>(
    [name, len_name]: [&str; 2],
    buffer: &'a mut [T],
    needed: usize,
    len: *mut usize,
) -> Result<Option<&'a mut [T]>> {
    // SAFETY: the caller's promise.
    unsafe { give(len_name, len, needed) }?;
    let room = buffer.len();
    match buffer.get_mut(..needed) {
        None if room > 0 => Err(no_room(name, room, needed)),
        place => Ok(place),
    }
}

/// Copies `found` to its [`place`].
///
/// # Safety
/// As [`place`].
pub(crate) unsafe fn fill<T: Copy>(names: [&str; 2], buffer: &mut [T], found: &[T], len: *mut usize) -> Result<()> {
    // SAFETY: the caller's promise.
    if let Some(place) = unsafe { place(names, buffer, found.len(), len) }? {
        place.copy_from_slice(found);
    }
    Ok(())
}
