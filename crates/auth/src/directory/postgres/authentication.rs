//! Authentication at a PostgreSQL server, with the method that it requests.
//!
//! Invariants: a password is sent only in the form that the server requests. SCRAM succeeds only when the
//! server has proved that it knows the password, too.

use bytes::BytesMut;
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{AuthenticationSaslBody, Message};
use postgres_protocol::message::frontend;

use super::address::DatabaseAddress;
use super::connection::{Connection, broken, refusal};
use crate::directory::DirectoryError;

/// Authenticates: answers the server's requests until it accepts.
pub(super) fn authenticate(
    connection: &mut Connection,
    address: &DatabaseAddress,
) -> Result<(), DirectoryError> {
    match connection.receive()? {
        Message::AuthenticationOk => return Ok(()),
        Message::AuthenticationCleartextPassword => send_password(connection, password(address)?)?,
        Message::AuthenticationMd5Password(asked) => {
            let hash = md5_hash(address.user.as_bytes(), password(address)?, asked.salt());
            send_password(connection, hash.as_bytes())?;
        }
        Message::AuthenticationSasl(asked) => exchange(connection, &asked, password(address)?)?,
        Message::ErrorResponse(body) => return Err(refusal(&body)),
        _ => return Err(broken("it requests an authentication method that is not supported")),
    }
    match connection.receive()? {
        Message::AuthenticationOk => Ok(()),
        Message::ErrorResponse(body) => Err(refusal(&body)),
        _ => Err(broken("it does not say whether the password is right")),
    }
}

fn password(address: &DatabaseAddress) -> Result<&[u8], DirectoryError> {
    let password = address.password.as_ref().map(plimsoll_rpc::Secret::bytes);
    password.ok_or_else(|| broken("it asks for a password, and the URL has none"))
}

fn send_password(connection: &mut Connection, password: &[u8]) -> Result<(), DirectoryError> {
    let mut message = BytesMut::new();
    frontend::password_message(password, &mut message).map_err(broken)?;
    connection.send(&message)
}

/// SCRAM-SHA-256 (RFC 5802, RFC 7677).
fn exchange(
    connection: &mut Connection,
    asked: &AuthenticationSaslBody,
    password: &[u8],
) -> Result<(), DirectoryError> {
    if !asked.mechanisms().any(|name| Ok(name == SCRAM_SHA_256)).map_err(broken)? {
        return Err(broken("it requests an authentication method that is not supported"));
    }
    let mut scram = ScramSha256::new(password, ChannelBinding::unsupported());
    let mut message = BytesMut::new();
    frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), &mut message).map_err(broken)?;
    connection.send(&message)?;
    match connection.receive()? {
        Message::AuthenticationSaslContinue(body) => scram.update(body.data()).map_err(broken)?,
        Message::ErrorResponse(body) => return Err(refusal(&body)),
        _ => return Err(broken("it ended the exchange of proofs")),
    }
    message.clear();
    frontend::sasl_response(scram.message(), &mut message).map_err(broken)?;
    connection.send(&message)?;
    match connection.receive()? {
        Message::AuthenticationSaslFinal(body) => scram.finish(body.data()).map_err(broken),
        Message::ErrorResponse(body) => Err(refusal(&body)),
        _ => Err(broken("it ended the exchange of proofs")),
    }
}
