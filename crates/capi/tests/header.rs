//! The header agrees with the library: the same functions, with the same parameters, and the same constants, which JavaScript has too.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The types and names of the parameters, and the return type, as C writes them.
type Signature = (Vec<(String, String)>, String);

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The header without its comments.
fn header() -> String {
    let text = fs::read_to_string(folder().join("include/minrnn.h")).unwrap();
    let mut code = String::new();
    for (i, part) in text.split("/*").enumerate() {
        code += if i == 0 { part } else { part.split_once("*/").expect("a comment ends").1 };
    }
    code
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The type and the name in a C declaration, `type name`.
fn declared(text: &str) -> (String, String) {
    let at = text.rfind([' ', '*']).expect("a type and a name") + 1;
    (text[at..].to_owned(), text[..at].trim().to_owned())
}

fn in_header() -> BTreeMap<String, Signature> {
    let code = one_line(&header());
    let exported = code.split("MINRNN_API ").skip(1).filter(|text| text.starts_with(|c: char| c.is_lowercase()));
    // The functions for the web have no such mark.
    let web = code.split_once("#if defined(__wasm__)").unwrap().1.split_once("#endif").unwrap().0;
    let web = web.split_inclusive(';').filter(|text| text.contains('(')).map(str::trim);
    exported
        .chain(web)
        .map(|text| {
            let (declaration, _) = text.split_once(';').unwrap();
            let (front, parameters) = declaration.split_once('(').unwrap();
            let (name, given) = declared(front);
            let parameters = parameters.trim_end_matches(')');
            let list = match parameters {
                "void" => Vec::new(),
                _ => parameters.split(", ").map(declared).map(|(name, kind)| (kind, name)).collect(),
            };
            (name, (list, given))
        })
        .collect()
}

/// A Rust type as C writes it.
fn in_c(kind: &str) -> String {
    let base = |kind: &str| match kind {
        "c_char" => "char",
        "u8" => "uint8_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "i32" => "int32_t",
        "usize" => "size_t",
        "f32" => "float",
        "f64" => "double",
        "Status" => "minrnn_status",
        "ModelHandle" => "minrnn_model",
        "SessionHandle" => "minrnn_session",
        "SamplerHandle" => "minrnn_sampler",
        "TextHandle" => "minrnn_text",
        "" => "void",
        other => panic!("C has no word for {other}"),
    };
    if let Some(inner) = kind.strip_prefix("*mut *mut ") {
        return format!("{} **", base(inner));
    }
    match (kind.strip_prefix("*const "), kind.strip_prefix("*mut ")) {
        (Some(inner), _) => format!("const {} *", base(inner)),
        (_, Some(inner)) => format!("{} *", base(inner)),
        _ => base(kind).to_owned(),
    }
}

fn in_rust() -> BTreeMap<String, Signature> {
    let mut found = BTreeMap::new();
    for file in fs::read_dir(folder().join("src")).unwrap() {
        let code = fs::read_to_string(file.unwrap().path()).unwrap();
        for part in code.split("#[unsafe(no_mangle)]").skip(1) {
            let (_, part) = part.split_once("extern \"C\" fn ").unwrap();
            let text = one_line(part.split_once('{').unwrap().0);
            let (name, rest) = text.split_once('(').unwrap();
            let (parameters, given) = rest.rsplit_once(')').unwrap();
            let list = parameters.split(", ").map(|text| text.trim().trim_end_matches(',')).filter(|text| !text.is_empty());
            let list = list.map(|text| text.split_once(": ").unwrap()).map(|(name, kind)| (in_c(kind), name.to_owned())).collect();
            found.insert(name.to_owned(), (list, in_c(given.trim().trim_start_matches("-> "))));
        }
    }
    found
}

/// The named constants in a text whose names begin with `prefix`.
fn listed(text: &str, prefix: &str) -> BTreeMap<String, i64> {
    let lines = text.lines().map(|line| line.trim().trim_start_matches("pub(crate) const ").trim_end_matches([',', ';']));
    let pair = |line: &str| {
        let (name, number) = line.split_once(" = ")?;
        let name = name.split(':').next()?;
        Some((format!("{prefix}{name}"), number.trim().parse().ok()?))
    };
    lines.filter_map(pair).collect()
}

/// The name that JavaScript has for what the header calls `name`.
fn in_javascript(name: &str) -> String {
    match name {
        "INPUTS" => "width".to_owned(),
        _ => {
            let mut words = name.split('_').map(str::to_lowercase);
            let first = words.next().unwrap_or_default();
            words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
        }
    }
}

#[test]
fn every_function_of_the_library_is_declared_as_it_is() {
    let (header, rust) = (in_header(), in_rust());
    assert!(rust.len() > 30, "{:?}", rust.keys());
    assert_eq!(header.keys().collect::<Vec<_>>(), rust.keys().collect::<Vec<_>>());
    for (name, signature) in &rust {
        assert_eq!(&header[name], signature, "{name}");
    }
}

#[test]
fn every_number_has_the_same_name_in_the_library() {
    let in_header = listed(&header(), "");
    let constants = listed(&fs::read_to_string(folder().join("src/constants.rs")).unwrap(), "MINRNN_");
    let status = fs::read_to_string(folder().join("src/status.rs")).unwrap();
    let status: BTreeMap<String, i64> =
        listed(&status, "").into_iter().map(|(name, number)| (format!("MINRNN_{}", name.to_uppercase()), number)).collect();
    let in_rust: BTreeMap<String, i64> = constants.into_iter().chain(status).collect();
    assert!(in_rust.len() > 30, "{in_rust:?}");
    assert_eq!(in_header, in_rust);
}

#[test]
fn javascript_has_every_name_at_the_place_of_its_number() {
    let Ok(script) = fs::read_to_string(folder().join("../../web/minrnn.js")) else {
        return eprintln!("skipped: the page is not here, as this crate stands without its repository");
    };
    let constant = |name: &str| {
        let start = format!("const {name} = ");
        let line = script.lines().find_map(|line| line.strip_prefix(&start)?.strip_suffix(';'));
        line.unwrap_or_else(|| panic!("there is no constant {name}"))
    };
    let numbers = listed(&header(), "");
    for (name, prefix) in [("KINDS", "MINRNN_KIND_"), ("SIZES", "MINRNN_SIZE_"), ("SETTINGS", "MINRNN_SAMPLING_")] {
        let found: Vec<String> = serde_json::from_str(constant(name)).unwrap();
        let expected = numbers.iter().filter_map(|(name, number)| Some((*number, in_javascript(name.strip_prefix(prefix)?))));
        let expected: BTreeMap<i64, String> = expected.collect();
        // There is no kind 0.
        let found: BTreeMap<i64, String> = (0..).zip(found).filter(|(_, name)| !name.is_empty()).collect();
        assert_eq!(found, expected, "{name}");
    }
    assert_eq!(constant("RECENT"), minrnn_stream::RECENT_TOKENS.to_string());
}

#[test]
fn the_header_has_the_version_of_the_library() {
    let header = header();
    let number = |name: &str| {
        let line = header.lines().find_map(|line| line.strip_prefix(&format!("#define MINRNN_VERSION_{name} ")));
        line.expect("it is defined").trim().to_owned()
    };
    assert_eq!(["MAJOR", "MINOR", "PATCH"].map(number).join("."), env!("CARGO_PKG_VERSION"));
    // SAFETY: the library's own text.
    let version = unsafe { std::ffi::CStr::from_ptr(minrnn_capi::minrnn_version()) };
    assert_eq!(version.to_str().unwrap(), env!("CARGO_PKG_VERSION"));
}
