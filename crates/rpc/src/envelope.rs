//! The JSON of a response: `{"answer": …}`, or `{"error": …}` with the error of the tier.
//!
//! It does not know the types. Invariant: what is encoded is decoded unchanged.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::call_error::CallError;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Envelope<T, E> {
    Answer(T),
    Error(E),
}

/// Encodes the result of a method.
pub fn encode<T: Serialize, E: Serialize>(result: Result<T, E>) -> Vec<u8> {
    // Serialising strings and numbers into memory cannot fail.
    serde_json::to_vec(&result.map_or_else(Envelope::Error, Envelope::Answer)).unwrap_or_default()
}

/// Decodes the result of a method.
///
/// # Errors
/// [`CallError::Malformed`].
pub fn decode<T: DeserializeOwned, E: DeserializeOwned>(json: &[u8]) -> Result<Result<T, E>, CallError> {
    match serde_json::from_slice(json) {
        Ok(Envelope::Answer(response)) => Ok(Ok(response)),
        Ok(Envelope::Error(error)) => Ok(Err(error)),
        Err(_) => Err(CallError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_decoded_as_it_was_encoded() {
        let sent: Result<u32, String> = Err("no".to_owned());
        assert_eq!(encode(sent.clone()), br#"{"error":"no"}"#);
        assert_eq!(decode::<u32, String>(&encode(sent.clone())).unwrap(), sent);
        assert_eq!(decode::<u32, String>(&encode(Ok::<_, String>(7))).unwrap(), Ok(7));
        assert!(matches!(decode::<u32, String>(b"7"), Err(CallError::Malformed)));
    }
}
