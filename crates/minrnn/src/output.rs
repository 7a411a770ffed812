//! Checks that outputs do not overwrite inputs or training data, or land inside a run.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use minrnn_model::{CheckpointConfig, WEIGHTS_FILE, names_of, temporary_beside};
use serde_json::Value;

use crate::train::{EXPERIMENT_FILE, find_checkpoint};
use crate::{Error, Result};

/// Refuses `output`, a file to be written from scratch, if something would be lost: if it is one of `inputs`, or what one of them was
/// trained on, or not a regular file. `inputs` must include everything that is read, and the run or checkpoint of a model; the training
/// data of a packed model are not known.
///
/// # Errors
/// When it is, under any name, the same file as an input or as one that a model among them was trained on; when it is a folder, a pipe or a
/// device; or when [`expect_outside_runs`] refuses it.
pub fn expect_harmless<'a>(output: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    let shown = output.display();
    // Such as /dev/stdout, which leads to any file that is open.
    if names_of(output).any(|name| ["/proc", "/dev/fd"].iter().any(|open| name.starts_with(open))) {
        return Err(Error::Config(format!("'{shown}' is a name of a file that is open already; give a file to write")));
    }
    if let Ok(found) = output.metadata() {
        if found.is_dir() {
            return Err(Error::Config(format!("'{shown}' is a directory; give a file to write")));
        }
        if !found.is_file() {
            return Err(Error::Config(format!("'{shown}' is a pipe or a device, which a file would replace; give a file to write")));
        }
        for input in inputs {
            if is_same_file(output, input) {
                return Err(Error::Config(format!("'{shown}' is the input '{}'; give another file to write", input.display())));
            }
            if let Some(file) = learned(input).into_iter().find(|file| is_same_file(output, file)) {
                let file = file.display();
                return Err(Error::Config(format!("'{file}' is what the model was trained on; give another file to write")));
            }
        }
    }
    expect_outside_runs(output)
}

/// Refuses `output`, a file to be written when the work is done, if it cannot be written; to be called before the work, which would
/// otherwise be lost.
///
/// # Errors
/// When its folder does not exist or cannot be written.
pub fn expect_writable(output: &Path) -> Result<()> {
    let shown = output.display();
    if output.file_name().is_none()
        || output.as_os_str().as_encoded_bytes().last().is_some_and(|&last| std::path::is_separator(last.into()))
    {
        return Err(Error::Config(format!("'{shown}' is the name of a directory; give a file to write")));
    }
    if let Err(source) = output.symlink_metadata()
        && !matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
    {
        return Err(Error::io("write", output, source));
    }
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(found) = folder.filter(|folder| !folder.is_dir()) {
        let what = match found.exists() {
            true => format!("'{}' is a file, expected a directory for '{shown}'; give another name", found.display()),
            false => format!("there is no directory '{}' for '{shown}'; make it first", found.display()),
        };
        return Err(Error::Config(what));
    }
    temporary_beside(output).map(drop).map_err(|source| Error::io("write", output, source))
}

/// Number of bytes by which [`expect_replaceable`] recognises a file.
const BEGINNING: u64 = 16;

/// Refuses `output` if it would overwrite a file of a kind other than `kind`, such as "a packed model"; `is_kind` is given the beginning of
/// the file.
///
/// # Errors
/// When there is such a file. An empty one may be overwritten.
pub fn expect_replaceable(output: &Path, kind: &str, is_kind: impl FnOnce(&[u8]) -> bool) -> Result<()> {
    if !output.metadata().is_ok_and(|found| found.is_file() && found.len() > 0) {
        return Ok(());
    }
    let mut beginning = Vec::new();
    // The kind of an unreadable file is not known.
    let read = File::open(output).and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning));
    match read.is_ok() && is_kind(&beginning) {
        true => Ok(()),
        false => Err(Error::Config(format!("'{}' exists and is not {kind}; give another file to write", output.display()))),
    }
}

/// The files that the model of `run` was trained on, as far as a run or checkpoint states them.
fn learned(run: &Path) -> Vec<PathBuf> {
    // Errors are left to whoever reads the model.
    let Ok(Ok(config)) = find_checkpoint(run).map(CheckpointConfig::read) else { return Vec::new() };
    let data = config.sections.get("data").and_then(Value::as_object);
    let texts = data.into_iter().flat_map(|data| data.values()).filter_map(Value::as_str);
    // Files are stored as absolute paths; other strings are not paths.
    texts.map(PathBuf::from).filter(|path| path.is_absolute()).collect()
}

