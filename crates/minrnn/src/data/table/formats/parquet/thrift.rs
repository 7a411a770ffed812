//! Checks of a Parquet file's metadata before a decoder trusts them: the footer and the heads of pages, structures of Thrift's compact protocol
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>).
//!
//! The decoder reads a known field as its expected type, whatever type the file declares; it skips unknown fields element by element, although
//! booleans in a list take no bytes there; and it allocates as many bytes as a field claims to have.

use std::io::{self, Read};
use std::mem;

use super::super::of_read;
use crate::{Error, Result};

/// The kind of a field, numbered as in the protocol; those of structures and lists say what they contain.
#[derive(Clone, Copy)]
enum Kind {
    Bool,
    I8,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List(&'static Kind),
    Struct(Fields),
}

/// Field numbers with their kinds.
type Fields = &'static [(i16, Kind)];

const BOOL_TRUE: u8 = 1;
const BOOL_FALSE: u8 = 2;
const I8: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

impl Kind {
    fn is(self, number: u8) -> bool {
        match self {
            Self::Bool => matches!(number, BOOL_TRUE | BOOL_FALSE),
            Self::I8 => number == I8,
            Self::I16 => number == I16,
            Self::I32 => number == I32,
            Self::I64 => number == I64,
            Self::Double => number == DOUBLE,
            Self::Binary => number == BINARY,
            Self::List(_) => number == LIST,
            Self::Struct(_) => number == STRUCT,
        }
    }
}

const EMPTY: Kind = Kind::Struct(&[]);
const I32S: Kind = Kind::List(&Kind::I32);
const I64S: Kind = Kind::List(&Kind::I64);
const KEY_VALUES: Kind = Kind::List(&Kind::Struct(&[(1, Kind::Binary), (2, Kind::Binary)]));
const TIME: Kind = Kind::Struct(&[(1, Kind::Bool), (2, Kind::Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))]);
const ENCRYPTION: Kind = Kind::Struct(&[(1, Kind::Binary), (2, Kind::Binary), (3, Kind::Bool)]);

