//! The API over HTTP: accounts, sessions, shares, files, and resumable uploads. With it comes the web page.
//!
//! It decides nothing about rights and accesses no file by itself: it translates HTTP to [`Operations`].
//! Sites and the server's health are in `proto`.
//!
//! Invariants:
//!
//! 1. The caller is authenticated and authorised before the first byte of a body is read.
//! 2. Every refusal has a sentence that tells the client how to proceed. It reveals nothing that the
//!    caller may not know.
//! 3. Content that accounts have stored cannot run code in a browser that displays it.
#![forbid(unsafe_code)]

mod api;
mod body;
mod conditions;
mod credentials;
mod disposition;
mod files;
mod guard;
mod json;
pub mod limits;
mod links;
mod page;
mod refusal;
mod resource;
mod search;
mod store_transfers;
mod uploads;

use std::sync::Arc;

use plimsoll_auth::Permissions;
use plimsoll_operations::Operations;
use plimsoll_proto::http::{
    Answer, Api, DecodedTarget, PendingAnswer, PendingAuthorisation, Request, StatusPage, operators_only,
};
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;

use self::refusal::Refusal;
use self::resource::Resource;
pub use self::store_transfers::with_store;

/// The API. It has no state of its own.
pub struct Web {
    operations: Operations,
}

/// A request that is being routed to its resource.
pub(crate) struct RoutedRequest<'a, 'r> {
    pub(crate) web: &'a Web,
    pub(crate) request: &'a mut Request<'r>,
    pub(crate) called: DecodedTarget<'a>,
    pub(crate) status: &'a StatusPage,
}

impl Web {
    /// Creates the API over these operations.
    pub fn new(operations: Operations) -> Arc<Web> {
        page::load();
        Arc::new(Web { operations })
    }

    async fn serve(&self, mut ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
        let resource = Resource::of(std::mem::take(&mut ask.called.path))?;
        let method = uploads::method(&resource, ask.request);
        let allowed = resource.methods();
        if method == Method::Options {
            let answer = Answer::new(Status::NO_CONTENT).field("Allow", allow(allowed));
            if resource.is_for_webdav() {
                // The second field is Microsoft's: without it, Office opens files for reading only.
                let has_locks = self.operations.auth().has_locks(ask.request.io).await;
                let class = if has_locks { "1, 2" } else { "1" };
                return Ok(answer.field("DAV", class).field("MS-Author-Via", "DAV"));
            }
            return Ok(uploads::described(&resource, answer));
        }
        if !allowed.contains(&method) {
            return Err(Refusal::method(ask.request.method(), allow(allowed)));
        }
        if !matches!(method, Method::Get | Method::Head) {
            guard::check(ask.request, &resource, method)?;
        }
        match resource {
            // Boxed, so that the future of a download, the most frequent request, does not contain all
            // of the others.
            Resource::Root if method == Method::Propfind => Box::pin(files::propfind::root(ask)).await,
            Resource::Root => Box::pin(page::answer(ask, method, page::View::Start)).await,
            Resource::Page(view) => Box::pin(page::answer(ask, method, view)).await,
            Resource::Api(point) => Box::pin(api::answer(ask, method, point)).await,
            Resource::Owners(_) if method == Method::Propfind => Box::pin(files::propfind::owners(ask)).await,
            Resource::Owners(path) => Box::pin(files::owners(ask, path)).await,
            Resource::Files(spot) if matches!(method, Method::Get | Method::Head) => {
                files::get(ask, spot).await
            }
            Resource::Files(spot) if method == Method::Propfind => {
                Box::pin(files::propfind::answer(ask, spot)).await
            }
            Resource::Files(spot) => Box::pin(files::change(ask, method, spot)).await,
            Resource::Link(target) => Box::pin(links::answer(ask, method, target)).await,
            Resource::Uploads => Box::pin(uploads::answer(ask, method, None)).await,
            Resource::Upload(id) => Box::pin(uploads::answer(ask, method, Some(id))).await,
        }
    }
}

/// Whether an account may read metrics and status. `administer` implies `operate`, which such an
/// account could grant to itself.
pub(crate) fn may_read_status(permissions: Permissions) -> bool {
    permissions.operate || permissions.administer
}

/// Returns the value of Allow. OPTIONS is allowed for every resource.
fn allow(methods: &[Method]) -> String {
    let names: Vec<&str> = methods.iter().map(|method| method.as_str()).chain(["OPTIONS"]).collect();
    names.join(", ")
}

impl Api for Web {
    fn authorise_operator<'a>(&'a self, request: &'a mut Request<'_>) -> PendingAuthorisation<'a> {
        Box::pin(async move {
            if !credentials::are_presented(request) {
                return Err(operators_only());
            }
            match credentials::caller(self, request).await {
                Ok(caller) if may_read_status(caller.identity.account.permissions) => Ok(()),
                Ok(_) => Err(operators_only()),
                Err(refusal) => Err(refusal.answer(request)),
            }
        })
    }

    fn has_pages(&self) -> bool {
        true
    }

    fn try_answer(&self, request: &mut Request<'_>, called: &DecodedTarget<'_>) -> Option<Answer> {
        files::try_get(self, request, called)
    }

    fn answer<'a>(
        &'a self,
        request: &'a mut Request<'_>,
        called: DecodedTarget<'a>,
        status: &'a StatusPage,
    ) -> PendingAnswer<'a> {
        Box::pin(async move {
            let (is_tus, is_link) = (uploads::is_below(&called.path), links::is_below(&called.path));
            let answered =
                self.serve(RoutedRequest { web: self, request: &mut *request, called, status }).await;
            let answer = answered.unwrap_or_else(|refusal| match is_link {
                true => links::refused(request, refusal),
                false => page::refused(self, request, refusal),
            });
            match (is_tus, is_link) {
                (true, _) => uploads::versioned(answer),
                (_, true) => links::unlisted(answer),
                _ => answer,
            }
        })
    }
}