/// Refuses `output`, a file or a folder to be created, inside a run or a checkpoint: everything there belongs to the run, which may remove
/// it.
///
/// # Errors
/// When it is inside one, at any depth.
pub fn expect_outside_runs(output: &Path) -> Result<()> {
    // A checkpoint is usually inside a run, which is the better one to name.
    for folder in folders_around(output).iter().rev() {
        let is_run = folder.join(EXPERIMENT_FILE).is_file() && folder.join("checkpoints").is_dir();
        // Other libraries' models have files with the same names.
        let is_checkpoint = || folder.join(WEIGHTS_FILE).is_file() && CheckpointConfig::read(folder).is_ok();
        if !is_run && !is_checkpoint() {
            continue;
        }
        let what = if is_run { "the run" } else { "the checkpoint" };
        let (shown, folder) = (output.display(), folder.display());
        return Err(Error::Config(format!("'{shown}' lies in {what} '{folder}', which holds only its own files; choose another place")));
    }
    Ok(())
}

/// Whether both names would lead to the same file, whether or not it exists.
pub fn is_same_place(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let path = std::path::absolute(names_of(path).last()?).ok()?;
        Some((path.parent()?.canonicalize().ok()?, path.file_name()?.to_owned()))
    };
    one == other || is_same_file(one, other) || place(one).is_some_and(|one| place(other) == Some(one))
}

/// The folder of the file that `output` leads to and all folders around it, innermost first, as far as they exist.
fn folders_around(output: &Path) -> Vec<PathBuf> {
    let Some(output) = names_of(output).last().and_then(|output| std::path::absolute(output).ok()) else { return Vec::new() };
    let there = output.ancestors().skip(1).find_map(|folder| folder.canonicalize().ok());
    there.iter().flat_map(|folder| folder.ancestors()).map(Path::to_owned).collect()
}

/// Whether both names lead to the same existing file, through links of either kind.
#[cfg(unix)]
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino())).ok();
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

