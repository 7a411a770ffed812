//! The cores this process may run on.

/// Words of 64 cores, enough for the largest machine.
#[cfg(target_os = "linux")]
const WORDS: usize = 128;
/// Processes are not bound to cores here.
#[cfg(not(target_os = "linux"))]
const WORDS: usize = 1;

/// One bit per core, set for the cores this thread is bound to.
pub type Cores = [u64; WORDS];

/// The cores of the calling thread; no bit is set if the system does not say.
pub fn own() -> Cores {
    #[cfg_attr(not(target_os = "linux"), expect(unused_mut, reason = "nothing is told"))]
    let mut cores: Cores = [0; WORDS];
    // SAFETY: the call writes no more than the size it is told, into words that are aligned at least as its own set of cores.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::sched_getaffinity(0, size_of_val(&cores), cores.as_mut_ptr().cast());
    }
    cores
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_cores_are_told_and_there_are_as_many_as_threads_can_run_on() {
        let bound: u32 = own().iter().map(|word| word.count_ones()).sum();
        // A control group may be limited to less time than these cores have.
        assert!(bound as usize >= std::thread::available_parallelism().unwrap().get(), "{bound}");
    }
}