const LOGICAL_TYPE: Kind = Kind::Struct(&[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Kind::Struct(&[(1, Kind::I32), (2, Kind::I32)])),
    (6, EMPTY),
    (7, TIME),
    (8, TIME),
    (10, Kind::Struct(&[(1, Kind::I8), (2, Kind::Bool)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Kind::Struct(&[(1, Kind::I8)])),
    (17, Kind::Struct(&[(1, Kind::Binary)])),
    (18, Kind::Struct(&[(1, Kind::Binary), (2, Kind::I32)])),
    (19, EMPTY),
]);

/// Field number of the schema in the footer: columns and groups of columns, each group followed by what it contains.
const SCHEMA: i16 = 2;
/// Field numbers of a column or group: its name, and the number of columns and groups in it.
const NAME: i16 = 4;
const CHILDREN: i16 = 5;

const SCHEMA_ELEMENT: Kind = Kind::Struct(&[
    (1, Kind::I32),
    (2, Kind::I32),
    (3, Kind::I32),
    (NAME, Kind::Binary),
    (CHILDREN, Kind::I32),
    (6, Kind::I32),
    (7, Kind::I32),
    (8, Kind::I32),
    (9, Kind::I32),
    (10, LOGICAL_TYPE),
]);

const STATISTICS: Kind = Kind::Struct(&[
    (1, Kind::Binary),
    (2, Kind::Binary),
    (3, Kind::I64),
    (4, Kind::I64),
    (5, Kind::Binary),
    (6, Kind::Binary),
    (7, Kind::Bool),
    (8, Kind::Bool),
    (9, Kind::I64),
]);

const BOUNDING_BOX: Kind = Kind::Struct(&[
    (1, Kind::Double),
    (2, Kind::Double),
    (3, Kind::Double),
    (4, Kind::Double),
    (5, Kind::Double),
    (6, Kind::Double),
    (7, Kind::Double),
    (8, Kind::Double),
]);

const COLUMN_METADATA: Kind = Kind::Struct(&[
    (1, Kind::I32),
    (2, I32S),
    (3, Kind::List(&Kind::Binary)),
    (4, Kind::I32),
    (5, Kind::I64),
    (6, Kind::I64),
    (7, Kind::I64),
    (8, KEY_VALUES),
    (9, Kind::I64),
    (10, Kind::I64),
    (11, Kind::I64),
    (12, STATISTICS),
    (13, Kind::List(&Kind::Struct(&[(1, Kind::I32), (2, Kind::I32), (3, Kind::I32)]))),
    (14, Kind::I64),
    (15, Kind::I32),
    (16, Kind::Struct(&[(1, Kind::I64), (2, I64S), (3, I64S)])),
    (17, Kind::Struct(&[(1, BOUNDING_BOX), (2, I32S)])),
]);

const COLUMN_CHUNK: Kind = Kind::Struct(&[
    (1, Kind::Binary),
    (2, Kind::I64),
    (3, COLUMN_METADATA),
    (4, Kind::I64),
    (5, Kind::I32),
    (6, Kind::I64),
    (7, Kind::I32),
    (8, Kind::Struct(&[(1, EMPTY), (2, Kind::Struct(&[(1, Kind::List(&Kind::Binary)), (2, Kind::Binary)]))])),
    (9, Kind::Binary),
]);

const ROW_GROUP: Kind = Kind::Struct(&[
    (1, Kind::List(&COLUMN_CHUNK)),
    (2, Kind::I64),
    (3, Kind::I64),
    (4, Kind::List(&Kind::Struct(&[(1, Kind::I32), (2, Kind::Bool), (3, Kind::Bool)]))),
    (5, Kind::I64),
    (6, Kind::I64),
    (7, Kind::I16),
]);

const FILE_METADATA: Fields = &[
    (1, Kind::I32),
    (SCHEMA, Kind::List(&SCHEMA_ELEMENT)),
    (3, Kind::I64),
    (4, Kind::List(&ROW_GROUP)),
    (5, KEY_VALUES),
    (6, Kind::Binary),
    (7, Kind::List(&Kind::Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))),
    (8, Kind::Struct(&[(1, ENCRYPTION), (2, ENCRYPTION)])),
    (9, Kind::Binary),
];

/// Field numbers in the head of a page: the bytes it unfolds to, the bytes it takes, and the head of a dictionary.
const UNFOLDED: i16 = 2;
const FOLDED: i16 = 3;
const DICTIONARY: i16 = 7;
/// Field number in the head of a dictionary: its number of values.
const VALUES: i16 = 1;
/// Field numbers of the head of a version 2 page and, within it, of the byte counts of the uncompressed levels in front and of whether the rest is
/// compressed.
const VERSION_2: i16 = 8;
const LEVELS: [i16; 2] = [5, 6];
const IS_COMPRESSED: i16 = 7;

/// Field numbers, by page version, of the head of a data page, and of the encoding within it.
const ENCODINGS: [(Option<i16>, i16); 2] = [(Some(5), 2), (Some(VERSION_2), 4)];
/// The encodings of byte strings by differences of lengths, and by shared prefixes as well: their decoders allocate as many lengths as the page claims, and
/// each string anew.
const BY_DIFFERENCES: [i64; 2] = [6, 7];

/// The claims of a page's head that its decoder believes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageClaims {
    /// Bytes after the head.
    pub folded: u64,
    /// Bytes that they unfold to.
    pub unfolded: u64,
    /// Bytes in front that are not compressed.
    pub levels: u64,
    /// Whether the bytes after the levels are compressed.
    pub is_compressed: bool,
    /// Number of values of a dictionary.
    pub values: u64,
    /// Whether the decoder allocates more than this, as claimed by the page itself.
    pub is_by_differences: bool,
}

