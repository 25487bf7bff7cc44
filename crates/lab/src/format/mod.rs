//! The formats of figures, tables and comma-separated values, for the terminal, Markdown and files.
//!
//! It computes nothing and knows no experiment. Invariant: a missing figure has a placeholder, or an empty
//! field, and is never 0.

pub(crate) mod csv;
pub(crate) mod figures;
pub(crate) mod table;
