//! The machine of a measurement.

use std::fs::read_to_string;

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

/// Number of threads this process may use at once.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Peak memory of this process, in MiB; 0 if the system does not say.
pub fn peak_mib() -> f64 {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) as f64 / 1024.0
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
    fn peak_memory_is_known() {
        assert!(super::peak_mib() > 0.5);
    }
}
