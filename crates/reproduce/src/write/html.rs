//! `index.html` of the results folder: every page on one, for a browser.

use std::path::Path;

use minrnn::html::escaped;
use minrnn_model::{read_text, write_atomic};
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::folder::{Folder, is_file};
use crate::{Result, Scale, catalog};

/// Far more bytes than a page has.
const MAX_PAGE: u64 = 1 << 24;

const STYLE: &str = include_str!("style.css");

/// Writes every target's page in `folder`, one below another; a damaged one is replaced by a note.
///
/// # Errors
/// When writing fails.
pub fn write_html(folder: &Folder, scale: Scale) -> Result<()> {
    let title = format!("Results of minrnn reproduce at scale {}", scale.name());
    let (mut list, mut sections) = (String::new(), String::new());
    for target in catalog::all()? {
        let name = &target.name;
        let content = match page(&folder.file(name, "md")) {
            Ok(Some(page)) => rendered(&page),
            Ok(None) => continue,
            Err(error) if error.is_wrong_input() => {
                format!("<p>{name}.md is damaged; writing the pages of {name} anew replaces it.</p>\n")
            }
            Err(error) => return Err(error),
        };
        list += &format!("<a href=\"#{name}\">{}</a>\n", escaped(&target.title));
        sections += &format!("<section id=\"{name}\">\n{content}</section>\n");
    }
    let style = STYLE.trim();
    let text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{style}\n</style>\n</head>\n<body>\n<h1>{title}</h1>\n<nav>\n{list}</nav>\n{sections}</body>\n</html>\n"
    );
    Ok(write_atomic(folder.file("index", "html"), text.as_bytes())?)
}

/// The page at `path`; none if there is no file.
fn page(path: &Path) -> Result<Option<String>> {
    Ok(if is_file(path)? { Some(read_text(path, MAX_PAGE)?) } else { None })
}

/// A page as HTML, with its headings a level lower and its tables in boxes that scroll.
fn rendered(page: &str) -> String {
    let mut options = Options::empty();
    options.insert(Options::ENABLE_TABLES);
    let mut text = String::with_capacity(2 * page.len());
    let events = Parser::new_ext(page, options).flat_map(|event| match event {
        Event::Start(Tag::Heading { level, id, classes, attrs }) => {
            vec![Event::Start(Tag::Heading { level: lower(level), id, classes, attrs })]
        }
        Event::End(TagEnd::Heading(level)) => vec![Event::End(TagEnd::Heading(lower(level)))],
        Event::Start(table @ Tag::Table(_)) => vec![Event::Html("<div class=\"scroll\">".into()), Event::Start(table)],
        end @ Event::End(TagEnd::Table) => vec![end, Event::Html("</div>\n".into())],
        // Names from the data are text, not markup.
        Event::Html(raw) | Event::InlineHtml(raw) => vec![Event::Text(raw)],
        event => vec![event],
    });
    html::push_html(&mut text, events);
    text
}

fn lower(level: HeadingLevel) -> HeadingLevel {
    HeadingLevel::try_from(level as usize + 1).unwrap_or(HeadingLevel::H6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::tests::{grid, target};

    #[test]
    fn a_page_becomes_a_section_with_its_tables_and_pictures() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = Folder::open(scratch.path(), Scale::Cpu).unwrap();
        let (table5, other) = (folder.file("table5", "md"), folder.file("unknown", "md"));
        let page = crate::markdown(&grid(&target()), &["t".to_owned()]) + "\n<script>alert(1)</script>\n";
        std::fs::write(table5, page).unwrap();
        std::fs::write(other, "# Nobody's page").unwrap();
        write_html(&folder, Scale::Cpu).unwrap();
        let html = std::fs::read_to_string(folder.file("index", "html")).unwrap();
        assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));
        assert!(html.contains("<section id=\"table5\">\n<h2>A table</h2>") && html.contains("<a href=\"#table5\">Table 5: "));
        assert!(html.contains("<div class=\"scroll\"><table>") && html.contains("</table>\n</div>"));
        assert!(html.contains("<img src=\"t.svg\" alt=\"A table\" />") && html.contains("90.0 ± 63.5"));
        assert!(!html.contains("<script>") && !html.contains("Nobody's page"));
    }
}
