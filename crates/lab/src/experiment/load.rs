//! The load of a trial: the settings of `plimsoll load`, under its own names.
//!
//! It sends nothing. Invariant: a setting that the generator does not have is refused before anything is
//! started.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use plimsoll_wire::nearest::suggestion;
use serde::Deserialize;

use super::value::{Scalar, count, time};
use plimsoll_load::FileTest;

/// The setting with the number of users.
pub(crate) const USERS: &str = "users";
/// The setting with the rate of an open loop.
pub(crate) const RATE: &str = "rate";
const THINK: &str = "think";
/// The setting that permits resumed sessions, of the contenders with TLS.
const TLS_RESUME: &str = "tls_resume";

/// The settings and the generator's flags for them. Settings without a flag are used by the laboratory
/// itself.
const SETTINGS: [(&str, Option<&str>); 23] = [
    (USERS, Some("--users")),
    ("time", Some("--duration")),
    ("requests", Some("--requests")),
    ("warm_up", Some("--warm-up")),
    (THINK, Some("--think")),
    (RATE, Some("--rate")),
    ("connections", Some("--connections")),
    ("pick", Some("--pick")),
    ("offset", Some("--offset")),
    ("method", Some("--method")),
    ("size", Some("--size")),
    ("mix", Some("--mix")),
    ("account", Some("--account")),
    ("verify", Some("--verify")),
    ("timeout", Some("--timeout")),
    ("threads", Some("--threads")),
    ("generator_engine", Some("--engine")),
    ("cores", Some("--cpu")),
    ("files", None),
    ("requests_each", Some("--requests-each")),
    ("password", None),
    (TLS_RESUME, None),
    ("xml", None),
];

/// The file from which the generator reads a test file.
const STANDARD_INPUT: &str = "/dev/stdin";

/// The settings of the load, by name; each may be a variable of the sweep instead.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Load(pub BTreeMap<String, Scalar>);

/// The load of one trial: every setting has its value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(pub BTreeMap<String, String>);

/// Returns whether a setting of the load has this name.
pub fn is_setting(name: &str) -> bool {
    SETTINGS.iter().any(|(known, _)| *known == name)
}

/// Returns the setting whose flag of the generator this is, such as `--pick`.
pub fn setting_of_flag(flag: &str) -> Option<&'static str> {
    SETTINGS.iter().find(|(_, known)| *known == Some(flag)).map(|(name, _)| *name)
}

/// Returns the names of all settings.
pub(crate) fn setting_names() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|(name, _)| *name)
}

impl Load {
    /// Refuses unknown settings.
    pub(super) fn check(&self) -> Result<()> {
        let unknown = self.0.keys().find(|name| !is_setting(name));
        if let Some(unknown) = unknown {
            bail!("`load` has no setting {unknown:?}; {}", suggestion(unknown, setting_names()));
        }
        Ok(())
    }
}

impl Settings {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns the test file of document 003's client that the load is.
    pub fn xml(&self) -> Option<&str> {
        self.get("xml")
    }

    /// Returns the test of that file.
    fn test(&self) -> Result<Option<FileTest>> {
        let Some(text) = self.xml() else { return Ok(None) };
        let mut tests = FileTest::parse(text.as_bytes()).context("`xml`")?;
        ensure!(
            tests.len() == 1,
            "`xml` has {} tests, and a trial is one: write the others as values of the sweep",
            tests.len()
        );
        Ok(tests.pop())
    }

    /// Returns the number of users.
    ///
    /// # Errors
    /// The value is no number, or the test file has a mistake.
    pub fn users(&self) -> Result<u64> {
        if let Some(test) = self.test()? {
            return Ok(test.threads as u64);
        }
        self.get(USERS).map_or(Ok(1), |users| count(users).context("`users`"))
    }

    /// Makes it an open loop of a rate in requests a second. Without a rate it can be checked, not run.
    pub(super) fn open(&mut self, rate: Option<f64>) {
        // The users of an open loop do not think: the rate sets their pace.
        self.0.remove(THINK);
        self.0.insert(RATE.to_owned(), rate.unwrap_or(1.0).to_string());
    }

    /// Returns the name of the file set, if one is stated.
    pub fn files(&self) -> Option<&str> {
        self.get("files")
    }

    /// Returns the list of the generator's cores, if one is stated.
    pub fn cores(&self) -> Option<&str> {
        self.get("cores")
    }

    /// Returns the password of the account.
    pub fn password(&self) -> Option<&str> {
        self.get("password")
    }

    /// Returns whether new connections over TLS may resume sessions (`on`) or not (`off`), if that is stated.
    pub fn tls_resume(&self) -> Option<&str> {
        self.get(TLS_RESUME)
    }

    /// Returns whether requests download files, one each.
    pub fn is_download(&self) -> bool {
        self.get("mix").is_none()
            && self.get("method").is_none_or(|method| method.eq_ignore_ascii_case("get"))
    }

