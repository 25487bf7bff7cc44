//! The sites of the configuration: folders that anyone may read.
//!
//! It serves no requests. Invariant: a configuration that has nothing to serve over HTTP, or nothing for
//! FTP guests although it admits them, is rejected.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plimsoll_cli::WrongUsage;
use plimsoll_content::{CacheRules, Site};
use plimsoll_engine::SystemFs;

use crate::config::{CacheFlag, Config, SiteFlag};

/// The prefix of the site that FTP guests see, which is also the common folder of classic.
const GUESTS_PREFIX: &str = "/";

/// Opens the folders of all sites.
pub(crate) fn open_sites(config: &Config) -> anyhow::Result<Vec<Site>> {
    match contradiction(config) {
        Some(wrong) => Err(WrongUsage(wrong).into()),
        None => {
            let rules = cache_rules(&config.live.site_cache_control);
            let open = |flag| Ok(open_site(flag, config)?.cached_by(rules.clone()));
            config.live.site.iter().map(open).collect()
        }
    }
}

fn cache_rules(flags: &[CacheFlag]) -> CacheRules {
    CacheRules::new(flags.iter().map(|flag| (&*flag.prefix, &*flag.value)))
}

/// Returns the site for FTP guests, if guests are enabled.
pub(crate) fn site_of_guests(config: &Config, sites: &[Site]) -> Option<Site> {
    site_of_all(sites).filter(|_| config.live.ftp.ftp_guests)
}

/// Returns the site under `/`.
pub(crate) fn site_of_all(sites: &[Site]) -> Option<Site> {
    // A site's prefix has no trailing slash.
    sites.iter().find(|site| site.prefix().is_empty()).cloned()
}

fn open_site(flag: &SiteFlag, config: &Config) -> anyhow::Result<Site> {
    let site = Site::open(&SystemFs, &flag.prefix, &flag.folder)
        .with_context(|| format!("cannot serve {:?}: --site needs a folder that can be read", flag.folder))?;
    let changes_through_us = config.fixed.accounts && share_a_place(&flag.folder, &config.fixed.data);
    Ok(if changes_through_us { site.never_hot() } else { site })
}

/// Returns whether one of two folders contains the other. Also true if a path cannot be resolved.
fn share_a_place(one: &Path, other: &Path) -> bool {
    let whole = |path| std::path::absolute(path).and_then(|path| resolved(&path));
    match (whole(one), whole(other)) {
        (Ok(one), Ok(other)) => one.starts_with(&other) || other.starts_with(&one),
        _ => true,
    }
}

/// Resolves the links of a path, as far as the path exists.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
            Ok(resolved(parent)?.join(name))
        }
        (resolved, ..) => resolved,
    }
}

/// Returns the error of a combination of settings that are each valid.
fn contradiction(config: &Config) -> Option<String> {
    let (fixed, sites, mut prefixes) = (&config.fixed, &config.live.site, HashSet::new());
    let guests = config.live.ftp.ftp_guests;
    if let Some(twice) = sites.iter().find(|site| !prefixes.insert(&site.prefix)) {
        return Some(format!("--site {}=... is given twice; give each prefix one folder", twice.prefix));
    }
    if fixed.accounts && sites.iter().any(|site| is_of_page(&site.prefix)) {
        return Some(PAGE.to_owned());
    }
    if sites.is_empty() && !fixed.accounts && !fixed.is_proxy() {
        return Some(NOTHING.to_owned());
    }
    if guests && !prefixes.contains(&GUESTS_PREFIX.to_owned()) {
        return Some(NO_SITE.to_owned());
    }
    if !fixed.classic.is_empty() && !fixed.accounts {
        return Some(NO_ACCOUNTS.to_owned());
    }
    (fixed.has_ftp() && !fixed.accounts && !guests).then(|| NOBODY.to_owned())
}

