//! Started as one of several processes, by a program that was built without MPI.

mod common;

use common::{Finished, minrnn};

/// The variables by which mpiexec and srun tell a process how many there are, and which one it is.
const STARTERS: [[&str; 2]; 3] =
    [["PMI_SIZE", "PMI_RANK"], ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"], ["SLURM_STEP_NUM_TASKS", "SLURM_PROCID"]];

fn as_process(starter: [&str; 2], rank: &str, size: &str, args: &[&str]) -> Finished {
    Finished::of(minrnn(args).env(starter[0], size).env(starter[1], rank))
}

#[cfg(not(feature = "mpi"))]
#[test]
fn a_program_without_mpi_refuses_to_train_several_times() {
    let scratch = common::Scratch::new();
    let out = common::shown(&scratch.path("run"));
    for starter in STARTERS {
        // Each of them says so: on another machine the program may be one that waits for the others.
        for rank in ["0", "3"] {
            let refused = as_process(starter, rank, "4", &["train", "--out", &out]);
            refused.refused(&["4 processes were started, and this program was built without mpi"]);
        }
    }
    assert!(!scratch.path("run").exists());
}

#[test]
fn what_several_processes_would_do_alike_is_refused_and_one_process_does_it() {
    for starter in STARTERS {
        let first = as_process(starter, "0", "2", &["experiments"]);
        assert_eq!(first.code, Some(2), "{first:?}");
        assert!(first.stderr.contains("start this without mpiexec"), "{first:?}");
        // One sentence for all of them.
        let other = as_process(starter, "1", "2", &["experiments"]);
        assert_eq!((other.code, other.stderr.as_str(), other.stdout.as_str()), (Some(0), "", ""));
        let alone = as_process(starter, "0", "1", &["experiments"]);
        assert_eq!(alone.code, Some(0), "{alone:?}");
        assert!(!alone.stdout.is_empty());
    }
}

#[test]
fn what_one_of_several_processes_starts_itself_is_one_process() {
    let scratch = common::Scratch::new();
    let out = common::shown(&scratch.path("out"));
    let one_cell = ["--scale", "smoke", "--row", "minGRU", "--column", "T = 64", "--threads", "1", "--out", &out];
    as_process(STARTERS[0], "0", "2", &[&["reproduce", "figure1"], &one_cell[..]].concat()).ok();
    let measured = std::fs::read_to_string(scratch.path("out/figure1.json")).unwrap();
    assert!(measured.contains("median_ms"), "{measured}");
}
