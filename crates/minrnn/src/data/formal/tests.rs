//! Hand-worked strings, and what every string of every language must satisfy.

use proptest::prelude::*;

use super::expression::Token::{Close, Digit, Minus, Open, Plus, Times};
use super::stack_manipulation::{Action, finish};
use super::*;

fn example(language: Language, protocol: Protocol, length: usize, index: u64) -> Example {
    language.rules().example(protocol, length, index, &mut rng::stream(1, Purpose::TrainData, index))
}

fn source(task: FormalTask, batch_size: usize) -> FormalLanguage {
    FormalLanguage::new(task, batch_size, 42, Purpose::TrainData).unwrap()
}

#[test]
fn questions_have_the_answers_worked_by_hand() {
    assert_eq!(parity::parity(&[1, 0, 1, 1]), 1);
    assert_eq!(even_pairs::pairs(&[0, 1, 1, 0, 1]), 1);
    assert_eq!(even_pairs::pairs(&[1]), 0);
    assert_eq!(cycle_navigation::place([1, 1, 0, -1, -1, -1].into_iter()), 4);
    assert_eq!(majority::majority(&[5, 7, 5, 7, 1]), (7, 2), "among equals the largest");
    assert_eq!(strings::every_second(&[1, 2, 3, 4, 5], 0), [1, 3, 5, 2, 4]);
    assert_eq!(strings::every_second(&[1, 2, 3, 4, 5], 1), [2, 4, 1, 3, 5]);
    assert_eq!(set::distinct(&[3, 1, 3, 2, 1]), [3, 1, 2]);
    let pushes = [Action::Pop, Action::Pop, Action::Pop, Action::Push(1), Action::Push(0)];
    assert_eq!(finish(vec![1, 1], &pushes), [0, 1], "a pop of the empty stack does nothing");
    // 6 = 011 and 3 = 11, lowest bit first.
    assert_eq!(binary_arithmetic::bits(&(binary_arithmetic::number(&[0, 1, 1]) + 3u32)), [1, 0, 0, 1]);
    assert_eq!(binary_arithmetic::bits(&binary_arithmetic::number(&[0, 0])), [0]);
}

#[test]
fn expressions_have_the_values_worked_by_hand() {
    // 2 − 3 · 4 + 1 = −9 ≡ 1.
    assert_eq!(expression::flat_value(&[Digit(2), Minus, Digit(3), Times, Digit(4), Plus, Digit(1)]), 1);
    assert_eq!(expression::flat_value(&[Digit(4), Times, Digit(4), Times, Digit(3)]), 3);
    // With a separate evaluator: a bracket is ( a ), (− a) or ( a op b ).
    fn value(tokens: &[expression::Token], at: &mut usize) -> i64 {
        *at += 1;
        match tokens[*at - 1] {
            Digit(digit) => i64::from(digit),
            Minus => -value(tokens, at),
            Open => {
                let mut found = value(tokens, at);
                if tokens[*at] != Close {
                    let operator = tokens[*at];
                    *at += 1;
                    let right = value(tokens, at);
                    found = match operator {
                        Plus => found + right,
                        Minus => found - right,
                        _ => found * right,
                    };
                }
                *at += 1;
                found % 5
            }
            other => panic!("{other:?} begins no expression"),
        }
    }
    for length in 1..40 {
        let (tokens, expected) = expression::bracketed(length, 3, &mut rng::stream(3, Purpose::TrainData, length as u64));
        assert_eq!(tokens.len(), length);
        let mut at = 0;
        assert_eq!(value(&tokens, &mut at).rem_euclid(5) as u32, expected, "{tokens:?}");
        assert_eq!(at, length);
    }
}