/// Whether both names lead to the same existing file, through symbolic links.
#[cfg(not(unix))]
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn names_that_no_file_can_have_are_refused_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let refused = |name: &str| expect_writable(&folder.path().join(name)).map_err(|refused| refused.to_string());
        assert_eq!((refused("new"), refused("file")), (Ok(()), Ok(())));
        for (name, sentence) in [
            ("new/", "is the name of a directory"),
            ("..", "is the name of a directory"),
            ("gone/new", "there is no directory"),
            ("file/new", "is a file, expected a directory"),
            (&"n".repeat(300), "could not write"),
        ] {
            assert!(refused(name).unwrap_err().contains(sentence), "{name}: {:?}", refused(name));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left");
    }

    #[test]
    fn an_output_is_refused_where_it_is_an_input_by_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let [table, other, new] = ["table", "other", "new"].map(|name| folder.path().join(name));
        fs::write(&table, "").unwrap();
        fs::write(&other, "").unwrap();
        let refused = |output: &Path| expect_harmless(output, [other.as_path(), &table]).map_err(|refused| refused.to_string());
        assert!(refused(&table).unwrap_err().contains("is the input"));
        assert!(refused(&folder.path().join("../").join(folder.path().file_name().unwrap()).join("table")).is_err());
        assert_eq!(refused(&new), Ok(()));
        assert!(refused(folder.path()).unwrap_err().contains("is a directory"));
        assert!(expect_harmless(&other, [table.as_path()]).is_ok(), "an older file may be replaced");
        #[cfg(unix)]
        {
            let [hard, symbolic] = ["hard", "symbolic"].map(|name| folder.path().join(name));
            fs::hard_link(&table, &hard).unwrap();
            std::os::unix::fs::symlink(&table, &symbolic).unwrap();
            assert!(refused(&hard).is_err() && refused(&symbolic).is_err());
            let open = folder.path().join("open");
            std::os::unix::fs::symlink("/proc/self/fd/1", &open).unwrap();
            for open in [&open, Path::new("/dev/stdout"), Path::new("/dev/fd/1")] {
                assert!(refused(open).unwrap_err().contains("open already"), "{open:?}");
            }
            assert!(refused(Path::new("/dev/null")).unwrap_err().contains("a pipe or a device"));
        }
    }

    #[test]
    fn a_file_is_replaced_by_one_of_its_kind_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let refused = || expect_replaceable(&path, "a packed model", |start| start.starts_with(b"OURS")).map_err(|error| error.to_string());
        assert_eq!(refused(), Ok(()), "nothing is there");
        for (content, is_kind) in [("", true), ("OURS and much more behind it", true), ("OUR", false), ("somebody's thesis", false)] {
            fs::write(&path, content).unwrap();
            assert_eq!(refused().is_ok(), is_kind, "{content}: {:?}", refused());
        }
        assert!(refused().unwrap_err().ends_with("file' exists and is not a packed model; give another file to write"));
    }

    #[test]
    fn an_output_is_refused_where_a_model_among_the_inputs_was_trained_on_it() {
        let folder = tempfile::tempdir().unwrap();
        let [table, validation, other, alone] = ["table", "validation", "char", "alone"].map(|name| folder.path().join(name));
        [&table, &validation, &other].into_iter().for_each(|file| fs::write(file, "").unwrap());
        let mut config = CheckpointConfig::new(minrnn_model::ModelConfig { vocab_size: 4, ..Default::default() });
        let data = serde_json::json!({"path": table, "validation": validation, "tokenizer": "char", "horizon": 1});
        config.sections.insert("data".to_owned(), data);
        let run = folder.path().join("run");
        let checkpoint = run.join("checkpoints/iter-5");
        fs::create_dir_all(&checkpoint).unwrap();
        config.write(&checkpoint).unwrap();
        fs::write(run.join("checkpoints/best"), "iter-5\n").unwrap();
        for model in [&run, &checkpoint] {
            for file in [&table, &validation] {
                let refused = expect_harmless(file, [model.as_path()]).unwrap_err().to_string();
                assert!(refused.contains("is what the model was trained on"), "{refused}");
            }
            assert!(expect_harmless(&other, [model.as_path()]).is_ok(), "a setting of that name is no file");
            assert!(expect_harmless(&alone, [model.as_path()]).is_ok(), "nothing is lost where nothing is");
        }
        assert!(expect_harmless(&table, [folder.path()]).is_ok(), "a folder is no model");
    }

    #[test]
    fn an_output_is_refused_where_its_folder_is_not_there_and_looking_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let refused = expect_writable(&folder.path().join("none/such")).unwrap_err().to_string();
        assert!(refused.contains("there is no directory '") && refused.contains("none' for '"), "{refused}");
        let there = folder.path().join("there");
        fs::write(&there, "before").unwrap();
        for output in [&there, &folder.path().join("new")] {
            expect_writable(output).unwrap();
        }
        assert!(expect_writable(&there.join("below a file")).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(there).unwrap(), "before");
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink("nowhere/such", &link).unwrap();
            assert!(expect_writable(&link).unwrap_err().to_string().contains("could not write '"), "the link leads into no folder");
        }
    }

    #[test]
    fn two_names_are_one_place_before_anything_is_written_there() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        let around = folder.path().join("..").join(folder.path().file_name().unwrap()).join("one");
        assert!(is_same_place(&one, &one) && is_same_place(&one, &around) && !is_same_place(&one, &other));
        fs::write(&one, "").unwrap();
        assert!(is_same_place(&one, &around) && !is_same_place(&one, &other));
        #[cfg(unix)]
        {
            fs::hard_link(&one, &other).unwrap();
            assert!(is_same_place(&one, &other));
            let [new, link] = ["new", "link"].map(|name| folder.path().join(name));
            std::os::unix::fs::symlink("new", &link).unwrap();
            assert!(is_same_place(&new, &link) && !is_same_place(&one, &link), "the link leads nowhere yet");
        }
    }

    #[test]
    fn nothing_is_written_into_a_run() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        fs::create_dir_all(run.join("checkpoints/iter-5")).unwrap();
        fs::write(run.join(EXPERIMENT_FILE), "").unwrap();
        for inside in ["model.minrnn", "checkpoints/iter-5/config.json", "a/b/c"] {
            let refused = expect_outside_runs(&run.join(inside)).unwrap_err().to_string();
            assert!(refused.contains("lies in the run"), "{refused}");
        }
        #[cfg(unix)]
        for name in ["checkpoints/iter-5/task.json", "checkpoints/iter-5/not-there", "new"] {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(run.join(name), &link).unwrap();
            let refused = expect_outside_runs(&link).unwrap_err().to_string();
            assert!(refused.contains("lies in the run"), "{refused}");
            fs::remove_file(link).unwrap();
        }
        assert!(expect_outside_runs(&run).is_ok() && expect_outside_runs(&folder.path().join("model.minrnn")).is_ok());
        // A model of another library, in whose folder the user works.
        fs::write(folder.path().join(WEIGHTS_FILE), "").unwrap();
        fs::write(folder.path().join("config.json"), r#"{"model_type": "mamba"}"#).unwrap();
        assert!(expect_outside_runs(&folder.path().join("imported")).is_ok());
    }
}
