//! A protocol whose process asks for accounts by itself.
//!
//! It serves as the protocol does. What must hold: questions are carried for as long as the connection is
//! served.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_auth::Auth;
use plimsoll_io::{Handler, Io, LocalFuture, Setup, Stream, join};

struct Asking {
    inner: Rc<dyn Handler>,
    io: Io,
    auth: Auth,
}

/// Has what `setup` makes carry the questions that `auth` is asked.
pub(crate) fn asking(setup: Setup, auth: Auth) -> Setup {
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
        // The program is asked by its socket: there is no name to be looked up.
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
