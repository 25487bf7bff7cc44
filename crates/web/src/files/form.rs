//! POST of `multipart/form-data` to a folder: the files of an HTML form, and of `curl -F`.
//!
//! Each file is a separate upload. Invariant: a file of the form is stored whole or not at all, in that
//! folder.

use std::pin::pin;

use plimsoll_io::{Io, Lease};
use plimsoll_operations::{Caller, Error, HomePath, IncomingUpload, Parents};
use plimsoll_proto::http::{Answer, Request, site};
use plimsoll_store::limits::NAME_BYTES_MAX;
use plimsoll_store::{Condition, Error as StoreError, Expected, Path};
use plimsoll_wire::http::form::{BadForm, Event, FormDecoder};
use plimsoll_wire::http::form_urlencoded::value_of;
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encode_path;
use serde::Serialize;

use super::{FileTarget, if_field};
use crate::limits::{FORM_NAMES_MAX, FORM_PARTS_MAX};
use crate::links::drop::hidden_upload;
use crate::refusal::Refusal;
use crate::{RoutedRequest, Web, conditions, json, page};

/// The JSON of a stored file.
#[derive(Serialize)]
pub(crate) struct Stored {
    path: String,
    etag: String,
    created: bool,
}

#[derive(Serialize)]
struct AllStored {
    files: Vec<Stored>,
}

/// A form that is being received.
struct Receiving<'a> {
    web: &'a Web,
    caller: &'a Caller,
    folder: &'a HomePath,
    clash: Clash,
    /// The upload of the current part; `None` between files, and for parts that are not files.
    upload: Option<IncomingUpload>,
    parts: usize,
    /// The length and digests of each file.
    expected: Expected,
    stored: Vec<Stored>,
}

/// What happens to a file whose name is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clash {
    /// It replaces the other.
    Replace,
    /// It is refused.
    Refuse,
    /// It gets a number: `a (2).txt`.
    Rename,
}

impl Clash {
    /// Parses `clash=replace`, which is the default, `clash=refuse` and `clash=rename`.
    fn from_query(query: Option<&[u8]>) -> Result<Clash, Refusal> {
        match query.and_then(|query| value_of(query, "clash")).as_deref() {
            None | Some(b"replace") => Ok(Clash::Replace),
            Some(b"refuse") => Ok(Clash::Refuse),
            Some(b"rename") => Ok(Clash::Rename),
            Some(_) => Err(Refusal::bad("\"clash\" must be replace, refuse or rename.")),
        }
    }
}

/// Returns the name with a number before its ending. A name that gets too long loses the end of its stem.
fn numbered(name: &[u8], number: usize) -> Vec<u8> {
    let number = format!(" ({number})");
    let most = NAME_BYTES_MAX.saturating_sub(number.len());
    let is_ending = |dot: &usize| *dot > 0 && name.len() - *dot < most;
    let dot = name.iter().rposition(|byte| *byte == b'.').filter(is_ending).unwrap_or(name.len());
    let (stem, ending) = name.split_at(dot);
    let most = stem.len().min(most - ending.len());
    // No character of UTF-8 is cut. A name may be of other bytes.
    let is_boundary = |at: &usize| stem.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    let kept = (0..=most).rev().find(is_boundary).unwrap_or(most);
    [&stem[..kept], number.as_bytes(), ending].concat()
}

/// Returns a number that no file is likely to have.
fn drawn_number(io: &Io) -> usize {
    let mut drawn = [0; 4];
    io.entropy(&mut drawn);
    usize::try_from(u32::from_le_bytes(drawn)).unwrap_or(FORM_NAMES_MAX)
}

/// Starts an upload to a folder, under the first free name.
pub(crate) async fn begin_renamed(
    web: &Web,
    request: &Request<'_>,
    (caller, folder): (&Caller, &HomePath),
    (name, expected): (&[u8], Expected),
) -> Result<IncomingUpload, Refusal> {
    let (clash, stored) = (Clash::Rename, Vec::new());
    let receiving = Receiving { web, caller, folder, clash, expected, upload: None, parts: 0, stored };
    receiving.begin(request, name).await
}