#[test]
fn the_authors_read_answers_at_query_tokens() {
    let task = FormalTask { language: Language::BucketSort, min_length: 5, max_length: 5, ..Default::default() };
    let batch = source(task, 2).batch(0, 0).unwrap();
    assert_eq!(batch.seq_len, 10);
    for row in 0..2 {
        let at = |from: usize| row * 10 + from;
        let mut sorted = batch.inputs.tokens()[at(0)..at(5)].to_vec();
        sorted.sort_unstable();
        assert_eq!(batch.inputs.tokens()[at(5)..at(10)], [10; 5]);
        assert_eq!(batch.targets.tokens()[at(5)..at(10)], sorted[..]);
    }
    assert_eq!(batch.n_scored(), 10);
}

#[test]
fn the_xlstm_protocol_reads_the_answer_before_its_place_and_pads_rows() {
    let task = FormalTask { language: Language::Parity, protocol: Protocol::Xlstm, min_length: 3, max_length: 40 };
    let batch = source(task, 64).batch(0, 0).unwrap();
    let lengths = batch.segments.lengths().expect("rows differ");
    assert!(lengths.iter().all(|length| (2..=39).contains(length)), "{lengths:?}");
    let mask = batch.mask.as_ref().unwrap();
    for (row, &length) in lengths.iter().enumerate() {
        let at = row * batch.seq_len..(row + 1) * batch.seq_len;
        let ones = batch.inputs.tokens()[at.clone()][..length].iter().filter(|&&id| id == 2).count() as u32;
        assert_eq!(batch.targets.tokens()[at.clone()][length - 1], 1 + ones % 2);
        assert_eq!(mask[at.clone()].iter().position(|&m| m == 1.0), Some(length - 1));
        assert!(batch.inputs.tokens()[at][length..].iter().all(|&id| id == 0));
    }
    assert_eq!(batch.n_scored(), 64);
}

#[test]
fn one_length_and_one_missing_place_hold_for_a_batch_of_the_authors() {
    let task = FormalTask { language: Language::MissingDuplicate, ..Default::default() };
    let batch = source(task, 8).batch(3, 0).unwrap();
    assert!(batch.segments.lengths().is_none());
    for row in 0..8 {
        let row = &batch.inputs.tokens()[row * batch.seq_len..(row + 1) * batch.seq_len];
        let end = batch.seq_len - 1;
        // n + i symbols and the query: the answer is i symbols after the start.
        let missing = (0..end / 2 + 1).find(|&i| end - i >= 1 && row[end - i..end] == row[..i] && end - i > i).is_some();
        assert!(missing, "{row:?}");
        assert_eq!(row[end], 9);
    }
}

#[test]
fn the_examples_of_each_language_are_right() {
    for index in 0..200 {
        let Example { input, answer, .. } = example(Language::MissingDuplicate, Protocol::Xlstm, 21, index);
        let (first, second) = input.split_at(10);
        let missing = second.iter().position(|&id| id == 10).unwrap();
        assert_eq!(answer, [first[missing]]);

        let Example { input, answer, scored } = example(Language::BinaryMultiplication, Protocol::DeepMind, 12, index);
        let (a, b) = input.split_at(input.iter().position(|&id| id == 2).unwrap());
        let value = |bits: &[u32]| bits.iter().rev().fold(0u64, |value, &bit| 2 * value + u64::from(bit));
        assert_eq!(value(&answer[..scored - 1]), value(a) * value(&b[1..]));
        assert_eq!((answer.len(), answer[scored - 1]), (12, 2));

        let Example { input, answer, .. } = example(Language::SquareRoot, Protocol::DeepMind, 13, index);
        let value = |bits: &[u32]| bits.iter().fold(0u64, |value, &bit| 2 * value + u64::from(bit));
        assert_eq!(value(&answer), value(&input).isqrt());
        assert_eq!(answer.len(), 7);

        let Example { input, answer, .. } = example(Language::SolveEquation, Protocol::DeepMind, 20, index);
        assert_eq!((input.len(), input[18], answer.len()), (20, 10, 1));
        assert_eq!(input.iter().filter(|&&id| id == 9).count(), 1);
        assert!(answer[0] < 5);

        let Example { input, answer, .. } = example(Language::StackManipulation, Protocol::Xlstm, 21, index);
        assert_eq!(input.last(), Some(&10));
        assert!(!answer.is_empty() && answer.iter().all(|id| (1..=4).contains(id)));
    }
}