const PAGE_HEADER: Fields = &[
    (1, Kind::I32),
    (UNFOLDED, Kind::I32),
    (FOLDED, Kind::I32),
    (4, Kind::I32),
    (5, Kind::Struct(&[(1, Kind::I32), (2, Kind::I32), (3, Kind::I32), (4, Kind::I32), (5, STATISTICS)])),
    (6, EMPTY),
    (DICTIONARY, Kind::Struct(&[(VALUES, Kind::I32), (2, Kind::I32), (3, Kind::Bool)])),
    (
        VERSION_2,
        Kind::Struct(&[
            (1, Kind::I32),
            (2, Kind::I32),
            (3, Kind::I32),
            (4, Kind::I32),
            (LEVELS[0], Kind::I32),
            (LEVELS[1], Kind::I32),
            (IS_COMPRESSED, Kind::Bool),
            (8, STATISTICS),
        ]),
    ),
];

/// Maximum nesting of structures and lists; each level counts twice.
const DEPTH: usize = 64;
/// Maximum nesting of groups of columns.
const SCHEMA_DEPTH: usize = 64;
/// Maximum number of bytes of the columns' names, each with the names of the groups around it.
const PATH_BYTES: u64 = 1 << 26;
/// Maximum number of elements that take no bytes: as many as are skipped in a few milliseconds.
const WITHOUT_BYTES: u64 = 1 << 20;
/// Maximum number of bytes of a page's head; each statistic in it is a value of the column.
const PAGE_HEADER_BYTES: u64 = 1 << 26;
/// Gzip expands a byte to at most this many, more than Snappy and LZ4.
pub(super) const MOST_UNFOLDED: i64 = 1032;

/// Refuses a malformed footer, given without its length and magic word.
///
/// # Errors
/// When it ends early, a field is not what it should be, it claims to contain more than it has bytes for, or its columns lie too deep in groups or have too
/// long names in all.
pub(super) fn expect_footer(footer: &[u8]) -> Result<()> {
    let (mut schema, mut name, mut children) = (Schema::default(), 0, 0);
    Walk::new(footer).fields(FILE_METADATA, DEPTH, &mut |told| match told {
        Told::Number(Some(SCHEMA), NAME, n_bytes) => name = n_bytes.cast_unsigned(),
        Told::Number(Some(SCHEMA), CHILDREN, n) => children = n,
        Told::End(Some(SCHEMA)) => schema.push(mem::take(&mut name), mem::take(&mut children)),
        _ => {}
    })?;
    schema.expect_small()
}

/// How deep the columns of a schema lie, and how much memory they will take: the decoder descends into groups by recursion, allocates as many columns
/// as a group claims, and copies for each column the names around it.
#[derive(Default)]
struct Schema {
    /// Of each group that is not yet complete, outermost first: the columns and groups that follow, and the bytes of its name and those around it.
    open: Vec<(i64, u64)>,
    path_bytes: u64,
    is_too_deep: bool,
}

impl Schema {
    /// Takes a column or, with `children`, a group, whose name has `name` bytes.
    fn push(&mut self, name: u64, children: i64) {
        let around = self.open.last().map_or(0, |&(_, bytes)| bytes);
        let path = around.saturating_add(name);
        if let Some((children, _)) = self.open.last_mut() {
            *children -= 1;
        }
        if children > 0 {
            self.is_too_deep |= self.open.len() >= SCHEMA_DEPTH;
            self.open.push((children, path));
        } else {
            self.path_bytes = self.path_bytes.saturating_add(path);
        }
        while self.open.pop_if(|(children, _)| *children == 0).is_some() {}
    }

    fn expect_small(&self) -> Result<()> {
        if self.is_too_deep {
            return Err(Error::Data(format!(
                "its columns lie in more than {SCHEMA_DEPTH} groups; write it with columns that lie less deep"
            )));
        }
        if let Some((missing, _)) = self.open.last() {
            return Err(damaged(&format!("a group of columns is said to have {missing} more than there are")));
        }
        if self.path_bytes > PATH_BYTES {
            return Err(Error::Data(format!(
                "the names of its columns, each with those of the groups around it, have {} bytes, more than {PATH_BYTES}; write it with shorter names",
                self.path_bytes
            )));
        }
        Ok(())
    }
}

