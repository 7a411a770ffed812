//! Stop strings in text that arrives in pieces: text that could still become one is held back.

use alloc::{format, string::String, sync::Arc, vec::Vec};

use serde::{Deserialize, Serialize, Serializer};

use crate::{Error, Result};

/// Looks for the first of several strings in a text that arrives in pieces.
///
/// The outcome depends on the text alone, not on where it is cut: the match completed first counts; of several completed by the same
/// character, the longest. Clones share the strings, so many texts can look for the same ones.
///
/// Serialised, it is its strings and the text held back; deserialising rejects states that could not have arisen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Saved")]
pub struct StopStrings {
    #[serde(serialize_with = "write_shared")]
    stops: Arc<[String]>,
    /// The end of the text so far that is also the beginning of a stop string.
    held: String,
}

/// What is read, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    stops: Vec<String>,
    held: String,
}

impl TryFrom<Saved> for StopStrings {
    type Error = Error;

    fn try_from(Saved { stops, held }: Saved) -> Result<Self> {
        let new = Self::new(&stops)?;
        let begins = |stop: &String| stop.len() > held.len() && stop.starts_with(&held);
        // A text that contained a whole stop string would have ended.
        let is_over = stops.iter().any(|stop| held.contains(stop.as_str()));
        if !held.is_empty() && (is_over || !stops.iter().any(begins)) {
            return Err(Error::Sampling(format!(
                "the text '{held}' is held back, expected the beginning of a stop string; begin the text anew"
            )));
        }
        Ok(Self { held, ..new })
    }
}

impl StopStrings {
    /// Looks for `stops`; without any, nothing is ever held back.
    ///
    /// # Errors
    /// When a stop string is empty.
    pub fn new(stops: &[impl AsRef<str>]) -> Result<Self> {
        if stops.iter().any(|stop| stop.as_ref().is_empty()) {
            return Err(Error::Sampling("a stop string is empty, which every text contains; leave it out or give it a character".into()));
        }
        Ok(Self { stops: stops.iter().map(|stop| String::from(stop.as_ref())).collect(), held: String::new() })
    }

    /// The strings looked for.
    pub fn stops(&self) -> &[String] {
        &self.stops
    }

    /// Takes the next piece; returns the text that can be shown and whether a stop string was found. The text ends before the stop string,
    /// and what follows in the same piece is dropped.
    pub fn push(&mut self, piece: &str) -> (String, bool) {
        self.held += piece;
        let text = self.held.as_str();
        let found = self.stops.iter().filter_map(|stop| text.find(stop.as_str()).map(|start| (start + stop.len(), start))).min();
        if let Some((_, start)) = found {
            self.held.truncate(start);
            return (core::mem::take(&mut self.held), true);
        }
        let may_begin_a_stop = |&start: &usize| self.stops.iter().any(|stop| stop.starts_with(&text[start..]));
        let keep_from = text.char_indices().map(|(start, _)| start).find(may_begin_a_stop).unwrap_or(text.len());
        let kept = self.held.split_off(keep_from);
        (core::mem::replace(&mut self.held, kept), false)
    }

    /// Stops waiting and returns the text that was held back.
    pub fn take_held(&mut self) -> String {
        core::mem::take(&mut self.held)
    }
}

fn write_shared<S: Serializer>(strings: &Arc<[String]>, serializer: S) -> core::result::Result<S::Ok, S::Error> {
    strings[..].serialize(serializer)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strings(stops: &[&str]) -> StopStrings {
        StopStrings::new(stops).unwrap()
    }

    /// Everything shown and whether it stopped.
    fn shown<'a>(mut stops: StopStrings, pieces: impl IntoIterator<Item = &'a str>) -> (String, bool) {
        let mut all = String::new();
        for piece in pieces {
            let (text, stopped) = stops.push(piece);
            all += &text;
            if stopped {
                return (all, true);
            }
        }
        (all + &stops.take_held(), false)
    }

    #[test]
    fn text_is_held_back_while_it_could_become_a_stop_string() {
        let mut stops = strings(&["\n\nEND"]);
        assert_eq!(stops.push("a\n"), ("a".into(), false));
        assert_eq!(stops.push("\n"), (String::new(), false));
        assert_eq!(stops.push("\nE"), ("\n".into(), false));
        assert_eq!(stops.push("ND and more"), (String::new(), true));
        assert_eq!(stops.take_held(), "");
    }

    #[test]
    fn a_beginning_that_leads_nowhere_is_shown_after_all() {
        let mut stops = strings(&["stop"]);
        assert_eq!(stops.push("sto"), (String::new(), false));
        assert_eq!(stops.push("ut é"), ("stout é".into(), false));
        assert_eq!(stops.push("st"), (String::new(), false));
        assert_eq!(stops.take_held(), "st");
    }

    #[test]
    fn without_stop_strings_everything_is_shown_at_once() {
        assert_eq!(strings(&[]).push("日本"), ("日本".into(), false));
    }

    #[test]
    fn clones_share_their_strings_and_what_is_saved_lists_them() {
        let stops = strings(&["a", "b"]);
        assert!(core::ptr::eq(stops.stops(), stops.clone().stops()));
        let saved = serde_json::to_value(&stops).unwrap();
        assert_eq!(saved, serde_json::json!({ "stops": ["a", "b"], "held": "" }));
        assert_eq!(serde_json::from_value::<StopStrings>(saved).unwrap(), stops);
    }

    #[test]
    fn an_empty_stop_string_is_refused() {
        assert!(StopStrings::new(&[String::new()]).unwrap_err().to_string().contains("empty"));
    }

    #[test]
    fn saved_stop_strings_that_could_not_have_been_made_are_refused() {
        let read = |stops: &[&str], held: &str| serde_json::from_value::<StopStrings>(serde_json::json!({ "stops": stops, "held": held }));
        for (stops, held, words) in [
            (&["a", ""][..], "", "a stop string is empty"),
            (&["ab"], "ab", "the text 'ab' is held back, expected the beginning of a stop string"),
            (&["ab"], "b", "the text 'b' is held back"),
            (&["b", "abc"], "ab", "the text 'ab' is held back"),
            (&[], "x", "the text 'x' is held back"),
        ] {
            let refused = read(stops, held).unwrap_err().to_string();
            assert!(refused.contains(words), "{refused}");
        }
        let mut held_back = read(&["b", "ab"], "a").unwrap();
        assert_eq!(held_back.push("b!"), (String::new(), true));
        assert!(serde_json::from_str::<StopStrings>(r#"{"stops": [], "held": "", "more": 1}"#).is_err());
    }

    proptest! {
        #[test]
        fn where_the_text_is_cut_does_not_matter(
            text in "[abé]{0,30}",
            stops in prop::collection::vec("[abé]{1,4}", 0..4),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let stops = StopStrings::new(&stops).unwrap();
            let characters: Vec<&str> = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(characters.len() + 1)).collect();
            places.sort_unstable();
            let bounds: Vec<usize> = [0].into_iter().chain(places).chain([characters.len()]).collect();
            let pieces: Vec<String> = bounds.windows(2).map(|pair| characters[pair[0]..pair[1]].concat()).collect();
            let by_pieces = shown(stops.clone(), pieces.iter().map(String::as_str));
            prop_assert_eq!(&by_pieces, &shown(stops.clone(), characters));
            let found = stops.stops().iter().any(|stop| text.contains(stop.as_str()));
            prop_assert_eq!(by_pieces.1, found);
            prop_assert!(text.starts_with(&by_pieces.0) && (found || text == by_pieces.0));
        }
    }
}
