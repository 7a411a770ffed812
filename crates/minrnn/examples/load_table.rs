//! Prints a table to forecast, as CSV: the hourly electricity use of 8 buildings for 60 weeks.
//!
//! A building has a base load, a day with two peaks (weaker at weekends), heating that follows a slowly wandering temperature, and noise
//! that lasts for some hours. Neither a day ago nor a week ago predicts the next day: the temperature has moved.
//!
//! ```text
//! cargo build --release --workspace --example load_table
//! target/release/examples/load_table > load.csv
//! minrnn train --task forecast --data load.csv --group building --columns load,temperature,hour_sin,hour_cos,is_weekend --target load --horizon 24 --season 24
//! ```

use std::f64::consts::TAU;
use std::io::{self, BufWriter, Write};

use minrnn::rng::{ChaCha8Rng, Purpose, stream};
use rand::Rng;

const BUILDINGS: u64 = 8;
const HOURS: usize = 60 * 7 * 24;

fn main() -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "building,hour_sin,hour_cos,is_weekend,temperature,load")?;
    for building in 0..BUILDINGS {
        let mut rng = stream(0, Purpose::Bench, building);
        let (base, swing) = (20.0 + 60.0 * unit(&mut rng), 10.0 + 20.0 * unit(&mut rng));
        let (mut weather, mut noise) = (0.0, 0.0);
        for time in 0..HOURS {
            let (hour, is_weekend) = ((time % 24) as f64, time / 24 % 7 >= 5);
            let season = TAU * time as f64 / (365.25 * 24.0);
            weather = 0.995 * weather + 0.4 * gaussian(&mut rng);
            noise = 0.8 * noise + 0.5 * gaussian(&mut rng);
            let temperature = 10.0 - 9.0 * season.cos() + 4.0 * (TAU * (hour - 9.0) / 24.0).sin() + weather;
            let peak = |at: f64, width: f64| (-((hour - at) / width).powi(2)).exp();
            let day = if is_weekend { 0.5 } else { 1.0 } * (peak(9.0, 3.0) + 1.3 * peak(19.0, 2.5));
            let load = base + swing * day + 1.2 * (16.0 - temperature).max(0.0) + noise;
            let (sin, cos) = (TAU * hour / 24.0).sin_cos();
            writeln!(out, "b{building},{sin:.4},{cos:.4},{},{temperature:.2},{load:.3}", u8::from(is_weekend))?;
        }
    }
    out.flush()
}

/// Uniform from 0 to 1.
fn unit(rng: &mut ChaCha8Rng) -> f64 {
    f64::from(rng.next_u32() >> 8) / f64::from(1 << 24)
}

/// Approximately normal: from twelve uniform numbers.
fn gaussian(rng: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| unit(rng)).sum::<f64>() - 6.0
}