/// Refuses a page whose head, at the start of `source`, is malformed; a byte can unfold to at most `most`. Only the head is read from `source`.
///
/// # Errors
/// As [`expect_footer`], and when the page claims to unfold to more bytes than it can, or to be a dictionary of more values than it has bytes.
pub(super) fn expect_page_header(source: impl Read, most: i64) -> Result<PageClaims> {
    let (mut unfolded, mut folded, mut values, mut is_by_differences) = (0, 0, 0, false);
    let (mut levels, mut is_compressed) = ([0; 2], true);
    Walk::new(source.take(PAGE_HEADER_BYTES)).fields(PAGE_HEADER, DEPTH, &mut |told| match told {
        Told::Number(None, UNFOLDED, number) => unfolded = number,
        Told::Number(None, FOLDED, number) => folded = number,
        Told::Number(Some(DICTIONARY), VALUES, number) => values = number,
        Told::Number(Some(VERSION_2), field, number) if field == LEVELS[0] => levels[0] = number,
        Told::Number(Some(VERSION_2), field, number) if field == LEVELS[1] => levels[1] = number,
        Told::Number(Some(VERSION_2), IS_COMPRESSED, number) => is_compressed = number == 1,
        Told::Number(outer, field, number) if ENCODINGS.contains(&(outer, field)) => is_by_differences |= BY_DIFFERENCES.contains(&number),
        _ => {}
    })?;
    // The decoder takes these for unsigned numbers.
    if let Some(negative) = [unfolded, folded, values, levels[0], levels[1]].into_iter().find(|&number| number < 0) {
        return Err(damaged(&format!("the head of a page says {negative} where it counts")));
    }
    // A small excess costs nothing.
    if unfolded > folded.saturating_mul(most).saturating_add(1 << 16) {
        return Err(damaged(&format!("a page of {folded} bytes is said to unfold to {unfolded}")));
    }
    if values > unfolded.saturating_add(1 << 16) {
        return Err(damaged(&format!("a dictionary of {unfolded} bytes is said to have {values} values")));
    }
    let [unfolded, folded, values, levels] = [unfolded, folded, values, levels[0] + levels[1]].map(i64::cast_unsigned);
    Ok(PageClaims { folded, unfolded, levels, is_compressed, values, is_by_differences })
}

pub(super) fn damaged(problem: &str) -> Error {
    Error::Data(format!("it is damaged: {problem}; write it anew"))
}

/// What a walk tells of a structure and of those within it, alone or in a list.
enum Told {
    /// An integer, a boolean as 0 or 1, or the bytes of a byte string, with the number of the outer field, if any, and of the field.
    Number(Option<i16>, i16, i64),
    /// The end of a structure, with the number of the outer field, if any.
    End(Option<i16>),
}

type Tell<'t> = dyn FnMut(Told) + 't;

/// A walk over a structure.
struct Walk<R> {
    source: R,
    /// Elements without bytes that are still allowed.
    without_bytes: u64,
}

impl<R: Read> Walk<R> {
    fn new(source: R) -> Self {
        Self { source, without_bytes: WITHOUT_BYTES }
    }

    fn byte(&mut self) -> Result<u8> {
        let mut byte = [0];
        self.source.read_exact(&mut byte).map_err(|error| of_read(error, || damaged("it ends within its description")))?;
        Ok(byte[0])
    }

    fn step_over(&mut self, length: u64) -> Result<()> {
        let stepped = io::copy(&mut self.source.by_ref().take(length), &mut io::sink()).map_err(super::failed)?;
        if stepped == length { Ok(()) } else { Err(damaged("it ends within its description")) }
    }