impl From<BadForm> for Refusal {
    fn from(bad: BadForm) -> Refusal {
        Refusal::bad(bad.to_string())
    }
}

pub(super) async fn post(mut ask: RoutedRequest<'_, '_>, target: FileTarget) -> Result<Answer, Refusal> {
    let caller = if_field::caller(&mut ask, &target).await?;
    let clash = Clash::from_query(ask.called.query)?;
    let stored = receive(ask.web, ask.request, (&caller, &target.place), clash).await?;
    if site::wants_page(ask.request) {
        // The form of the page leads back to the folder.
        let mut folder = Vec::new();
        encode_path(&target.path, &mut folder);
        return Ok(page::go_to(page::LocalTarget::of(&folder).with_notice("uploaded")));
    }
    Ok(json::answer(Status::CREATED, &AllStored { files: stored }))
}

/// Receives a form, and stores its files in a folder.
pub(crate) async fn receive(
    web: &Web,
    request: &mut Request<'_>,
    (caller, folder): (&Caller, &HomePath),
    clash: Clash,
) -> Result<Vec<Stored>, Refusal> {
    let Some(decoder) = FormDecoder::of(request.field(Field::ContentType).unwrap_or_default()) else {
        return Err(Refusal::new(
            Status::UNSUPPORTED_MEDIA_TYPE,
            "Send files to a folder as multipart/form-data, as curl -F does; or PUT each.",
        ));
    };
    let mut decoder = decoder?;
    let mut receiving = Receiving {
        web,
        caller,
        folder,
        clash,
        expected: Expected { bytes: None, digests: Vec::new() },
        upload: None,
        parts: 0,
        stored: Vec::new(),
    };
    let mut events = Vec::new();
    while !decoder.is_ended() {
        let Some(lease) = receiving.next(request).await? else {
            return Err(Refusal::bad("The form ends before its last boundary. Send it again."));
        };
        decoder.push(&lease, &mut events)?;
        for event in events.drain(..) {
            receiving.take(request, event).await?;
        }
    }
    if receiving.stored.is_empty() {
        return Err(Refusal::bad("The form has no file. Send one, as curl -F file=@NAME does."));
    }
    Ok(receiving.stored)
}

