//! A protocol whose process asks for accounts by itself.
//!
//! It serves as the protocol does. What must hold: questions are carried for as long as the connection is
//! served.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Handler, Io, LocalFuture, Setup, Stream, join};

use crate::auth::Auth;

struct Asking {
    inner: Rc<dyn Handler>,
    io: Io,
    auth: Auth,
}

/// Has what `setup` makes carry the questions that `auth` is asked, where nobody else does: `auth` is
/// [`Auth::beside`] the process that this one belongs to.
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
