//! The files of a target: Markdown, CSV, JSON and pictures, each replaced whole.

mod csv;
mod index;
mod json;
mod markdown;
mod picture;

pub use index::write_index;
pub use markdown::markdown;

use minrnn_model::write_atomic;

use crate::folder::{self, Folder};
use crate::{Grid, Result};

/// Writes the tables of `grid`, and its pictures where `with_pictures`.
///
/// # Errors
/// When the disk refuses.
pub fn write(grid: &Grid, folder: &Folder, with_pictures: bool) -> Result<()> {
    let name = &grid.target.name;
    if with_pictures {
        picture::draw(grid, folder)?;
        picture::draw_lengths(grid, folder)?;
    }
    let pictures = [name.clone(), picture::lengths_name(name)];
    let pictures: Vec<String> = pictures.into_iter().filter(|name| folder.file(name, "svg").exists()).collect();
    write_atomic(folder.file(name, "md"), markdown(grid, &pictures).as_bytes())?;
    write_atomic(folder.file(name, "csv"), csv::csv(grid).as_bytes())?;
    folder::write(&folder.file(name, "json"), &json::json(grid))
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::outcome::tests::outcome;
    use crate::{Filled, Grid, Run, Scale, Target};

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
        "#;
        toml::from_str(text).unwrap()
    }

    /// 90 ± 7.07 in the first cell, one open and one failed seed in the second.
    pub fn grid(target: &Target) -> Grid<'_> {
        let done = |seed, accuracy| (seed, Run::Done(Box::new(outcome(seed, accuracy))));
        let quoted = || Filled::Quoted("there is no code of it here".to_owned());
        let first = Filled::Trained(vec![done(1, 0.85), done(2, 0.95)]);
        let second = Filled::Trained(vec![(1, Run::Failed("the loss\nis not finite".to_owned())), (2, Run::Open)]);
        let command = "minrnn reproduce t --scale cpu".to_owned();
        Grid { target, scale: Scale::Cpu, command, cells: vec![vec![first, second], vec![quoted(), quoted()]] }
    }
}
