//! Input from a client on the control connection: lines, commands and their arguments.
//!
//! Not here: the answers. Invariants: the lines do not depend on how the bytes are split; an accepted
//! argument has the value that a simple reference parser gives.
#![no_main]

use std::net::SocketAddr;

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::ftp::address::{Epsv, eprt_argument, parse_eprt, parse_epsv, parse_port, port_argument};
use plimsoll_wire::ftp::command::{Command, Verb, parse};
use plimsoll_wire::ftp::facts::Facts;
use plimsoll_wire::ftp::flags::list_argument;
use plimsoll_wire::ftp::line::{Lines, TooLong};
use plimsoll_wire::ftp::options::{
    Opts, parse_allo, parse_mfmt, parse_mode, parse_opts, parse_rest, parse_structure, parse_type,
};
use plimsoll_wire::ftp::time::{parse_time, push_time};

const LIMIT: usize = 256;

type Line = Result<Vec<u8>, TooLong>;

fuzz_target!(|bytes: &[u8]| {
    let whole = feed(bytes, [bytes.len()]);
    assert_eq!(whole, feed(bytes, 1..=bytes.len()), "byte by byte");
    let middle = usize::from(bytes.first().copied().unwrap_or_default()) % (bytes.len() + 1);
    assert_eq!(whole, feed(bytes, [middle, bytes.len()]), "in two pieces");
    let ends = bytes.iter().filter(|&&byte| byte == b'\n').count();
    assert!(whole.0.len() <= ends);
    for line in whole.0.into_iter().flatten() {
        assert!(line.len() <= LIMIT && !line.contains(&b'\n'));
        if let Ok(command) = parse(&line) {
            check_command(command, &line);
        }
    }
});

fn feed(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> (Vec<Line>, bool) {
    let mut lines = Lines::default();
    let (mut found, mut at) = (Vec::new(), 0);
    for cut in cuts {
        while at < cut {
            let (consumed, line) = lines.take(&bytes[at..cut], LIMIT);
            assert!(consumed > 0 && (line.is_some() || at + consumed == cut));
            at += consumed;
            found.extend(line);
        }
    }
    (found, lines.is_empty())
}

fn check_command(Command { verb, argument }: Command<'_>, line: &[u8]) {
    assert!(line.ends_with(argument) && line.len() - argument.len() <= "VERB ".len());
    match verb {
        Verb::Port => port(argument),
        Verb::Eprt => eprt(argument),
        Verb::Epsv => epsv(argument),
        Verb::Mdtm => time(argument),
        Verb::Mfmt => mfmt(argument),
        Verb::List | Verb::Nlst | Verb::Stat => list(argument),
        Verb::Opts => opts(argument),
        Verb::Rest | Verb::Allo => numbers(argument),
        _ => {
            let _ = (parse_type(argument), parse_mode(argument), parse_structure(argument));
        }
    }
}

fn port(argument: &[u8]) {
    if let Ok(address) = parse_port(argument) {
        assert_eq!(parse_port(port_argument(address).as_bytes()), Ok(address));
    }
}

fn eprt(argument: &[u8]) {
    if let Ok(address) = parse_eprt(argument) {
        assert_eq!(parse_eprt(eprt_argument(address).as_bytes()), Ok(address));
        let text = std::str::from_utf8(argument).unwrap();
        let mut fields = text[1..text.len() - 1].split(char::from(argument[0])).skip(1);
        let ip = fields.next().unwrap().parse().unwrap();
        assert_eq!(SocketAddr::new(ip, fields.next().unwrap().parse().unwrap()), address);
    }
}

fn epsv(argument: &[u8]) {
    if parse_epsv(argument) == Ok(Epsv::All) {
        assert_eq!(argument.len(), 3);
    }
}

fn time(argument: &[u8]) {
    if let Some(time) = parse_time(argument) {
        let mut written = Vec::new();
        push_time(&mut written, time);
        assert!(argument.starts_with(&written) || argument[12..14] == *b"60" || time.is_zero());
        assert_eq!(parse_time(&written).unwrap().as_secs(), time.as_secs());
    }
}

fn mfmt(argument: &[u8]) {
    if let Ok((modified, path)) = parse_mfmt(argument) {
        let before = &argument[..argument.len() - path.len() - 1];
        assert_eq!(parse_time(before), Some(modified));
    }
    time(argument);
}

fn list(argument: &[u8]) {
    let (flags, path) = list_argument(argument);
    assert!(argument.ends_with(path));
    if !argument.starts_with(b"-") {
        assert!(path == argument && flags == Default::default());
    }
    assert_eq!(list_argument(&[b"-- ", argument].concat()).1, argument, "any name can be asked for");
}

fn opts(argument: &[u8]) {
    if let Ok(Opts::Mlst(facts)) = parse_opts(argument) {
        let reply = facts.opts_text();
        let again = reply.strip_prefix("MLST OPTS").unwrap().trim_start();
        assert_eq!(Facts::parse(again.as_bytes()), facts);
    }
}

fn numbers(argument: &[u8]) {
    if let Ok(number) = parse_rest(argument) {
        assert_eq!(std::str::from_utf8(argument).unwrap().parse(), Ok(number));
        assert_eq!(parse_allo(argument), Ok(number));
    }
    let _ = parse_allo(argument);
}
