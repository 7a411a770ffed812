//! What the commands print.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// Prints `text`. A reader that has gone away, as `head` does, has read enough: nothing more is printed and nothing fails.
///
/// # Errors
/// When stdout cannot be written, such as a full disk behind it.
pub fn print(text: impl Display) -> anyhow::Result<()> {
    match write!(std::io::stdout(), "{text}").and_then(|()| std::io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(anyhow::Error::new(error).context("could not print")),
        _ => Ok(()),
    }
}
