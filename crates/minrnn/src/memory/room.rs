//! How large this process may become: the machine's free memory, and the limits of the process.
//!
//! On Linux all of them are read from files; elsewhere only a requested limit counts.

use std::fs;
use std::path::{Path, PathBuf};

use super::size::{Size, rounded};

/// The memory a process may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// Total bytes, including those already used.
    pub bytes: u64,
    /// The source of the limit.
    pub source: Source,
}

/// Where a limit comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The machine's free or reclaimable memory.
    Machine,
    /// The control group of that name.
    ControlGroup(String),
    /// The limit on address space, `ulimit -v`.
    AddressSpace,
    /// The limit on data, `ulimit -d`.
    Data,
    /// A setting, `train.memory_limit` in an experiment.
    Setting,
}

impl std::fmt::Display for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = rounded(self.bytes.into());
        match &self.source {
            Source::Machine => write!(f, "the machine has {bytes} available"),
            Source::ControlGroup(name) => write!(f, "the control group '{name}' has {bytes} left"),
            Source::AddressSpace => write!(f, "the limit on address space (ulimit -v) leaves {bytes}"),
            Source::Data => write!(f, "the limit on data (ulimit -d) leaves {bytes}"),
            Source::Setting => write!(f, "the memory limit is {bytes}"),
        }
    }
}

impl Room {
    /// The smallest of the machine's memory and all limits, including `limit`; `None` if nothing is known.
    pub fn left(limit: Option<Size>) -> Option<Self> {
        let setting = limit.map(|Size(bytes)| Self { bytes, source: Source::Setting });
        found(Path::new("/")).into_iter().chain(setting).min_by_key(|room| room.bytes)
    }
}

/// Address space that glibc reserves for the allocations of a thread.
const ARENA: u64 = 64 << 20;

/// The limits found in the files below `root`.
fn found(root: &Path) -> Vec<Room> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let status = read("proc/self/status");
    let kib = |text: &str, key: &str| field(text, key).map(|kib| kib.saturating_mul(1 << 10));
    let of_self = |key| kib(&status, key).unwrap_or(0);
    let resident = of_self("VmRSS:");
    let mut rooms = Vec::new();
    let memory = read("proc/meminfo");
    if let Some(available) = kib(&memory, "MemAvailable:") {
        let swap = kib(&memory, "SwapFree:").unwrap_or(0);
        rooms.push(Room { bytes: available.saturating_add(swap).saturating_add(resident), source: Source::Machine });
    }
    let limits = read("proc/self/limits");
    if let Some(limit) = field(&limits, "Max address space") {
        // Address space without data: the program's files, and what the C library reserves for each thread, now or later.
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64 + 1;
        let mapped = of_self("VmSize:").saturating_sub(of_self("VmData:")).max(threads * ARENA);
        rooms.push(Room { bytes: limit.saturating_sub(mapped), source: Source::AddressSpace });
    }
    if let Some(bytes) = field(&limits, "Max data size") {
        rooms.push(Room { bytes, source: Source::Data });
    }
    rooms.extend(control_groups(root, &read("proc/self/cgroup"), resident));
    rooms
}

/// What the control groups of this process, and the groups around them, have left.
fn control_groups(root: &Path, own: &str, resident: u64) -> Vec<Room> {
    let mut rooms = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (places, files): (&[&str], _) = match controllers {
            "" => (&["sys/fs/cgroup", "sys/fs/cgroup/unified"], ["memory.max", "memory.current", "inactive_file", "active_file"]),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (&["sys/fs/cgroup/memory"], ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file"])
            }
            _ => continue,
        };
        for place in places {
            let place = root.join(place);
            // In a container the visible root may be the group itself.
            for group in Path::new(path).ancestors() {
                rooms.extend(control_group(&place, group, files, resident));
            }
        }
    }
    rooms
}

fn control_group(place: &Path, group: &Path, [limit, usage, inactive, active]: [&str; 4], resident: u64) -> Option<Room> {
    let directory: PathBuf = place.join(group.strip_prefix("/").unwrap_or(group));
    let number = |file: &str| fs::read_to_string(directory.join(file)).ok()?.trim().parse::<u64>().ok();
    // Without a limit it is a word, or a number beyond all memory.
    let limit = number(limit).filter(|&limit| limit < 1 << 60)?;
    let statistics = fs::read_to_string(directory.join("memory.stat")).unwrap_or_default();
    // Pages of files are reclaimed when memory runs short.
    let files = [inactive, active].map(|key| field(&statistics, key).unwrap_or(0)).iter().sum::<u64>();
    let used = number(usage)?.saturating_sub(files);
    let bytes = limit.saturating_sub(used).saturating_add(resident).min(limit);
    Some(Room { bytes, source: Source::ControlGroup(group.display().to_string()) })
}

