//! What a measurement ran on.

use std::fs::read_to_string;

/// The commit this program was built from, or `unknown`.
pub const COMMIT: &str = env!("MINRNN_COMMIT");
/// The compiler it was built by.
pub const COMPILER: &str = env!("MINRNN_COMPILER");

/// Processor and number of cores: `<model name>, N cores`.
pub fn name() -> String {
    let info = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let values = |key: &'static str| info.lines().filter_map(|line| line.split_once(':')).filter(move |(name, _)| name.trim() == key);
    let model = values("model name").next().map_or(std::env::consts::ARCH, |(_, model)| model.trim());
    let cores = match values("processor").count() {
        0 => threads(),
        cores => cores,
    };
    format!("{model}, {cores} cores")
}

/// Threads this process may use at once.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The most memory this process ever held, in MiB; 0 where the system does not say.
pub fn peak_mib() -> f64 {
    kib("/proc/self/status", "VmHWM").unwrap_or(0) as f64 / 1024.0
}

/// Bytes a new allocation may have without swapping, where the system says.
pub fn available_bytes() -> Option<u64> {
    kib("/proc/meminfo", "MemAvailable").map(|kib| kib.saturating_mul(1024))
}

/// A number in one of the kernel's tables of `Name:  123 kB`.
fn kib(table: &str, name: &str) -> Option<u64> {
    let text = read_to_string(table).ok()?;
    let (_, value) = text.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| *key == name)?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_machine_has_a_name_and_cores() {
        let name = super::name();
        assert!(name.ends_with(" cores") && !name.starts_with(','), "{name}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_is_known() {
        assert!(super::peak_mib() > 0.5);
        assert!(super::available_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
