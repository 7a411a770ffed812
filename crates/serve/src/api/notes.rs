//! Notes beside an answer that is sent as CSV, which has no place for them.

use axum::http::{HeaderName, HeaderValue};

/// One for each note.
pub(super) const NOTE: HeaderName = HeaderName::from_static("minrnn-note");
/// Most bytes of all notes together: clients and proxies reject an answer whose head is long.
const ROOM: usize = 2000;

/// The notes as values of a header, as many as there is room for, and how many are left.
pub(super) fn in_headers(notes: &[String]) -> Vec<HeaderValue> {
    let (mut room, mut values) = (ROOM, Vec::new());
    for (at, note) in notes.iter().enumerate() {
        // Escaping never makes it shorter.
        let note = Some(note).filter(|note| note.len() <= room).map(|note| ascii_for_header(note)).filter(|note| note.len() <= room);
        let Some(note) = note else {
            values.push(format!("{} more; an answer in JSON has all of them ('Accept: application/json')", notes.len() - at));
            break;
        };
        room -= note.len();
        values.push(note);
    }
    values.iter().filter_map(|value| HeaderValue::from_str(value).ok()).collect()
}

/// `text` in ASCII without control characters: it contains names from a table, and a line break would begin another header.
fn ascii_for_header(text: &str) -> String {
    let shown = |c: char| if matches!(c, ' '..='~') { c.to_string() } else { c.escape_default().to_string() };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(notes: &[&str]) -> Vec<String> {
        let notes: Vec<String> = notes.iter().map(|&note| note.to_owned()).collect();
        in_headers(&notes).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn no_note_begins_another_header() {
        assert_eq!(of(&["'a\r\nSet-Cookie: b' and 'é'"]), ["'a\\r\\nSet-Cookie: b' and '\\u{e9}'"]);
        assert!(of(&[]).is_empty());
    }

    #[test]
    fn notes_beyond_the_room_are_counted() {
        let more = |n: usize| format!("{n} more; an answer in JSON has all of them ('Accept: application/json')");
        let long = "a".repeat(1500);
        assert_eq!(of(&["one", &long, &long, "two"]), ["one".to_owned(), long.clone(), more(2)]);
        // The escaped length is what counts.
        assert_eq!(of(&[&"é".repeat(600)]), [more(1)]);
    }
}
