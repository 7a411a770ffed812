//! Expressions of nested operators over digits, as token ids: drawn at random, read from text, written, evaluated.
//!
//! | ids | token |
//! |---|---|
//! | 0, 1 | padding, end of sequence |
//! | 2 … 5 | `[MIN` `[MAX` `[MED` `[SM` |
//! | 6 | the closing bracket |
//! | 7 … 16 | the digits |

use rand::RngExt;

use super::ListOpsTask;
use crate::rng::ChaCha8Rng;

/// The end of a sequence.
pub(super) const END: u8 = 1;
const MIN: u8 = 2;
const MAX: u8 = 3;
const MED: u8 = 4;
const SM: u8 = 5;
const CLOSE: u8 = 6;
const DIGIT: u8 = 7;
/// Number of token ids.
pub(super) const VOCAB_SIZE: usize = 17;
/// Number of values an expression can have.
pub(super) const N_CLASSES: usize = 10;

/// Probability that a node that may be an operator is a digit.
const LEAF: f64 = 0.75;
const OPERATORS: [&str; 4] = ["[MIN", "[MAX", "[MED", "[SM"];

/// Draws an expression into `out`. Returns false if its length would reach `task.max_length`; `out` then holds part of an expression.
pub(super) fn draw(task: &ListOpsTask, rng: &mut ChaCha8Rng, out: &mut Vec<u8>) -> bool {
    out.clear();
    draw_node(task, 1, rng, out)
}

fn draw_node(task: &ListOpsTask, depth: usize, rng: &mut ChaCha8Rng, out: &mut Vec<u8>) -> bool {
    if depth >= task.max_depth || rng.random::<f64>() > 1.0 - LEAF {
        out.push(DIGIT + rng.random_range(0..10));
        return out.len() < task.max_length;
    }
    let n_arguments = rng.random_range(2..=task.max_arguments as u32);
    out.push(rng.random_range(MIN..=SM));
    for _ in 0..n_arguments {
        if !draw_node(task, depth + 1, rng, out) {
            return false;
        }
    }
    out.push(CLOSE);
    out.len() < task.max_length
}

/// The value of an expression, or a description of what is wrong with it.
pub(super) fn evaluate(tokens: &[u8]) -> Result<u8, &'static str> {
    // Open operators, each with the index of its first argument among the values.
    let mut open: Vec<(u8, usize)> = Vec::new();
    let mut values: Vec<u8> = Vec::new();
    for &token in tokens {
        if open.is_empty() && !values.is_empty() {
            return Err("something follows the end of the expression");
        }
        match token {
            MIN..=SM => open.push((token, values.len())),
            CLOSE => {
                let (operator, first) = open.pop().ok_or("a bracket is closed that was never opened")?;
                if values.len() == first {
                    return Err("an operator has no arguments");
                }
                let value = apply(operator, &mut values[first..]);
                values.truncate(first);
                values.push(value);
            }
            _ => values.push(token - DIGIT),
        }
    }
    match (open.as_slice(), values.as_slice()) {
        ([], [value]) => Ok(*value),
        ([], _) => Err("there is no expression"),
        _ => Err("a bracket is not closed; the line may be cut short"),
    }
}

fn apply(operator: u8, arguments: &mut [u8]) -> u8 {
    arguments.sort_unstable();
    let n = arguments.len();
    match operator {
        MIN => arguments[0],
        MAX => arguments[n - 1],
        // For an even number, the mean of the middle two, rounded down.
        MED => (arguments[(n - 1) / 2] + arguments[n / 2]) / 2,
        _ => (arguments.iter().map(|&value| u64::from(value)).sum::<u64>() % 10) as u8,
    }
}

/// Appends the token ids of `text`, ignoring round brackets, to `out`. The error is the first word that is not a token.
pub(super) fn tokenize<'a>(text: &'a [u8], out: &mut Vec<u8>) -> Result<(), &'a [u8]> {
    for word in text.split(|byte| matches!(byte, b' ' | b'(' | b')')).filter(|word| !word.is_empty()) {
        out.push(match word {
            b"]" => CLOSE,
            [digit @ b'0'..=b'9'] => DIGIT + (digit - b'0'),
            _ => MIN + OPERATORS.iter().position(|name| name.as_bytes() == word).ok_or(word)? as u8,
        });
    }
    Ok(())
}

