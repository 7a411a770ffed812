//! Tables of plain text.

use minrnn::data::table::Confusion;

/// More classes than these make a table too wide for a terminal.
const MOST_CLASSES: usize = 24;

/// How well each class is told from the others, and which are taken for which; empty if there are too many.
pub fn confusion_table(confusion: &Confusion) -> String {
    let names = confusion.names();
    if names.len() > MOST_CLASSES {
        return String::new();
    }
    let share = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
    let mut header: Vec<String> = ["class", "n", "recall", "precision"].map(str::to_owned).to_vec();
    header.extend(names.iter().map(|name| format!("predicted '{name}'")));
    let mut rows = vec![header];
    for (class, name) in names.iter().enumerate() {
        let of = confusion.of_class(class);
        let mut row = vec![name.clone(), of.n.to_string(), share(of.recall), share(of.precision)];
        row.extend((0..names.len()).map(|predicted| confusion.count(class, predicted).to_string()));
        rows.push(row);
    }
    aligned(&rows)
}

/// Rows with aligned columns, the first one to the left.
pub fn aligned(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    let line = |row: &Vec<String>| {
        let cell = |(column, cell): (usize, &String)| {
            let room = " ".repeat(widths[column] - cell.chars().count());
            if column == 0 { format!("  {cell}{room}") } else { format!("  {room}{cell}") }
        };
        row.iter().enumerate().map(cell).collect::<String>().trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
