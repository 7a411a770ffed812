//! A disk that remembers what is safe: the content of a file since it was synced last, and the names in a directory since that was.
//!
//! After a power failure every name that was not synced is as it was or as it is now, independently of the others, and so is the content of every
//! file that was not synced, or it is truncated, or zero where nothing had been: everything that file systems do, and more than most of them do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::common::Random;
use crate::trace::Call;

type Names = BTreeMap<String, usize>;

#[derive(Debug, Clone)]
enum Node {
    File { safe: Vec<u8>, now: Vec<u8> },
    Folder { safe: Names, now: Names },
}

/// What is left after a power failure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Left {
    /// Only what was synced.
    Synced,
    /// Also some of the rest, drawn from a seed.
    Some(u64),
}

#[derive(Debug, Clone)]
pub struct Disk(Vec<Node>);

impl Disk {
    /// An empty directory.
    pub fn new() -> Self {
        Self(vec![Node::Folder { safe: Names::new(), now: Names::new() }])
    }

    fn find(&self, path: &Path, is_safe: bool) -> Option<usize> {
        path.iter().try_fold(0, |at, name| match &self.0[at] {
            Node::Folder { safe, now } => if is_safe { safe } else { now }.get(name.to_str()?).copied(),
            Node::File { .. } => None,
        })
    }

    fn names(&mut self, path: &Path) -> Option<(&mut Names, String)> {
        let folder = self.find(path.parent()?, false)?;
        match &mut self.0[folder] {
            Node::Folder { now, .. } => Some((now, path.file_name()?.to_str()?.to_owned())),
            Node::File { .. } => None,
        }
    }

    fn add(&mut self, path: &Path, node: Node) {
        let new = self.0.len();
        if let Some((names, name)) = self.names(path) {
            names.insert(name, new);
            self.0.push(node);
        }
    }

    /// Applies the call; one that fails changes nothing here either.
    pub fn apply(&mut self, call: &Call) {
        let found = self.find(&call.path, false);
        match (call.name.as_str(), found) {
            ("flock", _) | ("fsync", None) | ("unlink" | "rmdir" | "rename", None) | ("mkdir" | "create", Some(_)) => {}
            // A write to a file that has lost its name.
            ("write", None) => {}
            ("mkdir", None) => self.add(&call.path, Node::Folder { safe: Names::new(), now: Names::new() }),
            ("create" | "create-empty", None) => self.add(&call.path, Node::File { safe: Vec::new(), now: Vec::new() }),
            ("create-empty" | "empty", Some(at)) => {
                if let Node::File { now, .. } = &mut self.0[at] {
                    now.clear();
                }
            }
            ("write" | "pwrite", Some(at)) => {
                let Node::File { now, .. } = &mut self.0[at] else { panic!("a write to a folder: {call:?}") };
                let place = call.place.unwrap_or(now.len());
                now.resize(now.len().max(place + call.bytes.len()), 0);
                now[place..][..call.bytes.len()].copy_from_slice(&call.bytes);
            }
            ("fsync", Some(at)) => match &mut self.0[at] {
                Node::File { safe, now } => safe.clone_from(now),
                Node::Folder { safe, now } => safe.clone_from(now),
            },
            ("unlink" | "rmdir", Some(at)) => {
                if !matches!(&self.0[at], Node::Folder { now, .. } if !now.is_empty())
                    && let Some((names, name)) = self.names(&call.path)
                {
                    names.remove(&name);
                }
            }
            ("rename", Some(at)) => {
                if let Some((names, name)) = self.names(&call.path) {
                    names.remove(&name);
                }
                if let Some((names, name)) = self.names(&call.to) {
                    names.insert(name, at);
                }
            }
            _ => panic!("this disk does not know the call {call:?}"),
        }
    }

    /// Whether the file or directory `path`, with all below it, would survive a power failure as it is.
    pub fn is_safe(&self, path: &Path) -> bool {
        self.find(path, false).is_some_and(|at| self.node_is_safe(at))
    }

    fn node_is_safe(&self, at: usize) -> bool {
        match &self.0[at] {
            Node::File { safe, now } => safe == now,
            Node::Folder { safe, now } => safe == now && now.values().all(|&below| self.node_is_safe(below)),
        }
    }

    /// What was synced of the file `path` under a name that was synced; none if there is no such file.
    pub fn safe_file(&self, path: &Path) -> Option<&[u8]> {
        match &self.0[self.find(path, true)?] {
            Node::File { safe, .. } => Some(safe),
            Node::Folder { .. } => None,
        }
    }

    /// Names that were synced in the directory `path`.
    pub fn safe_names(&self, path: &Path) -> Vec<String> {
        match self.find(path, true).map(|at| &self.0[at]) {
            Some(Node::Folder { safe, .. }) => safe.keys().cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// Fills the empty `directory` with what a power failure leaves of this one.
    pub fn leave(&self, left: Left, directory: &Path) {
        let mut random = Random(if let Left::Some(seed) = left { seed } else { 0 });
        self.leave_node(0, left, &mut random, directory);
    }

    fn leave_node(&self, at: usize, left: Left, random: &mut Random, path: &Path) {
        match &self.0[at] {
            Node::File { safe, now } => fs::write(path, content(safe, now, left, random)).unwrap(),
            Node::Folder { safe, now } => {
                if !path.exists() {
                    fs::create_dir(path).unwrap();
                }
                for name in safe.keys().chain(now.keys()).collect::<BTreeSet<_>>() {
                    let chosen = match left {
                        Left::Some(_) if random.below(2) == 1 => now.get(name),
                        _ => safe.get(name),
                    };
                    if let Some(&below) = chosen {
                        self.leave_node(below, left, random, &path.join(name));
                    }
                }
            }
        }
    }
}

/// What becomes of a file.
fn content(safe: &[u8], now: &[u8], left: Left, random: &mut Random) -> Vec<u8> {
    if left == Left::Synced || safe == now {
        return safe.to_vec();
    }
    match random.below(4) {
        0 => safe.to_vec(),
        1 => now.to_vec(),
        2 => {
            // What was synced and then only appended to is not truncated.
            let least = if now.starts_with(safe) { safe.len() } else { 0 };
            let kept = least + random.below((now.len() - least) as u64 + 1) as usize;
            now[..kept].iter().chain(safe.iter().skip(now.len())).copied().collect()
        }
        // Of its present length, but what was not synced never reached the disk.
        _ => (0..now.len()).map(|at| safe.get(at).copied().unwrap_or(0)).collect(),
    }
}
