//! Pages of a folder's listing: parses the query for a page, and formats the link to the next.
//!
//! It reads no folder. Invariant: the `next_href` of a page leads to exactly the entries after it, for names
//! of any bytes.

use std::fmt;

use plimsoll_io::ListingPage;
use plimsoll_wire::http::form_urlencoded::{decode, encode};

use super::Order;
use crate::limits::{LISTING_PAGE_ENTRIES, LISTING_PAGE_ENTRIES_MAX};

/// The reason why a query selects no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPage {
    /// `limit` is no number, or too large or small.
    Limit,
    /// `after` is not percent-encoded.
    After,
    /// One of them is repeated.
    Repeated,
    /// The query has an order, which pages do not have.
    Order,
}

impl fmt::Display for BadPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadPage::Limit => {
                write!(f, "\"limit\" must be a whole number from 1 to {LISTING_PAGE_ENTRIES_MAX}.")
            }
            BadPage::After => f.write_str("\"after\" must be a name, percent-encoded."),
            BadPage::Repeated => f.write_str("Send \"after\" and \"limit\" once each."),
            BadPage::Order => f.write_str(
                "Pages are in order of name: leave out \"sort\" and \"order\", or \"after\" and \"limit\".",
            ),
        }
    }
}

impl std::error::Error for BadPage {}

/// Parses `after=NAME&limit=NUMBER`. Returns `None` if the query has neither.
///
/// # Errors
/// The query selects no page.
pub fn page_of(query: Option<&[u8]>) -> Result<Option<ListingPage>, BadPage> {
    let (mut after, mut limit) = (None, None);
    for parameter in query.unwrap_or_default().split(|&byte| byte == b'&') {
        let is_repeated = if let Some(value) = parameter.strip_prefix(b"after=") {
            after.replace(decode(value).ok_or(BadPage::After)?).is_some()
        } else if let Some(value) = parameter.strip_prefix(b"limit=") {
            limit.replace(number(value).ok_or(BadPage::Limit)?).is_some()
        } else {
            false
        };
        if is_repeated {
            return Err(BadPage::Repeated);
        }
    }
    if after.is_none() && limit.is_none() {
        return Ok(None);
    }
    if Order::from_query(query) != Order::default() {
        return Err(BadPage::Order);
    }
    Ok(Some(ListingPage { after, limit: limit.unwrap_or(LISTING_PAGE_ENTRIES) }))
}

/// Returns the link from a page with this limit to the one that begins after `name`.
pub(super) fn next_href(name: &[u8], limit: usize) -> String {
    let mut href = "?format=json&after=".to_owned();
    encode(name, &mut href);
    href.push_str(&format!("&limit={limit}"));
    href
}

fn number(text: &[u8]) -> Option<usize> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let number = is_number.then(|| std::str::from_utf8(text).ok()?.parse().ok())??;
    (1..=LISTING_PAGE_ENTRIES_MAX).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(query: &str) -> Result<Option<ListingPage>, BadPage> {
        page_of(Some(query.as_bytes()))
    }

    #[test]
    fn a_query_names_where_a_page_begins_and_how_long_it_is() {
        assert_eq!(page_of(None), Ok(None));
        assert_eq!(page("format=json&sort=size"), Ok(None));
        assert_eq!(page("limit=2"), Ok(Some(ListingPage { after: None, limit: 2 })));
        let after =
            |name: &[u8]| Ok(Some(ListingPage { after: Some(name.to_vec()), limit: LISTING_PAGE_ENTRIES }));
        assert_eq!(page("after=a+b%20c%2B%FF&sort=name"), after(b"a b c+\xff"));
        assert_eq!(page("after="), after(b""));
    }

    #[test]
    fn a_query_for_a_page_that_cannot_be_is_refused() {
        for limit in ["", "0", "-1", "+1", "1.0", "x", "10001", "99999999999999999999999"] {
            assert_eq!(page(&format!("limit={limit}")), Err(BadPage::Limit), "{limit}");
        }
        for after in ["%", "%4", "%zz", "a%"] {
            assert_eq!(page(&format!("after={after}")), Err(BadPage::After), "{after}");
        }
        assert_eq!(page("limit=1&limit=2"), Err(BadPage::Repeated));
        assert_eq!(page("limit=1&sort=size"), Err(BadPage::Order));
        assert_eq!(page("after=a&order=desc"), Err(BadPage::Order));
    }

    #[test]
    fn the_next_page_begins_after_exactly_the_last_name() {
        for name in [&b"a b+c&d=e%/?#"[..], b"\xff\xfe", "grüße".as_bytes()] {
            let href = next_href(name, 3);
            let expected = ListingPage { after: Some(name.to_vec()), limit: 3 };
            assert_eq!(page(href.trim_start_matches('?')), Ok(Some(expected)), "{href}");
        }
    }
}
