//! `GET /api/openapi.json`: the description of the API, for generators of clients and tests.
//!
//! It is maintained by hand. Invariant: it must match the server's behaviour; a test walks it.

use plimsoll_proto::http::{Answer, Body};
use plimsoll_wire::http::status::Status;

const DOCUMENT: &[u8] = include_bytes!("openapi.json");

pub(super) fn answer() -> Answer {
    let answer = Answer::new(Status::OK).field("Content-Type", "application/json");
    answer.field("Cache-Control", "no-cache").body(Body::Bytes(DOCUMENT.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::super::POINTS;
    use super::*;

    #[test]
    fn every_point_is_described() {
        let described: serde_json::Value = serde_json::from_slice(DOCUMENT).unwrap();
        for (name, _) in POINTS {
            assert!(described["paths"].get(format!("/api/{name}")).is_some(), "{name}");
        }
        for path in [
            "/api/shares/{id}",
            "/api/links/{id}",
            "/files/",
            "/files/{path}",
            "/shared/",
            "/shared/{owner}/{path}",
        ] {
            assert!(described["paths"].get(path).is_some(), "{path}");
        }
        for path in ["", "/{name}", "/{name}/sessions", "/{name}/shares", "/{name}/links"] {
            let path = format!("/api/operate/accounts{path}");
            assert!(described["paths"].get(&path).is_some(), "{path}");
        }
        for path in ["/api/trash/{id}", "/api/trash/{id}/restore"] {
            assert!(described["paths"].get(path).is_some(), "{path}");
        }
        for path in ["/uploads", "/uploads/{id}", "/metrics", "/healthz", "/readyz", "/api/status"] {
            assert!(described["paths"].get(path).is_some(), "{path}");
        }
    }
}
