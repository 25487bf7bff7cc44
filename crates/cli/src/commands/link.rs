//! `plimsoll link`: makes a public link to a path.
//!
//! It only prints the link. Invariant: the password is no argument, because other users see those.

use std::ffi::OsString;

use anyhow::bail;
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::server_args::SessionArgs;
use super::share::time_of;
use crate::output::{print, print_json, text, time};
use crate::password::{PasswordFrom, typed_for};
use crate::plain_password::check_password_channel;
use crate::{RemotePath, Runtime, WrongUsage};
use plimsoll_wire::units::Size;

/// Make a public link to a file or folder; it is shown once
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll link report.pdf
  plimsoll link photos --expires 7d
  plimsoll link report.pdf --password --downloads 3
  plimsoll link report.pdf --password-file ./password
  plimsoll link inbox --upload --bytes 1GiB

Visitors with the link can read the file, or list the folder and read its files, without an account.
With --upload, visitors may send files to the folder, and see none: curl -T FILE URL/
End it with plimsoll unlink ID. It also ends when the file or folder is moved or removed
JSON: {\"id\":\"...\",\"path\":\"/report.pdf\",\"href\":\"/report.pdf\",
       \"permission\":\"read\",
       \"created\":\"...\",\"expires\":null,\"password\":false,\"downloads\":null,\"downloaded\":0,
       \"files\":null,\"uploaded\":0,\"bytes\":null,\"uploaded_bytes\":0,
       \"url\":\"https://files.example/s/...\"}")]
pub struct Link {
    /// The path to link to
    #[arg(value_name = "PATH")]
    path: OsString,
    /// End the link after so long (7d, 12h, 30m), or at a time (2030-12-31T23:59:59Z)
    #[arg(long, value_name = "WHEN")]
    expires: Option<String>,
    /// Permit so many downloads
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    downloads: Option<u64>,
    /// Let visitors upload files to the folder, without seeing those that are there
    #[arg(long, conflicts_with = "downloads")]
    upload: bool,
    /// Permit so many uploaded files; 1000 if not given
    #[arg(long, value_name = "N", requires = "upload", value_parser = clap::value_parser!(u64).range(1..))]
    files: Option<u64>,
    /// Permit so many uploaded bytes, such as 500MiB; 10GiB if not given
    #[arg(long, value_name = "SIZE", requires = "upload")]
    bytes: Option<Size>,
    /// Ask for a password that visitors need
    #[arg(long, conflicts_with = "password_file")]
    password: bool,
    #[command(flatten)]
    password_from: PasswordFrom,
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Returns a link's URL with the scheme that was used. A server behind a proxy may not know it.
fn over_https(url: &Value) -> Value {
    match url.as_str().and_then(|url| url.strip_prefix("http://")) {
        Some(rest) => format!("https://{rest}").into(),
        None => url.clone(),
    }
}

/// A link, as the server sends it.
#[derive(Deserialize)]
struct Made {
    id: String,
    expires: Option<String>,
    url: Option<String>,
}

impl Link {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let place = RemotePath::parse(&self.path)?;
        if place.owner.is_some() {
            return Err(WrongUsage("only what is in one's own home can be linked to".to_owned()).into());
        }
        // Encoded, because JSON cannot represent every name.
        let href = place.target().split_off("/files".len());
        let href = if href.is_empty() { "/".to_owned() } else { href };
        let permission = if self.upload { "upload" } else { "read" };
        let mut body = json!({"href": href, "permission": permission});
        if let Some(files) = self.files {
            body["files"] = files.into();
        }
        if let Some(Size(bytes)) = self.bytes {
            body["bytes"] = bytes.into();
        }
        if let Some(expires) = self.expires.as_deref().map(time_of).transpose()?.flatten() {
            body["expires"] = expires.into();
        }
        if let Some(downloads) = self.downloads {
            body["downloads"] = downloads.into();
        }
        let account = self.session.session()?.account;
        // The variable is for the account's own password: a link has one only if an option says so.
        let (given, is_typed) = (self.password_from.from_file()?, self.password);
        let (mut made, is_https): (Value, bool) = self.session.run(runtime, async move |mut server| {
            if given.is_some() || is_typed {
                check_password_channel(&server).await?;
                body["password"] = given.map_or_else(|| typed_for(&account), Ok)?.into();
            }
            Ok((server.post("/api/links", &body).await?, server.url.is_https()))
        })?;
        if is_https {
            made["url"] = over_https(&made["url"]);
        }
        if self.json {
            return print_json(&made);
        }
        let made: Made = serde_json::from_value(made)?;
        let Some(url) = made.url else { bail!("The server sent no URL for the link {}.", made.id) };
        let until = made.expires.map(|at| format!("It ends at {} UTC. ", time(&at))).unwrap_or_default();
        let (url, id) = (text(url.as_bytes()), text(made.id.as_bytes()));
        print(format!("{url}\n{until}To end it: plimsoll unlink {id}\n"))
    }
}
