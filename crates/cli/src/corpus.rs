//! Texts with a public address, downloaded once and checked.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use minrnn::data::shakespeare;
use minrnn::train::Corpus;
use minrnn_model::write_atomic;

use crate::failure::WrongInput;
use crate::say::say;

/// The local file of `corpus`: from the cache, else downloaded into it.
pub fn fetch(corpus: Corpus) -> anyhow::Result<PathBuf> {
    match corpus {
        Corpus::TinyShakespeare => tiny_shakespeare(),
    }
}

fn tiny_shakespeare() -> anyhow::Result<PathBuf> {
    let folder = cache_folder()?;
    let path = folder.join("tinyshakespeare.txt");
    if let Ok(bytes) = std::fs::read(&path) {
        match shakespeare::verify(&bytes) {
            Ok(()) => return Ok(path),
            Err(problem) => say(format_args!("not using '{}': {problem}", path.display())),
        }
    }
    say(format_args!("downloading {}", shakespeare::URL));
    let bytes = download(shakespeare::URL, shakespeare::LEN as u64).map_err(|error| {
        WrongInput(format!(
            "could not download Tiny Shakespeare from {}: {error}; check the network, or fetch the file elsewhere and give it with --data FILE",
            shakespeare::URL
        ))
    })?;
    shakespeare::verify(&bytes)?;
    std::fs::create_dir_all(&folder).with_context(|| format!("could not create the cache directory '{}'", folder.display()))?;
    write_atomic(&path, &bytes)?;
    Ok(path)
}

fn download(url: &str, limit: u64) -> Result<Vec<u8>, ureq::Error> {
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(60))).build().into();
    // One byte more than expected is enough to see that it is a different file.
    agent.get(url).call()?.body_mut().with_config().limit(limit + 1).read_to_vec()
}

/// `MINRNN_CACHE`, else the user's cache directory.
fn cache_folder() -> anyhow::Result<PathBuf> {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = from("MINRNN_CACHE")
        .or_else(|| from("XDG_CACHE_HOME").map(|cache| cache.join("minrnn")))
        .or_else(|| from("HOME").map(|home| home.join(".cache/minrnn")))
        .or_else(|| from("LOCALAPPDATA").map(|local| local.join("minrnn")));
    Ok(folder.ok_or_else(|| WrongInput("no cache directory is known; set MINRNN_CACHE, or give the text with --data FILE".to_owned()))?)
}
