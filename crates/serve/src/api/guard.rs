//! Who may send requests.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::App;
use super::error::ApiError;

/// Lets through clients that know the key. Without a key, a server that listens only on this machine lets through requests whose `Host` is this
/// machine: those of a page from another site, whose name resolves to this machine's address (DNS rebinding), have the site's name.
pub(super) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let headers = request.headers();
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let refused = match &app.settings.api_key {
        // The page contains no secrets and asks for the key itself.
        Some(_) if path == "/health" || path == "/" => None,
        Some(key) => {
            let found = text(header::AUTHORIZATION).and_then(borne);
            let sentence = "expected the server's key, 'Authorization: Bearer KEY'";
            (!found.is_some_and(|found| is_same(found, key))).then(|| ApiError::new(StatusCode::UNAUTHORIZED, sentence))
        }
        None if app.address.ip().to_canonical().is_loopback() => {
            let host = text(header::HOST).unwrap_or_default();
            let sentence = format!(
                "'{host}' is not a name of this machine; call it 127.0.0.1 or localhost, let a proxy in front send 'Host: localhost', or start \
                 the server with a key"
            );
            (!is_local(host, app.settings.host_name.as_deref())).then(|| ApiError::new(StatusCode::FORBIDDEN, sentence))
        }
        None => None,
    };
    match refused {
        Some(error) => error.into_response(),
        None => next.run(request).await,
    }
}

/// The key in the value of `Authorization`, whose scheme is case-insensitive.
fn borne(value: &str) -> Option<&str> {
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| key.trim_start_matches(' '))
}

/// Compares in a time that does not reveal where they differ.
fn is_same(found: &str, key: &str) -> bool {
    found.len() == key.len() && found.bytes().zip(key.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// Whether `host`, a name with or without a port, is this machine, which may also be called `own`.
fn is_local(host: &str, own: Option<&str>) -> bool {
    let is_port = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    let is_named = ["localhost"].into_iter().chain(own).any(|known| name.eq_ignore_ascii_case(known));
    is_named || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        for host in ["localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:1", "[::1]:8080", "[::1]", "[::ffff:127.0.0.1]:80"] {
            assert!(is_local(host, None), "{host}");
        }
        for host in ["", "example.org", "localhost.example.org:80", "10.0.0.1:8080", "127.0.0.1.example.org", ":8080", "[::ffff:10.0.0.1]"]
        {
            assert!(!is_local(host, Some("vm")), "{host}");
        }
        assert!(is_local("VM:80", Some("vm")) && !is_local("vm", None));
    }

    #[test]
    fn a_key_is_borne_by_a_scheme_in_any_case() {
        for value in ["Bearer key", "bearer key", "BEARER   key"] {
            assert_eq!(borne(value), Some("key"), "{value}");
        }
        for value in ["", "Bearer", "Bearerkey", "Basic key", "key"] {
            assert_eq!(borne(value), None, "{value}");
        }
    }

    #[test]
    fn keys_are_the_same_only_as_a_whole() {
        assert!(is_same("key", "key"));
        assert!(!is_same("ke", "key") && !is_same("keys", "key") && !is_same("kex", "key") && !is_same("", "key"));
    }
}
