//! The result of a call.

/// `minrnn_status` of the header.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// A pointer is null or not aligned, or buffers overlap.
    Pointer = 1,
    /// A handle was freed, or never was one of this kind.
    Handle = 2,
    /// Another thread is using the handle.
    Busy = 3,
    /// A buffer has the wrong length.
    Length = 4,
    /// A number, token, text, row or setting is not valid.
    Input = 5,
    /// The model does not support this.
    Kind = 6,
    /// A file could not be read.
    File = 7,
    /// The packed model is damaged or of an unknown version, or its prediction is not finite.
    Model = 8,
    /// A saved session is damaged or belongs to another model, or a session cannot be saved.
    State = 9,
    /// Not enough memory.
    Memory = 10,
    /// A bug in this library.
    Internal = 11,
}
