//! The flags that help: the library says what is wrong, and the command which of its flags puts it right.

use std::error::Error as StdError;

use minrnn::{DeviceProblem, Error, Needed, RunProblem};
use minrnn_reproduce::FolderProblem;

/// What `error` says, and which flag helps.
pub fn with_hint(error: &(dyn StdError + 'static)) -> String {
    let told = error.to_string();
    match error.downcast_ref() {
        Some(minrnn_bench::Error::OnlyOnCpu) => return format!("bench tasks: {told}; leave --device out"),
        Some(minrnn_bench::Error::WeightsOnly(_)) => return format!("--precision {told}"),
        Some(&minrnn_bench::Error::Widths { d_model, d_hidden, most }) => {
            let (least, widest) = (d_hidden.div_ceil(most), most * d_model);
            return format!("{told}; give --d-model {least} or more, or --d-hidden {widest} or less");
        }
        _ => {}
    }
    let hint = match error.downcast_ref() {
        Some(minrnn_reproduce::Error::Folder { problem, .. }) => of_folder(problem).to_owned(),
        Some(minrnn_reproduce::Error::Library(error)) => of_library(error),
        _ => match error.downcast_ref() {
            Some(minrnn_bench::Error::Model(error)) => of_library(error),
            _ => error.downcast_ref().map_or_else(String::new, of_library),
        },
    };
    told + &hint
}

/// The hint that follows the sentence.
fn of_library(error: &Error) -> String {
    match error {
        Error::Needed { what, .. } => match what {
            Needed::File => "; give one with --data FILE".to_owned(),
            Needed::Folder => "; give it with --data FOLDER".to_owned(),
            Needed::Target => "; name the columns with --target COLUMN".to_owned(),
            Needed::TargetOrLayout => "; give --target COLUMN, or --layout wide-columns".to_owned(),
            Needed::TableTask => "; give --task classify, regress or forecast, or the experiment text to learn its characters".to_owned(),
            Needed::RowsToCome => "; give them with --future FILE".to_owned(),
            Needed::Into => " with --into RUN".to_owned(),
            Needed::Group => "; name it with --group COLUMN".to_owned(),
            Needed::ModelKey(key) => format!("; give {key} with --set {key}=VALUE"),
            _ => String::new(),
        },
        Error::DataNotRead => " (--data)".to_owned(),
        Error::MustStay(_) => ", or train in another directory with --out".to_owned(),
        Error::Run { problem, .. } => match problem {
            RunProblem::Missing => "; leave out --resume to start a new run",
            RunProblem::NotBegun => ", without --resume",
            RunProblem::NotARun(_) => "; give the run's directory with --out",
            RunProblem::InUse => ", or choose another directory with --out",
            RunProblem::HoldsRun => "; continue that one with --resume, or choose another directory with --out",
            RunProblem::HoldsFiles(_) => "; choose another one with --out",
            RunProblem::OutsideRun => "; give a text with --data FILE",
            RunProblem::Changed(_) | RunProblem::SomeChanged(_) => "; put back what it was, or train anew in another directory with --out",
            RunProblem::OtherData => ", or train in another directory with --out",
            RunProblem::LogReplaced => " with --resume",
            _ => "",
        }
        .to_owned(),
        Error::Device(problem) => match problem {
            DeviceProblem::NotBuilt(name) => format!(", for example: cargo install --locked --path crates/cli --features {name}"),
            DeviceProblem::NoneFound(_) => " (--device cpu)".to_owned(),
            DeviceProblem::TooFew { .. } => "; see minrnn devices".to_owned(),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

fn of_folder(problem: &FolderProblem) -> &'static str {
    match problem {
        FolderProblem::OtherFormat { .. } | FolderProblem::OtherScale { .. } | FolderProblem::OtherFiles(_) => {
            "; choose another folder with --out"
        }
        FolderProblem::OtherSettings { .. } | FolderProblem::NoSettings | FolderProblem::UnreadableSettings(_) => {
            ", redo it with --replace, or choose another folder with --out"
        }
        _ => "",
    }
}
