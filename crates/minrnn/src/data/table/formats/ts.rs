//! Sequences in the format `.ts` of the time series archives (UCR, UEA, aeon, sktime).
//!
//! ```text
//! # comments
//! @problemName Example
//! @timeStamps false
//! @univariate false
//! @classLabel true good worn
//! @data
//! 1.0,2.0,3.0:0.1,0.2,?:good
//! ```
//!
//! A line below `@data` is a sequence: its dimensions, separated by `:`, each a list of numbers separated by `,`, and at the end its class.
//! With `@timeStamps true` a number is a pair `(time,number)`. Unknown values are `?` or `NaN`. Sequences may have different lengths. As a
//! table it has the columns `series` (1, 2, …, the number of the sequence), `class` (`target` if `@targetLabel` is true), `time` if there
//! are times, and `value`, or `dim_0`, `dim_1`, … if there are several dimensions.

use std::io::Read;

use super::super::cells::{Cell, Place, shown};
use super::super::columns::Positions;
use super::super::frame::Filling;
use super::lines::Lines;
use super::{Format, Reader};
use crate::suggestion::suggestion;
use crate::{Error, Result};

pub(super) const FORMAT: Format = Format {
    extensions: &["ts"],
    magic: &[],
    begins: |text| text.lines().find(|line| !is_comment(line)).is_some_and(|line| line.trim_start().starts_with('@')),
    open: |input| Ok(Box::new(Archive::open(input.whole())?)),
};

/// The name of the column of sequences.
const SERIES: &str = "series";

fn is_comment(line: &str) -> bool {
    matches!(line.trim_start().chars().next(), None | Some('#' | '%'))
}

/// The header above `@data`.
#[derive(Debug, Default)]
struct Head {
    has_times: bool,
    /// The name of the column for the class or number at the end of a line, if there is one.
    label: Option<&'static str>,
    /// The allowed classes; empty if not declared.
    classes: Vec<String>,
    is_univariate: Option<bool>,
    dimensions: Option<usize>,
    /// Number of steps of every sequence.
    length: Option<usize>,
    is_equal: bool,
}

impl Head {
    /// Takes the line `text`; returns true if the data begin below it.
    fn take(&mut self, text: &str) -> Result<bool, String> {
        let mut words = text.split_whitespace();
        let tag = words.next().unwrap_or_default().to_lowercase();
        let values: Vec<&str> = words.collect();
        let flag = || match values.first().map(|value| value.to_lowercase()).as_deref() {
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            _ => Err(format!("{tag} is '{}', expected true or false", values.join(" "))),
        };
        let count = || match values.first().map(|value| value.parse::<usize>()) {
            Some(Ok(count)) => Ok(count),
            _ => Err(format!("{tag} is '{}', expected a number", values.join(" "))),
        };
        match tag.as_str() {
            "@data" => return Ok(true),
            "@timestamps" => self.has_times = flag()?,
            "@univariate" => self.is_univariate = Some(flag()?),
            "@dimensions" | "@dimension" => self.dimensions = Some(count()?),
            "@equallength" => self.is_equal = flag()?,
            "@serieslength" => self.length = Some(count()?),
            "@classlabel" if flag()? => {
                self.label = Some("class");
                self.classes = values[1..].iter().map(ToString::to_string).collect();
                if self.classes.is_empty() {
                    return Err("@classLabel names no classes; write them behind true".to_owned());
                }
            }
            "@targetlabel" if flag()? => self.label = Some("target"),
            // Other tags change nothing.
            tag if tag.starts_with('@') => {}
            _ => return Err(format!("expected @data or another tag, found '{}'", shown(text))),
        }
        Ok(false)
    }
}

/// A file whose first sequence has been found.
struct Archive<R> {
    lines: Lines<R>,
    head: Head,
    header: Vec<String>,
    dimensions: usize,
    /// Whether there is a current sequence.
    is_there: bool,
}

