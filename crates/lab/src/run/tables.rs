//! The tables of a document in an experiment that was shortened: fewer contenders, and fewer points.
//!
//! It removes no trial. Invariant: tables keep the rows and columns that have trials.

use toml::{Table, Value};

use crate::experiment::document::CONTENDER;
use crate::experiment::name_of;

/// The values of variables, and the contenders, that an experiment still has.
struct Left {
    sweep: Table,
    points: Vec<Value>,
    contenders: Vec<Value>,
}

impl Left {
    fn of(file: &Table) -> Left {
        let list = |name: &str| file.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        let named = list("contenders");
        let named = named.iter().filter_map(|one| name_of(one.as_table()?).map(Value::from));
        Left {
            sweep: file.get("sweep").and_then(Value::as_table).cloned().unwrap_or_default(),
            points: list("points"),
            contenders: named.collect(),
        }
    }

    /// Returns whether a variable still has a value. One that is not swept has every value.
    fn has(&self, name: &str, value: &Value) -> bool {
        if name == CONTENDER {
            return self.contenders.contains(value);
        }
        let values = self.sweep.get(name).and_then(Value::as_array).into_iter().flatten();
        let mut values = values.chain(self.points.iter().filter_map(|point| point.get(name))).peekable();
        values.peek().is_none() || values.any(|left| left == value)
    }
}

/// Leaves the rows and columns out of a document's tables that have no trials any more.
pub(super) fn shorten(file: &mut Table) {
    let left = Left::of(file);
    let Some(Value::Array(tables)) = file.get_mut("document") else { return };
    for table in tables.iter_mut().filter_map(Value::as_table_mut) {
        let row = table.get("row").and_then(Value::as_str).unwrap_or_default().to_owned();
        let rows = table.get("rows").and_then(Value::as_array).cloned().unwrap_or_default();
        let kept: Vec<bool> = rows.iter().map(|value| left.has(&row, value)).collect();
        let keep = |values: &mut Vec<Value>| {
            let mut kept = kept.iter();
            values.retain(|_| kept.next().copied().unwrap_or(true));
        };
        if let Some(Value::Array(rows)) = table.get_mut("rows") {
            keep(rows);
        }
        let Some(Value::Array(columns)) = table.get_mut("columns") else { continue };
        columns.retain_mut(|column| is_column_left(column, &left));
        let published = columns.iter_mut().filter_map(|column| column.get_mut("published")?.as_array_mut());
        published.for_each(keep);
    }
    tables.retain(|table| {
        let is_empty = |name: &str| table.get(name).and_then(Value::as_array).is_some_and(Vec::is_empty);
        !is_empty("rows") && !is_empty("columns")
    });
}

/// Returns whether a column has trials, and leaves the contenders out of it that have none.
fn is_column_left(column: &mut Value, left: &Left) -> bool {
    let at = column.get("at").and_then(Value::as_table).into_iter().flatten();
    let is_left = at.into_iter().all(|(name, value)| left.has(name, value));
    let Some(Value::Array(contenders)) = column.get_mut("contenders") else { return is_left };
    contenders.retain(|name| left.has(CONTENDER, name));
    is_left && !contenders.is_empty()
}
