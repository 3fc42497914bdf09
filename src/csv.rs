//! Tables of comma-separated values (RFC 4180), read: a heading for each column, then a row a line.
//!
//! Cells may stand in quotation marks, in which a comma and a doubled mark are text. Lines that are empty or begin with `#`
//! are passed over. Lines may end with CR LF, and a byte order mark may come first.

use warpwright_core::diag::Diagnosis;

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Cells>,
}

/// The cells of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cells {
    /// The line, counted from 1.
    line: usize,
    cells: Vec<String>,
}

/// A row of a table.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    headings: &'a [String],
    cells: &'a Cells,
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// No headings, headings that are empty or stand twice, a row with more or fewer cells than there are headings, and
    /// quotation marks that are not closed or have something behind them: with the line.
    pub fn parse(text: &str) -> Result<Table, Diagnosis> {
        let mut lines = Vec::new();
        for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            if !line.trim().is_empty() && !line.starts_with('#') {
                let cells = cells(line).map_err(|d| d.at(place(at + 1)))?;
                lines.push(Cells { line: at + 1, cells });
            }
        }
        let mut lines = lines.into_iter();
        let first = lines.next().ok_or_else(|| {
            Diagnosis::new("there is no row of headings")
                .instead("begin with the names of the columns, separated by commas")
        })?;
        let headings = first.cells;
        for (at, heading) in headings.iter().enumerate() {
            let wrong = if heading.is_empty() {
                Diagnosis::new(format!("column {} has no heading", at + 1))
                    .instead("name it, or leave it out")
            } else if headings[..at].contains(heading) {
                Diagnosis::new(format!("there are two columns `{heading}`")).instead("leave one of them out")
            } else {
                continue;
            };
            return Err(wrong.at(place(first.line)));
        }
        let rows: Vec<Cells> = lines.collect();
        if let Some(row) = rows.iter().find(|row| row.cells.len() != headings.len()) {
            return Err(Diagnosis::new(format!("the row has {} cells", row.cells.len()))
                .because(format!("there are {} columns", headings.len()))
                .instead("leave cells empty where there is nothing to say")
                .at(place(row.line)));
        }
        Ok(Table { headings, rows })
    }

    /// The names of the columns.
    pub fn headings(&self) -> &[String] {
        &self.headings
    }

    /// The rows in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|cells| Row { headings: &self.headings, cells })
    }
}

impl<'a> Row<'a> {
    /// Its line in the text, counted from 1.
    pub fn line(&self) -> usize {
        self.cells.line
    }

    /// The cell of a column; `None` where it is empty or there is no such column.
    pub fn get(&self, column: &str) -> Option<&'a str> {
        self.cells().find_map(|(heading, cell)| (heading == column).then_some(cell))
    }

    /// The value of a cell.
    ///
    /// # Errors
    /// An empty cell, and what is no such value: with the line and the column.
    pub fn parse<T: std::str::FromStr<Err: ToString>>(&self, column: &str) -> Result<T, Diagnosis> {
        let cell = self.get(column).ok_or_else(|| {
            let what = if self.headings.iter().any(|h| h == column) {
                "cell is empty"
            } else {
                "column is not there"
            };
            self.wrong(column, Diagnosis::new(format!("the {what}")).instead("fill it in"))
        })?;
        cell.parse().map_err(|e: T::Err| {
            self.wrong(column, Diagnosis::new(format!("`{cell}` cannot be read")).because(e.to_string()))
        })
    }

    /// The cells that hold something, with the names of their columns.
    pub fn cells(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.headings
            .iter()
            .zip(&self.cells.cells)
            .map(|(h, c)| (h.as_str(), c.as_str()))
            .filter(|c| !c.1.is_empty())
    }

    /// What is wrong with a cell, with its place.
    pub fn wrong(&self, column: &str, diagnosis: Diagnosis) -> Diagnosis {
        diagnosis.at(format!("column {column}")).at(place(self.line()))
    }

    /// What is wrong with the row, with its place.
    pub fn wrong_row(&self, diagnosis: Diagnosis) -> Diagnosis {
        diagnosis.at(place(self.line()))
    }
}

fn place(line: usize) -> String {
    format!("line {line}")
}

/// The cells of a line, without the spaces around them.
fn cells(line: &str) -> Result<Vec<String>, Diagnosis> {
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        let rest_of_cell = rest.trim_start();
        let (cell, behind) = match rest_of_cell.strip_prefix('"') {
            Some(quoted) => quoted_cell(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].trim().to_string(), &rest[end..])
            }
        };
        cells.push(cell);
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Ok(cells),
        }
    }
}

/// A cell whose first quotation mark has been read, and what comes behind it.
fn quoted_cell(text: &str) -> Result<(String, &str), Diagnosis> {
    let mut cell = String::new();
    let mut rest = text;
    loop {
        let Some((before, behind)) = rest.split_once('"') else {
            return Err(Diagnosis::new("a quotation mark is not closed").instead("close it on the same line"));
        };
        cell.push_str(before);
        match behind.strip_prefix('"') {
            Some(next) => {
                cell.push('"');
                rest = next;
            }
            None => {
                let behind = behind.trim_start();
                return match behind.is_empty() || behind.starts_with(',') {
                    true => Ok((cell, behind)),
                    false => Err(Diagnosis::new(format!("`{behind}` stands behind a quotation mark"))
                        .instead("separate cells by commas, and double a mark that is text")),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn cells_quotation_marks_comments_and_line_ends() {
        let table = Table::parse(
            "\u{feff}# from somewhere\r\na, b,c\r\n\r\n1,\"x, \"\"y\"\"\" ,\r\n# no row\n2,,z\n",
        );
        let table = table.unwrap();
        assert_eq!(table.headings(), ["a", "b", "c"]);
        let rows: Vec<_> = table.rows().collect();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].line(), rows[0].get("b"), rows[0].get("c")), (4, Some("x, \"y\""), None));
        assert_eq!((rows[1].line(), rows[1].get("a"), rows[1].get("d")), (6, Some("2"), None));
        assert_eq!(rows[1].cells().collect::<Vec<_>>(), [("a", "2"), ("c", "z")]);
        assert_eq!(rows[1].parse::<i64>("a"), Ok(2));
    }

    #[test]
    fn what_is_no_table_is_refused_with_its_line() {
        for (text, said) in [
            ("", "no row of headings"),
            ("# nothing\n\n", "no row of headings"),
            ("a,,b\n", "line 1: column 2 has no heading"),
            ("a,b,a\n", "line 1: there are two columns `a`"),
            ("a,b\n1,2\n\n1\n", "line 4: the row has 1 cells, because there are 2 columns"),
            ("a,b\n1,2,3\n", "line 2: the row has 3 cells"),
            ("a\n\"1\n", "line 2: a quotation mark is not closed"),
            ("a\n\"1\"2\n", "line 2: `2` stands behind a quotation mark"),
        ] {
            let refused = Table::parse(text).unwrap_err().to_string();
            assert!(refused.contains(said), "{text:?}: {refused}");
        }
        let table = Table::parse("a,b\nx,\n").unwrap();
        let row = table.rows().next().unwrap();
        let said = |column: &str| row.parse::<i64>(column).unwrap_err().to_string();
        assert!(said("a").starts_with("line 2: column a: `x` cannot be read"), "{}", said("a"));
        assert!(said("b").starts_with("line 2: column b: the cell is empty"), "{}", said("b"));
        assert!(said("c").contains("column is not there"), "{}", said("c"));
    }
}