    /// An unsigned integer, seven bits per byte, lowest first.
    fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(damaged("a number in its description has more than 64 bits"))
    }

    /// A signed integer, with the sign in the lowest bit.
    fn signed(&mut self) -> Result<i64> {
        self.number().map(|number| (number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// Steps over a byte string; returns its length.
    fn binary(&mut self) -> Result<i64> {
        let length = self.number()?;
        self.step_over(length)?;
        i64::try_from(length).map_err(|_| damaged("a text in its description is longer than any file"))
    }

    /// Walks a structure to its end, checking that `known` fields have the right kind; passes what it finds to `tell`.
    fn fields(&mut self, known: Fields, depth: usize, tell: &mut Tell) -> Result<()> {
        let depth = depth.checked_sub(1).ok_or_else(|| damaged("its description lies too deep in itself"))?;
        let mut last = 0i16;
        loop {
            let head = self.byte()?;
            let (step, kind) = (head >> 4, head & 15);
            if kind == 0 {
                tell(Told::End(None));
                return Ok(());
            }
            last = match step {
                0 => i16::try_from(self.signed()?).ok(),
                step => last.checked_add(step.into()),
            }
            .ok_or_else(|| damaged("a field of its description has no number"))?;
            let expected = known.iter().find(|(number, _)| *number == last).map(|&(_, kind)| kind);
            if expected.is_some_and(|expected| !expected.is(kind)) {
                return Err(damaged(&format!("field {last} of its description is of another kind than it should be")));
            }
            match kind {
                I16 | I32 | I64 => {
                    let number = self.signed()?;
                    let fits = match kind {
                        I16 => i16::try_from(number).is_ok(),
                        I32 => i32::try_from(number).is_ok(),
                        _ => true,
                    };
                    if !fits {
                        return Err(damaged(&format!("field {last} of its description has no room for {number}")));
                    }
                    tell(Told::Number(None, last, number));
                }
                BOOL_TRUE | BOOL_FALSE => tell(Told::Number(None, last, (kind == BOOL_TRUE).into())),
                BINARY => tell(Told::Number(None, last, self.binary()?)),
                _ => self.value(kind, expected, depth, &mut |inner| match inner {
                    Told::Number(None, field, number) => tell(Told::Number(Some(last), field, number)),
                    Told::End(None) => tell(Told::End(Some(last))),
                    Told::Number(..) | Told::End(_) => {}
                })?,
            }
        }
    }

    /// Walks a value of the kind `kind` declared by the file, which must be `expected` if that is known.
    fn value(&mut self, kind: u8, expected: Option<Kind>, depth: usize, tell: &mut Tell) -> Result<()> {
        let depth = depth.checked_sub(1).ok_or_else(|| damaged("its description lies too deep in itself"))?;
        match kind {
            BOOL_TRUE | BOOL_FALSE => Ok(()),
            I8 => self.step_over(1),
            I16 | I32 | I64 => self.number().map(drop),
            DOUBLE => self.step_over(8),
            UUID => self.step_over(16),
            BINARY => self.binary().map(drop),
            LIST | SET => {
                let head = self.byte()?;
                let (mut length, element) = (u64::from(head >> 4), head & 15);
                if length == 15 {
                    length = self.number()?;
                }
                let expected = match expected {
                    Some(Kind::List(expected)) => Some(*expected),
                    _ => None,
                };
                if length > 0 && expected.is_some_and(|expected| !expected.is(element)) {
                    return Err(damaged("a list in its description is of another kind than it should be"));
                }
                self.elements(length, &[element], expected, depth, tell)
            }
            MAP => match self.number()? {
                0 => Ok(()),
                length => {
                    let kinds = self.byte()?;
                    self.elements(length, &[kinds >> 4, kinds & 15], None, depth, &mut |_| ())
                }
            },
            STRUCT => {
                let known = match expected {
                    Some(Kind::Struct(known)) => known,
                    _ => &[],
                };
                self.fields(known, depth, tell)
            }
            _ => Err(damaged(&format!("its description has a field of the unknown kind {kind}"))),
        }
    }

    /// Walks `length` times a value of each of `kinds`.
    fn elements(&mut self, length: u64, kinds: &[u8], expected: Option<Kind>, depth: usize, tell: &mut Tell) -> Result<()> {
        if kinds.iter().all(|&kind| matches!(kind, BOOL_TRUE | BOOL_FALSE)) {
            self.without_bytes = self
                .without_bytes
                .checked_sub(length)
                .ok_or_else(|| damaged(&format!("its description says it has {length} truth values, more than {WITHOUT_BYTES} in all")))?;
            return Ok(());
        }
        for _ in 0..length {
            for &kind in kinds {
                self.value(kind, expected, depth, tell)?;
            }
        }
        Ok(())
    }
}
