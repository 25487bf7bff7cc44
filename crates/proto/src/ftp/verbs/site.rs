//! SITE: "This command is used by the server to provide services specific to his system that are essential
//! to file transfer but not sufficiently universal to be included as commands in the protocol" (RFC 959,
//! section 4.1.3).

use std::time::Duration;

use plimsoll_wire::ftp::time::parse_time;

use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) async fn execute(c: &mut Conversation<'_>, argument: &[u8]) -> CommandResult {
    let end = argument.iter().position(|&byte| byte == b' ').unwrap_or(argument.len());
    let (word, rest) = argument.split_at(end);
    let rest = rest.get(1..).unwrap_or_default();
    match word.to_ascii_uppercase().as_slice() {
        b"UTIME" => {
            let (modified, path) = parse_utime(rest).ok_or(BAD_UTIME)?;
            super::mfmt::set(c, modified, path).await?;
            Ok(Reply::new(200, "The time is set."))
        }
        // 200, because clients that set modes after each upload take a refusal for a failed upload.
        b"CHMOD" | b"UMASK" => {
            Ok(Reply::new(200, "Nothing changed: files have no modes here, they are shared or not."))
        }
        b"HELP" => Ok(Reply::lines(214, "After SITE there are:", help(), "And no others.")),
        _ => Err(Reply::new(504, "There is no such SITE command; SITE HELP lists those that there are.")),
    }
}

const BAD_UTIME: Reply = Reply::new(501, "Say SITE UTIME YYYYMMDDHHMMSS PATH, in UTC.");

fn help() -> Vec<Vec<u8>> {
    let lines = ["UTIME YYYYMMDDHHMM[SS] PATH", "UTIME PATH ACCESSED MODIFIED CREATED UTC", "HELP"];
    lines.map(|line| line.as_bytes().to_vec()).to_vec()
}

/// Parses the two forms that clients send: a time and a path, or a path and three times, of which the second
/// is the modification time.
fn parse_utime(argument: &[u8]) -> Option<(Duration, &[u8])> {
    parse_short_utime(argument).or_else(|| parse_long_utime(argument))
}

fn parse_short_utime(argument: &[u8]) -> Option<(Duration, &[u8])> {
    let at = argument.iter().position(|&byte| byte == b' ')?;
    let (time, path) = (&argument[..at], &argument[at + 1..]);
    let seconds: &[u8] = if time.len() == 12 { b"00" } else { b"" };
    let modified = parse_time(&[time, seconds].concat())?;
    (!path.is_empty()).then_some((modified, path))
}

fn parse_long_utime(argument: &[u8]) -> Option<(Duration, &[u8])> {
    let mut words = argument.rsplitn(5, |&byte| byte == b' ');
    let is_utc = words.next()?.eq_ignore_ascii_case(b"UTC");
    let times = [words.next()?, words.next()?, words.next()?].map(parse_time);
    let path = words.next().filter(|path| !path.is_empty() && is_utc)?;
    match times {
        [Some(_), Some(modified), Some(_)] => Some((modified, path)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_utime_yield_the_path_and_the_modification_time() {
        let at = |time: &[u8]| parse_time(time).unwrap();
        for (argument, time, path) in [
            ("20260102030405 a b", "20260102030405", "a b"),
            ("202601020304 a", "20260102030400", "a"),
            ("a b 20200101000000 20260102030405 20210101000000 UTC", "20260102030405", "a b"),
        ] {
            let read = parse_utime(argument.as_bytes());
            assert_eq!(read, Some((at(time.as_bytes()), path.as_bytes())), "{argument}");
        }
    }

    #[test]
    fn a_malformed_utime_is_rejected() {
        for argument in [
            "",
            "a",
            "20260102030405",
            "20260102030405 ",
            "20261302030405 a",
            "2026010203 a",
            "a 20200101000000 20260102030405 20210101000000",
            "a 20200101000000 20260102030405 20210101000000 CET",
            "a 20200101000000 x 20210101000000 UTC",
            " 20200101000000 20260102030405 20210101000000 UTC",
        ] {
            assert_eq!(parse_utime(argument.as_bytes()), None, "{argument}");
        }
    }
}
