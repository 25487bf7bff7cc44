//! `plimsoll links`: lists the account's public links.
//!
//! It changes nothing, and cannot show a link again. Invariant: each printed link has the id that `unlink`
//! needs.

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::server_args::SessionArgs;
use crate::output::{columns, print, print_json, text, time};
use crate::{ApiClient, Runtime};

/// List your public links
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll links
  plimsoll links --json

JSON: {\"links\":[{\"id\":\"...\",\"path\":\"/report.pdf\",\"href\":\"/report.pdf\",
       \"permission\":\"read\",\"created\":\"...\",\"expires\":null,\"password\":false,\"downloads\":3,
       \"downloaded\":1,\"files\":null,\"uploaded\":0,\"bytes\":null,\"uploaded_bytes\":0}]}")]
pub struct Links {
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A link, as the server sends it.
#[derive(Deserialize)]
struct LinkInfo {
    id: String,
    path: String,
    permission: String,
    expires: Option<String>,
    password: bool,
    downloads: Option<u64>,
    downloaded: u64,
    files: Option<u64>,
    uploaded: u64,
}

/// All links, as the server sends them.
#[derive(Default, Serialize)]
struct LinkList {
    links: Vec<Value>,
}

/// A page of links, and the id for requesting the next page.
#[derive(Deserialize)]
struct Page {
    links: Vec<Value>,
    next: Option<String>,
}

impl Links {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let links = self.session.run(runtime, async |mut server| fetch(&mut server).await)?;
        if self.json {
            return print_json(&links);
        }
        let rows = links.links.into_iter().map(|link| Ok(row(&serde_json::from_value(link)?)));
        print(columns(&rows.collect::<anyhow::Result<Vec<_>>>()?, &[]))
    }
}

/// Requests all links, page by page, and sorts them by path.
async fn fetch(server: &mut ApiClient) -> anyhow::Result<LinkList> {
    let mut all = LinkList::default();
    let mut page: Page = server.get("/api/links").await?;
    loop {
        all.links.append(&mut page.links);
        let is_id = |next: &String| next.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let Some(next) = page.next.filter(is_id) else { break };
        page = server.get(&format!("/api/links?after={next}")).await?;
    }
    let path = |link: &Value| link["path"].as_str().unwrap_or_default().to_owned();
    all.links.sort_by_cached_key(path);
    Ok(all)
}

fn row(link: &LinkInfo) -> Vec<String> {
    let clean = |untrusted: &str| text(untrusted.as_bytes());
    let ends =
        link.expires.as_deref().map_or_else(|| "no end".to_owned(), |at| format!("until {}", time(at)));
    let uses = match (link.downloads, link.files) {
        (Some(max), _) => format!("{} of {max} downloads", link.downloaded),
        (_, Some(max)) => format!("{} of {max} files", link.uploaded),
        _ if link.uploaded > 0 => format!("{} files", link.uploaded),
        _ => "no limit".to_owned(),
    };
    let password = if link.password { "password" } else { "no password" };
    vec![clean(&link.id), clean(&link.permission), ends, uses, password.to_owned(), clean(&link.path)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_link_is_printed_with_its_terms() {
        let link = json!({"id": "1f", "path": "/a b", "permission": "read", "expires": "2030-12-31T23:59:59Z",
            "password": true, "downloads": 3, "downloaded": 1, "files": null, "uploaded": 0});
        let row = row(&serde_json::from_value(link).unwrap()).join("|");
        assert_eq!(row, "1f|read|until 2030-12-31 23:59|1 of 3 downloads|password|/a b");
    }
}
