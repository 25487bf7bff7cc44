//! Counts the connections that a handler serves, for engines that do not count them.
//!
//! A connection counts from its acceptance until its task is gone, also by a panic. A parked connection
//! must not count.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_io::{Handler, LocalFuture, Parked, Resume, Setup, Stream};

struct Counted {
    inner: Rc<dyn Handler>,
    open: Arc<AtomicUsize>,
}

struct One(Arc<AtomicUsize>);

impl Drop for One {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counted {
    fn count(&self, serving: LocalFuture) -> LocalFuture {
        self.open.fetch_add(1, Ordering::Relaxed);
        let one = One(Arc::clone(&self.open));
        Box::pin(async move {
            let _one = one;
            serving.await;
        })
    }
}

impl Handler for Counted {
    fn serve(&self, stream: Stream) -> LocalFuture {
        self.count(self.inner.serve(stream))
    }

    fn resume(&self, stream: Stream, parked: Parked, action: Resume) -> LocalFuture {
        self.count(self.inner.resume(stream, parked, action))
    }

    fn refuse(&self, stream: Stream) -> LocalFuture {
        self.inner.refuse(stream)
    }

    fn background(&self) -> LocalFuture {
        self.inner.background()
    }
}

/// Wraps `setup` so that its open connections are counted in `open`.
pub(crate) fn counted(setup: Setup, open: &Arc<AtomicUsize>) -> Setup {
    let open = Arc::clone(open);
    Arc::new(move |io| Rc::new(Counted { inner: setup(io), open: Arc::clone(&open) }))
}