/// Whether a prefix is the web page's or below it, which accounts have.
fn is_of_page(prefix: &str) -> bool {
    prefix.strip_prefix("/app").is_some_and(|rest| matches!(rest.as_bytes(), [] | [b'/', ..]))
}

/// The error if the web page would hide a site.
const PAGE: &str = "--site /app=... is where people with accounts have the web page: choose another prefix, \
                    or serve sites alone: --accounts false";
/// The error if there are neither sites nor accounts.
const NOTHING: &str = "there is nothing to serve: give --site PREFIX=DIR, or leave accounts on; see --help";
const NO_SITE: &str =
    "--ftp-guests shows the site that is served under /, and there is none: give --site /=DIR";
const NO_ACCOUNTS: &str = "--classic is for people with accounts: leave accounts on, or leave it out";
const NOBODY: &str =
    "no client could log in by --ftp: leave accounts on, or let guests in with --ftp-guests true";

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(args: &[&str]) -> Option<String> {
        contradiction(&Config::of(args))
    }

    #[test]
    fn guests_need_the_common_site_and_ftp_needs_accounts_or_guests() {
        assert_eq!(wrong(&["--ftp", ":0"]), None);
        assert_eq!(wrong(&["--ftp", ":0", "--ftp-guests", "true"]), Some(NO_SITE.to_owned()));
        assert_eq!(wrong(&["--ftp-guests", "true", "--site", "/a=."]), Some(NO_SITE.to_owned()));
        assert_eq!(wrong(&["--ftp-guests", "true", "--site", "/a=.", "--site", "/=."]), None);
        let no_accounts = ["--ftp", ":0", "--accounts", "false", "--site", "/=."];
        assert_eq!(wrong(&no_accounts), Some(NOBODY.to_owned()));
        assert_eq!(wrong(&[&no_accounts[..], &["--ftp-guests", "true"]].concat()), None);
        assert_eq!(wrong(&["--classic", ":0"]), None);
        let no_accounts = ["--classic", ":0", "--accounts", "false", "--site", "/=."];
        assert_eq!(wrong(&no_accounts), Some(NO_ACCOUNTS.to_owned()));
    }

    #[test]
    fn a_site_in_the_place_of_the_web_page_is_refused_if_there_are_accounts() {
        for prefix in ["/app", "/app/docs"] {
            let site = format!("{prefix}=.");
            assert_eq!(wrong(&["--site", &site]), Some(PAGE.to_owned()), "{prefix}");
            assert_eq!(wrong(&["--site", &site, "--accounts", "false"]), None, "{prefix}");
        }
        assert_eq!(wrong(&["--site", "/apple=."]), None);
    }

    #[test]
    fn guests_see_the_site_of_the_top_and_only_if_they_are_let_in() {
        let folder = std::env::temp_dir();
        let sites: Vec<String> = ["/a", "/"].map(|prefix| format!("{prefix}={}", folder.display())).into();
        let args = ["--site", &sites[0], "--site", &sites[1]];
        let shown = |more: &[&str]| {
            let config = Config::of(&[&args[..], more].concat());
            site_of_guests(&config, &open_sites(&config).unwrap())
        };
        assert!(shown(&[]).is_none());
        assert_eq!(shown(&["--ftp-guests", "true"]).unwrap().prefix(), b"");
    }

    #[test]
    fn a_site_shares_a_place_with_the_accounts_where_one_is_in_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("data/accounts/alice/files")).unwrap();
        std::fs::create_dir(at("public")).unwrap();
        std::os::unix::fs::symlink(at("data"), at("link")).unwrap();
        for (site, shares) in
            [("public", false), ("data/accounts/alice/files", true), ("link/accounts", true), (".", true)]
        {
            assert_eq!(share_a_place(&at(site), &at("data")), shares, "{site}");
        }
        assert!(!share_a_place(&at("public"), &at("new/data")) && share_a_place(&at("."), &at("new/data")));
    }
}
