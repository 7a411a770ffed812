//! Paths in commands that are printed to be given to a shell.

use std::fmt::Write;
use std::path::Path;

/// Characters that have no special meaning in a word, besides letters and digits.
const PLAIN: &[u8] = b"/._-+=:,@%";

/// `path` as a word of a shell's command: unchanged if that is plain, otherwise in quotes. One that begins with a dash, which would be an option, gets its
/// folder in front.
pub fn quoted(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    let bytes = path.as_os_str().as_encoded_bytes();
    let folder = if bytes.starts_with(b"-") { "./" } else { "" };
    match path.to_str() {
        Some(text) if is_plain(text) => format!("{folder}{text}"),
        Some(text) if !text.contains(char::is_control) => format!("'{folder}{}'", text.replace('\'', r"'\''")),
        // A terminal would obey control characters, and other bytes are not text.
        _ => format!("$'{folder}{}'", escaped(bytes)),
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || PLAIN.contains(&byte))
}

/// `bytes` as they stand within `$'…'`.
fn escaped(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, &byte| {
        match byte {
            b'\'' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => _ = write!(text, "\\x{byte:02x}"),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_plain_has_no_quotes() {
        for path in ["runs/my", "./a-b_c.txt", "/tmp/x=1:2,3@4%5+6", "Z9"] {
            assert_eq!(quoted(path), path);
        }
    }

    #[test]
    fn a_path_that_a_shell_would_cut_or_obey_is_in_quotes() {
        let cases = [
            ("my run", "'my run'"),
            ("ü.txt", "'ü.txt'"),
            ("it's", r"'it'\''s'"),
            ("a;b$(c)`d`&e", "'a;b$(c)`d`&e'"),
            ("~me", "'~me'"),
            ("", "''"),
            ("-y", "./-y"),
            ("-y z", "'./-y z'"),
            ("a\nb\u{1b}'", r"$'a\x0ab\x1b\''"),
        ];
        for (path, expected) in cases {
            assert_eq!(quoted(path), expected);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_shell_reads_the_path_back() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        for path in ["my run", "it's", "-y", "a\"b\\c*?[d]{e}|<>#!", "ü", "~"] {
            let script = format!("printf %s {}", quoted(path));
            let told = std::process::Command::new("sh").args(["-c", &script]).output().unwrap().stdout;
            let folder = if path.starts_with('-') { "./" } else { "" };
            assert_eq!(String::from_utf8(told).unwrap(), format!("{folder}{path}"));
        }
        assert_eq!(quoted(OsStr::from_bytes(b"a\xff")), r"$'a\xff'");
    }
}