#[test]
fn majorities_are_tied_as_often_as_counted() {
    let tied = (0..4000).filter(|&index| {
        let Example { input, answer, .. } = example(Language::Majority, Protocol::Authors, 1 + index as usize % 40, index);
        let count = |symbol: u32| input.iter().filter(|&&id| id == symbol).count();
        (0..63).any(|symbol| symbol != answer[0] && count(symbol) == count(answer[0]))
    });
    // 61 % of strings of 1 to 40 symbols.
    let share = tied.count() as f64 / 4000.0;
    assert!((share - 0.61).abs() < 0.03, "{share}");
}

#[test]
fn sizes_and_chances_are_those_of_the_studies() {
    let sizes = |language, protocol| {
        let task = FormalTask { language, protocol, ..Default::default() };
        (task.vocab_size().unwrap(), (1.0 / task.chance().unwrap()).round() as u32)
    };
    for (language, size, classes) in [
        (Language::BucketSort, 11, 10),
        (Language::MissingDuplicate, 11, 9),
        (Language::CycleNavigation, 9, 5),
        (Language::EvenPairs, 3, 2),
        (Language::Majority, 64, 63),
        (Language::ModularArithmetic, 10, 5),
        (Language::ModularArithmeticBrackets, 12, 5),
        (Language::ReverseString, 12, 10),
        (Language::StackManipulation, 11, 4),
        (Language::SolveEquation, 14, 5),
        (Language::Set, 128, 126),
    ] {
        assert_eq!(sizes(language, Protocol::Xlstm), (size, classes), "{}", language.name());
    }
    assert_eq!(sizes(Language::BucketSort, Protocol::Authors), (11, 10));
    assert_eq!(sizes(Language::CycleNavigation, Protocol::Authors), (5, 5), "more places than tokens");
    assert_eq!(sizes(Language::MajorityCount, Protocol::Authors), (64, 63));
}

#[test]
fn impossible_tasks_are_refused() {
    let refused = |task: FormalTask| FormalLanguage::new(task, 1, 0, Purpose::TrainData).unwrap_err().to_string();
    let set = FormalTask { language: Language::Set, ..Default::default() };
    assert!(refused(set).contains("has no 'set'; it has bucket-sort"));
    for (min_length, max_length) in [(0, 4), (5, 4), (1, usize::MAX)] {
        let task = FormalTask { min_length, max_length, ..Default::default() };
        assert!(refused(task).contains("min_length"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_batch_fits_its_task(length in 1_usize..80, index: u64) {
        for &language in Language::ALL {
            for protocol in [Protocol::Authors, Protocol::Xlstm, Protocol::DeepMind] {
                let task = FormalTask { language, protocol, min_length: length, max_length: length };
                let Ok(size) = task.vocab_size() else { continue };
                let mut source = source(task.clone(), 3);
                let batch = source.batch(index, 0).unwrap();
                prop_assert_eq!(&source.batch(index, 0).unwrap(), &batch);
                prop_assert!(batch.inputs.tokens().iter().chain(batch.targets.tokens()).all(|&id| (id as usize) < size), "{:?} {:?}", task, batch);
                prop_assert!(batch.n_scored() >= 3);
                if protocol == Protocol::Xlstm && length >= 7 {
                    prop_assert!(batch.seq_len < length, "{:?}: {} steps", task, batch.seq_len);
                }
                if protocol == Protocol::DeepMind {
                    let data = if language == Language::ModularArithmetic { (length - 1) | 1 } else { length };
                    prop_assert!(batch.inputs.tokens().chunks(batch.seq_len).all(|row| row.len() >= data));
                }
            }
        }
    }
}
