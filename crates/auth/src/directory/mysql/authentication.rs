//! Authentication at a MySQL server, with the plugin that it requests, and the begin of TLS.
//!
//! Invariants: a password in clear is sent only through a Unix socket, or TLS that the URL demands. It
//! is never sent under a public key that the server itself hands out, because an impostor can do that as
//! well.

use sha1::{Digest as _, Sha1};
use sha2::Sha256;

use super::address::DatabaseAddress;
use super::packets::{Packets, Reader, failed_by, strange};
use crate::directory::database::endpoint::Endpoint;
use crate::directory::database::tls::Encryption;
use crate::directory::{DirectoryError, Fault};
use crate::limits::MYSQL_PACKET_BYTES_MAX;
use plimsoll_rpc::Secret;

const NATIVE: &[u8] = b"mysql_native_password";
const CACHING: &[u8] = b"caching_sha2_password";
/// The kernel tells the server our user, through the Unix socket.
const BY_SOCKET: [&[u8]; 2] = [b"unix_socket", b"auth_socket"];

/// Our capabilities: `LONG_PASSWORD`, `LONG_FLAG`, `CONNECT_WITH_DB`, `PROTOCOL_41`, `TRANSACTIONS`,
/// `SECURE_CONNECTION`, `MULTI_STATEMENTS`, `MULTI_RESULTS`, `PLUGIN_AUTH`.
const CAPABILITIES: u32 =
    0x0001 | 0x0004 | 0x0008 | 0x0200 | 0x2000 | 0x8000 | 0x1_0000 | 0x2_0000 | 0x8_0000;
/// The capability `SSL`.
const TLS: u32 = 0x0800;
/// The collation `binary`: all text is bytes.
const BINARY: u8 = 63;

/// The server's first packet.
pub(super) struct Greeting {
    /// The challenge, hashed with the password so that the proof cannot be replayed.
    scramble: Vec<u8>,
    plugin: Vec<u8>,
    offers_tls: bool,
}

impl Greeting {
    pub(super) fn read(packet: &[u8]) -> Result<Greeting, DirectoryError> {
        let mut reader = Reader(packet);
        if reader.take(1)? != [10] {
            return Err(strange());
        }
        reader.word();
        reader.skip(4)?;
        let mut scramble = reader.take(8)?.to_vec();
        reader.skip(1)?;
        let offers_tls = u32::from(reader.u16()?) & TLS != 0;
        // Collation, status, more capabilities, the length of the challenge, reserved bytes.
        reader.skip(1 + 2 + 2 + 1 + 10)?;
        scramble.extend_from_slice(reader.take(12)?);
        reader.skip(1)?;
        Ok(Greeting { scramble, plugin: reader.word().to_vec(), offers_tls })
    }
}

/// Encrypts the connection, if the URL demands that, or permits it and the server offers it.
pub(super) fn encrypt(
    mut packets: Packets,
    address: &DatabaseAddress,
    greeting: &Greeting,
) -> Result<Packets, DirectoryError> {
    match (address.encryption.connector(greeting.offers_tls).map_err(no_tls)?, &address.place) {
        (Some(connector), Endpoint::Tcp(host, _)) => {
            packets.send(&head(TLS))?;
            packets.encrypt(connector, host)
        }
        _ => Ok(packets),
    }
}

/// Authenticates: answers the server's requests until it accepts.
pub(super) fn authenticate(
    packets: &mut Packets,
    address: &DatabaseAddress,
    greeting: &Greeting,
) -> Result<(), DirectoryError> {
    let first = proof(&greeting.plugin, address, &greeting.scramble).unwrap_or_default();
    packets.send(&introduction(address, greeting, &first))?;
    loop {
        let packet = packets.receive()?;
        let mut reader = Reader(&packet);
        match reader.take(1)? {
            [0] => return Ok(()),
            [0xfe] => {
                let plugin = reader.word();
                let scramble = reader.0.strip_suffix(&[0]).unwrap_or(reader.0);
                packets.send(&proof(plugin, address, scramble)?)?;
            }
            // The server has the password cached, and our proof is right.
            [1] if reader.0 == [3] => {}
            [1] if reader.0 == [4] => packets.send(&plain(address)?)?,
            _ => return Err(strange()),
        }
    }
}

fn refused(why: &str) -> DirectoryError {
    failed_by(Some(Fault::Authentication), why)
}

fn no_tls(why: &str) -> DirectoryError {
    failed_by(Some(Fault::Tls), why)
}

/// The start of our first packet, and all of a request for TLS.
fn head(more_capabilities: u32) -> Vec<u8> {
    let mut packet = (CAPABILITIES | more_capabilities).to_le_bytes().to_vec();
    packet.extend_from_slice(&MYSQL_PACKET_BYTES_MAX.to_le_bytes());
    packet.push(BINARY);
    packet.extend_from_slice(&[0; 23]);
    packet
}

fn introduction(address: &DatabaseAddress, greeting: &Greeting, proof: &[u8]) -> Vec<u8> {
    let is_encrypted = matches!(address.encryption.connector(greeting.offers_tls), Ok(Some(_)));
    let mut packet = head(if is_encrypted { TLS } else { 0 });
    packet.extend_from_slice(address.user.as_bytes());
    // A proof has 20 or 32 bytes.
    packet.extend_from_slice(&[0, u8::try_from(proof.len()).unwrap_or(0)]);
    packet.extend_from_slice(proof);
    for word in [address.database.as_bytes(), &greeting.plugin] {
        packet.extend_from_slice(word);
        packet.push(0);
    }
    packet
}

/// Computes the proof that we know the password.
fn proof(plugin: &[u8], address: &DatabaseAddress, scramble: &[u8]) -> Result<Vec<u8>, DirectoryError> {
    let password = address.password.as_ref().map_or(&[][..], Secret::bytes);
    match plugin {
        _ if BY_SOCKET.contains(&plugin) => Ok(Vec::new()),
        _ if password.is_empty() => Ok(Vec::new()),
        NATIVE => {
            let once = Sha1::digest(password);
            let mixed = Sha1::new().chain_update(scramble).chain_update(Sha1::digest(once)).finalize();
            Ok(mix(&once, &mixed))
        }
        CACHING => {
            let once = Sha256::digest(password);
            let mixed = Sha256::new().chain_update(Sha256::digest(once)).chain_update(scramble).finalize();
            Ok(mix(&once, &mixed))
        }
        _ => Err(refused("it requests an authentication method that is not supported")),
    }
}

fn mix(one: &[u8], other: &[u8]) -> Vec<u8> {
    one.iter().zip(other).map(|(one, other)| one ^ other).collect()
}

/// Returns the password in clear, for a server that has only its hash.
fn plain(address: &DatabaseAddress) -> Result<Vec<u8>, DirectoryError> {
    // TLS that is only preferred may end at an impostor.
    if !matches!((&address.place, &address.encryption), (Endpoint::Unix(_), _) | (_, Encryption::Always(_))) {
        return Err(refused(
            "it asks for the password as it is, which is sent through a Unix socket or TLS only; add \
             sslmode=verify-full to the URL",
        ));
    }
    let password = address.password.as_ref().map_or(&[][..], Secret::bytes);
    Ok([password, &[0]].concat())
}
