//! The order of a listing: read from a query, written into one, and applied.
//!
//! It rejects no query. Invariants: folders come first; the same entries are always in the same order,
//! however the folder was read.

use std::cmp::Ordering;

use plimsoll_io::{Entry, FileKind};

/// The column that a listing is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Column {
    /// In natural order: case does not matter, and `file2` comes before `file10`.
    #[default]
    Name,
    /// Length of files; folders have none and stay in order of name.
    Size,
    /// Last change.
    Modified,
}

impl Column {
    /// Its name in a query.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Column::Name => "name",
            Column::Size => "size",
            Column::Modified => "modified",
        }
    }
}

/// A column and a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The first criterion; the name is the second.
    pub(crate) by: Column,
    /// Whether the greatest comes first.
    pub(crate) descending: bool,
}

impl Order {
    /// Parses `sort=size&order=desc`. The default is by name, ascending.
    pub fn from_query(query: Option<&[u8]>) -> Order {
        let mut order = Order::default();
        for parameter in query.unwrap_or_default().split(|&byte| byte == b'&') {
            match parameter {
                b"sort=name" => order.by = Column::Name,
                b"sort=size" => order.by = Column::Size,
                b"sort=modified" => order.by = Column::Modified,
                b"order=asc" => order.descending = false,
                b"order=desc" => order.descending = true,
                _ => {}
            }
        }
        order
    }

    /// Returns the name of the direction in a query.
    pub(crate) fn direction(self) -> &'static str {
        if self.descending { "desc" } else { "asc" }
    }

    /// Returns the order after a click on a column's head: the reverse order, or the usual order of another
    /// column, which is A, the largest, or the newest first.
    pub(crate) fn after_click(self, column: Column) -> Order {
        let descending = if self.by == column { !self.descending } else { column != Column::Name };
        Order { by: column, descending }
    }

    /// Compares two entries, each behind its name in lower case.
    fn compare(self, (a_key, a): (&str, &Entry), (b_key, b): (&str, &Entry)) -> Ordering {
        let by_name = pieces(a_key).cmp(pieces(b_key)).then_with(|| a.name.cmp(&b.name));
        let by_column = match self.by {
            Column::Name => by_name,
            Column::Size if is_folder(a) => Ordering::Equal,
            Column::Size => a.stat.size.cmp(&b.stat.size),
            Column::Modified => a.stat.modified.cmp(&b.stat.modified),
        };
        let by_column = if self.descending { by_column.reverse() } else { by_column };
        is_folder(b).cmp(&is_folder(a)).then(by_column).then(by_name)
    }
}

fn is_folder(entry: &Entry) -> bool {
    entry.stat.kind == FileKind::Folder
}

/// The order of all entries of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// As a reader selects it.
    Ordered(Order),
    /// By the bytes of their names, so that a name alone tells where a page begins.
    Bytes,
}

/// An entry with its sort key.
pub(super) struct Sorted {
    sequence: Sequence,
    /// The name in lower case, if the order needs it.
    key: String,
    pub(super) entry: Entry,
}

impl Sorted {
    pub(super) fn new(entry: Entry, sequence: Sequence) -> Sorted {
        let key = match sequence {
            Sequence::Ordered(_) => String::from_utf8_lossy(&entry.name).to_lowercase(),
            Sequence::Bytes => String::new(),
        };
        Sorted { sequence, key, entry }
    }

    pub(super) fn is_folder(&self) -> bool {
        is_folder(&self.entry)
    }
}

impl Ord for Sorted {
    fn cmp(&self, other: &Sorted) -> Ordering {
        match self.sequence {
            Sequence::Ordered(order) => order.compare((&self.key, &self.entry), (&other.key, &other.entry)),
            Sequence::Bytes => self.entry.name.cmp(&other.entry.name),
        }
    }
}

impl PartialOrd for Sorted {
    fn partial_cmp(&self, other: &Sorted) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Sorted {
    fn eq(&self, other: &Sorted) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Sorted {}

/// Cuts a name into bytes and whole numbers. A number is `0`, then how many digits it has without leading
/// zeros, then those: so numbers compare by value, however long they are.
fn pieces(name: &str) -> impl Iterator<Item = (u8, usize, &[u8])> {
    let mut rest = name.as_bytes();
    std::iter::from_fn(move || {
        let length = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(length);
        if digits.is_empty() {
            let (&byte, after) = rest.split_first()?;
            rest = after;
            // Not `&[]`, which points nowhere: comparing nothing there takes some processors a hundred times
            // as long as comparing nothing here.
            return Some((byte, 0, digits));
        }
        rest = after;
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        let digits = digits.get(zeros..).unwrap_or_default();
        Some((b'0', digits.len(), digits))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(query: &str) -> Order {
        Order::from_query(Some(query.as_bytes()))
    }

    #[test]
    fn a_query_names_a_column_and_a_direction() {
        assert_eq!(order("sort=size&order=desc"), Order { by: Column::Size, descending: true });
        assert_eq!(order("order=asc&sort=modified"), Order { by: Column::Modified, descending: false });
        assert_eq!(order("x=1&sort=size"), Order { by: Column::Size, descending: false });
    }

    #[test]
    fn an_unknown_order_means_by_name_ascending() {
        assert_eq!(Order::from_query(None), Order { by: Column::Name, descending: false });
        for query in ["", "&&", "=", "sort", "sort=", "sort=colour&order=up", "Sort=size", "sort=size%20"] {
            assert_eq!(order(query), Order::default(), "{query}");
        }
    }

    #[test]
    fn a_query_is_read_as_it_was_written() {
        for by in [Column::Name, Column::Size, Column::Modified] {
            for descending in [false, true] {
                let written = Order { by, descending };
                let query = format!("order={}&sort={}", written.direction(), by.name());
                assert_eq!(order(&query), written);
            }
        }
    }

    #[test]
    fn a_click_turns_round_or_begins_with_what_people_look_for() {
        let by_name = Order::default();
        assert_eq!(by_name.after_click(Column::Name), Order { by: Column::Name, descending: true });
        assert_eq!(by_name.after_click(Column::Size), Order { by: Column::Size, descending: true });
        let by_size = by_name.after_click(Column::Size);
        assert_eq!(by_size.after_click(Column::Size), Order { by: Column::Size, descending: false });
        assert_eq!(by_size.after_click(Column::Name), by_name);
    }

    #[test]
    fn numbers_in_names_compare_by_value() {
        let sorted = ["a", "a1", "a2", "a2b", "a10", "a10b1", "a99999999999999999999999", "ab", "b"];
        for pair in sorted.windows(2) {
            assert_eq!(pieces(pair[0]).cmp(pieces(pair[1])), Ordering::Less, "{pair:?}");
        }
        assert_eq!(pieces("a007").cmp(pieces("a7")), Ordering::Equal);
        assert_eq!(pieces("0").cmp(pieces("00")), Ordering::Equal);
    }
}