impl<R: Read> Archive<R> {
    fn open(source: R) -> Result<Self> {
        let (mut lines, mut head) = (Lines::new(source), Head::default());
        loop {
            if !lines.advance()? {
                return Err(Error::Data("it has no line @data; the sequences stand below it".to_owned()));
            }
            let (text, line) = (lines.text()?, lines.number());
            if !is_comment(text) && head.take(text).map_err(|problem| Error::Data(format!("line {line}: {problem}")))? {
                break;
            }
        }
        let mut archive = Self { lines, head, header: vec![SERIES.to_owned()], dimensions: 0, is_there: false };
        archive.is_there = archive.advance()?;
        archive.dimensions = match archive.is_there {
            true => split(archive.lines.text()?).count().saturating_sub(usize::from(archive.head.label.is_some())),
            false => 0,
        };
        archive.expect_dimensions()?;
        archive.header.extend(archive.head.label.map(str::to_owned));
        archive.header.extend(archive.head.has_times.then(|| "time".to_owned()));
        match archive.dimensions {
            0 | 1 => archive.header.push("value".to_owned()),
            n => archive.header.extend((0..n).map(|at| format!("dim_{at}"))),
        }
        Ok(archive)
    }

    /// Refuses a first sequence whose dimensions contradict the header.
    fn expect_dimensions(&self) -> Result<()> {
        let told = match self.head.is_univariate {
            Some(true) => Some(1),
            _ => self.head.dimensions,
        };
        let (line, found) = (self.lines.number(), self.dimensions);
        match told {
            Some(told) if self.is_there && told != found => {
                let label = if self.head.label.is_some() { " before its class" } else { "" };
                Err(Error::Data(format!("line {line} has {found} dimensions{label}, expected {told} as its head says")))
            }
            _ if self.is_there && found == 0 => Err(Error::Data(format!("line {line} has a class and no dimension"))),
            _ => Ok(()),
        }
    }

    fn advance(&mut self) -> Result<bool> {
        while self.lines.advance()? {
            if !is_comment(self.lines.text()?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The dimensions of the current sequence, and its class.
    fn sequence(&self) -> Result<(Vec<Steps<'_>>, Option<&str>)> {
        let line = self.lines.number();
        let mut parts: Vec<&str> = split(self.lines.text()?).collect();
        let label = match self.head.label {
            Some(label) => Some(parts.pop().map(str::trim).filter(|name| !name.is_empty())).map(|name| {
                let name = name.ok_or_else(|| Error::Data(format!("line {line} ends without a {label}")))?;
                self.known(name)
            }),
            None => None,
        };
        let label = label.transpose()?;
        let (found, expected) = (parts.len(), self.dimensions);
        if found != expected {
            let dimensions = if found == 1 { "dimension" } else { "dimensions" };
            return Err(Error::Data(format!("line {line} has {found} {dimensions}, expected {expected} as in the first sequence")));
        }
        let dimensions: Result<Vec<Steps>, String> = parts.into_iter().map(|text| Steps::of(text, self.head.has_times)).collect();
        let dimensions = dimensions.map_err(|problem| Error::Data(format!("line {line}: {problem}")))?;
        let length = dimensions.first().map_or(0, |first| first.numbers.len());
        if let Some(at) = dimensions.iter().position(|steps| steps.numbers.len() != length) {
            let found = dimensions[at].numbers.len();
            return Err(Error::Data(format!(
                "line {line}, dimension {}: it has {found} steps, expected {length} as the first one",
                at + 1
            )));
        }
        if let Some(at) = dimensions.iter().position(|steps| steps.times != dimensions[0].times) {
            return Err(Error::Data(format!("line {line}, dimension {}: it has other times than the first one", at + 1)));
        }
        match self.head.length.filter(|_| self.head.is_equal) {
            Some(told) if told != length => Err(Error::Data(format!("line {line} has {length} steps, expected {told} as its head says"))),
            _ => Ok((dimensions, label)),
        }
    }

    /// The class that `name` stands for.
    fn known<'a>(&'a self, name: &'a str) -> Result<&'a str> {
        let classes = &self.head.classes;
        let found = classes.iter().find(|class| *class == name).or_else(|| classes.iter().find(|class| class.eq_ignore_ascii_case(name)));
        match found {
            Some(class) => Ok(class),
            None if classes.is_empty() => Ok(name),
            None => {
                let (line, names) = (self.lines.number(), suggestion(name, classes.iter().map(String::as_str)));
                let name = shown(name);
                Err(Error::Data(format!("line {line}: the class '{name}' is not among those of @classLabel{names}")))
            }
        }
    }
}

/// The parts of a line between colons, except the colons of a time of day.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0u32;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ':' && depth == 0
    })
}

