//! A connection handler that also runs the RPC client task, in a process of its own.
//!
//! It serves as the wrapped handler does. Invariant: requests are carried for as long as the connection
//! is served.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Handler, Io, LocalFuture, Setup, Stream, join};

use crate::auth::Auth;

struct Asking {
    inner: Rc<dyn Handler>,
    io: Io,
    auth: Auth,
}

/// Wraps the handlers of `setup` so that they also carry the requests made to `auth`. For a process that
/// serves one connection, where `auth` is [`Auth::beside`] and no other task carries them.
pub fn asking(setup: Setup, auth: Auth) -> Setup {
    Arc::new(move |io| {
        let (inner, auth) = (setup(io.clone()), auth.clone());
        Rc::new(Asking { inner, io, auth }) as Rc<dyn Handler>
    })
}

impl Handler for Asking {
    fn serve(&self, stream: Stream) -> LocalFuture {
        self.inner.serve(stream)
    }

    fn refuse(&self, stream: Stream) -> LocalFuture {
        self.inner.refuse(stream)
    }

    fn background(&self) -> LocalFuture {
        // The main process is reached by its socket: no host name is resolved.
        match self.auth.courier(&self.io, None) {
            Some(courier) => {
                let inner = self.inner.background();
                Box::pin(async move {
                    join(inner, courier).await;
                })
            }
            None => self.inner.background(),
        }
    }
}
