//! The conditions of a trial: page cache, memory, disk, file system and network.
//!
//! It sets none (the agent does). Invariant: values that contradict each other are refused before anything
//! is started.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::value::{Scalar, count, size, time};

/// The conditions as an experiment file has them; each may contain variables.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// The page cache: `warm`, `cold`, `prefetched`, or `dropped every TIME`.
    pub cache: Option<Scalar>,
    /// The most memory of all processes of a contender, page cache included.
    pub memory: Option<Scalar>,
    /// The most bytes a second that a contender reads from the disk.
    pub disk_read: Option<Scalar>,
    /// The most bytes a second that a contender writes to the disk.
    pub disk_write: Option<Scalar>,
    /// The most operations a second on the disk, of each kind.
    pub disk_operations: Option<Scalar>,
    /// The file system on a loop image that has the files: `ext2`, `ext4` or `xfs`.
    pub file_system: Option<Scalar>,
    /// The size of that image.
    pub image: Option<Scalar>,
    /// The block size of that file system.
    pub block: Option<Scalar>,
    /// The read-ahead of that device.
    pub read_ahead: Option<Scalar>,
    /// The rate of the link between generator and contender, in bits a second.
    pub link: Option<Scalar>,
    /// The MTU of that link in bytes.
    pub mtu: Option<Scalar>,
    /// The one-way delay of that link.
    pub delay: Option<Scalar>,
    /// The share of packets that the link loses, in percent.
    pub loss: Option<Scalar>,
    /// The congestion control of TCP.
    pub congestion: Option<Scalar>,
}

/// The conditions of one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The page cache.
    pub cache: Cache,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// The limits of the disk.
    pub disk: Disk,
    /// The file system on a loop image.
    pub image: Option<Image>,
    /// The link.
    pub link: Option<Link>,
    /// The congestion control.
    pub congestion: Option<String>,
}

/// The page cache of the machine with the contender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// As it is.
    #[default]
    Warm,
    /// Without the files at the start of a trial.
    Cold,
    /// With the files at the start of a trial.
    Prefetched,
    /// Dropped at the start of a trial, and whenever this time has passed.
    Dropped(Duration),
}

/// The limits of the disk, for each second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Bytes that are read.
    pub read: Option<u64>,
    /// Bytes that are written.
    pub write: Option<u64>,
    /// Operations of each kind.
    pub operations: Option<u64>,
}

/// A file system on a loop image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Its kind: `ext2`, `ext4` or `xfs`.
    pub kind: String,
    /// Bytes of the image.
    pub bytes: u64,
    /// Bytes of a block.
    pub block: Option<u64>,
    /// Bytes of the read-ahead.
    pub read_ahead: Option<u64>,
}

/// A link between generator and contender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Bits a second.
    pub rate: Option<u64>,
    /// Bytes of a packet.
    pub mtu: Option<u64>,
    /// The one-way delay.
    pub delay: Option<Duration>,
    /// Percent of packets that are lost.
    pub loss: Option<f64>,
}

const FILE_SYSTEMS: [&str; 3] = ["ext2", "ext4", "xfs"];
/// The units of a link's rate.
const RATES: [(&str, u64); 3] = [("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];

/// Returns whether a condition has this name.
pub fn is_condition(name: &str) -> bool {
    condition_names().contains(&name)
}

/// Returns the names of all conditions.
pub(crate) fn condition_names() -> [&'static str; 14] {
    Conditions::default().all().map(|(name, _)| name)
}

impl Conditions {
    fn all(&self) -> [(&'static str, &Option<Scalar>); 14] {
        [
            ("cache", &self.cache),
            ("memory", &self.memory),
            ("disk_read", &self.disk_read),
            ("disk_write", &self.disk_write),
            ("disk_operations", &self.disk_operations),
            ("file_system", &self.file_system),
            ("image", &self.image),
            ("block", &self.block),
            ("read_ahead", &self.read_ahead),
            ("link", &self.link),
            ("mtu", &self.mtu),
            ("delay", &self.delay),
            ("loss", &self.loss),
            ("congestion", &self.congestion),
        ]
    }

    /// Returns all texts that may have variables.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.all().into_iter().filter_map(|(_, value)| value.as_ref()).map(|value| value.0.as_str())
    }

    /// Returns the conditions with their values. A value `none` is as if it were absent.
    ///
    /// # Errors
    /// A wrong value, or a contradiction.
    pub fn settings(&self, fill: &dyn Fn(&str) -> Result<String>) -> Result<Settings> {
        let text = |value: &Option<Scalar>| -> Result<Option<String>> {
            Ok(value.as_ref().map(|value| fill(&value.0)).transpose()?.filter(|text| text != "none"))
        };
        let bytes = |name: &'static str, value: &Option<Scalar>| -> Result<Option<u64>> {
            text(value)?.map(|text| size(&text).context(name)).transpose()
        };
        let number = |name: &'static str, value: &Option<Scalar>| -> Result<Option<u64>> {
            text(value)?.map(|text| count(&text).context(name)).transpose()
        };
        let link = Link {
            rate: text(&self.link)?.map(|text| rate(&text)).transpose()?,
            mtu: number("`mtu`", &self.mtu)?,
            delay: text(&self.delay)?.map(|text| time(&text).context("`delay`")).transpose()?,
            loss: text(&self.loss)?.map(|text| percent(&text)).transpose()?,
        };
        let (block, read_ahead) = (bytes("`block`", &self.block)?, bytes("`read_ahead`", &self.read_ahead)?);
        let image = match (text(&self.file_system)?, bytes("`image`", &self.image)?) {
            (Some(kind), Some(bytes)) => Some(Image { kind, bytes, block, read_ahead }),
            (Some(_), None) => bail!("`file_system` needs `image`, the size of the image that it is on"),
            (None, None) if block.is_none() && read_ahead.is_none() => None,
            _ => bail!("`image`, `block` and `read_ahead` need `file_system`"),
        };
        if let Some(image) = &image {
            ensure!(
                FILE_SYSTEMS.contains(&image.kind.as_str()),
                "`file_system` must be one of {}",
                FILE_SYSTEMS.join(", ")
            );
        }
        Ok(Settings {
            cache: text(&self.cache)?.map_or(Ok(Cache::Warm), |text| cache(&text))?,
            memory: bytes("`memory`", &self.memory)?,
            disk: Disk {
                read: bytes("`disk_read`", &self.disk_read)?,
                write: bytes("`disk_write`", &self.disk_write)?,
                operations: number("`disk_operations`", &self.disk_operations)?,
            },
            image,
            link: (link != Link::default()).then_some(link),
            congestion: text(&self.congestion)?,
        })
    }
}

