//! A model with a thread of its own, which reads all prompts and continues all texts together: one step gives one token of each.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use minrnn_model::Tokenizer;
use minrnn_stream::{Continuation, Model, Result, State, Workspace};
use rayon::ThreadPool;

use crate::cache::Cache;
use crate::counts::{Counts, add, set};
use crate::job::{Client, Ended, Event, Generated, Job};
use crate::logprobs::Logprob;
use crate::reading::Reading;
use crate::settings::Settings;

/// How long a model keeps the pool's threads before others get a turn; entering the pool at every step would take longer than a small model's step.
const SLICE: Duration = Duration::from_millis(20);
/// How often to check whether a client has caught up while all texts wait for theirs.
const GLANCE: Duration = Duration::from_millis(2);

/// The handle to a model's thread.
pub(crate) struct Engine {
    queue: Arc<Queue>,
    pub counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

/// Jobs that wait for a session.
#[derive(Default)]
struct Queue {
    waiting: Mutex<VecDeque<Job>>,
    arrived: Condvar,
    most: usize,
    /// No more jobs are accepted: the server is ending, or the thread has ended.
    closed: AtomicBool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        let _waiting = self.lock();
        self.closed.store(true, Ordering::Relaxed);
        self.arrived.notify_all();
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
}

/// Why jobs were not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Too many are waiting.
    Busy,
    /// The model's thread has ended.
    Gone,
}

impl Engine {
    /// Starts the thread of a model; what it computes is spread over `pool`.
    pub fn start(model: Arc<Model>, tokenizer: Arc<Tokenizer>, settings: &Settings, pool: Arc<ThreadPool>) -> crate::Result<Self> {
        let state = model.init_state(0)?;
        let queue = Arc::new(Queue { most: settings.queue, ..Queue::default() });
        let counts = Arc::new(Counts::default());
        let thread = std::thread::Builder::new().name("model".into()).spawn({
            let (queue, counts, settings) = (queue.clone(), counts.clone(), settings.clone());
            move || {
                let mut worker = Worker::new(&model, &tokenizer, state, &settings, &counts);
                // After a panic the worker is not used again.
                let _ = catch_unwind(AssertUnwindSafe(|| worker.work(&queue, &pool)));
                drop(worker);
                queue.close();
                // Clients whose jobs wait learn that nobody will answer.
                queue.lock().clear();
            }
        });
        let thread = thread.map_err(crate::Error::Start)?;
        Ok(Self { queue, counts, thread: Some(thread) })
    }

    /// Whether `n` more jobs may wait at present, checked before they are built.
    pub fn expect_room(&self, n: usize) -> std::result::Result<(), Refused> {
        self.room_for(n, &self.queue.lock())
    }

    fn room_for(&self, n: usize, waiting: &VecDeque<Job>) -> std::result::Result<(), Refused> {
        if self.queue.is_closed() {
            return Err(Refused::Gone);
        }
        if waiting.len() + n > self.queue.most {
            add(&self.counts.refused, n);
            return Err(Refused::Busy);
        }
        Ok(())
    }

    /// Gives all of `jobs` to the thread, or none.
    pub fn submit(&self, jobs: Vec<Job>) -> std::result::Result<(), Refused> {
        let mut waiting = self.queue.lock();
        self.room_for(jobs.len(), &waiting)?;
        for job in &jobs {
            add(&self.counts.prompts, 1);
            add(&self.counts.prompt_tokens, job.prompt.len());
        }
        waiting.extend(jobs);
        set(&self.counts.waiting, waiting.len());
        self.queue.arrived.notify_one();
        Ok(())
    }

    /// Whether the thread still accepts jobs.
    pub fn is_alive(&self) -> bool {
        !self.queue.is_closed()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's side.
struct Worker<'a> {
    model: &'a Model,
    tokenizer: &'a Tokenizer,
    counts: &'a Counts,
    /// A row for each session; as many as have ever been needed at once.
    state: State,
    workspace: Workspace,
    most_rows: usize,
    most_bytes: u64,
    free: Vec<usize>,
    reading: VecDeque<Reading>,
    running: Vec<Run>,
    cache: Cache<State>,
    /// Room for the logits `[rows, V]` of a step.
    logits: Vec<f32>,
}

/// A text that is continued.
struct Run {
    row: usize,
    choice: usize,
    continuation: Continuation,
    prompt: Arc<[u32]>,
    /// All tokens generated after it so far.
    generated: Vec<u32>,
    left: usize,
    session_bytes: u64,
    logprobs: Option<usize>,
    client: Client,
    /// Whether it skips this step because its client is behind.
    waits: bool,
    /// When the prompt arrived; taken at the first token.
    arrived: Option<Instant>,
}

impl<'a> Worker<'a> {
    fn new(model: &'a Model, tokenizer: &'a Tokenizer, state: State, settings: &Settings, counts: &'a Counts) -> Self {
        Self {
            model,
            tokenizer,
            counts,
            state,
            workspace: Workspace::new(),
            most_rows: settings.sessions,
            most_bytes: settings.session_bytes,
            free: Vec::new(),
            reading: VecDeque::new(),
            running: Vec::new(),
            cache: Cache::new(settings.cache_bytes),
            logits: Vec::new(),
        }
    }