impl Receiving<'_> {
    /// Receives the next bytes of the form.
    async fn next(&mut self, request: &mut Request<'_>) -> Result<Option<Lease>, Refusal> {
        let received = pin!(request.body.recv());
        let received = match &mut self.upload {
            Some(upload) => upload.meanwhile(received).await,
            None => Ok(received.await),
        };
        Ok(received.map_err(|error| self.fail(error))??)
    }

    fn is_visitor(&self) -> bool {
        self.caller.identity.link().is_some()
    }

    /// Ends the upload of the current part with an error, and reports the error.
    fn fail(&mut self, error: Error) -> Refusal {
        let error = match self.upload.take() {
            Some(upload) => upload.fail(error),
            None => error,
        };
        if self.is_visitor() { hidden_upload(error) } else { error.into() }
    }

    async fn take(&mut self, request: &Request<'_>, event: Event) -> Result<(), Refusal> {
        match event {
            Event::Part { filename } => {
                self.parts += 1;
                if self.parts > FORM_PARTS_MAX {
                    return Err(Refusal::new(
                        Status::CONTENT_TOO_LARGE,
                        "The form has too many parts. Send at most 1,000 at once.",
                    ));
                }
                // A form without a chosen file has a part with an empty name.
                if let Some(name) = filename.filter(|name| !name.is_empty()) {
                    self.upload = Some(self.begin(request, &name).await?);
                }
            }
            Event::Data(bytes) => {
                if let Some(upload) = &mut self.upload {
                    let written = upload.write(Lease::owned(bytes)).await;
                    written.map_err(|error| self.fail(error))?;
                }
            }
            Event::PartEnd => self.commit(request).await?,
            Event::End => {}
        }
        Ok(())
    }

    async fn begin(&self, request: &Request<'_>, name: &[u8]) -> Result<IncomingUpload, Refusal> {
        // Some clients send the path of the file on their side.
        let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if name.is_empty() {
            return Err(Refusal::bad(
                "A file of the form has a name that ends with a slash. Send it under another.",
            ));
        }
        let begun = match self.clash {
            Clash::Replace => self.begin_as(name, Condition::none()).await?,
            Clash::Refuse => self.begin_as(name, Condition::none().and_new()).await?,
            Clash::Rename => self.begin_numbered(name).await?,
        };
        begun.map_err(|error| self.explain(request, error))
    }

    fn place_of(&self, name: &[u8]) -> Result<HomePath, Refusal> {
        let path = Path::parse(&[self.folder.path.as_bytes(), name].join(&b'/'))?;
        Ok(HomePath { path, ..self.folder.clone() })
    }

    async fn begin_as(
        &self,
        name: &[u8],
        condition: Condition,
    ) -> Result<Result<IncomingUpload, Error>, Refusal> {
        let (place, expected) = (self.place_of(name)?, self.expected.clone());
        Ok(self.web.operations.upload(self.caller, (&place, Parents::Needed), condition, expected).await)
    }

    /// Begins an upload under the first free name. A visitor of a public link must not learn how many files
    /// have the name, also not by the time that this takes: the second name that is tried is drawn.
    async fn begin_numbered(&self, name: &[u8]) -> Result<Result<IncomingUpload, Error>, Refusal> {
        let last = if self.is_visitor() { 2 } else { FORM_NAMES_MAX };
        for number in 1..last {
            let free = if number == 1 { name.to_vec() } else { numbered(name, number) };
            let (place, expected) = (self.place_of(&free)?, self.expected.clone());
            match self.web.operations.upload_if_free(self.caller, &place, expected).await {
                Ok(None) => {}
                Ok(Some(mut begun)) => {
                    // Another upload may take the name meanwhile.
                    begun.set_spare_name(numbered(name, drawn_number(self.caller.io())));
                    return Ok(Ok(begun));
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        let number = if self.is_visitor() { drawn_number(self.caller.io()) } else { last };
        self.begin_as(&numbered(name, number), Condition::none().and_new()).await
    }

    fn explain(&self, request: &Request<'_>, error: Error) -> Refusal {
        match error {
            error if self.is_visitor() => hidden_upload(error),
            Error::Store(StoreError::Precondition) if self.clash != Clash::Replace => {
                Error::Store(StoreError::AlreadyExists).into()
            }
            error => conditions::explain(request, false, error),
        }
    }

    async fn commit(&mut self, request: &Request<'_>) -> Result<(), Refusal> {
        let Some(upload) = self.upload.take() else { return Ok(()) };
        let (path, spare_path) = (format!("/{}", upload.to()), upload.spare_path());
        let committed = upload.commit().await;
        let committed = committed.map_err(|error| self.explain(request, error))?;
        let path = if committed.has_spare_name { spare_path.unwrap_or(path) } else { path };
        let etag = plimsoll_content::etag(&committed.stat);
        self.stored.push(Stored { path, etag, created: committed.created });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{NAME_BYTES_MAX, numbered};

    #[test]
    fn a_numbered_name_has_its_ending_and_at_most_255_bytes() {
        assert_eq!(numbered(b"a.txt", 2), b"a (2).txt");
        assert_eq!(numbered(b".profile", 2), b".profile (2)");
        let (long, umlauts) = (["a".repeat(251), ".txt".to_owned()].concat(), "\u{e4}".repeat(127));
        assert_eq!(
            numbered(long.as_bytes(), 2),
            ["a".repeat(247), " (2).txt".to_owned()].concat().as_bytes()
        );
        assert_eq!(
            numbered(umlauts.as_bytes(), 2),
            ["\u{e4}".repeat(125), " (2)".to_owned()].concat().as_bytes()
        );
        let (continued, dots) = ([0x80; NAME_BYTES_MAX], [b'.'; NAME_BYTES_MAX]);
        assert_eq!(numbered(&continued, 2), [&continued[..NAME_BYTES_MAX - 4], b" (2)"].concat());
        assert_eq!(numbered(&dots, 2).len(), NAME_BYTES_MAX);
    }
}