fn cache(text: &str) -> Result<Cache> {
    Ok(match text {
        "warm" => Cache::Warm,
        "cold" => Cache::Cold,
        "prefetched" => Cache::Prefetched,
        _ => match text.strip_prefix("dropped every ") {
            Some(every) => Cache::Dropped(time(every).context("`cache`")?),
            None => bail!("`cache` is {text:?}: write warm, cold, prefetched or \"dropped every 60s\""),
        },
    })
}

fn rate(text: &str) -> Result<u64> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = RATES.iter().find(|(name, _)| *name == unit.trim()).map(|(_, bits)| *bits);
    let bits = unit.zip(number.parse::<u64>().ok()).and_then(|(unit, number)| unit.checked_mul(number));
    bits.filter(|bits| *bits > 0)
        .with_context(|| format!("`link` is {text:?}: write a rate such as 10Mbit/s"))
}

fn percent(text: &str) -> Result<f64> {
    let percent = text.trim_end_matches('%').parse().ok().filter(|percent| (0.0..100.0).contains(percent));
    percent.with_context(|| format!("`loss` is {text:?}: write a share of packets such as 0.5%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<Settings> {
        toml::from_str::<Conditions>(text)?.settings(&|text| Ok(text.to_owned()))
    }

    #[test]
    fn conditions_are_read_with_their_units() {
        let all = settings(
            "cache = \"dropped every 60s\"\nmemory = \"64MiB\"\ndisk_read = \"50MB\"\n\
             file_system = \"ext2\"\nimage = \"1GiB\"\nblock = \"1KiB\"\n\
             link = \"10Mbit/s\"\nmtu = 1500\nloss = \"0.5%\"",
        )
        .unwrap();
        assert_eq!(all.cache, Cache::Dropped(Duration::from_secs(60)));
        assert_eq!((all.memory, all.disk.read), (Some(64 << 20), Some(50_000_000)));
        assert_eq!(all.image.unwrap().block, Some(1024));
        let link = all.link.unwrap();
        assert_eq!((link.rate, link.mtu, link.loss), (Some(10_000_000), Some(1500), Some(0.5)));
        assert_eq!(settings("").unwrap(), Settings::default());
        assert_eq!(settings("memory = \"none\"").unwrap(), Settings::default());
    }

    #[test]
    fn wrong_and_contradicting_conditions_are_refused() {
        for (text, why) in [
            ("cache = \"hot\"", "prefetched"),
            ("link = \"10\"", "10Mbit/s"),
            ("link = \"0Mbit/s\"", "10Mbit/s"),
            ("loss = 100", "0.5%"),
            ("block = \"1KiB\"", "need `file_system`"),
            ("file_system = \"ext4\"", "needs `image`"),
            ("file_system = \"ntfs\"\nimage = \"1GiB\"", "ext2, ext4, xfs"),
            ("memory = \"much\"", "`memory`"),
            ("ram = 1", "ram"),
        ] {
            let refused = format!("{:#}", settings(text).unwrap_err());
            assert!(refused.contains(why), "{refused}");
        }
    }
}
