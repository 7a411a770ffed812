//! A server in this process: what it does when clients leave, and which models it takes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use minrnn_model::{ModelConfig, Pooling, Tokenizer, WeightFormat, Weights, write_safetensors};
use minrnn_serve::{Error, Predictor, ServedModel, ServedTable, Server, Settings, Unpredicted};
use minrnn_stream::Model;
use rayon::{ThreadPool, ThreadPoolBuilder};

fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap())
}

fn settings() -> Settings {
    Settings { address: ([127, 0, 0, 1], 0).into(), queue: 4, ..Settings::default() }
}

/// Predicts "done" after a while in which it looks whether it is to stop, and says so only later.
#[derive(Clone, Default)]
struct Slow(Arc<Counts>);

#[derive(Default)]
struct Counts {
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    ended: AtomicUsize,
}

impl Predictor for Slow {
    fn predict(&self, table: &[u8], _future: Option<&[u8]>, _json: bool, stop: &AtomicBool) -> Result<String, Unpredicted> {
        let Counts { at_once, most_at_once, ended } = &*self.0;
        most_at_once.fetch_max(at_once.fetch_add(1, SeqCst) + 1, SeqCst);
        let begun = Instant::now();
        while table == b"slow" && !stop.load(SeqCst) && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(300));
        at_once.fetch_sub(1, SeqCst);
        ended.fetch_add(1, SeqCst);
        Ok("done".to_owned())
    }
}

#[test]
fn a_table_keeps_its_turn_until_its_work_ends_though_its_client_left() {
    let slow = Slow::default();
    let table = ServedTable { name: "slow".into(), about: String::new(), predictor: Box::new(slow.clone()) };
    let server = Server::bind(Vec::new(), vec![table], settings(), pool()).unwrap();
    let (address, stop) = (server.address(), Arc::new(AtomicBool::new(false)));
    let running = std::thread::spawn({
        let stop = stop.clone();
        move || server.run(move || stop.load(SeqCst))
    });
    let send = |table: &str| {
        let mut connection = TcpStream::connect(address).unwrap();
        let head = format!("POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: {}\r\n", table.len());
        connection.write_all(format!("{head}Connection: close\r\n\r\n{table}").as_bytes()).unwrap();
        connection
    };
    for _ in 0..4 {
        let connection = send("slow");
        std::thread::sleep(Duration::from_millis(60));
        drop(connection);
    }
    let mut answer = String::new();
    send("quick").read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
    assert_eq!(slow.0.most_at_once.load(SeqCst), 1);
    // Those that left while they waited were not begun, the others have ended.
    assert_eq!(slow.0.at_once.load(SeqCst), 0);
    assert!((2..5).contains(&slow.0.ended.load(SeqCst)));
    stop.store(true, SeqCst);
    running.join().unwrap().unwrap();
}

/// A model of `config` whose weights are all a tenth.
fn model(config: &ModelConfig) -> Model {
    let file = tempfile::NamedTempFile::new().unwrap();
    let tensors = config.checked().unwrap().tensors().into_iter().map(|tensor| {
        let values = vec![0.1; tensor.shape.iter().product()];
        (tensor.name, tensor.shape, values.into())
    });
    write_safetensors(file.path(), tensors, None).unwrap();
    Model::new(config, &mut Weights::read(file.path()).unwrap(), WeightFormat::F32).unwrap()
}

#[test]
fn only_models_that_continue_text_are_served_as_such() {
    let text = ModelConfig { vocab_size: 256, d_model: 8, n_layers: 1, ..Default::default() };
    let bound = |config: ModelConfig| {
        let served = ServedModel { name: "m".into(), model: model(&config), tokenizer: Tokenizer::Byte };
        Server::bind(vec![served], Vec::new(), settings(), pool()).map(drop)
    };
    bound(text.clone()).unwrap();
    let classes = ModelConfig { n_outputs: 256, tie_embeddings: false, ..text.clone() };
    for config in [
        classes.clone(),
        ModelConfig { pooling: Pooling::Mean, ..classes.clone() },
        ModelConfig { pair_head: true, ..classes },
        // What it made of the text before would be in every next one.
        ModelConfig { pair_head: true, tie_embeddings: false, ..text },
    ] {
        let refused = bound(config).unwrap_err();
        assert!(matches!(&refused, Error::Input(sentence) if sentence.contains("does not continue text with its 256 tokens")), "{refused}");
    }
}
