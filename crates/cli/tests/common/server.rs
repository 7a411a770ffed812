//! A server of its own for a test, asked over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Finished, PATIENCE, Scratch, minrnn, shown};

/// A tiny model of text, trained once for all tests of a file.
pub fn model() -> &'static str {
    static MODEL: OnceLock<String> = OnceLock::new();
    MODEL.get_or_init(|| {
        let scratch = Scratch::shared("serve");
        let training = scratch.training("run", &["max_iterations=60", "eval_every=30", "lr=0.01"]);
        training.run().ok();
        let packed = shown(&scratch.path("words.minrnn"));
        Finished::of(&mut minrnn(&["pack", &shown(&training.out), "-o", &packed])).ok();
        packed
    })
}

/// A server of its own, which ends with the test.
pub struct Server {
    pub child: Child,
    pub base: String,
    pub agent: ureq::Agent,
    said: Option<BufReader<std::process::ChildStderr>>,
}

impl Server {
    pub fn start(args: &[&str]) -> Self {
        Self::of(&mut minrnn(&[&["serve", "--port", "0", "--threads", "2"], args].concat()))
    }

    pub fn of(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let base = loop {
            let mut line = String::new();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "the server ended");
            if let Some(address) = line.trim().strip_prefix("listening on ") {
                break address.to_owned();
            }
        };
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE));
        Self { child, base, agent: config.build().into(), said: Some(said) }
    }

    pub fn post(&self, path: &str, body: &Value) -> ureq::http::Response<ureq::Body> {
        let request = self.agent.post(format!("{}{path}", self.base)).content_type("application/json");
        request.send(body.to_string()).unwrap()
    }

    pub fn asked(&self, path: &str, body: &Value) -> Value {
        let mut response = self.post(path, body);
        let text = response.body_mut().read_to_string().unwrap();
        assert_eq!(response.status(), 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// The same of an answer of any length.
    pub fn asked_whole(&self, body: &Value) -> Value {
        let mut response = self.post("/v1/completions", body);
        assert_eq!(response.status(), 200);
        serde_json::from_reader(BufReader::new(response.body_mut().as_reader())).unwrap()
    }

    pub fn completed(&self, body: &Value) -> Value {
        self.asked("/v1/completions", body)
    }

    /// Status and sentence of a request that is refused.
    pub fn refused(&self, path: &str, body: &Value) -> (u16, String) {
        let mut response = self.post(path, body);
        let told: Value = serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap();
        (response.status().as_u16(), told["error"]["message"].as_str().unwrap().to_owned())
    }

    pub fn get(&self, path: &str) -> (u16, String) {
        let mut response = self.agent.get(format!("{}{path}", self.base)).call().unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    }

    pub fn metric(&self, name: &str) -> u64 {
        let (_, text) = self.get("/metrics");
        let line = text.lines().find(|line| line.starts_with(&format!("minrnn_{name}{{"))).unwrap_or_else(|| panic!("no {name}:\n{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    pub fn wait_until(&self, reached: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !reached(self) {
            assert!(started.elapsed() < PATIENCE, "waited in vain");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A connection on which a completion was asked for.
    pub fn connection(&self, body: &Value) -> TcpStream {
        let mut connection = self.silent();
        let body = body.to_string();
        let head = format!(
            "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        connection.write_all((head + &body).as_bytes()).unwrap();
        connection
    }

    /// A connection on which nothing was sent.
    pub fn silent(&self) -> TcpStream {
        let connection = TcpStream::connect(self.base.strip_prefix("http://").unwrap()).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        connection
    }

    /// Its peak memory so far in MiB; 0 if the system does not say.
    pub fn peak_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak.map_or(0, |peak| peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024)
    }

    /// The exit code and what was said after the start.
    pub fn ended(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.said.take().unwrap().read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The `data:` of a stream's events.
pub fn data_of(stream: &str) -> Vec<&str> {
    stream.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
}

pub fn text_of(completion: &Value) -> &str {
    completion["choices"][0]["text"].as_str().unwrap()
}
