//! The auth tier over HTTP: fronts elsewhere ask, with the secret that they and this server alone know.
//!
//! It decides nothing: the desk answers. What must hold: without the secret nobody learns anything; a
//! question is bounded before it is read; what an operator asks is not asked here.

use std::sync::{Arc, OnceLock};

use plimsoll_auth::ask::{Question, Told};
use plimsoll_auth::desk::{Desk, Watch};
use plimsoll_auth::{Auth, CHANGES, QUESTIONS, Secret};
use plimsoll_proto::http::{Answer, Answering, Api, Called, Request, StatusPage};
use plimsoll_wire::http::head::{Field, Method};
use plimsoll_wire::http::status::Status;

use crate::json;
use crate::refusal::Refusal;

/// What answers fronts.
pub struct AuthTier {
    auth: Auth,
    secret: Secret,
    /// Set up by the first who asks: it needs an engine's clock.
    desk: OnceLock<Arc<Desk>>,
    /// Whether who asks are processes that belong to this one.
    is_beside: bool,
}

impl AuthTier {
    /// Answers whoever shows `secret` from `auth`, of which there is no other such tier.
    pub fn new(auth: Auth, secret: Secret) -> Arc<AuthTier> {
        Arc::new(AuthTier { auth, secret, desk: OnceLock::new(), is_beside: false })
    }

    /// Answers processes that belong to this one, and show `secret`.
    pub fn beside(auth: Auth, secret: Secret) -> Arc<AuthTier> {
        Arc::new(AuthTier { auth, secret, desk: OnceLock::new(), is_beside: true })
    }

    async fn serve(&self, request: &mut Request<'_>, path: &[u8]) -> Result<Answer, Refusal> {
        let shown = request.field(Field::Authorization).unwrap_or_default();
        let shown = shown.strip_prefix(b"Bearer ").map(Secret::from);
        if shown.is_none_or(|shown| shown != self.secret) {
            let refusal = Refusal::new(
                Status::UNAUTHORIZED,
                "This is an authentication server. Show the secret that its fronts share.",
            );
            return Err(refusal.with("WWW-Authenticate", "Bearer realm=\"plimsoll auth\""));
        }
        if request.method() != Method::Post {
            return Err(Refusal::method(request.method(), "POST".to_owned()));
        }
        if self.is_beside {
            let question: Question = json::read(request).await?;
            let answered = self.auth.answer_beside(request.io, question).await;
            return Ok(json::answer(Status::OK, &Told::from(answered)));
        }
        let desk = self.desk.get_or_init(|| Desk::new(request.io, self.auth.clone()));
        match path {
            path if path == QUESTIONS.as_bytes() => {
                let question: Question = json::read(request).await?;
                Ok(json::answer(Status::OK, &Told::from(desk.answer(request.io, question).await)))
            }
            path if path == CHANGES.as_bytes() => {
                let watch: Watch = json::read(request).await?;
                Ok(json::answer(Status::OK, &Told::from(desk.watch(request.io, watch).await)))
            }
            _ => Err(Refusal::new(Status::NOT_FOUND, "There is no such question.")),
        }
    }
}

impl Api for AuthTier {
    fn answer<'a>(
        &'a self,
        request: &'a mut Request<'_>,
        called: Called<'a>,
        _: &'a StatusPage,
    ) -> Answering<'a> {
        Box::pin(async move {
            let answered = self.serve(request, &called.path).await;
            answered.unwrap_or_else(|refusal| refusal.answer(request))
        })
    }

    fn is_private(&self) -> bool {
        true
    }
}
