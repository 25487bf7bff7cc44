//! A table in Markdown that is also readable as plain text.
//!
//! Invariant: columns are always aligned, regardless of their contents.

/// Rows of cells below a header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with its header.
    pub(crate) fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Table {
        Table { rows: vec![head.into_iter().map(Into::into).collect()] }
    }

    /// Appends a row.
    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Formats the table.
    pub(crate) fn text(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
        };
        let all: Vec<Column> =
            (0..columns).map(|at| Column { width: width(at), is_words: self.is_words(at) }).collect();
        let mut lines: Vec<String> = self.rows.iter().map(|row| line(row, &all)).collect();
        lines.insert(1.min(lines.len()), rule(&all));
        lines.into_iter().map(|line| line + "\n").collect()
    }

    /// Returns whether a column has words, aligned left, or figures, aligned right. The first column names
    /// its row.
    fn is_words(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().skip(1).filter_map(|row| row.get(column));
        column == 0 || !cells.any(|cell| cell.starts_with(|c: char| c.is_ascii_digit()))
    }
}

struct Column {
    width: usize,
    is_words: bool,
}

fn line(row: &[String], columns: &[Column]) -> String {
    let cells = row.iter().zip(columns).map(|(cell, column)| {
        let gap = " ".repeat(column.width - cell.chars().count());
        if column.is_words { format!(" {cell}{gap} |") } else { format!(" {gap}{cell} |") }
    });
    format!("|{}", cells.collect::<String>())
}

fn rule(columns: &[Column]) -> String {
    let cells = columns.iter().map(|column| {
        if column.is_words {
            format!(" {} |", "-".repeat(column.width))
        } else {
            format!(" {}: |", "-".repeat(column.width - 1))
        }
    });
    format!("|{}", cells.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_is_in_them() {
        let mut table = Table::new(["case", "best", "nginx", "–"]);
        table.row(["1K-kept", "h2o", "159k", "1.50 [1.4, 1.6]"]);
        let text = "| case    | best | nginx |               – |\n\
                    | ------- | ---- | ----: | --------------: |\n\
                    | 1K-kept | h2o  |  159k | 1.50 [1.4, 1.6] |\n";
        assert_eq!(table.text(), text);
    }
}
