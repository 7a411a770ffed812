// A simulated acceleration sensor, 32 values per second: that of crates/stream/examples/sensors/signal.rs, from whose table the model learned.

// Ranges of the period, in samples, and of the amplitude.
export const MOVEMENTS = {
  resting: { period: [30, 60], amplitude: [0, 0.05] },
  walking: { period: [15, 22], amplitude: [0.4, 0.8] },
  running: { period: [7, 10], amplitude: [0.5, 1] },
  shaking: { period: [2.5, 4], amplitude: [0.2, 0.6] },
};

const NAMES = Object.keys(MOVEMENTS);

export class Signal {
  /** @param {() => number} random uniform in [0, 1) */
  constructor(random = Math.random) {
    this.random = random;
    /** The movement that was asked for; with null it changes now and then. */
    this.held = null;
    this.begin(NAMES[0]);
  }

  between([from, to]) {
    return from + (to - from) * this.random();
  }

  begin(name) {
    const { period, amplitude } = MOVEMENTS[name];
    this.name = name;
    this.phase = 2 * Math.PI * this.random();
    this.advance = (2 * Math.PI) / this.between(period);
    this.amplitude = this.between(amplitude);
    this.harmonic = this.between([0, 0.4]);
    this.left = Math.round(this.between([70, 130]));
  }

  /** Holds one movement, or lets them change. */
  hold(name) {
    this.held = name;
    if (name && name !== this.name) this.begin(name);
  }

  /** The next row: one number. */
  next() {
    if (--this.left <= 0) {
      const others = NAMES.filter((name) => name !== this.name);
      this.begin(this.held ?? others[Math.floor(this.random() * others.length)]);
    }
    this.phase = (this.phase + this.advance) % (2 * Math.PI);
    const noise = this.between([-0.1, 0.1]) + this.between([-0.1, 0.1]);
    return [this.amplitude * (Math.sin(this.phase) + this.harmonic * Math.sin(2 * this.phase)) + noise];
  }
}
