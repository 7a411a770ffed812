//! What a call answers.

/// `minrnn_status` of the header.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It was done.
    Ok = 0,
    /// A pointer is null or not aligned, or buffers overlap.
    Pointer = 1,
    /// A handle that was freed, or never was one of this kind.
    Handle = 2,
    /// Another thread uses the handle.
    Busy = 3,
    /// A buffer has another length than is needed.
    Length = 4,
    /// A number, a token, a text, a row or a setting that cannot be used.
    Input = 5,
    /// The model does not do such a thing.
    Kind = 6,
    /// A file could not be read.
    File = 7,
    /// The packed model is damaged or of a version that is not known, or gives what is no number.
    Model = 8,
    /// A saved session that is damaged or belongs to another model.
    State = 9,
    /// Memory cannot hold it.
    Memory = 10,
    /// A flaw of this library.
    Internal = 11,
}
