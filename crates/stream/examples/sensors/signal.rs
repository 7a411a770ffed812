//! Simulated values of an acceleration sensor, 32 in a second, and the text a model learns them from.

/// Samples after a change from which on a class is expected to be known: a period of the slowest signal.
pub const SETTLE: usize = 24;

/// A kind of movement.
#[derive(Debug)]
pub struct Class {
    /// In words.
    pub name: &'static str,
    /// In the training text.
    pub letter: char,
    /// Samples of a period, from and to.
    period: [f32; 2],
    /// From and to.
    amplitude: [f32; 2],
}

/// Rest is noise; walking and running are waves of different period; a machine shakes fast and little.
pub const CLASSES: [Class; 4] = [
    Class { name: "resting", letter: 'R', period: [30.0, 60.0], amplitude: [0.0, 0.05] },
    Class { name: "walking", letter: 'W', period: [15.0, 22.0], amplitude: [0.4, 0.8] },
    Class { name: "running", letter: 'N', period: [7.0, 10.0], amplitude: [0.5, 1.0] },
    Class { name: "shaking", letter: 'S', period: [2.5, 4.0], amplitude: [0.2, 0.6] },
];

/// The letter of a value: 16 equal steps from −1 to 1.
pub fn letter(value: f32) -> char {
    let step = ((value + 1.0) * 8.0).clamp(0.0, 15.0) as u8;
    char::from(b'a' + step)
}

/// A simulated sensor.
pub struct Signal {
    numbers: u64,
    phase: f32,
    advance: f32,
    amplitude: f32,
    harmonic: f32,
}

impl Signal {
    pub fn new(seed: u64) -> Self {
        let mut signal =
            Self { numbers: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, phase: 0.0, advance: 0.0, amplitude: 0.0, harmonic: 0.0 };
        signal.begin(&CLASSES[0]);
        signal
    }

    /// Changes to a movement of this class, drawn anew.
    pub fn begin(&mut self, class: &Class) {
        self.phase = self.uniform([0.0, std::f32::consts::TAU]);
        self.advance = std::f32::consts::TAU / self.uniform(class.period);
        self.amplitude = self.uniform(class.amplitude);
        self.harmonic = self.uniform([0.0, 0.4]);
    }

    /// The next value.
    pub fn value(&mut self) -> f32 {
        self.phase = (self.phase + self.advance) % std::f32::consts::TAU;
        let noise = self.uniform([-0.1, 0.1]) + self.uniform([-0.1, 0.1]);
        self.amplitude * (self.phase.sin() + self.harmonic * (2.0 * self.phase).sin()) + noise
    }

    fn uniform(&mut self, [from, to]: [f32; 2]) -> f32 {
        self.numbers ^= self.numbers << 13;
        self.numbers ^= self.numbers >> 7;
        self.numbers ^= self.numbers << 17;
        from + (to - from) * ((self.numbers >> 40) as f32 / (1u64 << 24) as f32)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.uniform([0.0, n as f32]) as usize).min(n - 1)
    }
}

/// `lines` lines: some samples of one class, at least [`SETTLE`] of another, the question and the latter's letter.
pub fn training_text(lines: usize) -> String {
    let mut signal = Signal::new(1);
    let mut text = String::new();
    for _ in 0..lines {
        let before = signal.below(4);
        signal.begin(&CLASSES[before]);
        let samples = signal.below(48);
        (0..samples).for_each(|_| text.push(letter(signal.value())));
        let class = signal.below(4);
        signal.begin(&CLASSES[class]);
        let samples = SETTLE + signal.below(24);
        (0..samples).for_each(|_| text.push(letter(signal.value())));
        text.push('?');
        text.push(CLASSES[class].letter);
        text.push('\n');
    }
    text
}
