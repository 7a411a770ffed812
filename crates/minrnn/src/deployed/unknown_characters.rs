//! The characters of a text that are not in a vocabulary.

use minrnn_model::Characters;

use crate::counted::counted;

/// Maximum number of different characters that are named.
const NAMED: usize = 5;

/// Counts them.
#[derive(Debug, Default)]
pub(super) struct UnknownCharacters {
    /// The first ones, with how often each came.
    named: Vec<(char, u64)>,
    /// How often others came.
    others: u64,
}

impl UnknownCharacters {
    /// Counts `character`.
    pub fn add(&mut self, character: char) {
        match self.named.iter().position(|&(known, _)| known == character) {
            Some(at) => self.named[at].1 += 1,
            None if self.named.len() < NAMED => self.named.push((character, 1)),
            None => self.others += 1,
        }
    }

    /// A sentence that names them, and one about each that editors insert invisibly; none if there are no such characters.
    pub fn notes(&self) -> Vec<String> {
        if self.named.is_empty() {
            return Vec::new();
        }
        let shown = |character: char| format!("'{}'", character.escape_debug());
        let mut told: Vec<String> =
            self.named.iter().map(|&(character, n)| format!("{} ({})", shown(character), counted(n, "time"))).collect();
        if self.others > 0 {
            told.push(format!("other characters ({})", counted(self.others, "time")));
        }
        let mut notes = vec![format!("the vocabulary does not have {}", told.join(", "))];
        let origins = self.named.iter().map(|&(character, _)| (character, Characters::origin(character)));
        notes.extend(origins.filter(|(_, origin)| !origin.is_empty()).map(|(character, origin)| shown(character) + origin));
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(text: &str) -> Vec<String> {
        let mut unknown = UnknownCharacters::default();
        text.chars().for_each(|character| unknown.add(character));
        unknown.notes()
    }

    #[test]
    fn the_first_characters_are_named_with_how_often_they_came_and_where_they_come_from() {
        assert!(notes("").is_empty());
        assert_eq!(notes("ä'ä"), ["the vocabulary does not have 'ä' (2 times), '\\'' (1 time)"]);
        let of_windows = "'\\r': it is a carriage return, mostly of line ends in CR LF, as on Windows; save the text with line ends in LF";
        assert_eq!(notes("\rä\r"), ["the vocabulary does not have '\\r' (2 times), 'ä' (1 time)", of_windows]);
        assert_eq!(
            notes("abcdefgaf"),
            [
                "the vocabulary does not have 'a' (2 times), 'b' (1 time), 'c' (1 time), 'd' (1 time), 'e' (1 time), other characters (3 times)"
            ]
        );
    }
}
