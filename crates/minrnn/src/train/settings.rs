//! Settings by name: overlaying tables of keys, with error messages for keys and values that do not fit.

use toml::{Table, Value};

pub(crate) use crate::suggestion::suggestion;
use crate::{Error, Result};

/// Up to this many names are listed beside the nearest one.
const FEW: usize = 6;
/// Maximum digits of a number in a sentence; longer ones are written as a power of ten.
const MOST_DIGITS: usize = 24;

/// Overlays `values` on the section `section` of `base`; all of its keys must be in `known`.
///
/// # Errors
/// When the section or a key is unknown, or a value has a different type from the one in `known`.
pub(crate) fn overlay_section(base: &mut Table, known: &Table, section: &str, values: Table) -> Result<()> {
    let Some(Value::Table(known_keys)) = known.get(section) else {
        let names = known.iter().filter(|(_, value)| value.is_table()).map(|(name, _)| name.as_str());
        return Err(unknown_section(section, names));
    };
    for (key, value) in values {
        let name = format!("{section}.{key}");
        let Some(like) = known_keys.get(&key) else {
            let close = suggestion(&key, known_keys.keys().map(String::as_str));
            return Err(Error::Config(format!("unknown key '{key}' in section [{section}]{close}")));
        };
        let value = fit(&name, like, value)?;
        if let Some(Value::Table(target)) = base.get_mut(section) {
            target.insert(key, value);
        }
    }
    Ok(())
}

/// The error that there is no `section`, but those of `names`.
pub(super) fn unknown_section<'a>(section: &str, names: impl Iterator<Item = &'a str>) -> Error {
    Error::Config(format!("unknown section [{section}]{}", suggestion(section, names)))
}

/// Splits `key=value` into section, key and value; a bare key is looked up in every section of `known`.
///
/// # Errors
/// When there is no `=`, or the key is unknown or in several sections.
pub(crate) fn parse_setting(known: &Table, setting: &str) -> Result<(String, String, Value)> {
    let Some((name, text)) = setting.split_once('=') else {
        return Err(Error::Config(format!("expected a setting of the form key=value, found '{setting}'")));
    };
    let (name, text) = (name.trim(), text.trim());
    let (section, key) = match name.split_once('.') {
        Some((section, key)) => (section.to_owned(), key.to_owned()),
        None => (section_of(known, name)?, name.to_owned()),
    };
    let like = known.get(&section).and_then(Value::as_table).and_then(|keys| keys.get(&key));
    Ok((section, key, value_of(text, like)))
}

fn section_of(known: &Table, key: &str) -> Result<String> {
    let sections = || known.iter().filter_map(|(section, keys)| Some((section, keys.as_table()?)));
    let holding: Vec<&str> = sections().filter(|(_, keys)| keys.contains_key(key)).map(|(section, _)| section.as_str()).collect();
    match holding[..] {
        [section] => Ok(section.to_owned()),
        [] => {
            let names = sections().flat_map(|(_, keys)| keys.keys().map(String::as_str));
            Err(Error::Config(format!("unknown key '{key}'{}", suggestion(key, names))))
        }
        _ => {
            let full: Vec<String> = holding.iter().map(|section| format!("{section}.{key}")).collect();
            Err(Error::Config(format!("the key '{key}' stands in several sections; write {}", full.join(" or "))))
        }
    }
}

/// The value written as `text`: TOML if it parses, otherwise a bare word or, where a list is expected, bare words separated by commas.
fn value_of(text: &str, like: Option<&Value>) -> Value {
    let parse = |text: &str| {
        let table: Table = format!("value = {text}").parse().ok()?;
        if table.len() == 1 { table.get("value").cloned() } else { None }
    };
    match (like, parse(text)) {
        (Some(Value::String(_)), Some(Value::String(text))) => Value::String(text),
        (Some(Value::String(_)), _) => Value::String(text.to_owned()),
        // A list of one element, whatever it contains.
        (Some(Value::Array(_)), Some(Value::String(word))) => Value::Array(vec![Value::String(word)]),
        (_, Some(value)) => value,
        (Some(Value::Array(_)), None) => {
            let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
            let words = inner.split(',').map(str::trim).filter(|word| !word.is_empty());
            Value::Array(words.map(|word| parse(word).unwrap_or_else(|| Value::String(word.to_owned()))).collect())
        }
        (_, None) => Value::String(text.to_owned()),
    }
}

