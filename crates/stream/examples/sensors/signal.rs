//! Simulated values of an acceleration sensor, 32 in a second, and the table a model learns them from.

use std::fmt::Write;

/// Samples after a change by which the new class is expected to be recognised: a period of the slowest signal.
pub const SETTLE: usize = 24;

/// A kind of movement.
#[derive(Debug)]
pub struct Class {
    /// Its name, as in the table.
    pub name: &'static str,
    /// Shortest and longest period, in samples.
    period: [f32; 2],
    /// Smallest and largest.
    amplitude: [f32; 2],
}

/// Rest is noise; walking and running are waves of different period; a machine shakes fast and little.
pub const CLASSES: [Class; 4] = [
    Class { name: "resting", period: [30.0, 60.0], amplitude: [0.0, 0.05] },
    Class { name: "walking", period: [15.0, 22.0], amplitude: [0.4, 0.8] },
    Class { name: "running", period: [7.0, 10.0], amplitude: [0.5, 1.0] },
    Class { name: "shaking", period: [2.5, 4.0], amplitude: [0.2, 0.6] },
];

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

/// `recordings` recordings as a table: some samples of one class and at least [`SETTLE`] of another, which is the class of the whole.
pub fn training_table(recordings: usize) -> String {
    let mut signal = Signal::new(1);
    let mut table = String::from("recording,movement,acceleration\n");
    for recording in 0..recordings {
        let (before, class) = (signal.below(4), signal.below(4));
        for (moves, samples) in [(before, signal.below(48)), (class, SETTLE + signal.below(24))] {
            signal.begin(&CLASSES[moves]);
            for _ in 0..samples {
                // Writing to a string cannot fail.
                let _ = writeln!(table, "{recording},{},{:.4}", CLASSES[class].name, signal.value());
            }
        }
    }
    table
}
