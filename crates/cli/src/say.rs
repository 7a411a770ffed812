//! Lines for people.

use std::fmt;
use std::io::{self, Write};

/// Prints a line on stderr; that nobody can read it is no reason to end a run.
pub fn say(line: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{line}");
}