/// A dimension of a sequence: its cells, and their times.
struct Steps<'a> {
    numbers: Vec<&'a str>,
    times: Vec<&'a str>,
}

impl<'a> Steps<'a> {
    fn of(text: &'a str, has_times: bool) -> Result<Self, String> {
        if !has_times {
            return Ok(Self { numbers: text.split(',').collect(), times: Vec::new() });
        }
        let (mut numbers, mut times, mut rest) = (Vec::new(), Vec::new(), text.trim());
        while !rest.is_empty() {
            let pair = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
            let Some((pair, behind)) = pair.and_then(|(pair, behind)| Some((pair.rsplit_once(',')?, behind))) else {
                return Err(format!("expected pairs (time,number), found '{}'", shown(rest)));
            };
            times.push(pair.0.trim());
            numbers.push(pair.1);
            rest = behind.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        Ok(Self { numbers, times })
    }
}

impl<R: Read> Reader for Archive<R> {
    fn header(&self) -> &[String] {
        &self.header
    }

    fn dates(&mut self) -> Result<Vec<bool>> {
        Ok(vec![false; self.header.len()])
    }

    fn read(mut self: Box<Self>, positions: &Positions, filling: &mut Filling) -> Result<()> {
        let mut name = 0u64;
        // The index of the first dimension in the header.
        let first = self.header.len() - self.dimensions.max(1);
        while self.is_there {
            name += 1;
            let (dimensions, label) = self.sequence()?;
            let (line, series) = (self.lines.number(), name.to_string());
            let place = Place::Line(line);
            for step in 0..dimensions[0].numbers.len() {
                filling.begin_row(line)?;
                let cell = |at: usize| match self.header[at].as_str() {
                    SERIES => series.as_str(),
                    "time" if at < first => dimensions[0].times[step],
                    _ if at >= first => dimensions[at - first].numbers[step],
                    _ => label.unwrap_or_default(),
                };
                for (&at, texts) in positions.texts.iter().zip(&mut filling.texts) {
                    texts.push(Cell::Any(cell(at)), place)?;
                }
                if let (Some(at), Some(times)) = (positions.time, &mut filling.times) {
                    times.push(Cell::Any(cell(at)), place)?;
                }
                for (&at, numbers) in positions.numbers.iter().zip(&mut filling.numbers) {
                    numbers.push(Cell::Any(cell(at)), place)?;
                }
            }
            self.is_there = self.advance()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::table::{Frame, TimeColumn, Wanted};

    const HEAD: &str = "# about it\n@problemName Example\n@timeStamps false\n@univariate false\n@classLabel true good worn\n\n@data\n";

    fn read(text: &str) -> Result<Frame> {
        let texts = vec!["series".to_owned(), "class".to_owned()];
        let wanted = Wanted { texts, time: TimeColumn::Found, may_miss: true, ..Wanted::default() };
        super::super::frame(Box::new(Archive::open(text.as_bytes())?), &wanted)
    }

    fn refusal(data: &str) -> String {
        read(&format!("{HEAD}{data}")).unwrap_err().to_string()
    }

    #[test]
    fn sequences_of_several_dimensions_and_lengths_are_rows() {
        let frame = read(&format!("{HEAD}\n1,2,3:4,?,6:good\n# more\n7,8: NaN ,10:WORN\n")).unwrap();
        assert_eq!(frame.names, ["dim_0", "dim_1"]);
        assert_eq!(frame.numbers[0], [1.0, 2.0, 3.0, 7.0, 8.0]);
        assert_eq!(frame.numbers[1].iter().map(|x| x.is_nan()).collect::<Vec<_>>(), [false, true, false, true, false]);
        assert_eq!((frame.texts[0].distinct(), frame.texts[1].distinct()), (&owned(&["1", "2"])[..], &owned(&["good", "worn"])[..]));
        assert_eq!(frame.texts[0].rows(), [0, 0, 0, 1, 1]);
        assert_eq!([0, 4].map(|row| frame.places.name(row)), ["line 9", "line 11"]);
    }

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn times_of_the_day_do_not_divide_dimensions() {
        let text = "@timestamps true\n@classlabel true a b\n@data\n(2024-01-01 00:00:00,1),(2024-01-01 01:00:00,2):a\n";
        let frame = read(text).unwrap();
        assert_eq!(frame.numbers, [[1.0, 2.0]]);
        assert_eq!(frame.times.unwrap().values, [1_704_067_200_000.0, 1_704_070_800_000.0]);
        let refused = |text: String| read(&text).unwrap_err().to_string();
        assert!(refused(text.replace("),(", "),1,(")).contains("line 4: expected pairs (time,number), found '1,("));
        assert!(refused(text.replace(":a", ":(0,1),(1,2):a")).contains("dimension 2: it has other times"));
    }

    #[test]
    fn every_flaw_is_a_sentence_with_its_line() {
        assert!(read("@problemName x\n").unwrap_err().to_string().starts_with("it has no line @data"));
        assert!(read("1,2:a\n").unwrap_err().to_string().starts_with("line 1: expected @data or another tag, found '1,2:a'"));
        assert!(read("@univariate maybe\n").unwrap_err().to_string().contains("@univariate is 'maybe', expected true or false"));
        assert!(read("@classLabel true\n").unwrap_err().to_string().contains("names no classes"));
        assert!(refusal("").contains("no rows"));
        assert_eq!(refusal("1,2:3,4:bad\n"), "line 8: the class 'bad' is not among those of @classLabel; expected one of 'good', 'worn'");
        assert!(refusal("1,2:3,4:god\n").contains("did you mean 'good'?"));
        assert_eq!(refusal("1,2:3,4:good\n1,2:good\n"), "line 9 has 1 dimension, expected 2 as in the first sequence");
        assert_eq!(refusal("1,2:3,4,5:good\n"), "line 8, dimension 2: it has 3 steps, expected 2 as the first one");
        assert!(refusal("1,2:3,x:good\n").starts_with("line 8, column 'dim_1': expected a finite number, found 'x'"));
        assert!(refusal("1,2:3,4:\n").contains("line 8 ends without a class"));
        assert!(refusal("good\n").contains("line 8 has a class and no dimension"));
        let told = |tags: &str| read(&format!("{tags}\n{HEAD}1,2:3,4:good\n")).unwrap_err().to_string();
        assert_eq!(
            told("@dimensions 18446744073709551615"),
            "line 9 has 2 dimensions before its class, expected 18446744073709551615 as its head says"
        );
        assert_eq!(told("@equalLength true\n@seriesLength 3"), "line 10 has 2 steps, expected 3 as its head says");
        assert!(told("@dimensions many").contains("@dimensions is 'many', expected a number"));
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_back(
            series in prop::collection::vec((prop::collection::vec(-1e6..1e6f64, 1..9), any::<bool>()), 1..9), dimensions in 2..4usize,
        ) {
            let mut text = HEAD.to_owned();
            for (numbers, is_good) in &series {
                let cells = numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
                text += &format!("{}:{}\n", vec![cells; dimensions].join(":"), if *is_good { "good" } else { "worn" });
            }
            let frame = read(&text).unwrap();
            let numbers: Vec<f64> = series.iter().flat_map(|(numbers, _)| numbers.clone()).collect();
            prop_assert_eq!(&frame.numbers, &vec![numbers; dimensions]);
        }

        #[test]
        fn no_text_panics(text in "[@:,()?0-9a-z\n ]{0,200}") {
            let _ = read(&text);
            let _ = read(&format!("{HEAD}{text}"));
            let _ = read(&format!("@timestamps true\n{HEAD}{text}"));
        }
    }
}
