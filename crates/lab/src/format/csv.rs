//! Comma-separated values (RFC 4180).
//!
//! It knows no columns. Invariant: every field reads back as it was, and every record ends with CRLF.

/// Formats a record.
pub(crate) fn record<S: AsRef<str>>(fields: impl IntoIterator<Item = S>) -> String {
    let fields: Vec<String> = fields.into_iter().map(|field| quoted(field.as_ref())).collect();
    fields.join(",") + "\r\n"
}

/// Quotes a field: "Fields containing line breaks (CRLF), double quotes, and commas should be enclosed in
/// double-quotes."
pub(crate) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_separators_are_quoted() {
        assert_eq!(record(["a", "b, \"c\"", "", "d\r\ne"]), "a,\"b, \"\"c\"\"\",,\"d\r\ne\"\r\n");
    }
}