/// The text of an expression, without round brackets.
pub(super) fn text_of(tokens: &[u8]) -> String {
    let words = tokens.iter().map(|&token| match token {
        MIN..=SM => OPERATORS[usize::from(token - MIN)].to_owned(),
        CLOSE => "]".to_owned(),
        _ => (token - DIGIT).to_string(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};

    fn tokens(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        tokenize(text.as_bytes(), &mut out).unwrap();
        out
    }

    #[test]
    fn values_of_expressions_worked_out_by_hand() {
        for (text, expected) in [
            ("7", 7),
            ("[MAX 2 9 ]", 9),
            ("[MIN 2 9 4 ]", 2),
            ("[MED 1 5 9 ]", 5),
            // Sorted 1 2 7 8: the mean of 2 and 7 is 4.5.
            ("[MED 8 1 7 2 ]", 4),
            ("[SM 9 9 9 ]", 7),
            // The sum inside is 13, so 3; then the larger of 3 and the least of 6 and 8; then their median with 0 and 5.
            ("[MED 0 [MAX [SM 4 9 ] [MIN 8 6 ] ] 5 ]", 5),
            ("[SM [SM 9 9 ] [SM 9 9 ] ]", 6),
        ] {
            assert_eq!(evaluate(&tokens(text)), Ok(expected), "{text}");
            assert_eq!(text_of(&tokens(text)), text);
        }
    }

    #[test]
    fn round_brackets_mean_nothing() {
        assert_eq!(tokens("( ( ( [MAX 2 ) 9 ) ] )"), tokens("[MAX 2 9 ]"));
        assert_eq!(tokens("(([MAX 2) 9) ]"), [MAX, DIGIT + 2, DIGIT + 9, CLOSE]);
        let mut out = Vec::new();
        assert_eq!(tokenize(b"[MAX 2 [FIRST 1 ] ]", &mut out), Err(&b"[FIRST"[..]));
        assert_eq!(tokenize(b"12", &mut out), Err(&b"12"[..]));
    }

    #[test]
    fn what_is_no_expression_is_named() {
        for (text, expected) in [
            ("", "no expression"),
            ("1 2", "follows the end"),
            ("[MAX 1 ] 2", "follows the end"),
            ("[MAX 1 [MIN 2", "not closed"),
            ("]", "never opened"),
            ("[MAX ]", "no arguments"),
        ] {
            assert!(evaluate(&tokens(text)).unwrap_err().contains(expected), "{text}");
        }
        // Depth costs no stack.
        assert!(evaluate(&vec![MIN; 1 << 20]).is_err());
    }

    #[test]
    fn drawn_expressions_have_the_shape_asked_for() {
        let task = ListOpsTask { max_depth: 4, max_arguments: 3, max_length: 60, ..ListOpsTask::default() };
        let (mut rng, mut out) = (stream(0, Purpose::TrainData, 0), Vec::new());
        let (mut leaves, mut accepted, mut operators) = (0, 0, [0; 4]);
        for _ in 0..20_000 {
            if !draw(&task, &mut rng, &mut out) {
                continue;
            }
            accepted += 1;
            assert!(evaluate(&out).is_ok() && out.len() < 60);
            leaves += u32::from(out.len() == 1);
            let (mut depth, mut deepest) = (1, 1);
            for &token in &out {
                match token {
                    MIN..=SM => {
                        operators[usize::from(token - MIN)] += 1;
                        depth += 1;
                    }
                    CLOSE => depth -= 1,
                    _ => deepest = deepest.max(depth),
                }
            }
            assert!(deepest <= 4, "{}", text_of(&out));
        }
        assert!((f64::from(leaves) / f64::from(accepted) - LEAF).abs() < 0.02);
        let n: u32 = operators.iter().sum();
        assert!(operators.iter().all(|&count| (f64::from(count) / f64::from(n) - 0.25).abs() < 0.02), "{operators:?}");
    }
}
