//! The auth tier over HTTP: remote fronts send requests, with the secret that only they and this server
//! have.
//!
//! It decides nothing: the RPC server answers. Invariants: a request without the secret reveals nothing;
//! a request is bounded before it is read; operators' requests are not accepted here.

use std::sync::{Arc, OnceLock};

use plimsoll_auth::ask::{Answer as Answered, Question, Told};
use plimsoll_auth::desk::{Desk, News, Watch};
use plimsoll_auth::{Auth, CHANGES, Error, Place, QUESTIONS, Secret, TierSecret, hand_on};
use plimsoll_io::Io;
use plimsoll_proto::http::{Answer, Api, DecodedTarget, PendingAnswer, Request};
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;

use crate::refusal::Refusal;
use crate::{credentials, json};

/// The auth tier's HTTP service for fronts.
pub struct AuthTier {
    secret: TierSecret,
    answers: Answers,
}

/// The component that answers, and its clients.
enum Answers {
    /// This process answers remote fronts. The first request creates the RPC server, because that needs
    /// an engine's clock.
    Fronts { auth: Auth, desk: OnceLock<Arc<Desk>> },
    /// This process answers connection processes of its own program.
    Beside(Auth),
    /// The main process answers remote fronts; this connection process forwards their requests to it.
    Through(Place),
}

impl AuthTier {
    /// Creates the service of `auth` for clients that present `secret`. `auth` must have only one such
    /// service.
    pub fn new(auth: Auth, secret: Secret) -> Arc<AuthTier> {
        let secret = TierSecret::new(secret);
        Arc::new(AuthTier { secret, answers: Answers::Fronts { auth, desk: OnceLock::new() } })
    }

    /// Creates the service for connection processes of this program, which present `secret`.
    pub fn beside(auth: Auth, secret: Secret) -> Arc<AuthTier> {
        Arc::new(AuthTier { secret: TierSecret::new(secret), answers: Answers::Beside(auth) })
    }

    /// Creates a service that forwards requests with `secret` to the tier at `place`, in the main
    /// process of this connection process.
    pub fn through(place: Place, secret: Secret) -> Arc<AuthTier> {
        let secret = TierSecret::of_one_connection(secret);
        Arc::new(AuthTier { secret, answers: Answers::Through(place) })
    }

    async fn serve(&self, request: &mut Request<'_>, path: &[u8]) -> Result<Answer, Refusal> {
        credentials::tier(request, &self.secret, "an authentication server", "plimsoll auth").await?;
        request.authenticated();
        if request.method() != Method::Post {
            return Err(Refusal::method(request.method(), "POST".to_owned()));
        }
        match path {
            path if path == QUESTIONS.as_bytes() => {
                let question = json::read(request).await?;
                Ok(json::answer(Status::OK, &Told::from(self.question(request.io, question).await)))
            }
            path if path == CHANGES.as_bytes() => {
                let watch = json::read(request).await?;
                Ok(json::answer(Status::OK, &Told::from(self.changes(request.io, watch).await)))
            }
            _ => Err(Refusal::new(Status::NOT_FOUND, "There is no such question.")),
        }
    }

    async fn question(&self, io: &Io, question: Question) -> Result<Answered, Error> {
        match &self.answers {
            Answers::Fronts { auth, desk } => desk_of(io, auth, desk).answer(io, question).await,
            Answers::Beside(auth) => auth.answer_beside(io, question).await,
            Answers::Through(place) => hand_on(place, io, QUESTIONS, &question).await,
        }
    }

    async fn changes(&self, io: &Io, watch: Watch) -> Result<News, Error> {
        match &self.answers {
            Answers::Fronts { auth, desk } => desk_of(io, auth, desk).watch(io, watch).await,
            // Connection processes cache nothing, so they need no changes.
            Answers::Beside(_) => Err(Error::NotAllowed),
            Answers::Through(place) => hand_on(place, io, CHANGES, &watch).await,
        }
    }
}

fn desk_of<'a>(io: &Io, auth: &Auth, desk: &'a OnceLock<Arc<Desk>>) -> &'a Desk {
    desk.get_or_init(|| Desk::new(io, auth.clone()))
}

impl Api for AuthTier {
    fn answer<'a>(&'a self, request: &'a mut Request<'_>, called: DecodedTarget<'a>) -> PendingAnswer<'a> {
        Box::pin(async move {
            let answered = self.serve(request, &called.path).await;
            answered.unwrap_or_else(|refusal| refusal.answer(request))
        })
    }

    fn is_private(&self) -> bool {
        true
    }
}
