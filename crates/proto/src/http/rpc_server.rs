//! The RPC methods of a tier over HTTP: a POST for each call, with the secret that the tier's servers
//! share.
//!
//! It executes no method itself. Invariants: a request without the secret reveals nothing. A request is
//! bounded before it is read. A client that waits long receives interim responses.

use std::sync::Arc;

use plimsoll_rpc::limits::{INTERIM_RESPONSE_INTERVAL, REQUEST_BYTES_MAX};
use plimsoll_rpc::{Call, CallRefused, SecretCheck, SecretRefused, Service};
use plimsoll_wire::http::head::{Field, Method};
use plimsoll_wire::http::status::Status;

use super::answer::{Answer, Body};
use super::api::{Api, DecodedTarget, PendingAnswer};
use super::body::BodyError;
use super::request::Request;
use super::site::refused;
use super::status_page::StatusPage;

/// A tier's RPC server over HTTP.
pub struct RpcServer {
    secret: SecretCheck,
    /// The server, as a refusal names it: "an authentication server".
    name: &'static str,
    /// The command that started it.
    realm: &'static str,
    services: Vec<Arc<dyn Service>>,
    /// Answers paths that are no method's.
    transfers: Option<Arc<dyn Api>>,
}

impl RpcServer {
    /// Creates a server without methods.
    #[must_use]
    pub fn new(secret: SecretCheck, name: &'static str, realm: &'static str) -> RpcServer {
        RpcServer { secret, name, realm, services: Vec::new(), transfers: None }
    }

    /// Adds the methods of a service.
    #[must_use]
    pub fn with(mut self, service: Arc<dyn Service>) -> RpcServer {
        self.services.push(service);
        self
    }

    /// Passes requests for other paths to `transfers`, if they present the secret.
    #[must_use]
    pub fn with_transfers(self, transfers: Arc<dyn Api>) -> RpcServer {
        RpcServer { transfers: Some(transfers), ..self }
    }

    async fn check(&self, request: &Request<'_>) -> Result<(), Answer> {
        let value = request.field(Field::Authorization);
        let presented = value.and_then(|value| value.strip_prefix(b"Bearer "));
        match self.secret.check(request.io, presented, request.peer).await {
            Ok(()) => Ok(()),
            Err(SecretRefused::Wrong) => {
                let detail = format!("This is {}. Show the secret that its fronts share.", self.name);
                let answer = refuse(request, Status::UNAUTHORIZED, &detail);
                Err(answer.field("WWW-Authenticate", format!("Bearer realm=\"{}\"", self.realm)))
            }
            Err(SecretRefused::TooMany { retry_after }) => {
                let detail =
                    "Too many wrong secrets were shown. Give the same --secret-file to both, then wait.";
                // Whole seconds, rounded up: a retry after them is admitted.
                let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
                let answer = refuse(request, Status::TOO_MANY_REQUESTS, detail);
                Err(answer.field("Retry-After", seconds.max(1).to_string()))
            }
        }
    }

    async fn serve(
        &self,
        request: &mut Request<'_>,
        called: DecodedTarget<'_>,
        status: &StatusPage,
    ) -> Answer {
        if let Err(refused) = self.check(request).await {
            return refused;
        }
        request.authenticated();
        let path = str::from_utf8(&called.path).unwrap_or_default();
        match (self.services.iter().find(|service| service.has(path)), &self.transfers) {
            (Some(service), _) => execute(&**service, request, path).await,
            (None, Some(transfers)) => transfers.answer(request, called, status).await,
            (None, None) => no_such_method(request),
        }
    }
}

/// Executes a method.
async fn execute(service: &dyn Service, request: &mut Request<'_>, path: &str) -> Answer {
    if request.method() != Method::Post {
        let answer = refuse(request, Status::METHOD_NOT_ALLOWED, "This path takes POST.");
        return answer.field("Allow", "POST");
    }
    let body = match request.body.bytes(REQUEST_BYTES_MAX).await {
        Ok(body) => body,
        Err(BodyError::TooLong) => {
            let detail = "The body is longer than 64 KiB. Send less.";
            return refuse(request, Status::CONTENT_TOO_LARGE, detail);
        }
        Err(error) => {
            let (status, detail) = error.refusal();
            return refuse(request, status, detail);
        }
    };
    let Call { response, is_aborted_with_client } = match service.call(request.io, path, &body) {
        Ok(call) => call,
        Err(CallRefused::NoSuchMethod) => return no_such_method(request),
        Err(CallRefused::Malformed(error)) => {
            let detail = format!("The body is not what is expected here: {error}.");
            return refuse(request, Status::BAD_REQUEST, &detail);
        }
    };
    if !is_aborted_with_client {
        return respond(request.body.with_interims(INTERIM_RESPONSE_INTERVAL, response).await);
    }
    match request.body.while_connected(Some(INTERIM_RESPONSE_INTERVAL), response).await {
        Some(response) => respond(response),
        // It does not arrive.
        None => respond(Vec::new()),
    }
}

fn respond(json: Vec<u8>) -> Answer {
    let answer = Answer::new(Status::OK).field("Content-Type", "application/json");
    answer
        .field("Cache-Control", "no-store")
        .field("X-Content-Type-Options", "nosniff")
        .body(Body::Bytes(json))
}

fn no_such_method(request: &Request<'_>) -> Answer {
    refuse(request, Status::NOT_FOUND, "There is no such question.")
}

fn refuse(request: &Request<'_>, status: Status, detail: &str) -> Answer {
    refused(request, status, detail).field("Cache-Control", "no-store")
}

impl Api for RpcServer {
    fn answer<'a>(
        &'a self,
        request: &'a mut Request<'_>,
        called: DecodedTarget<'a>,
        status: &'a StatusPage,
    ) -> PendingAnswer<'a> {
        Box::pin(self.serve(request, called, status))
    }

    fn is_private(&self) -> bool {
        true
    }
}
