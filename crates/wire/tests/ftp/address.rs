//! Addresses of data connections.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};

use plimsoll_wire::ftp::address::{
    BadAddress, Epsv, eprt_argument, epsv_text, parse_eprt, parse_epsv, parse_epsv_text, parse_pasv_text,
    parse_port, pasv_text, port_argument,
};
use proptest::prelude::*;

fn v4(text: &str) -> SocketAddrV4 {
    text.parse().unwrap()
}

#[test]
fn port_has_six_decimal_bytes() {
    assert_eq!(parse_port(b"132,235,1,2,24,131"), Ok(v4("132.235.1.2:6275")));
    assert_eq!(
        parse_port(b"0,0,0,0,0,0"),
        Ok(v4("0.0.0.0:0")),
        "which addresses are allowed is said elsewhere"
    );
    for bad in [
        "",
        "1,2,3,4,5",
        "1,2,3,4,5,6,7",
        "1,2,3,4,5,256",
        "1,2,3,4,5,-6",
        "1,2,3,4,5,",
        ",1,2,3,4,5",
        "1,2,3,4,5,6 ",
        " 1,2,3,4,5,6",
        "1.2.3.4,5,6",
        "a,2,3,4,5,6",
        "1,2,3,4,5,0x6",
    ] {
        assert_eq!(parse_port(bad.as_bytes()), Err(BadAddress::Form), "{bad}");
    }
    assert_eq!(BadAddress::Form.code(), 501);
}

#[test]
fn eprt_has_three_fields_delimited_by_its_first_byte() {
    for (good, address) in [
        ("|1|132.235.1.2|6275|", "132.235.1.2:6275"),
        ("|2|1080::8:800:200C:417A|5282|", "[1080::8:800:200c:417a]:5282"),
        ("!1!127.0.0.1!65535!", "127.0.0.1:65535"),
        ("~2~::1~0~", "[::1]:0"),
        ("|2|::ffff:127.0.0.1|1|", "[::ffff:127.0.0.1]:1"),
    ] {
        assert_eq!(parse_eprt(good.as_bytes()), Ok(address.parse().unwrap()), "{good}");
    }
    for bad in [
        "",
        "|",
        "||||",
        "|1|127.0.0.1|21",
        "1|127.0.0.1|21|",
        "|1|127.0.0.1|21||",
        "|1|127.0.0.1|21|x",
        "|1|::1|21|",
        "|2|127.0.0.1|21|",
        "|1|127.0.0.1|65536|",
        "|1|127.0.0.1|-1|",
        "|1|127.0.0.1||",
        "|1||21|",
        "||127.0.0.1|21|",
        "|1|127.1|21|",
        "|1|0127.0.0.1|21|",
        "|x|127.0.0.1|21|",
        " 1 127.0.0.1 21 ",
        ".1.127.0.0.1.21.",
        "|2|[::1]|21|",
        "|2|fe80::1%eth0|21|",
        "|1|localhost|21|",
    ] {
        assert_eq!(parse_eprt(bad.as_bytes()), Err(BadAddress::Form), "{bad}");
    }
}

#[test]
fn only_printable_delimiters_outside_the_fields_are_accepted() {
    for delimiter in 0..=255u8 {
        let argument = [b"|1|127.0.0.1|21|".map(|byte| if byte == b'|' { delimiter } else { byte })].concat();
        // A digit or the point would stand in the fields, too.
        let is_good = (33..=126).contains(&delimiter) && !b".0127".contains(&delimiter);
        assert_eq!(parse_eprt(&argument).is_ok(), is_good, "{delimiter}");
    }
}

#[test]
fn an_unknown_network_protocol_has_its_own_reply_code() {
    for other in ["|3|127.0.0.1|21|", "|0|x|y|", "|18446744073709551615|x|y|"] {
        assert_eq!(parse_eprt(other.as_bytes()), Err(BadAddress::Protocol), "{other}");
    }
    assert_eq!(parse_epsv(b"3"), Err(BadAddress::Protocol));
    assert_eq!(BadAddress::Protocol.code(), 522);
    assert!(BadAddress::Protocol.to_string().contains("(1,2)"));
}

#[test]
fn epsv_accepts_no_argument_a_protocol_or_all() {
    for (argument, epsv) in
        [("", Epsv::Same), ("1", Epsv::V4), ("2", Epsv::V6), ("ALL", Epsv::All), ("all", Epsv::All)]
    {
        assert_eq!(parse_epsv(argument.as_bytes()), Ok(epsv), "{argument}");
    }
    for bad in [" ", "1 ", "ALL ", "IPv4", "-1", "|1|"] {
        assert_eq!(parse_epsv(bad.as_bytes()), Err(BadAddress::Form), "{bad}");
    }
}

#[test]
fn passive_replies_have_the_texts_of_the_rfcs() {
    assert_eq!(pasv_text(v4("10.0.0.1:258")), "Entering Passive Mode (10,0,0,1,1,2).");
    assert_eq!(epsv_text(6446), "Entering Extended Passive Mode (|||6446|)");
}

#[test]
fn a_client_parses_the_passive_replies_of_known_servers() {
    for text in ["Entering Passive Mode (1,2,3,4,5,6).", "Entering Passive Mode 1,2,3,4,5,6", "=1,2,3,4,5,6"]
    {
        assert_eq!(parse_pasv_text(text.as_bytes()), Some(v4("1.2.3.4:1286")), "{text}");
    }
    for bad in
        ["", "Entering Passive Mode", "(1,2,3,4,5)", "(1,2,3,4,5,6,7)", "2 (1,2,3,4,5,6)", "(1,2,3,4,5,999)"]
    {
        assert_eq!(parse_pasv_text(bad.as_bytes()), None, "{bad}");
    }
    for (text, port) in [
        ("Entering Extended Passive Mode (|||6446|)", Some(6446)),
        ("Listens (!!!1!)", Some(1)),
        ("(|2|::1|7|)", Some(7)),
    ] {
        assert_eq!(parse_epsv_text(text.as_bytes()), port, "{text}");
    }
    for bad in [
        "",
        "|||6446|",
        "(|||6446)",
        "(|||0|)",
        "(|||65536|)",
        "(||||)",
        "(||6446|)",
        "()",
        ")(",
        "(|||6446|",
    ] {
        assert_eq!(parse_epsv_text(bad.as_bytes()), None, "{bad}");
    }
}

proptest! {
    #[test]
    fn written_addresses_parse_to_the_same(ip4 in any::<u32>(), ip6 in any::<u128>(), port in any::<u16>()) {
        let address = SocketAddrV4::new(Ipv4Addr::from(ip4), port);
        prop_assert_eq!(parse_port(port_argument(address).as_bytes()), Ok(address));
        prop_assert_eq!(parse_pasv_text(pasv_text(address).as_bytes()), Some(address));
        for address in [SocketAddr::V4(address), SocketAddr::new(Ipv6Addr::from(ip6).into(), port)] {
            prop_assert_eq!(parse_eprt(eprt_argument(address).as_bytes()), Ok(address));
        }
        prop_assert_eq!(parse_epsv_text(epsv_text(port).as_bytes()), Some(port).filter(|port| *port != 0));
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in any::<Vec<u8>>()) {
        let _ = (parse_port(&bytes), parse_eprt(&bytes), parse_epsv(&bytes));
        let _ = (parse_pasv_text(&bytes), parse_epsv_text(&bytes));
    }
}