    /// Returns the think time of a closed loop.
    ///
    /// # Errors
    /// The value is no time.
    pub fn think(&self) -> Result<Duration> {
        self.get(THINK).map_or(Ok(Duration::ZERO), |text| time(text).context("`think`"))
    }

    /// Returns the time that the trial takes by its settings; `None` if it ends by a number of requests.
    ///
    /// # Errors
    /// A value is no time.
    pub fn planned_time(&self) -> Result<Option<Duration>> {
        let warm_up =
            self.get("warm_up").map_or(Ok(Duration::ZERO), |text| time(text).context("`warm_up`"))?;
        let measured = self.get("time").map(|text| time(text).context("`time`")).transpose()?;
        Ok(measured.map(|measured| warm_up + measured))
    }

    /// Refuses settings that contradict each other, and wrong values.
    pub(super) fn check(&self) -> Result<()> {
        let ends = ["time", "requests", "requests_each", "xml"];
        let given: Vec<&str> = ends.into_iter().filter(|name| self.0.contains_key(*name)).collect();
        match given.as_slice() {
            [_] => {}
            [] => bail!("`load` does not say when a trial ends: write `time = \"5s\"` or `requests = 1000`"),
            several => bail!("`load` has {}: leave all but one out", several.join(" and ")),
        }
        ensure!(
            self.0.contains_key("account") == self.0.contains_key("password"),
            "`account` and `password` belong together"
        );
        let is_switch = self.tls_resume().is_none_or(|value| ["on", "off"].contains(&value));
        ensure!(is_switch, "`tls_resume`: write on or off");
        self.users()?;
        self.think()?;
        self.requests()?;
        self.planned_time().map(|_| ())
    }

    /// Returns the number of requests of all users, if that ends the trial.
    ///
    /// # Errors
    /// The value is no number.
    pub fn requests(&self) -> Result<Option<u64>> {
        if let Some(test) = self.test()? {
            return Ok(Some(test.iterations.saturating_mul(test.threads as u64)));
        }
        if let Some(each) = self.get("requests_each") {
            return Ok(Some(count(each).context("`requests_each`")?.saturating_mul(self.users()?)));
        }
        self.get("requests").map(|requests| count(requests).context("`requests`")).transpose()
    }

    /// Returns the generator's arguments for these settings, without the URL and the files.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        for (name, flag) in SETTINGS {
            if let (Some(flag), Some(value)) = (flag, self.get(name)) {
                arguments.extend([flag.to_owned(), value.to_owned()]);
            }
        }
        if self.xml().is_some() {
            arguments.extend(["--xml", STANDARD_INPUT].map(str::to_owned));
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        Settings(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn settings_are_the_generators_flags() {
        let settings =
            settings(&[("users", "8"), ("requests_each", "2000"), ("pick", "same"), ("files", "1K")]);
        settings.check().unwrap();
        let arguments = settings.arguments();
        assert_eq!(arguments, ["--users", "8", "--pick", "same", "--requests-each", "2000"]);
        assert_eq!(settings.planned_time().unwrap(), None);
    }

    #[test]
    fn the_users_and_requests_of_a_test_file_are_those_of_its_test() {
        let test = "<simpleTest><numthreads>4</numthreads><iterations>5</iterations>\
                    <filesToRetrieve><file>/a</file></filesToRetrieve></simpleTest>";
        let one = settings(&[("xml", &format!("<Tests>{test}</Tests>"))]);
        one.check().unwrap();
        assert_eq!((one.users().unwrap(), one.requests().unwrap()), (4, Some(20)));
        assert_eq!(one.arguments(), ["--xml", "/dev/stdin"]);
        let two = settings(&[("xml", &format!("<Tests>{test}{test}</Tests>"))]);
        assert!(two.check().unwrap_err().to_string().contains("a trial is one"));
    }

    #[test]
    fn contradictions_and_wrong_values_are_refused() {
        for (pairs, why) in [
            (vec![("users", "8")], "when a trial ends"),
            (vec![("time", "1s"), ("requests", "5")], "leave all but one out"),
            (vec![("time", "1s"), ("account", "a")], "belong together"),
            (vec![("time", "1")], "`time`"),
            (vec![("requests", "0")], "`requests`"),
            (vec![("time", "1s"), ("users", "many")], "`users`"),
            (vec![("time", "1s"), ("tls_resume", "never")], "on or off"),
            (vec![("xml", "<Tests>")], "line 1"),
            (vec![("xml", "<Tests></Tests>"), ("time", "1s")], "leave all but one out"),
        ] {
            let refused = format!("{:#}", settings(&pairs).check().unwrap_err());
            assert!(refused.contains(why), "{refused}");
        }
        let refused = |text: &str| toml::from_str::<Load>(text).unwrap().check().unwrap_err().to_string();
        assert!(refused("lengths = \"1s\"").contains("warm_up"));
        assert!(refused("warmup = \"1s\"").ends_with("did you mean \"warm_up\"?"));
    }
}
