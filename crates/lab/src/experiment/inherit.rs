//! `like`: contenders that have the values of another one where they state none.
//!
//! It reads no contender. Invariants: `like` names an earlier contender of the experiment, or else a built-in
//! one. The name of an earlier one, and its role as the reference, are not inherited.

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use toml::{Table, Value};

use super::contender::Contender;

/// The key with the name of the other contender.
const LIKE: &str = "like";
/// The keys that belong to one contender alone.
const OWN: [&str; 2] = ["name", "reference"];
/// The contenders that come with the program, in the order of `plimsoll lab list`.
const BUILT_IN: [(&str, &str); 24] = [
    ("plimsoll-epoll", include_str!("../../contenders/plimsoll-epoll.toml")),
    ("plimsoll-uring", include_str!("../../contenders/plimsoll-uring.toml")),
    ("plimsoll-thread", include_str!("../../contenders/plimsoll-thread.toml")),
    ("nginx-stock", include_str!("../../contenders/nginx-stock.toml")),
    ("nginx-tuned", include_str!("../../contenders/nginx-tuned.toml")),
    ("lighttpd-stock", include_str!("../../contenders/lighttpd-stock.toml")),
    ("lighttpd-tuned", include_str!("../../contenders/lighttpd-tuned.toml")),
    ("h2o-stock", include_str!("../../contenders/h2o-stock.toml")),
    ("h2o-tuned", include_str!("../../contenders/h2o-tuned.toml")),
    ("caddy-stock", include_str!("../../contenders/caddy-stock.toml")),
    ("iperf3", include_str!("../../contenders/iperf3.toml")),
    ("plimsoll-tls", include_str!("../../contenders/tls/plimsoll-tls.toml")),
    ("nginx-tls", include_str!("../../contenders/tls/nginx-tls.toml")),
    ("lighttpd-tls", include_str!("../../contenders/tls/lighttpd-tls.toml")),
    ("plimsoll-ftps", include_str!("../../contenders/tls/plimsoll-ftps.toml")),
    ("vsftpd-tls", include_str!("../../contenders/tls/vsftpd-tls.toml")),
    ("pure-ftpd-tls", include_str!("../../contenders/tls/pure-ftpd-tls.toml")),
    ("000-mariadb", include_str!("../../contenders/documents/000-mariadb.toml")),
    ("000-redis", include_str!("../../contenders/documents/000-redis.toml")),
    ("001-plimsoll", include_str!("../../contenders/documents/001-plimsoll.toml")),
    ("001-vsftpd", include_str!("../../contenders/documents/001-vsftpd.toml")),
    ("002-tiers", include_str!("../../contenders/documents/002-tiers.toml")),
    ("003-proxy", include_str!("../../contenders/documents/003-proxy.toml")),
    ("003-web", include_str!("../../contenders/documents/003-web.toml")),
];

/// Returns the names of the built-in contenders.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

/// A contender that comes with the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BuiltIn {
    /// Its name.
    pub name: String,
    /// Its distinguishing feature, in one line.
    pub about: String,
    /// The variables that an experiment must set for it.
    pub variables: Vec<String>,
}

/// Returns the built-in contenders, in the order of their list.
///
/// # Errors
/// One of them has a mistake, which a test excludes.
pub fn built_in() -> Result<Vec<BuiltIn>> {
    let read = |(_, text): &(&str, &str)| {
        let contender = Contender::read(text.parse()?)?;
        let variables = contender.needed_variables().into_iter().map(str::to_owned).collect();
        Ok(BuiltIn { variables, name: contender.name, about: contender.about })
    };
    BUILT_IN.iter().map(read).collect()
}

/// Returns the name of a contender: its own, or that of the contender that it is like.
pub(crate) fn name_of(contender: &Table) -> Option<&str> {
    contender.get("name").or_else(|| contender.get(LIKE)).and_then(Value::as_str)
}

/// Gives the contenders that are like an earlier one its values, so that each can be read without the others.
pub(crate) fn copy_from_earlier(contenders: &mut [Table]) {
    for at in 1..contenders.len() {
        let (earlier, rest) = contenders.split_at_mut(at);
        let Some(own) = rest.first_mut() else { return };
        // A contender that states no name has that of the built-in one.
        let like = own.get(LIKE).and_then(Value::as_str).filter(|_| own.contains_key("name"));
        let Some(other) = like.and_then(|like| earlier.iter().find(|one| name_of(one) == Some(like))) else {
            continue;
        };
        let mut copied = other.clone();
        OWN.iter().for_each(|key| drop(copied.remove(*key)));
        own.remove(LIKE);
        copied.extend(std::mem::take(own));
        *own = copied;
    }
}

/// Returns the values of a contender and, where it states none, those of the built-in one that it is like.
///
/// # Errors
/// There is no such contender.
pub(super) fn with_built_in(own: Table) -> Result<Table> {
    let Some(name) = own.get(LIKE).map(|like| like.as_str().context("`like` is no name")).transpose()? else {
        return Ok(own);
    };
    let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = built_in_names().collect();
        bail!("no earlier and no built-in contender is called {name:?}; there are {}", names.join(", "));
    };
    let mut table: Table = text.parse()?;
    table.extend(own);
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(text: &str) -> Vec<Table> {
        let table: Table = text.parse().unwrap();
        let contenders = table["contenders"].as_array().unwrap();
        contenders.iter().map(|one| one.as_table().unwrap().clone()).collect()
    }

    #[test]
    fn a_contender_like_an_earlier_one_has_its_values_but_not_its_name_and_role() {
        let mut contenders = tables(
            "[[contenders]]\nlike = \"nginx-tuned\"\nname = \"a\"\nreference = true\ncores = 0\n\
             [[contenders]]\nlike = \"a\"\nname = \"b\"\nabout = \"second\"\n\
             [[contenders]]\nlike = \"b\"\nname = \"c\"\ncores = 1\n",
        );
        copy_from_earlier(&mut contenders);
        let [_, b, c] = contenders.as_slice() else { panic!("three contenders") };
        assert_eq!((b["like"].as_str(), b["cores"].as_integer()), (Some("nginx-tuned"), Some(0)));
        assert!(!b.contains_key("reference"));
        assert_eq!((c["about"].as_str(), c["cores"].as_integer()), (Some("second"), Some(1)));
        assert_eq!((name_of(b), name_of(c)), (Some("b"), Some("c")));
    }

    #[test]
    fn a_built_in_contender_is_described_with_the_variables_that_it_needs() {
        let all = built_in().unwrap();
        let of = |name: &str| all.iter().find(|one| one.name == name).unwrap();
        assert_eq!(of("001-vsftpd").variables, ["server_cores"]);
        assert_eq!(of("nginx-tuned").variables, [""; 0]);
        assert!(all.iter().all(|one| !one.about.is_empty()));
    }

    #[test]
    fn a_later_contender_and_one_without_a_name_of_its_own_are_not_copied() {
        let mut contenders = tables(
            "[[contenders]]\nlike = \"nginx-tuned\"\n[[contenders]]\nlike = \"nginx-tuned\"\n\
             [[contenders]]\nlike = \"d\"\nname = \"c\"\n[[contenders]]\nname = \"d\"\n",
        );
        let before = contenders.clone();
        copy_from_earlier(&mut contenders);
        assert_eq!(contenders, before);
        assert!(with_built_in(contenders[2].clone()).unwrap_err().to_string().contains("nginx-tuned"));
    }
}
