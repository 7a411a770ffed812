//! Kinds of content: what a request says it holds, and what it would like in return.

use axum::http::{HeaderMap, StatusCode, header};

use super::error::ApiError;
use crate::served::Accept;

pub(super) const JSON: &str = "application/json";
pub(super) const CSV: &str = "text/csv";

/// Refuses a body that does not claim to be one of `kinds`: a page of another site can send some other kinds without a CORS preflight.
pub(super) fn expect_kind(headers: &HeaderMap, kinds: &[&str]) -> Result<(), ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let named = kind.split(';').next().unwrap_or_default().trim();
    if kinds.iter().any(|kind| kind.eq_ignore_ascii_case(named)) {
        return Ok(());
    }
    let sentence = format!("expected 'Content-Type: {}', found '{kind}'", kinds.join("' or '"));
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence))
}

/// Refuses a compressed body, which would be misread.
pub(super) fn expect_plain(headers: &HeaderMap) -> Result<(), ApiError> {
    let lists: Vec<_> = headers.get_all(header::CONTENT_ENCODING).iter().map(|list| String::from_utf8_lossy(list.as_bytes())).collect();
    let mut encodings = lists.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|encoding| !encoding.is_empty());
    encodings.find(|encoding| !encoding.eq_ignore_ascii_case("identity")).map_or(Ok(()), |encoding| {
        let sentence = format!("expected a request that is not compressed, found 'Content-Encoding: {encoding}'; send it as it is");
        Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence))
    })
}

/// The kind that a request prefers: CSV if it takes anything, or none of the kinds that there are.
pub(super) fn accepted(headers: &HeaderMap) -> Accept {
    let accepted: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|kinds| kinds.to_str().ok()).collect();
    let accepted = accepted.join(",");
    let (json, csv) = (wanted(&accepted, JSON), wanted(&accepted, CSV));
    let is_json = json.weight > 0.0 && (json > csv || (json == csv && json.named == Named::Itself));
    if is_json { Accept::Json } else { Accept::Csv }
}

/// How much a kind is wanted; of two with the same weight, the one named more closely is preferred.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Wanted {
    weight: f32,
    named: Named,
}

/// How closely a range names a kind.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Named {
    Not,
    Any,
    OfItsType,
    Itself,
}

/// How much `accepted`, the ranges of kinds that a client takes, wants `kind`: the closest range counts.
fn wanted(accepted: &str, kind: &str) -> Wanted {
    let mut closest = Wanted { weight: 0.0, named: Named::Not };
    for range in accepted.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let named = named(parts.next().unwrap_or_default(), kind);
        if named > closest.named {
            let weight = |part: &str| {
                let (name, weight) = part.split_once('=')?;
                name.trim().eq_ignore_ascii_case("q").then(|| weight.trim().parse().unwrap_or(0.0))
            };
            closest = Wanted { weight: parts.find_map(weight).unwrap_or(1.0), named };
        }
    }
    closest
}

fn named(range: &str, kind: &str) -> Named {
    let of_type = |kind: &str| kind.split_once('/').map(|(of_type, _)| of_type.to_ascii_lowercase());
    match range {
        _ if range.eq_ignore_ascii_case(kind) => Named::Itself,
        "*/*" => Named::Any,
        _ if range.ends_with("/*") && of_type(range) == of_type(kind) => Named::OfItsType,
        _ => Named::Not,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: header::HeaderName, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn kinds_are_the_same_in_capitals() {
        for kind in ["text/csv", "Text/CSV", "TEXT/CSV ; charset=utf-8"] {
            assert_eq!(expect_kind(&headers(header::CONTENT_TYPE, &[kind]), &[JSON, CSV]), Ok(()), "{kind}");
        }
        for kind in ["", "text", "text/csvs", "text/plain; text/csv"] {
            assert!(expect_kind(&headers(header::CONTENT_TYPE, &[kind]), &[JSON, CSV]).is_err(), "{kind}");
        }
    }

    #[test]
    fn only_what_is_not_compressed_is_plain() {
        let encoded = |encodings: &[&str]| expect_plain(&headers(header::CONTENT_ENCODING, encodings)).map_err(|error| error.body());
        for plain in [&[][..], &["identity"], &["Identity"], &[""], &["identity, "]] {
            assert_eq!(encoded(plain), Ok(()), "{plain:?}");
        }
        let refused = encoded(&["identity", "identity, gzip"]).unwrap_err();
        let sentence = "expected a request that is not compressed, found 'Content-Encoding: gzip'; send it as it is";
        assert_eq!(refused["error"]["message"], sentence);
    }

    #[test]
    fn json_is_sent_to_whom_it_is_as_welcome_by_name_as_csv() {
        let accepts = |values: &[&str]| accepted(&headers(header::ACCEPT, values));
        for accepted in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/json, text/csv",
            "text/csv;q=0.5, application/json;Q=0.9",
            "application/json, text/plain, */*",
            "application/*",
            "text/csv;q=0, */*",
        ] {
            assert_eq!(accepts(&[accepted]), Accept::Json, "{accepted}");
        }
        assert_eq!(accepts(&["text/html", "application/json"]), Accept::Json);
        for accepted in [
            "",
            "*/*",
            "text/csv",
            "image/png",
            "application/json;q=0",
            "application/json;q=0, text/csv",
            "application/json ; q=0.000, */*",
            "application/json;q=0.5, text/csv",
            "application/json;q=0.5, */*",
            "text/*, application/*",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "application/jsonl",
        ] {
            assert_eq!(accepts(&[accepted]), Accept::Csv, "{accepted}");
        }
        assert_eq!(accepts(&[]), Accept::Csv);
    }
}
