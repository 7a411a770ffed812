//! Tables given in memory, kept in their run as an Arrow IPC stream: the run reads them like any other file, and can be resumed without
//! being given them again.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatchReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use minrnn_model::{create_directories, put_in_place, temporary_beside};

use super::data_config::DataConfig;
use super::run_dir::{DATA_FOLDER, RunDir};
use crate::{Error, Result, RunProblem};

/// Number of bytes compared at a time.
const PIECE: usize = 1 << 16;

impl RunDir {
    /// Keeps `table` in the run under `name` and returns the path of its file, which is written atomically. If the run already has one, it
    /// must have the same bytes; one left by a start that was killed before the run began is replaced.
    ///
    /// # Errors
    /// When the batches cannot be read, the file cannot be written, or the run has another table of that name.
    pub fn keep_table(&self, name: &str, table: impl RecordBatchReader) -> Result<PathBuf> {
        let path = self.path().join(place(name));
        let folder = self.file(DATA_FOLDER);
        create_directories(&folder).map_err(|source| Error::io("create the folder", &folder, source))?;
        let io = |source| Error::io("write the table", &path, source);
        let file = temporary_beside(&path).map_err(io)?;
        let failed = |error: ArrowError| match error {
            ArrowError::IoError(_, source) => io(source),
            error => Error::Data(format!("the table cannot be read: {error}")),
        };
        let mut writer = StreamWriter::try_new_buffered(file, &table.schema()).map_err(failed)?;
        for batch in table {
            writer.write(&batch.map_err(failed)?).map_err(failed)?;
        }
        let buffered = writer.into_inner().map_err(failed)?;
        let mut file = buffered.into_inner().map_err(|error| io(error.into_error()))?;
        if !path.exists() || self.holds_rest_of_start(DATA_FOLDER) {
            file.flush().and_then(|()| put_in_place(file, &path)).map_err(io)?;
            return Ok(path);
        }
        if is_same(file.as_file_mut(), &path).map_err(io)? { Ok(path) } else { Err(Error::run(path, RunProblem::Changed("table"))) }
    }
}

impl DataConfig {
    /// Takes the tables that the run keeps from its directory `run`, wherever the run was when their paths were stored.
    pub(super) fn find_kept(&mut self, run: &Path) {
        for (name, path) in self.tables_mut() {
            let place = place(name);
            if let Some(path) = path
                && path.ends_with(&place)
                && let Ok(own) = run.join(place).canonicalize()
            {
                *path = own;
            }
        }
    }
}

/// Where a run keeps the table `name`, relative to its directory.
fn place(name: &str) -> PathBuf {
    Path::new(DATA_FOLDER).join(format!("{name}.arrows"))
}

/// Whether `file`, read from its start, has the same bytes as the file at `path`.
fn is_same(file: &mut std::fs::File, path: &Path) -> std::io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    let mut other = std::fs::File::open(path)?;
    if file.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut own, mut its) = (vec![0; PIECE], vec![0; PIECE]);
    loop {
        let n = file.read(&mut own)?;
        if n == 0 {
            return Ok(true);
        }
        other.read_exact(&mut its[..n])?;
        if own[..n] != its[..n] {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Array, Float64Array, RecordBatch, RecordBatchIterator, StringArray};

    use super::*;
    use crate::data::table::{Numbers, Wanted, read_table};

    fn table(numbers: &[f64]) -> impl RecordBatchReader + use<> {
        let names = StringArray::from(vec!["a"; numbers.len()]);
        let columns: [(&str, Arc<dyn Array>); 2] = [("id", Arc::new(names)), ("x", Arc::new(Float64Array::from(numbers.to_vec())))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let schema = batch.schema();
        RecordBatchIterator::new([Ok(batch)], schema)
    }

    #[test]
    fn a_table_is_kept_once_and_read_like_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::create(folder.path().join("run")).unwrap();
        let path = run.keep_table("table", table(&[1.0, 2.5])).unwrap();
        let wanted = Wanted { numbers: Numbers::Named(vec!["x".to_owned()]), texts: vec!["id".to_owned()], ..Wanted::default() };
        assert_eq!(read_table(&path, &wanted).unwrap().numbers, [[1.0, 2.5]]);
        assert_eq!(run.keep_table("table", table(&[1.0, 2.5])).unwrap(), path);
        let refused = run.keep_table("table", table(&[1.0, 2.0])).unwrap_err().to_string();
        assert!(refused.contains("the table has changed since this run began"), "{refused}");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else is left there");
    }

    #[test]
    fn the_table_of_a_start_that_was_killed_gives_way_to_another() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("run");
        std::fs::create_dir_all(out.join("data")).unwrap();
        std::fs::write(out.join("run.lock"), "a run of minrnn\n").unwrap();
        std::fs::write(out.join("data/table.arrows"), "of before").unwrap();
        let run = RunDir::open(&out).unwrap();
        let path = run.keep_table("table", table(&[1.0, 2.5])).unwrap();
        let wanted = Wanted { numbers: Numbers::Named(vec!["x".to_owned()]), ..Wanted::default() };
        assert_eq!(read_table(&path, &wanted).unwrap().numbers, [[1.0, 2.5]]);
    }

    #[test]
    fn a_table_is_found_where_its_run_lies() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::create(folder.path().join("run")).unwrap();
        let own = run.keep_table("test", table(&[1.0])).unwrap().canonicalize().unwrap();
        let elsewhere = |name: &str| Some(PathBuf::from("/gone/data").join(name));
        let mut data = DataConfig { path: elsewhere("data.arrows"), ..DataConfig::default() };
        (data.table.validation, data.table.test) = (elsewhere("test.arrows"), elsewhere("test.arrows"));
        data.find_kept(run.path());
        assert_eq!(data.path, elsewhere("data.arrows"), "it keeps none of that name");
        assert_eq!((data.table.validation, data.table.test), (elsewhere("test.arrows"), Some(own)));
        let mut data = DataConfig { path: Some("/gone/test.arrows".into()), ..DataConfig::default() };
        data.table.test = data.path.clone();
        data.find_kept(run.path());
        assert_eq!(data.table.test, data.path, "a file of the user's own");
    }

    #[test]
    fn a_run_that_never_began_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("run");
        RunDir::create(&out).unwrap().keep_table("table", table(&[1.0])).unwrap();
        assert!(!out.exists());
    }
}
