//! How long the ranks of a job take to add numbers: `mpiexec -n 2 exchange [BYTES [REPEATS]]`, or what a panic does: `mpiexec -n 4 exchange panic RANK`, or
//! a rank that stops for ever while MPI ends: `mpiexec -n 4 exchange stuck RANK`.
//!
//! Prints the minimum and the median time for each size, and without BYTES a line fitted to them: a time α for each exchange, and β for each byte
//! that a rank sends. An exchange of n bytes by W ranks sends 2·n·(W − 1)/W from each.

use std::time::Instant;

use minrnn_mpi::{Job, Pace};
use mpi::ffi;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let job = Job::new(Pace::default(), |_| eprintln!("waiting for the others"))?;
    let group = job.group();
    if let [what, rank] = &args[..]
        && what == "panic"
    {
        assert_ne!(group.rank(), rank.parse::<usize>()?, "asked to");
        group.sum(&mut [1.0]);
        return Ok(());
    }
    if let [what, rank] = &args[..]
        && what == "stuck"
    {
        if group.rank() == rank.parse::<usize>()? {
            stop_when_mpi_ends();
        }
        return Ok(());
    }
    let sizes = match args.first() {
        Some(bytes) => vec![bytes.parse()?],
        None => vec![4096, 65_536, 1 << 20, 4 << 20, 27_000_000],
    };
    let repeats = args.get(1).map_or(Ok(21), |repeats| repeats.parse())?;
    let mut found: Vec<(f64, f64)> = Vec::new();
    for bytes in sizes {
        let mut values = vec![1.0; bytes / 4];
        let mut times: Vec<f64> = Vec::new();
        // The first exchange sets up connections.
        for _ in 0..=repeats {
            let _ = group.agree_all(Ok(()))?;
            let started = Instant::now();
            group.sum(&mut values);
            times.push(started.elapsed().as_secs_f64());
            values.fill(1.0);
        }
        let first = times.remove(0);
        times.sort_by(f64::total_cmp);
        let (least, median) = (times[0], times[repeats / 2]);
        let sent = 2.0 * bytes as f64 * (group.size() - 1) as f64 / group.size() as f64;
        if group.is_first() {
            println!("{bytes} bytes: least {:.3} ms, median {:.3} ms, the first {:.1} ms", 1e3 * least, 1e3 * median, 1e3 * first);
        }
        found.push((sent, median));
    }
    if group.is_first() && found.len() > 1 {
        let (small, large) = (found[0], found[found.len() - 1]);
        let beta = (large.1 - small.1) / (large.0 - small.0);
        println!("α {:.0} µs, β {:.2} GB/s", 1e6 * (small.1 - beta * small.0), 1e-9 / beta);
    }
    Ok(())
}

/// Lets this process stop as the first thing that `MPI_Finalize` does, which deletes the attributes of `MPI_COMM_SELF` (MPI 4.0, section 11.2.4).
fn stop_when_mpi_ends() {
    unsafe extern "C" fn stop(_: ffi::MPI_Comm, _: i32, _: *mut std::ffi::c_void, _: *mut std::ffi::c_void) -> i32 {
        // SAFETY: it takes no memory.
        unsafe { libc::raise(libc::SIGSTOP) }
    }
    let mut key = 0;
    // SAFETY: MPI has been initialised and has not ended; the key outlives its use, the attribute points nowhere, and nobody copies `MPI_COMM_SELF`.
    unsafe {
        ffi::MPI_Comm_create_keyval(None, Some(stop), &mut key, std::ptr::null_mut());
        ffi::MPI_Comm_set_attr(ffi::RSMPI_COMM_SELF, key, std::ptr::null_mut());
    }
}
