//! Servers in the process of a test, and what they answer.

#![allow(dead_code, reason = "each test file uses a part")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use minrnn_model::{ModelConfig, Tokenizer, WeightFormat, Weights, write_safetensors};
use minrnn_serve::{ServedModel, ServedTable, Server, Settings, TableModel};
use minrnn_stream::Model;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::Value;

pub fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap())
}

pub fn settings() -> Settings {
    let mut settings = Settings::default();
    (settings.address, settings.queue) = (([127, 0, 0, 1], 0).into(), 4);
    settings
}

/// A server of tables on a thread of its own.
pub struct Running {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<minrnn_serve::Result<()>>,
}

impl Running {
    pub fn of(name: &str, model: impl TableModel + 'static) -> Self {
        let table = ServedTable { name: name.into(), about: String::new(), model: Box::new(model) };
        Self::started(Server::bind(Vec::new(), vec![table], settings(), pool()).unwrap())
    }

    /// A server of text with a model that reacts differently to every letter of `text`.
    pub fn of_text(text: &str) -> Self {
        let tokenizer = Tokenizer::characters_of(text);
        let config = ModelConfig { vocab_size: tokenizer.vocab_size(), d_model: 16, n_layers: 1, ..Default::default() };
        let served = ServedModel { name: "text".into(), model: model(&config, |i| (i as f32 * 0.7).sin()), tokenizer };
        let mut settings = settings();
        settings.max_tokens = 1 << 30;
        Self::started(Server::bind(vec![served], Vec::new(), settings, pool()).unwrap())
    }

    fn started(server: Server) -> Self {
        let (address, stop) = (server.address(), Arc::new(AtomicBool::new(false)));
        let stops = stop.clone();
        Self { address, stop, thread: std::thread::spawn(move || server.run(move || stops.load(SeqCst))) }
    }

    /// A connection on which this request was sent.
    pub fn asking(&self, path: &str, body: &Value) -> TcpStream {
        let mut connection = TcpStream::connect(self.address).unwrap();
        let (body, kind) = (body.to_string(), "Content-Type: application/json");
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{kind}\r\nContent-Length: {}\r\n", body.len());
        connection.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes()).unwrap();
        connection
    }

    /// Status and body of the answer.
    pub fn asked(&self, path: &str, body: &Value) -> (u16, Value) {
        let mut answer = String::new();
        self.asking(path, body).read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap())
    }

    pub fn metric(&self, name: &str) -> u64 {
        let told = self.get("/metrics");
        let line = told.lines().find(|line| line.starts_with(&format!("minrnn_{name}{{"))).unwrap_or_else(|| panic!("no {name}: {told}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// A connection on which `table` was sent to `path`, with these additional lines of the head.
    pub fn sent(&self, path: &str, table: &str, head: &str) -> TcpStream {
        let mut connection = TcpStream::connect(self.address).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n{head}\r\n", table.len());
        connection.write_all(format!("{head}Connection: close\r\n\r\n{table}").as_bytes()).unwrap();
        connection
    }

    /// The whole answer of `/v1/predict`.
    pub fn answer(&self, table: &str, head: &str) -> String {
        self.answer_of("/v1/predict", table, head)
    }

    /// The whole answer of `path`.
    pub fn answer_of(&self, path: &str, table: &str, head: &str) -> String {
        let mut answer = String::new();
        self.sent(path, table, head).read_to_string(&mut answer).unwrap();
        answer
    }

    pub fn get(&self, path: &str) -> String {
        let mut connection = TcpStream::connect(self.address).unwrap();
        connection.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }

    pub fn end(self) {
        self.stop.store(true, SeqCst);
        self.thread.join().unwrap().unwrap();
    }
}

/// A model of `config` with these weights, by the number of each in its tensor.
pub fn model(config: &ModelConfig, weight: fn(usize) -> f32) -> Model {
    let file = tempfile::NamedTempFile::new().unwrap();
    let tensors = config.checked().unwrap().tensors().into_iter().map(|tensor| {
        let values: Vec<f32> = (0..tensor.shape.iter().product()).map(weight).collect();
        (tensor.name, tensor.shape, values.into())
    });
    write_safetensors(file.path(), tensors, None).unwrap();
    Model::new(config, &mut Weights::read(file.path()).unwrap(), WeightFormat::F32).unwrap()
}