/// `value` converted to the type of `like`: integers become floats, and whole floats become integers.
fn fit(name: &str, like: &Value, value: Value) -> Result<Value> {
    let expected = match (like, value) {
        (Value::Integer(_), Value::Integer(found)) if found < 0 => {
            return Err(Error::Config(format!("{name} must be 0 or above, found {found}")));
        }
        (Value::Integer(_), Value::Float(found)) if found >= 0.0 && found.fract() == 0.0 && found <= 9e15 => {
            return Ok(Value::Integer(found as i64));
        }
        // Integers too large for TOML: a float, or the text of a setting.
        (Value::Integer(_), Value::Float(found)) if found > 9e15 && found.fract() == 0.0 => return too_large(name, &short(found)),
        (Value::Integer(_), Value::String(found)) if is_whole(&found) && found.parse::<i64>().is_err() => return too_large(name, &found),
        (Value::Float(_), Value::String(found)) if is_whole(&found) => return Ok(Value::Float(found.parse().unwrap_or(f64::INFINITY))),
        (Value::Float(_), Value::Integer(found)) => return Ok(Value::Float(found as f64)),
        (Value::Array(likes), Value::Array(values)) => {
            let Some(like) = likes.first() else { return Ok(Value::Array(values)) };
            return Ok(Value::Array(values.into_iter().map(|value| fit(name, like, value)).collect::<Result<_>>()?));
        }
        (like, value) if like.same_type(&value) => return Ok(value),
        (like, value) => (
            match like {
                Value::Integer(_) => "a whole number",
                Value::Float(_) => "a number",
                Value::Boolean(_) => "true or false",
                Value::Array(_) => "a list",
                _ => "a text",
            },
            value,
        ),
    };
    let told = expected.1.to_string();
    let found = match expected.1 {
        Value::Float(number) if told.len() > MOST_DIGITS => short(number),
        _ => told,
    };
    Err(Error::Config(format!("{name} must be {}, found {found}", expected.0)))
}

/// The `message` of a deserialiser, with the nearest name added if it lists known names and found another.
pub(super) fn with_suggestion(message: &str) -> String {
    let unknown = || {
        let (found, known) = message.strip_prefix("unknown variant `")?.split_once("`, expected ")?;
        // In `a`, `b`, every second piece is a name.
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        let close = suggestion(found, known.iter().copied());
        let all = if known.len() <= FEW && close.contains("did you mean") { format!(" (of {})", known.join(", ")) } else { String::new() };
        Some(format!("there is no '{found}'{close}{all}"))
    };
    unknown().unwrap_or_else(|| message.to_owned())
}

/// `number` with no more digits than anyone reads.
pub(super) fn short(number: f64) -> String {
    let digits = number.to_string();
    if digits.len() > MOST_DIGITS { format!("{number:e}") } else { digits }
}