    fn work(&mut self, queue: &Queue, pool: &ThreadPool) {
        while self.wait(queue) {
            pool.install(|| self.slice(queue));
        }
    }

    /// Waits until there is something to do; false when the server ends.
    fn wait(&self, queue: &Queue) -> bool {
        let mut waiting = queue.lock();
        while !queue.is_closed() && self.is_idle() && waiting.is_empty() {
            waiting = queue.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        // A client that catches up wakes nobody, so this thread wakes by itself; waiting prompts have no session yet, and new ones wake it.
        if !queue.is_closed() && !self.is_idle() && !self.has_work() {
            drop(queue.arrived.wait_timeout(waiting, GLANCE));
        }
        !queue.is_closed()
    }

    fn is_idle(&self) -> bool {
        self.reading.is_empty() && self.running.is_empty()
    }

    /// Whether something can proceed without waiting for clients.
    fn has_work(&self) -> bool {
        !self.reading.is_empty() || self.running.iter().any(|run| !run.client.is_behind())
    }

    /// Works on the pool's threads until there is nothing to do, or others that share them get a turn.
    fn slice(&mut self, queue: &Queue) {
        let begun = Instant::now();
        loop {
            self.admit(queue);
            self.forget_those_who_left();
            self.read();
            self.step();
            set(&self.counts.running, self.reading.len() + self.running.len());
            set(&self.counts.behind, self.running.iter().filter(|run| run.waits).count());
            set(&self.counts.cache_entries, self.cache.len());
            set(&self.counts.cache_bytes, self.cache.bytes());
            if !self.has_work() || queue.is_closed() || begun.elapsed() > SLICE {
                return;
            }
        }
    }

    /// Begins jobs while there are sessions for them.
    fn admit(&mut self, queue: &Queue) {
        let mut waiting = queue.lock();
        let before = waiting.len();
        waiting.retain(|job| !job.client.has_left());
        add(&self.counts.left, before - waiting.len());
        while waiting.front().is_some_and(|next| self.has_room(next)) {
            waiting.pop_front().into_iter().for_each(|job| self.begin(job));
        }
        set(&self.counts.waiting, waiting.len());
    }

    /// Whether there are sessions for `next`, beside those that other texts have or will need once their prompts have been read.
    fn has_room(&self, next: &Job) -> bool {
        let of_job = |job: &Job| (job.texts.len(), job.texts.len() as u64 * job.session_bytes);
        let taken = self.running.iter().map(|run| (1, run.session_bytes)).chain(self.reading.iter().map(|reading| of_job(&reading.job)));
        let (rows, bytes) = taken.chain([of_job(next)]).fold((0, 0u64), |all, one| (all.0 + one.0, all.1.saturating_add(one.1)));
        rows <= self.most_rows && bytes <= self.most_bytes
    }

    /// Returns a session that no text needs any more; the memory of one that has grown is freed.
    fn release(&mut self, row: usize) {
        if self.model.steps_seen() > 0 {
            // It cannot fail: the row is one of this state.
            let _ = self.model.restart(&mut self.state, row);
        }
        self.free.push(row);
    }

    fn take_row(&mut self) -> Result<usize> {
        if let Some(row) = self.free.pop() {
            return Ok(row);
        }
        self.state.append(&self.model.init_state(1)?)?;
        Ok(self.state.rows() - 1)
    }

    fn begin(&mut self, job: Job) {
        let client = job.client.clone();
        let begun = self.take_row().and_then(|row| {
            let begun = Reading::begin(job, row, self.model, &mut self.state, &mut self.cache);
            begun.inspect_err(|_| self.release(row))
        });
        match begun {
            Ok(reading) => {
                add(&self.counts.cached_tokens, reading.cached);
                self.reading.push_back(reading);
            }
            Err(error) => fail(&client, &error),
        }
    }

    /// Ends the prompts and texts whose clients have left.
    fn forget_those_who_left(&mut self) {
        let mut left = Vec::new();
        let mut stays = |client: &Client, row: usize| {
            let has_left = client.has_left();
            left.extend(has_left.then_some(row));
            !has_left
        };
        self.reading.retain(|reading| stays(&reading.job.client, reading.row));
        self.running.retain(|run| stays(&run.client, run.row));
        add(&self.counts.left, left.len());
        left.into_iter().for_each(|row| self.release(row));
    }

    /// Reads one piece of one prompt; the next call reads one of another prompt.
    fn read(&mut self) {
        let Some(mut reading) = self.reading.pop_front() else { return };
        if !reading.is_done() {
            let (vocab_size, beside) = (self.tokenizer.vocab_size(), !self.running.is_empty());
            if let Err(error) = reading.read(self.model, vocab_size, beside, &mut self.state, &mut self.workspace, &mut self.cache) {
                fail(&reading.job.client, &error);
                return self.release(reading.row);
            }
        }
        if reading.is_done() { self.run(reading) } else { self.reading.push_back(reading) }
    }

    /// Begins the texts of a prompt that has been read.
    fn run(&mut self, reading: Reading) {
        let Reading { job, row, cached, logprobs, .. } = reading;
        let Job { prompt, texts, first_choice, max_tokens, session_bytes, client, arrived, .. } = job;
        let of_prompt: Arc<[Logprob]> = logprobs.into();
        for (i, mut continuation) in texts.into_iter().enumerate() {
            let choice = first_choice + i;
            client.tell(Event::Read { choice, cached, logprobs: of_prompt.clone() });
            if max_tokens == 0 {
                let text = continuation.finish();
                client.tell(Event::Token(Generated { choice, token: None, text, logprob: None, ended: Some(Ended::Length) }));
                continue;
            }
            // The first text continues in the session that has read the prompt; the others get copies.
            let own = match i {
                0 => Ok(row),
                _ => self.take_row().and_then(|own| {
                    let copied = self.state.select(&[row]).and_then(|source| self.state.copy_row(own, &source, 0));
                    copied.map(|()| own).inspect_err(|_| self.release(own))
                }),
            };
            let own = match own {
                Ok(own) => own,
                Err(error) => return fail(&client, &error),
            };
            let run = Run {
                row: own,
                choice,
                continuation,
                prompt: prompt.clone(),
                generated: Vec::new(),
                left: max_tokens,
                session_bytes,
                logprobs: job.logprobs,
                client: client.clone(),
                waits: false,
                arrived: Some(arrived),
            };
            self.running.push(run);
        }
        if max_tokens == 0 {
            self.release(row);
        }
    }

    /// Generates one token of every text whose client is not behind.
    fn step(&mut self) {
        self.running.iter_mut().for_each(|run| run.waits = run.client.is_behind());
        self.running.sort_unstable_by_key(|run| run.row);
        let going = || self.running.iter().filter(|run| !run.waits);
        let rows: Vec<usize> = going().map(|run| run.row).collect();
        let tokens: Vec<u32> = going().map(|run| run.continuation.unread()).collect();
        if rows.is_empty() {
            return;
        }
        let width = self.model.outputs();
        self.logits.resize(rows.len() * width, 0.0);
        add(&self.counts.steps, 1);
        if let Err(error) = self.model.step_rows(&rows, &tokens, &mut self.state, &mut self.logits, &mut self.workspace) {
            self.running.extract_if(.., |run| !run.waits).for_each(|run| fail(&run.client, &error));
            return rows.into_iter().for_each(|row| self.release(row));
        }
        add(&self.counts.generated_tokens, rows.len());
        let mut logits = self.logits.chunks_exact_mut(width);
        let (tokenizer, counts, state, cache) = (self.tokenizer, self.counts, &self.state, &mut self.cache);
        let mut over = Vec::new();
        self.running.retain_mut(|run| {
            if run.waits {
                return true;
            }
            // A model may know more tokens than its tokenizer; those mean nothing.
            let logits = logits.next().map(|logits| &mut logits[..tokenizer.vocab_size()]).unwrap_or_default();
            match run.choose(tokenizer, logits, counts) {
                Ok(false) => return true,
                Ok(true) => {
                    // A request that continues this text need not read it again.
                    let read = run.read();
                    if !cache.has(&read)
                        && let Ok(session) = state.select(&[run.row])
                    {
                        let bytes = session.bytes();
                        cache.insert(&read, session, bytes);
                    }
                }
                Err(error) => fail(&run.client, &error),
            }
            over.push(run.row);
            false
        });
        over.into_iter().for_each(|row| self.release(row));
    }
}

impl Run {
    /// All tokens that its session has read: all but the last.
    fn read(&self) -> Vec<u32> {
        [&self.prompt[..], &self.generated[..self.generated.len().saturating_sub(1)]].concat()
    }

    /// Chooses the next token and sends it; true when the text has ended.
    fn choose(&mut self, tokenizer: &Tokenizer, logits: &mut [f32], counts: &Counts) -> Result<bool> {
        let before = self.logprobs.map(|top| (top, logits.to_vec()));
        let token = self.continuation.choose(logits)?;
        self.generated.push(token);
        self.left -= 1;
        let (mut text, stopped) = self.continuation.show(tokenizer, token)?;
        let ended = match (stopped, self.left) {
            (true, _) => Some(Ended::Stop),
            (false, 0) => {
                text += &self.continuation.finish();
                Some(Ended::Length)
            }
            _ => None,
        };
        if let Some(arrived) = self.arrived.take() {
            counts.first_tokens.add(arrived.elapsed());
        }
        let logprob = before.map(|(top, logits)| Logprob::of(&logits, token, top)).transpose()?;
        self.client.tell(Event::Token(Generated { choice: self.choice, token: Some(token), text, logprob, ended }));
        Ok(ended.is_some())
    }
}

fn fail(client: &Client, error: &minrnn_stream::Error) {
    client.tell(Event::Failed { sentence: error.to_string() });
}
