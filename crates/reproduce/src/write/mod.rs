//! The files of a target: Markdown, CSV, JSON and pictures, each replaced as a whole.

mod csv;
mod html;
mod index;
mod json;
mod markdown;
mod picture;

pub use index::write_index;
pub use markdown::markdown;

use minrnn_model::write_atomic;

use crate::folder::{self, Folder};
use crate::{Grid, Result};

/// Writes the pictures of `grid` and its tables.
///
/// # Errors
/// When writing fails.
pub fn write(grid: &Grid, folder: &Folder) -> Result<()> {
    let name = &grid.target.name;
    for (is_drawn, name) in
        [(picture::draw(grid, folder)?, name.clone()), (picture::draw_lengths(grid, folder)?, picture::lengths_name(name))]
    {
        // A picture of older results no longer applies.
        let old = ["svg", "png"].map(|ending| folder.file(&name, ending));
        for path in old.iter().filter(|path| !is_drawn && path.exists()) {
            std::fs::remove_file(path).map_err(|source| minrnn::Error::io("remove", path, source))?;
        }
    }
    write_tables(grid, folder)
}

/// Writes only the tables of `grid`, with the existing pictures.
///
/// # Errors
/// When writing fails.
pub fn write_tables(grid: &Grid, folder: &Folder) -> Result<()> {
    let name = &grid.target.name;
    let pictures = [name.clone(), picture::lengths_name(name)];
    let pictures: Vec<String> = pictures.into_iter().filter(|name| folder.file(name, "svg").exists()).collect();
    write_atomic(folder.file(name, "md"), markdown(grid, &pictures).as_bytes())?;
    write_atomic(folder.file(name, "csv"), csv::csv(grid).as_bytes())?;
    folder::write(&folder.file(name, "json"), &json::json(grid))
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::outcome::tests::outcome;
    use crate::{Baseline, Begun, Filled, Folder, FolderProblem, Grid, Origin, Outcome, Run, Scale, Stretch, Target};

    pub fn target() -> Target {
        let text = r#"
            name = "t"
            title = "A table"
            source = "A paper, Table 9"
            metrics = ["accuracy-percent", "best-iteration"]
            notes = ["A note."]
            [cpu]
            seeds = 2
            settings = ["d_model=8"]
            notes = ["A note of this scale."]
            [[columns]]
            label = "one"
            [[columns]]
            label = "two | 2"
            [[rows]]
            label = "minGRU, \"small\""
            published.accuracy-percent = ["80.0 ± 2.0", "near 1"]
            [[rows]]
            label = "RWKV-5"
            quoted = "there is no code of it here"
            published.accuracy-percent = ["50.0", ""]
            recorded.accuracy-percent = ["49.5 ± 1.0", ""]
            [[rows]]
            label = "minLSTM"
            published.accuracy-percent = ["70.0", "90.0"]
        "#;
        toml::from_str(text).unwrap()
    }

    /// In the first row 90 ± 63.5, and one failed and one open seed; in the third an unfinished and an open run, and one made on two machines
    /// beside one with other settings.
    pub fn grid(target: &Target) -> Grid<'_> {
        let done = |seed, accuracy| (seed, Run::Done(Box::new(outcome(seed, accuracy))));
        let quoted = || Filled::Quoted("there is no code of it here".to_owned());
        let first = Filled::Trained(vec![done(1, 0.85), done(2, 0.95)]);
        let second = Filled::Trained(vec![(1, Run::Failed("the loss\nis not finite".to_owned())), (2, Run::Open)]);
        let made = outcome(1, 0.8);
        let stretch = |machine: &str, from, to| Stretch {
            origin: Origin { machine: machine.to_owned(), threads: 1, ..made.origin.clone() },
            from,
            to,
        };
        let begun = Begun {
            iterations: 40,
            of: 100,
            best_iteration: Some(20),
            seconds: 90.0,
            left_out_bytes: None,
            stretches: Vec::new(),
            curve: made.curve.clone(),
        };
        let third = Filled::Trained(vec![(1, Run::Begun(Box::new(begun))), (2, Run::Open)]);
        let of_two = Outcome { stretches: vec![stretch("old box", 0, 30), stretch("box", 32, 50)], ..made.clone() };
        let why = FolderProblem::OtherSettings { found: "lr = 1".to_owned(), wanted: "lr = 2".to_owned() };
        let outdated = Run::Outdated(Box::new(outcome(2, 0.1)), why);
        let fourth = Filled::Trained(vec![(1, Run::Done(Box::new(of_two))), (2, outdated)]);
        let command = "minrnn reproduce t --scale cpu".to_owned();
        let always = Baseline {
            name: "always the same answer".to_owned(),
            accuracy: Some(1.0 / 14.0),
            scaled: None,
            loss: None,
            lengths: Vec::new(),
        };
        Grid {
            cells: vec![vec![first, second], vec![quoted(), quoted()], vec![third, fourth]],
            readings: vec![vec![Some("paper"), None], vec![None; 2], vec![None; 2]],
            baselines: vec![vec![always], Vec::new()],
            learned_lengths: vec![None; 2],
            ..Grid::empty(target, Scale::Cpu, command)
        }
    }

    #[test]
    fn a_picture_of_what_is_no_longer_there_goes() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = Folder::open(scratch.path(), Scale::Cpu).unwrap();
        let target = target();
        super::write(&grid(&target), &folder).unwrap();
        let files = ["t", "t-lengths"].map(|name| folder.file(name, "svg"));
        assert!(files.iter().all(|file| file.exists()));
        let cells = (0..3).map(|_| vec![Filled::Quoted(String::new()), Filled::Quoted(String::new())]).collect();
        super::write(&Grid { cells, ..grid(&target) }, &folder).unwrap();
        assert!(files.iter().all(|file| !file.exists()));
        let page = std::fs::read_to_string(folder.file("t", "md")).unwrap();
        assert!(!page.contains("t.svg") && !page.contains("t-lengths.svg"));
    }
}
