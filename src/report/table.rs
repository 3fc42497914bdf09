//! Tables for people, on standard output.

/// One column: its heading, and whether it holds numbers.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    heading: &'static str,
    numbers: bool,
}

/// A column of words.
pub const fn words(heading: &'static str) -> Column {
    Column { heading, numbers: false }
}

/// A column of numbers, lined up at their right.
pub const fn numbers(heading: &'static str) -> Column {
    Column { heading, numbers: true }
}

/// A table with two spaces between its columns and a rule under its headings.
pub fn render(columns: &[Column], rows: &[Vec<String>]) -> String {
    let headings: Vec<String> = columns.iter().map(|c| c.heading.to_string()).collect();
    let widths: Vec<usize> = (0..columns.len())
        .map(|i| {
            rows.iter()
                .chain([&headings])
                .filter_map(|r| r.get(i))
                .map(|t| t.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(columns)
            .zip(&widths)
            .map(
                |((text, column), &width)| {
                    if column.numbers { format!("{text:>width$}") } else { format!("{text:<width$}") }
                },
            )
            .collect();
        padded.join("  ").trim_end().to_string()
    };
    let rule = "-".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1));
    let mut lines = vec![line(&headings), rule];
    lines.extend(rows.iter().map(|row| line(row)));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{numbers, render, words};

    #[test]
    fn words_stand_left_and_numbers_right() {
        let rows =
            [vec!["naive".to_string(), "7".to_string()], vec!["tiled".to_string(), "12345".to_string()]];
        let table = render(&[words("kernel"), numbers("time")], &rows);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines, ["kernel   time", "-------------", "naive       7", "tiled   12345"]);
    }
}
