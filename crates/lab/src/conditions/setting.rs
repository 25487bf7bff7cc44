//! The settings of the kernel that conditions change and put back.
//!
//! Invariant: a setting names no file and no bytes, but one of a fixed list and typed values. A journal with
//! other contents restores nothing.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::groups::{Controller, Hierarchy};
use super::limits::ALGORITHM_BYTES_MAX;

/// A setting of the kernel with its value before and after the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KernelSetting {
    /// The groups of version 2 below the root have a controller, which they had not.
    Controller(Controller),
    /// An operation of a loop device is limited, for the processes of the root group of version 1.
    Throttle {
        operation: ThrottledOperation,
        /// The number in the device's name.
        device: u32,
        limit: u64,
    },
    /// The read-ahead of a loop device in KiB.
    ReadAhead {
        /// The number in the device's name.
        device: u32,
        kibibytes: u64,
        before: u64,
    },
    /// Congestion controls of TCP.
    Congestion { of: CongestionOf, algorithms: Algorithms, before: Algorithms },
}

/// An operation of a disk that control groups of version 1 limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ThrottledOperation {
    ReadBytes,
    WriteBytes,
    Reads,
    Writes,
}

/// A setting of congestion controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CongestionOf {
    /// The one of new connections.
    NewConnections,
    /// Those that namespaces may use.
    Namespaces,
}

/// Names of congestion controls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Algorithms(String);

/// The file of a setting, the value that was written, and the one to write back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SettingValues {
    pub(super) file: PathBuf,
    pub(super) written: String,
    pub(super) before: String,
}

impl ThrottledOperation {
    /// Returns the name of its file.
    pub(super) fn file(self) -> &'static str {
        match self {
            ThrottledOperation::ReadBytes => "blkio.throttle.read_bps_device",
            ThrottledOperation::WriteBytes => "blkio.throttle.write_bps_device",
            ThrottledOperation::Reads => "blkio.throttle.read_iops_device",
            ThrottledOperation::Writes => "blkio.throttle.write_iops_device",
        }
    }
}

impl CongestionOf {
    /// Returns the path of its file.
    pub(super) fn file(self) -> &'static Path {
        Path::new(match self {
            CongestionOf::NewConnections => "/proc/sys/net/ipv4/tcp_congestion_control",
            CongestionOf::Namespaces => "/proc/sys/net/ipv4/tcp_allowed_congestion_control",
        })
    }
}

impl TryFrom<String> for Algorithms {
    type Error = String;

    fn try_from(text: String) -> Result<Algorithms, String> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let is_name =
            |word: &str| (1..ALGORITHM_BYTES_MAX).contains(&word.len()) && word.bytes().all(is_plain);
        match text.split(' ').all(is_name) {
            true => Ok(Algorithms(text)),
            false => Err(format!("{text:?} are no names of congestion controls")),
        }
    }
}

impl From<Algorithms> for String {
    fn from(algorithms: Algorithms) -> String {
        algorithms.0
    }
}

impl KernelSetting {
    /// Returns the file and the values; `None` if this kernel has no such file (any more).
    pub(super) fn values(&self) -> Option<SettingValues> {
        let (file, written, before) = match self {
            KernelSetting::Controller(controller) => {
                let Hierarchy::V2(root) = Hierarchy::of(*controller)? else { return None };
                let name = controller.name();
                (root.join("cgroup.subtree_control"), format!("+{name}"), format!("-{name}"))
            }
            KernelSetting::Throttle { operation, device, limit } => {
                let Hierarchy::V1(root) = Hierarchy::of(Controller::Disk)? else { return None };
                let number = fs::read_to_string(loop_device(*device).join("dev")).ok()?;
                let number = number.trim();
                (root.join(operation.file()), format!("{number} {limit}"), format!("{number} 0"))
            }
            KernelSetting::ReadAhead { device, kibibytes, before } => {
                let file = loop_device(*device).join("queue/read_ahead_kb");
                (file, kibibytes.to_string(), before.to_string())
            }
            KernelSetting::Congestion { of, algorithms, before } => {
                (of.file().to_owned(), algorithms.0.clone(), before.0.clone())
            }
        };
        Some(SettingValues { file, written, before })
    }

    /// Changes the setting.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn change(&self) -> Result<()> {
        let SettingValues { file, written, .. } =
            self.values().with_context(|| format!("this kernel has no file for {self:?}"))?;
        fs::write(&file, &written).with_context(|| format!("{} cannot be set to {written:?}", file.display()))
    }
}

/// Returns the folder of a loop device.
pub(super) fn loop_device(number: u32) -> PathBuf {
    Path::new("/sys/block").join(format!("loop{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_with_another_value_than_one_of_its_form_is_not_read() {
        let read = |text: &str| serde_json::from_str::<KernelSetting>(text).ok();
        let congestion = |before: &str| {
            read(&format!(
                r#"{{"congestion":{{"of":"new_connections","algorithms":"reno","before":"{before}"}}}}"#
            ))
        };
        assert!(congestion("cubic").is_some() && congestion("cubic reno bbr").is_some());
        for value in ["", "|/bin/sh", "a/b", "reno\\n", "sixteen_bytes_xx", " "] {
            assert_eq!(congestion(value), None, "{value}");
        }
        assert!(read(r#"{"read_ahead":{"device":1,"kibibytes":64,"before":128}}"#).is_some());
        for text in [
            r#"{"read_ahead":{"device":"../sda","kibibytes":64,"before":128}}"#,
            r#"{"throttle":{"operation":"../../etc/passwd","device":1,"limit":1}}"#,
            r#"{"restore_setting":{"file":"/etc/passwd","written":"a","before":"b"}}"#,
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn the_settings_of_congestion_are_two_files_of_the_kernel() {
        let algorithms = |text: &str| Algorithms::try_from(text.to_owned()).unwrap();
        let (now, before) = (algorithms("reno"), algorithms("cubic"));
        let setting = KernelSetting::Congestion { of: CongestionOf::NewConnections, algorithms: now, before };
        let values = setting.values().unwrap();
        assert_eq!((values.written.as_str(), values.before.as_str()), ("reno", "cubic"));
        assert_eq!(values.file, Path::new("/proc/sys/net/ipv4/tcp_congestion_control"));
    }
}
