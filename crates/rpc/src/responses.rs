//! The responses of a tier, as one type.
//!
//! It does not say which response a request has: that is the tier's. Invariant: a response of another kind
//! than the caller expects is an error.

/// Defines an enum of responses, and for each variant a conversion to its content. The caller imports
/// `serde::{Deserialize, Serialize}`.
#[macro_export]
macro_rules! responses {
    ($responses:ident, $($(#[$doc:meta])* $name:ident($content:ty),)*) => {
        /// A response.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $responses {
            $($(#[$doc])* $name($content),)*
        }

        $(impl TryFrom<$responses> for $content {
            type Error = $responses;

            fn try_from(response: $responses) -> Result<$content, $responses> {
                if let $responses::$name(content) = response { Ok(content) } else { Err(response) }
            }
        })*
    };
}