/// Whether `text` is digits, optionally after a sign.
fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn too_large(name: &str, found: &str) -> Result<Value> {
    Err(Error::Config(format!("{name} must be between 0 and {}, found {found}", i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Table {
        "[a]\nwidth = 1\nrate = 0.5\nname = 'x'\non = true\nlist = ['x']\n[b]\nwidth = 2\npair = [0.1, 0.2]".parse().unwrap()
    }

    fn set(setting: &str) -> Result<Table> {
        let (mut base, known) = (known(), known());
        let (section, key, value) = parse_setting(&known, setting)?;
        overlay_section(&mut base, &known, &section, Table::from_iter([(key, value)]))?;
        Ok(base)
    }

    fn value(setting: &str, section: &str, key: &str) -> Value {
        set(setting).unwrap()[section][key].clone()
    }

    fn refusal(setting: &str) -> String {
        set(setting).unwrap_err().to_string()
    }

    #[test]
    fn values_take_the_type_of_the_key() {
        assert_eq!(value("rate=2", "a", "rate"), Value::Float(2.0));
        assert_eq!(value("rate=18446744073709551615", "a", "rate"), Value::Float(18_446_744_073_709_551_615.0));
        assert_eq!(value("a.width=1e6", "a", "width"), Value::Integer(1_000_000));
        assert_eq!(value("name=12", "a", "name"), Value::String("12".to_owned()));
        assert_eq!(value("name = \"quoted words\"", "a", "name"), Value::String("quoted words".to_owned()));
        assert_eq!(value("name=a=b", "a", "name"), Value::String("a=b".to_owned()));
        assert_eq!(value("on=false", "a", "on"), Value::Boolean(false));
        assert_eq!(value("pair=0.9,1", "b", "pair").to_string(), "[0.9, 1.0]");
        for list in ["list=u,v", "list=[u, v]", "list=['u', 'v']"] {
            assert_eq!(value(list, "a", "list").to_string(), r#"["u", "v"]"#);
        }
        assert_eq!(value("list=", "a", "list").to_string(), "[]");
        assert_eq!(value("list='u,v'", "a", "list").to_string(), r#"["u,v"]"#);
    }

    #[test]
    fn unknown_names_get_a_suggestion() {
        assert_eq!(refusal("widht=3"), "unknown key 'widht'; did you mean 'width'?");
        assert_eq!(refusal("a.raet=3"), "unknown key 'raet' in section [a]; did you mean 'rate'?");
        assert_eq!(refusal("zzz.rate=3"), "unknown section [zzz]; expected one of 'a', 'b'");
        assert!(refusal("b.qqq=3").contains("expected one of"));
    }

    #[test]
    fn ambiguous_and_malformed_settings_are_sentences() {
        assert_eq!(refusal("width=3"), "the key 'width' stands in several sections; write a.width or b.width");
        assert!(refusal("width").contains("form key=value, found 'width'"));
        assert!(refusal("").contains("key=value"));
    }

    #[test]
    fn values_of_another_type_are_sentences() {
        assert_eq!(refusal("a.width="), r#"a.width must be a whole number, found """#);
        assert_eq!(refusal("a.width=wide"), r#"a.width must be a whole number, found "wide""#);
        assert_eq!(refusal("a.width=1.5"), "a.width must be a whole number, found 1.5");
        assert_eq!(refusal("a.width=-1"), "a.width must be 0 or above, found -1");
        for (set, found) in [
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775809", "-9223372036854775809"),
            ("1e20", "100000000000000000000"),
        ] {
            assert_eq!(refusal(&format!("a.width={set}")), format!("a.width must be between 0 and 9223372036854775807, found {found}"));
        }
        assert_eq!(refusal("a.width=\"5\""), "a.width must be a whole number, found \"5\"");
        assert_eq!(refusal("a.width=1e308"), "a.width must be between 0 and 9223372036854775807, found 1e308");
        assert_eq!(refusal("a.width=-1e308"), "a.width must be a whole number, found -1e308");
        assert_eq!(refusal("on=1.5e-300"), "a.on must be true or false, found 1.5e-300");
        assert_eq!(refusal("on=1"), "a.on must be true or false, found 1");
        assert_eq!(refusal("rate=fast"), r#"a.rate must be a number, found "fast""#);
        assert_eq!(refusal("pair=0.9,x"), r#"b.pair must be a number, found "x""#);
        assert_eq!(refusal("rate=1\nname = 2"), "a.rate must be a number, found \"\"\"\n1\nname = 2\"\"\"");
    }
}