/// The number after `key` at the beginning of a line.
fn field(text: &str, key: &str) -> Option<u64> {
    let rest =
        text.lines().find_map(|line| line.strip_prefix(key).filter(|rest| rest.starts_with([' ', '\t', ':']) || key.ends_with(':')))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root whose files have these contents.
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const STATUS: (&str, &str) = ("proc/self/status", "Name:\tminrnn\nVmSize:\t  300000 kB\nVmRSS:\t  100000 kB\nVmData:\t  250000 kB\n");

    fn least(root: &tempfile::TempDir) -> Room {
        found(root.path()).into_iter().min_by_key(|room| room.bytes).unwrap()
    }

    #[test]
    fn a_machine_has_what_is_available_and_what_the_process_uses() {
        let memory = ("proc/meminfo", "MemTotal:  9000000 kB\nMemAvailable:  8000000 kB\nSwapFree:  1000 kB\n");
        assert_eq!(found(machine(&[STATUS, memory]).path()), [Room { bytes: 8_101_000 << 10, source: Source::Machine }]);
        assert_eq!(found(machine(&[]).path()), []);
    }

    #[test]
    fn limits_on_address_space_and_data_are_found() {
        let limits = |space: &str, data: &str| {
            let table = format!(
                "Limit  Soft Limit  Hard Limit  Units\nMax data size  {data}  unlimited  bytes\nMax address space  {space}  {space}  bytes\n"
            );
            machine(&[STATUS, ("proc/self/limits", &table)])
        };
        let space = least(&limits("1099511627776", "unlimited"));
        // Less at least what is mapped without data, and what threads will map.
        assert!(space.source == Source::AddressSpace && space.bytes <= (1 << 40) - (50_000 << 10) && space.bytes > 1 << 39, "{space:?}");
        assert_eq!(least(&limits("unlimited", "1073741824")), Room { bytes: 1 << 30, source: Source::Data });
        assert_eq!(least(&limits("1000", "unlimited")).bytes, 0);
        assert_eq!(found(limits("unlimited", "unlimited").path()), []);
    }

    #[test]
    fn the_tightest_control_group_up_the_hierarchy_counts() {
        let root = machine(&[
            STATUS,
            ("proc/self/cgroup", "0::/user.slice/job\n"),
            ("sys/fs/cgroup/user.slice/job/memory.max", "max\n"),
            ("sys/fs/cgroup/user.slice/job/memory.current", "500000000\n"),
            ("sys/fs/cgroup/user.slice/memory.max", "1000000000\n"),
            ("sys/fs/cgroup/user.slice/memory.current", "700000000\n"),
            ("sys/fs/cgroup/user.slice/memory.stat", "anon 300\nactive_file 100000000\ninactive_file 200000000\n"),
        ]);
        let bytes = 1_000_000_000 - 400_000_000 + (100_000 << 10);
        assert_eq!(least(&root), Room { bytes, source: Source::ControlGroup("/user.slice".to_owned()) });
    }

    #[test]
    fn control_groups_of_the_first_version_and_of_containers_are_found() {
        let files = [("memory.limit_in_bytes", "600000000\n"), ("memory.usage_in_bytes", "500000000\n")];
        let group = |at: &str| files.map(|(file, text)| (format!("sys/fs/cgroup/memory{at}/{file}"), text));
        let own = ("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/abc\n0::/\n");
        for at in ["/docker/abc", ""] {
            let group = group(at);
            let root = machine(&[own, (&group[0].0, group[0].1), (&group[1].0, group[1].1)]);
            assert_eq!(least(&root).bytes, 100_000_000, "{at}");
        }
        let [unlimited, usage] = group("");
        let root = machine(&[own, (&unlimited.0, "9223372036854771712\n"), (&usage.0, usage.1)]);
        assert_eq!(found(root.path()), []);
    }

    #[test]
    fn a_limit_that_is_asked_for_can_only_lower() {
        assert_eq!(Room::left(Some(Size(1))), Some(Room { bytes: 1, source: Source::Setting }));
        let machine = Room::left(None);
        assert_eq!(Room::left(Some(Size(u64::MAX))).map(|room| room.source == Source::Setting), Some(machine.is_none()));
    }
}
